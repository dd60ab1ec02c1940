"""The bias of runs that are ended by a rule on their draws."""

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
    "MCSE({\"x\": 0.1})": fk.stop.MCSE({"x": 0.1}),
}


def gamma(x):
    """Gamma(3, 1), which is skewed: mean 3, sd sqrt(3)."""
    return 2 * np.log(x[0]) - x[0] if x[0] > 0 else -np.inf


def normal(x):
    return -0.5 * (x[0] - 3) ** 2


TARGETS = {"gamma": (gamma, 3.0, np.sqrt(3.0)), "normal": (normal, 3.0, 1.0)}


def sampled(target: str, rule: Any, draws: int, seed: int) -> fk.Result:
    """A short run of `am`."""
    density, _, _ = TARGETS[target]
    return fk.sample(density, np.array([[2.0], [3.0], [4.0], [5.0]]), sampler="am", tune=300,
                     draws=draws, stop=rule, search=False, names=["x"], seed=seed, threads=1,
                     progress=False, diagnose=False)


def estimates(target: str, rule: Any, seed: int) -> tuple[float, float, float, float, int]:
    """Mean and sd of a run that a rule ends, their stated errors, and the draws a chain."""
    result = sampled(target, rule, MOST, seed)
    known = result.summary()
    mean, sd, error, error_of_sd = (
        float(known[name][0]) for name in ("mean", "sd", "mcse_mean", "mcse_sd"))
    return mean, sd, error, error_of_sd, result.trace.rows


def at_lengths(target: str, lengths: list[int], seed: int) -> list[tuple[float, float]]:
    """(mean, sd) of the first draws of a run, of each of some numbers of draws a chain."""
    x = sampled(target, None, max(lengths), seed).draws[:, :, 0]
    return [(float(x[:, :n].mean()), float(x[:, :n].std(ddof=1))) for n in lengths]


def bias(target: str, ended: Any, fixed: Any) -> tuple[Any, Any, Any]:
    """Bias of (mean, standard deviation) in stated errors, (2,) each.

    That of runs which a rule has ended; what the rule adds to that of runs of the same seeds and of
    a fixed length; and the standard error of the latter.
    """
    _, mean, sd = TARGETS[target]
    size = ended[:, 2:4].mean(axis=0)
    off, by_rule = ((ended[:, :2] - of) / size for of in ([mean, sd], fixed))
    return (off.mean(axis=0), by_rule.mean(axis=0),
            by_rule.std(axis=0, ddof=1) / np.sqrt(len(off)))


def bias_text(quick: bool) -> str:
    """The table of the bias of each rule, as Markdown."""
    runs = 50 if quick else RUNS
    rows = []
    with ProcessPoolExecutor(2) as pool:

        def of_seeds(function: Any) -> Any:
            return np.array(list(pool.map(function, range(runs), chunksize=25)))

        for target in TARGETS:
            ended = [of_seeds(partial(estimates, target, rule)) for rule in RULES.values()]
            lengths = [int(one[:, 4].mean()) for one in ended]
            fixed = of_seeds(partial(at_lengths, target, lengths))
            for k, name in enumerate(RULES):
                total, by_rule, error = bias(target, ended[k], fixed[:, k])
                rows.append([target, f"`{name}`", f"{runs}", f"{lengths[k]}",
                             *(f"{one:+.3f}" for one in (*by_rule, *total)),
                             f"{error.max():.3f}"])
                print(*rows[-1], sep=" | ", flush=True)
    return "\n".join([
        "Short runs of `am` that a rule ends, of a gamma density of shape 3 and of a normal one. "
        "The bias of the mean and of the standard deviation (sd), in units of the mean stated "
        "error: what the rule adds to runs of the same seeds and of a fixed length, the mean of "
        "those that the rule has chosen, with the larger of the two standard errors of these "
        "figures; and all of it, with a standard error of 0.03. The sd of few draws with "
        "autocorrelation is too small by itself.\n",
        table(["density", "rule", "runs", "draws a chain", "mean, by the rule", "sd, by the rule",
               "mean, in all", "sd, in all", "standard error, by the rule"], rows)])
