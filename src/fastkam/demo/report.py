"""What the demonstrations share: headings, tables, verdicts, speeds and saved files."""

from __future__ import annotations

import textwrap

import numpy as np

import fastkam as fk
from fastkam.diagnostics.table import aligned

GOOD_R_HAT = 1.01
GOOD_ESS = 400
WIDTH = 88


def heading(text):
    """Print a heading."""
    print(f"\n{text}\n{'-' * len(text)}")


def say(text):
    """Print sentences, broken into lines."""
    print(textwrap.fill(text, WIDTH))


def table(header, rows):
    """Print rows of texts under a header, indented."""
    print("\n" + indented(aligned([header, *rows])) + "\n")


def indented(text):
    """Each line of `text` two columns further right."""
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def sampled(*arguments, **options):
    """What fastkam.sample returns; where the user interrupts it, KeyboardInterrupt instead."""
    result = fk.sample(*arguments, **options)
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return result


def verdict(summary):
    """One honest sentence on whether the chains agree and suffice."""
    r_hat, ess = summary["r_hat"], summary["ess_bulk"]
    stuck = [label for label, sd in zip(summary.labels, summary["sd"], strict=True) if sd == 0]
    if stuck:
        return f"{stuck[0]} has never moved: the chains are stuck, or it can have one value only."
    if np.isnan(r_hat).any():
        return "R-hat is unknown for some coordinates: more chains, or more draws, would tell."
    if not (r_hat <= GOOD_R_HAT).all():
        return (
            f"R-hat reaches {r_hat.max():.3f}, above {GOOD_R_HAT}: the chains do not agree yet, "
            "so the table is provisional."
        )
    if not (ess >= GOOD_ESS).all():
        return (
            f"The chains agree (R-hat at most {r_hat.max():.3f}), but the least effective size, "
            f"{ess.min():.0f}, is small: quantiles are rough."
        )
    return f"The chains agree: R-hat is at most {r_hat.max():.3f}, ESS at least {ess.min():.0f}."


def speed(result):
    """How many evaluations, in which time, and so how many a second, in words."""
    rate = result.evaluations / max(result.seconds, 1e-9)
    return (
        f"{grouped(result.evaluations)} evaluations by {result.chains} chains in "
        f"{result.seconds:.2g} s: {grouped(rate)} a second, "
        f"{grouped(rate / result.chains)} a chain."
    )


def grouped(number):
    """A count with thin groups: 1 234 567; above 1000 only three digits count."""
    whole = round(number)
    if whole >= 1000:
        places = len(str(whole)) - 3
        whole = round(whole, -places)
    return f"{whole:,}".replace(",", " ")


def save(result, figure, folder, name):
    """Write the result and what ``figure()`` draws to the folder; print both paths."""
    path = folder / f"{name}.fk"
    result.save(path)
    print(f"  draws   {path}")
    try:
        drawn = figure()
    except ImportError as error:
        print(f"  figure  none: {error}")
        return
    path = folder / f"{name}.png"
    drawn.savefig(path, dpi=150)
    print(f"  figure  {path}")
