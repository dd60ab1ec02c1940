"""Cost of the live view: the part of a run's processor time that reporting takes.

    python -m bench.perf.live [--quick]

Runs of a density of about a microsecond by default settings (a Python function), and of compiled
ones, in a terminal (its text goes nowhere), with lines, and with a function that does nothing. The
time is that within the look at the draws, the making of a Progress and the view.
"""

import io
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import fastkam as fk
from bench.papers.record import heading, options, table, write
from fastkam.progress import Terminal
from fastkam.progress.monitor import Monitor
from fastkam.progress.reporter import Reporter
from fastkam.run.loop import Run

REPORTING = ((Monitor, "look"), (Run, "progress"), (Reporter, "__call__"))


class Nowhere(io.StringIO):
    def write(self, text):
        return len(text)


VIEWS = {"terminal": lambda: Terminal(Nowhere()), "lines": lambda: None,
         "function": lambda: lambda progress: None}


@contextmanager
def timed():
    """Return a list of the seconds spent on reports."""
    found, originals = [0.0], [(cls, name, getattr(cls, name)) for cls, name in REPORTING]
    for cls, name, original in originals:
        def wrapper(*args, original=original, **named):
            begun = time.thread_time()
            try:
                return original(*args, **named)
            finally:
                found[0] += time.thread_time() - begun

        setattr(cls, name, wrapper)
    try:
        yield found
    finally:
        for cls, name, original in originals:
            setattr(cls, name, original)


def density(x):
    return -0.5 * float(x @ x)


def cases(scale):
    """Names of runs, and their targets, dimensions and options."""
    compiled = fk.targets.Gaussian(np.zeros(16), np.eye(16))
    yield "Python density of 1 us, d = 2, defaults", density, 2, {"draws": int(1e6 * scale)}
    yield "compiled, d = 16, ram", compiled, 16, {
        "sampler": "ram", "draws": int(4e6 * scale), "threads": 1}
    yield "compiled, d = 16, ram, 1000 chains", compiled, 16, {
        "sampler": "ram", "draws": int(2e4 * scale), "chains": 1000, "threads": 1}
    yield "compiled, d = 16, nuts", compiled, 16, {
        "sampler": "nuts", "draws": int(3e5 * scale), "threads": 1}


def rows(scale):
    warnings.simplefilter("ignore")
    for name, target, d, given in cases(scale):
        for view, made in VIEWS.items():
            with timed() as within:
                begun = time.process_time()
                result = fk.sample(target, np.zeros(d), seed=1, progress=made(), keep_warmup=False,
                                   **{"diagnose": False} | given)
                whole = time.process_time() - begun
            yield [name, view, f"{whole:.1f}", f"{1e9 * whole / result.evaluations:.0f}",
                   f"{100 * within[0] / whole:.2f} %"]


def main():
    chosen = options(__file__, __doc__, quick="runs of a tenth of the length")
    found = []
    for row in rows(0.1 if chosen.quick else 1.0):
        found.append(row)
        print(*row, sep=", ", flush=True)
    columns = ["run", "view", "seconds", "ns an evaluation", "for the view"]
    write(Path(__file__).parent.parent / chosen.folder.name / "live.md",
          heading("The cost of the live view", "python -m bench.perf.live", chosen) + "\n"
          + table(columns, found))


if __name__ == "__main__":
    main()
