"""The part of a run that its verdict takes, without further evaluations."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

import fastkam as fk
from bench.papers.record import table
from fastkam.diagnostics import checks

ROUNDS = 25
RUNS = [(sampler, d) for sampler in ("auto", "am", "nuts") for d in (2, 5, 10)]


def density(x):
    return -0.5 * float(x @ x)


def with_gradient(x):
    return -0.5 * float(x @ x), -x


class Timed:
    """The findings on a run, and the seconds of processor time that they take."""

    def __init__(self, findings: Any) -> None:
        self.findings, self.seconds, self.n = findings, 0.0, 0

    def __call__(self, state: Any) -> Any:
        begun = time.process_time()
        found = self.findings(state)
        self.seconds += time.process_time() - begun
        self.n += 1
        return found


def row(sampler: str, d: int, rounds: int) -> list[str]:
    """A row of the table: medians of runs of several seeds."""
    target = with_gradient if sampler == "nuts" else density
    findings, found = checks.findings, []
    for seed in range(rounds + 1):
        timed = checks.findings = Timed(findings)
        begun = time.process_time()
        try:
            result = fk.sample(target, np.zeros(d), sampler=sampler, seed=seed, progress=False)
        finally:
            checks.findings = findings
        whole = time.process_time() - begun
        found.append([timed.seconds / whole, whole, timed.seconds, timed.n, result.evaluations])
    part, whole, seconds, n, evaluations = np.median(found[1:], axis=0)
    return [f"`{sampler}`, d = {d}", f"{evaluations:,.0f}", f"{1e3 * whole:.0f} ms",
            f"{1e3 * seconds:.2f} ms", f"{n:.0f}", f"{100 * part:.1f} %"]


def cost_text(quick: bool) -> str:
    """The table of the cost of verdicts, as Markdown."""
    warnings.simplefilter("ignore", fk.SamplingWarning)
    rounds = 3 if quick else ROUNDS
    return "\n".join([
        "Calls of `fk.sample(f, x0)` with a sampler and all else by default, of a normal density "
        "as a Python function of about a microsecond. Processor time, medians of "
        f"{rounds} seeds; the search is part of the run. A run that is doubled is checked again.\n",
        table(["run", "evaluations", "run", "checks", "how many", "part of the run"],
              [row(*one, rounds) for one in RUNS])])
