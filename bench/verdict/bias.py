"""The bias that it brings to stop a run by a rule that looks at its draws."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import fastkam as fk
from bench.papers.record import table

RUNS = 1000
MOST = 20_000       # draws a chain
RULES = {
    "Done()": fk.stop.Done(),
    "ESS(400)": fk.stop.ESS(400),
    "ESS(100)": fk.stop.ESS(100),
    "ESS(400, of=\"both\")": fk.stop.ESS(400, of="both"),
    "Rhat(1.01)": fk.stop.Rhat(1.01),
    "MCSE({\"x\": 0.05})": fk.stop.MCSE({"x": 0.05}),
}


def gamma(x):
    """Gamma(3, 1), which is skewed: mean 3, sd sqrt(3)."""
    return 2 * np.log(x[0]) - x[0] if x[0] > 0 else -np.inf


def normal(x):
    return -0.5 * (x[0] - 3) ** 2


TARGETS = {"gamma": (gamma, 3.0, np.sqrt(3.0)), "normal": (normal, 3.0, 1.0)}


def estimates(
    target: str, rule: Any, draws: int, seed: int
) -> tuple[float, float, float, float, int]:
    """Mean and sd of a short run, their stated errors, and the draws a chain."""
    density, _, _ = TARGETS[target]
    result = fk.sample(density, np.array([[2.0], [3.0], [4.0], [5.0]]), sampler="am", tune=300,
                       draws=draws, stop=rule, search=False, names=["x"], seed=seed,
                       progress=False, diagnose=False)
    known = result.summary()
    mean, sd, error, error_of_sd = (
        float(known[name][0]) for name in ("mean", "sd", "mcse_mean", "mcse_sd"))
    return mean, sd, error, error_of_sd, result.trace.rows


def bias(target: str, found: Any) -> tuple[float, float, float]:
    """(bias of means, of standard deviations, in stated errors; the standard error of either)."""
    _, mean, sd = TARGETS[target]
    values = np.array(found)
    off = values[:, :2] - [mean, sd]
    size = values[:, 2:4].mean(axis=0)
    of_mean, of_sd = off.mean(axis=0) / size
    return float(of_mean), float(of_sd), float((off.std(axis=0, ddof=1) / size).max()
                                               / np.sqrt(len(off)))


def bias_text(quick: bool) -> str:
    """The table of the bias of each rule, as Markdown."""
    runs = 50 if quick else RUNS
    rows = []
    with ProcessPoolExecutor(2) as pool:

        def found(rule: Any, draws: int, first: int) -> Any:
            made = pool.map(partial(estimates, target, rule, draws), range(first, first + runs),
                            chunksize=25)
            return np.array(list(made))

        for target in TARGETS:
            for name, rule in RULES.items():
                ended = found(rule, MOST, 0)
                draws = int(ended[:, 4].mean())
                fixed = found(None, draws, runs)
                ours, theirs = bias(target, ended), bias(target, fixed)
                rows.append([target, f"`{name}`", f"{runs}", f"{draws}",
                             f"{ours[0]:+.3f}", f"{ours[1]:+.3f}", f"{theirs[0]:+.3f}",
                             f"{theirs[1]:+.3f}", f"{ours[2]:.3f}"])
                print(*rows[-1], sep=" | ", flush=True)
    return "\n".join([
        "Short runs of `am` that a rule ends, of a gamma density of shape 3 and of a normal one: "
        "the mean over runs of the error of the mean, and of the standard deviation (sd), in units "
        "of the mean stated error; beside them that of as many runs of a fixed length, the mean "
        "of the others (the sd of few draws is too small by itself); and the standard error of "
        "these figures.\n",
        table(["density", "rule", "runs", "draws a chain", "mean, by the rule", "sd, by the rule",
               "mean, fixed", "sd, fixed", "standard error"], rows)])
