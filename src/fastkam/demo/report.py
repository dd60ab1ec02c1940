"""Parts shared by the demonstrations: headings, tables, speeds and saved files."""

from __future__ import annotations

import re
import textwrap

import fastkam as fk
from fastkam.arguments import counted
from fastkam.diagnostics.table import aligned

WIDTH = 88


def heading(text):
    """Print a heading."""
    print(f"\n{text}\n{'-' * len(text)}")


def say(text):
    """Print sentences, broken into lines, but not within a number."""
    whole = re.sub(r"(?<=\d) (?=\d{3}\b)", "\0", text)
    print(textwrap.fill(whole, WIDTH).replace("\0", " "))


def table(header, rows):
    """Print rows of texts under a header, indented."""
    print("\n" + indented(aligned([header, *rows])) + "\n")


def indented(text):
    """Each line of `text` two columns further right."""
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def sampled(*arguments, **options):
    """Call fastkam.sample; raise KeyboardInterrupt where the user interrupts it."""
    result = fk.sample(*arguments, **options)
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return result


def speed(result):
    """Number of evaluations, the time they took, and their rate, as a text."""
    rate = result.evaluations / max(result.seconds, 1e-9)
    return (
        f"{grouped(result.evaluations)} evaluations by {counted(result.chains, 'chain')} in "
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
