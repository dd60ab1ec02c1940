"""A report of a run: one HTML file with summary, findings, figures, settings and versions.

The file needs no other file and no network: figures are embedded, and its content security policy
forbids browsers to load anything. All names and texts of the user are escaped.
"""

from __future__ import annotations

import base64
import io
import os
import platform
import warnings
from dataclasses import fields
from datetime import datetime
from html import escape
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

import numpy as np

from fastkam import plots
from fastkam._version import __version__
from fastkam.diagnostics.agreement import LEAST_ESS, MOST_R_HAT, WRONG_R_HAT
from fastkam.diagnostics.checks import rejected_points
from fastkam.diagnostics.draws import OUTER_QUANTILES
from fastkam.diagnostics.table import Summary
from fastkam.parameters import Parameters, brief
from fastkam.plots.select import worst_first
from fastkam.run.files import check_output, replacing
from fastkam.run.lazy import distance
from fastkam.samplers.exchange import Coupled
from fastkam.samplers.jumps import ModeJumping

if TYPE_CHECKING:
    from fastkam.result import Result
    from fastkam.samplers import Sampler

DPI = 100
MOST_ROWS = 300  # of the table, those with the smallest effective sample sizes
MOST_ELEMENTS = 50  # of an extra, the first ones
MOST_LETTERS = 2000  # characters of a setting
LEAST_DRAWS = 4  # for figures and the table
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 0 auto;
       max-width: 1000px; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; border-bottom: 1px solid #ccc; }
.about { color: #555; margin: 0 0 1rem; }
.verdict { overflow-wrap: anywhere; padding: .6rem .9rem; border-left: 6px solid #0072B2;
           background: #eef5fa; }
.verdict.bad { border-color: #D55E00; background: #fdf1ea; }
.verdict ul { margin: .3rem 0; padding-left: 1.2rem; }
.wide { overflow-x: auto; max-height: 34rem; overflow-y: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .7rem; text-align: right; white-space: nowrap; }
thead th { position: sticky; top: 0; background: #fff; border-bottom: 1px solid #888; }
tbody tr:nth-child(even) { background: #f5f5f5; }
td.bad { font-weight: bold; color: #a33f00; }
.settings th, .settings td, th:first-child { text-align: left; vertical-align: top; }
.wide tbody th { white-space: normal; overflow-wrap: anywhere; min-width: 7rem; }
.settings td { white-space: pre-wrap; overflow-wrap: anywhere; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; }
figcaption { color: #555; font-size: .9rem; max-width: 46rem; }
pre { background: #f5f5f5; padding: .7rem; overflow-x: auto; }
@media print { .wide { max-height: none; } h2, figure { break-inside: avoid; } }
"""


def write_report(result: Result, path: str | os.PathLike[str], title: str | None = None) -> None:
    """Write the report of a result to the HTML file `path`: see `Result.report`."""
    check_output("path", path)
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a text, not {type(title).__name__}")
    text = page(result, title or "A run of fastkam")
    with replacing(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


def page(result: Result, title: str) -> str:
    """The report as HTML."""
    enough = result.trace.rows >= LEAST_DRAWS
    table = result.summary() if enough else None
    parts = [
        f"<h1>{escape(title)}</h1>", f'<p class="about">{escape(about(result))}</p>',
        judged(result, table),
        *(tables(result, table) if table is not None else []),
        section("Figures", figures(result)) if enough else "",
        section("Settings", settings(result)),
        section("Versions", rows_of(versions())),
        section("How to cite", citation(result)),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(part for part in parts if part) + "\n</body></html>\n")


def section(title: str, body: str) -> str:
    return f"<h2>{title}</h2>\n{body}"


def count(number: int, what: str) -> str:
    """1 chain, 4 chains"""
    return f"{number:,}".replace(",", "\u202f") + f" {what}{'' if number == 1 else 's'}"


def about(result: Result) -> str:
    """Describe the run in one line."""
    when = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    return (f"{type(result.sampler).__name__}: {count(result.chains, 'chain')} of "
            f"{count(result.trace.rows, 'draw')} in {count(result.d, 'dimension')}, "
            f"{result.status}. {count(result.evaluations, 'evaluation')} of the density in "
            f"{result.seconds:.3g} s. Written {when}.")


# ---- the verdict and the summary ----


def judged(result: Result, table: Summary | None) -> str:
    """The verdict on the run, with its reasons; the notes have the numbers of the table below."""
    verdict = result.verdict()
    notes = [one.text for one in verdict.reasons] if table is None else table.notes
    items = "".join(f"<li>{escape(text)}</li>" for text in notes)
    return (f'<div class="verdict{"" if verdict.status == "ok" else " bad"}">'
            f"<b>{escape(verdict.heading if table is None else table.verdict)}</b>"
            + (f"<ul>{items}</ul>" if items else "") + "</div>")


def tables(result: Result, table: Summary) -> list[str]:
    """The sections of the summary, and of that of extras if there are any."""
    least_bad = least_bad_r_hat(result, table)
    found = [section("Summary", table_of(table, least_bad))]
    names, notes = shown_extras(result)
    if names:
        step = distance(result.draws) if result.log_weights is None else 1
        more = result.table(*result.selected(names, step), OUTER_QUANTILES)
        said = "".join(f"<p>{escape(text)}</p>" for text in [*notes, *more.notes])
        found.append(section("Extras and derived quantities", table_of(more, least_bad) + said))
    return found


def shown_extras(result: Result) -> tuple[list[str], list[str]]:
    """Names of extras, or of the first elements of long ones, and notes on those left out."""
    names: list[str] = []
    notes: list[str] = []
    for name in result.extras:
        labels = result.labels_of(name)
        if len(labels) > MOST_ELEMENTS:
            notes.append(f"The first {MOST_ELEMENTS} of {len(labels)} elements of {name}.")
            names += labels[:MOST_ELEMENTS]
        elif labels:
            names.append(name)
    return names, notes


def least_bad_r_hat(result: Result, table: Summary) -> float:
    """The value above which R-hat is marked: that of the findings, with which marks agree.

    Of weighted draws, and of many short chains that agree in groups, only large values are found.
    """
    told = any(one.kind == "r_hat" for one in result.warnings)
    above = bool((table["r_hat"] > MOST_R_HAT).any()) or result.log_weights is not None
    return WRONG_R_HAT if above and not told else MOST_R_HAT


def table_of(table: Summary, least_bad: float = MOST_R_HAT) -> str:
    """A summary as a table; R-hat above `least_bad` and small sample sizes are marked."""
    shown, d = np.arange(len(table)), len(table)
    note = ""
    if d > MOST_ROWS:
        ess = np.fmin(table["ess_bulk"], table["ess_tail"])
        shown = np.sort(worst_first(ess, table["sd"])[:MOST_ROWS])
        note = (f"<p>{MOST_ROWS} of {d} coordinates, those with the smallest effective sample "
                "sizes.</p>")
    head = "".join(f"<th>{escape(name)}</th>" for name in ("", *table.columns))
    body = []
    for i in shown:
        cells = "".join(td(name, table[name][i], text, least_bad)
                        for name, text in table.row_of_cells(i).items())
        body.append(f"<tr><th>{escape(table.labels[i])}</th>{cells}</tr>")
    return (f'{note}<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>'
            f"{''.join(body)}</tbody></table></div>")


def td(name: str, value: float, text: str, least_bad: float) -> str:
    """One cell of the summary."""
    bad = (name == "r_hat" and value > least_bad) or (
        name.startswith("ess") and value < LEAST_ESS)
    mark = ' class="bad"' if bad else ""
    return f"<td{mark}>{escape(text)}</td>"


# ---- figures ----


def figures(result: Result) -> str:
    """All figures that fit the result, as images within the page."""
    weighted, result = result.log_weights is not None, result.equally_weighted()
    parts = [] if not weighted else [
        "<p>The figures show draws that were resampled in proportion to their weights.</p>"]
    try:
        for plot, caption in wanted(result, weighted):
            parts.append(f'<figure><img alt="{escape(caption.partition(":")[0])}" '
                         f'src="data:image/png;base64,{image(plot(result))}">'
                         f"<figcaption>{escape(caption)}</figcaption></figure>")
    except ImportError as error:
        return f"<p>There are no figures: {escape(str(error))}.</p>"
    return "\n".join(parts)


def wanted(result: Result, weighted: bool = False) -> list[tuple[Any, str]]:
    """[(function of the result that draws, caption)]

    Draws that were resampled by weights have another effective sample size than the weighted ones
    have, and are repeated: no figure shows how they mix.
    """
    found: list[tuple[Any, str]] = [
        (plots.plot_trace, "Traces, histograms and ranks: chains that agree have rank bars of "
                           "equal height."),
    ]
    if result.d > 1:
        found.append((plots.plot_pair, "Pairs of coordinates: the contours hold 50 % and 90 % of "
                                       "the draws."))
    if hasattr(result.target, "mode_of"):
        found.append((plots.plot_modes, "Modes: the share of the draws in each, and which mode "
                                        "each draw was in."))
    found += [] if weighted else [
        (plots.plot_ess, "Effective sample size: it grows in proportion to the draws where the "
                         "chains have mixed."),
        (plots.plot_autocorr, "Autocorrelation: the band holds 95 % of the values for independent "
                              "draws."),
    ]
    if any(len(values[0]) > 1 and (values != values[:, :1]).any()
           for name, values in result.adaptation.items() if name != "step"):
        found.append((plots.plot_adaptation, "Adaptation: what the sampler learned in warm-up, in "
                                             "its units (after transforms, divided by "
                                             "result.scales). It should have settled at the right "
                                             "edge."))
    if any(isinstance(one, Coupled) for one in kinds(result.sampler)):
        found.append((plots.plot_ladder, "Ladder of the tempering: swap rates should be nearly "
                                         "equal, and round trips many."))
    return found


def image(figure: Any) -> str:
    """A figure as a PNG, in base64."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        # warnings about a layout too narrow for long labels, and characters that the font lacks
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(file, format="png", dpi=DPI, pil_kwargs={"optimize": True})
    return base64.b64encode(file.getvalue()).decode("ascii")


# ---- settings, versions, references ----


def rows_of(pairs: dict[str, Any]) -> str:
    """A table of names and values."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(shortened(str(value)))}</td></tr>"
                   for name, value in pairs.items())
    return f'<table class="settings"><tbody>{rows}</tbody></table>'


def shortened(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]} ..."


def worded(value: Any) -> str:
    """The call that makes a parameter object, without defaults; large arrays by their shape."""
    if not isinstance(value, Parameters):
        return brief(value)
    kind: Any = type(value)
    words = []
    for one in fields(kind):
        given = getattr(value, one.name)
        if one.init and (isinstance(given, np.ndarray) or given != one.default):
            words.append(f"{one.name}={worded(given)}")
    return f"{type(value).__name__}({', '.join(words)})"


def settings(result: Result) -> str:
    """The settings of the run, as a table."""
    pairs = {
        "sampler": worded(result.sampler),
        "schedule": worded(result.schedule),
        "guarantee": result.schedule.guarantee,
        "chains": result.chains,
        "draws a chain": f"{result.trace.rows} of {result.requested}",
        "warm-up steps": result.tune,
        "steps for each draw": result.thin,
        "chains learn as one": "yes" if result.share else "no",
        "seed": result.state.seed.entropy,
        "bit generator": result.state.bit_generator,
        "mean acceptance": ", ".join(f"{value:.2f}" for value in result.acceptance[:20])
        + (", ..." if result.chains > 20 else ""),
        "parameters": "\n".join(
            name + (f" {shape}" if shape else "") for name, shape in result.shapes.items()),
        "search before the run": "\n".join(result.search),
        "points without a density": rejected_points(result),
    }
    return rows_of({name: value for name, value in pairs.items() if value != ""})


def versions() -> dict[str, str]:
    """Versions of the software that writes the report."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"fastkam": __version__,
             "Python": f"{platform.python_version()} ({platform.python_implementation()})"}
    for name in ("numpy", "scipy", "numba", "arviz-stats", "matplotlib"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found | {"machine": f"{platform.system()} {platform.machine()}"}


def kinds(sampler: Sampler) -> list[Sampler]:
    """A sampler and those within it."""
    inner = [] if not hasattr(sampler, "parts") else sampler.parts()
    return [sampler, *(one for part in inner for one in kinds(part))]


def references(sampler: Sampler) -> list[str]:
    """The papers of a sampler and of those within it, each a paragraph of its documentation."""
    found = []
    for one in kinds(sampler):
        text = cleandoc(type(one).__doc__ or "").partition("References\n----------\n")[2]
        papers = [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
        found += [f"{type(one).__name__}: {paper}" for paper in papers]
    return list(dict.fromkeys(found))


def citation(result: Result) -> str:
    """A sentence for a paper, its references, and a BibTeX entry."""
    name = type(result.sampler).__name__
    around = " around " if isinstance(result.sampler, (ModeJumping, Coupled)) else " with "
    inner = list(dict.fromkeys(type(one).__name__ for one in kinds(result.sampler)[1:]))
    words = name + (around + ", ".join(inner) if inner else "")
    warm = f"after {count(result.tune, 'step')} of warm-up" if result.tune else "without warm-up"
    text = (f"We made {count(result.chains, 'chain')} of {count(result.trace.rows, 'draw')} "
            f"{warm} with {words} of fastkam {__version__}.")
    year = datetime.now().year
    entry = (f"@software{{fastkam,\n  author  = {{{{The fastkam developers}}}},\n"
             f"  title   = {{fastkam: adaptive {{MCMC}} at compiled speed}},\n"
             f"  version = {{{__version__}}},\n  year    = {{{year}}},\n}}")
    listed = [*references(result.sampler),
              "R-hat and effective sample sizes: Vehtari, A., Gelman, A., Simpson, D., Carpenter, "
              "B. and Bürkner, P.-C. (2021). Rank-normalization, folding, and localization: an "
              "improved R-hat. Bayesian Analysis 16, 667-718."]
    items = "".join(f"<li>{escape(one)}</li>" for one in listed)
    return f"<p>{escape(text)}</p>\n<ul>{items}</ul>\n<pre>{escape(entry)}</pre>"
