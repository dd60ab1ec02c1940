"""A benchmark in parts: each part yields rows of one table, which becomes a page."""

import warnings
from pathlib import Path

import fastkam as fk
from bench.papers.record import heading, options, table, write

IN_WORDS = {3: "three", 5: "five"}


def main(file, about, title, parts, rounds, apart=()):
    """Measure the parts, print their rows, and write the page if all were measured.

    Parameters
    ----------
    file, about : str
        ``__file__`` and ``__doc__`` of the benchmark.
    title : str
        Heading of the page.
    parts : dict of str to callable
        ``part(rounds)`` yields rows: a label, and a processor time as a text.
    rounds : int
        Number of rounds; 1 with ``--quick``.
    apart : tuple of str
        Parts that are measured only by ``--only``.
    """
    warnings.simplefilter("ignore", fk.SamplingWarning)  # short runs are timed too
    chosen = options(file, about, quick=f"one round in place of {IN_WORDS[rounds]}",
                     only=tuple(parts))
    rows = []
    for name, part in parts.items():
        if chosen.only == name or (chosen.only is None and name not in apart):
            for row in part(1 if chosen.quick else rounds):
                rows.append(row)
                print(*row, flush=True)
    if chosen.only is None:
        name = Path(file).stem
        page = Path(file).parent.parent / chosen.folder.name / f"{name}.md"
        write(page, heading(title, f"python -m bench.perf.{name}", chosen) + "\n"
              + table(["", "processor time"], rows))
