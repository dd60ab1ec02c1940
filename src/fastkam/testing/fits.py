"""One fit of simulation-based calibration: parameters, data, draws, and the ranks of the first."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.diagnostics.checks import TOO_SHORT
from fastkam.errors import SamplingWarning
from fastkam.problem.call import UserFunction, takes_names
from fastkam.problem.problem import Problem
from fastkam.run.drive import least_effective
from fastkam.sampling import sample

Array = NDArray[np.float64]

LOG_LIKELIHOOD = "log_likelihood"
PARTS_OF_PROBLEM = {"bounds", "transforms", "kwargs", "vectorized", "dims", "coords"}

# Draws of a chain that are kept at distances of 1 / SPARE of what makes them independent, by the
# effective sample size, still have a correlation of exp(-2 SPARE): with 3 it is 0.002.
SPARE = 3
FIRST = 6  # draws made at first for each effective one that is needed
LEAST_ROWS = 400  # per chain: fewer say little about their correlation
MOST_GROWTH, MOST_ROWS = 8.0, 64  # growth of a run that continues: at once, and in all
QUIET: dict[str, Any] = {"progress": False, "diagnose": False}
LEAST_CHAINS = 4  # that `sample` runs by default


@dataclass
class Fit:
    """The record of one fit.

    Attributes
    ----------
    parameters : ndarray, shape (n,)
        The draw from the prior.
    ranks, ties : dict of str to int
        For each quantity its rank among the draws, and the number of draws with the same value.
    findings : set of str
        The kinds of findings against the draws, except that the run was short.
    effective : float
        The smallest effective sample size of the run.
    failure : str
        The exception that ended the fit; "" if none did.
    interrupted : bool
    """

    parameters: Array
    ranks: dict[str, int] = field(default_factory=dict)
    ties: dict[str, int] = field(default_factory=dict)
    findings: set[str] = field(default_factory=set)
    effective: float = np.nan
    failure: str = ""
    interrupted: bool = False


def nothing(x: Array) -> float:
    """A constant log likelihood, which leaves the prior."""
    return 0.0


class Fits:
    """The input of all fits.

    Parameters
    ----------
    prior, simulate, loglike, quantities, draws, options
        As in `calibration`.
    seed : SeedSequence
        Each fit has its own stream, independent of the number of fits.
    """

    def __init__(
        self,
        prior: Mapping[str, Any],
        simulate: Callable[..., Any],
        loglike: Any,
        quantities: Callable[..., Mapping[str, Any]] | None,
        draws: int,
        seed: np.random.SeedSequence,
        options: Mapping[str, Any],
    ) -> None:
        self.prior, self.simulate, self.loglike = prior, simulate, loglike
        self.quantities, self.draws, self.seed = quantities, draws, seed
        self.of_problem = {name: options[name] for name in options if name in PARTS_OF_PROBLEM}
        self.of_sample = {name: options[name] for name in options if name not in PARTS_OF_PROBLEM}
        alone = {"kwargs": None, "vectorized": False}
        self.alone = Problem(nothing, prior, **self.of_problem | alone, named=False)
        self.alone.need_prior("calibration")
        self.labels = self.alone.layout.labels
        if LOG_LIKELIHOOD in self.labels:
            raise ValueError(f"prior names a parameter {LOG_LIKELIHOOD!r}, which is a quantity "
                             "already: give it another name")

    def stream(self, i: int) -> np.random.SeedSequence:
        """The randomness of fit i."""
        return np.random.SeedSequence(self.seed.entropy, spawn_key=(*self.seed.spawn_key, i),
                                      pool_size=self.seed.pool_size)

    def call(self, f: Callable[..., Any], last: Any, x: Array) -> Any:
        """f(x, last), or with the parameters by name, as `Problem` calls functions."""
        shapes = self.alone.layout.shapes
        by_name = takes_names(f, shapes, (last,), {})
        return UserFunction(f, (last,), shapes=shapes if by_name else None)(x)

    def data(self, seed: np.random.SeedSequence) -> tuple[Array, Any]:
        """Parameters (n,) from the prior, and data simulated with them."""
        rng = np.random.default_rng(seed)
        x = self.alone.constrain(self.alone.sample_prior(1, rng))[0]
        return x, self.call(self.simulate, rng, x)

    def problem(self, data: Any) -> Problem:
        """The posterior density of the parameters given the data."""
        return Problem(self.loglike, self.prior, args=(data,), **self.of_problem)

    def values(self, problem: Problem, data: Any, X: Array) -> dict[str, Array]:
        """Every quantity at the points X (k, n), {name: (k,)}."""
        log_likelihood = problem.log_likelihood(X)
        found = dict(zip(self.labels, X.T, strict=True)) | {LOG_LIKELIHOOD: log_likelihood}
        if self.quantities is None:
            return found
        rows = [flat(self.call(self.quantities, data, x)) for x in X]
        for name in rows[0]:
            if name in found:
                raise ValueError(f"quantities returns {name!r}, which is a quantity already: give "
                                 "it another name")
            if any(row.keys() != rows[0].keys() for row in rows):
                raise ValueError("quantities must return the same names and shapes at each point")
            found[name] = np.array([row[name] for row in rows])
            if np.isnan(found[name]).any():
                raise ValueError(f"quantities must return numbers, not NaN for {name!r}")
        return found

    def check(self, i: int) -> None:
        """Make the data of fit i, evaluate all functions once, and sample a single draw."""
        x, data = self.data(self.stream(i).spawn(3)[0])
        problem = self.problem(data)
        self.values(problem, data, x[None])
        check_truth(problem, x)
        sample(problem, draws=1, seed=0, **self.of_sample, **QUIET)

    def fit(self, i: int) -> Fit:
        """Make fit number i; an exception is recorded in the returned Fit."""
        seeds = self.stream(i).spawn(3)
        made = Fit(np.full(len(self.labels), np.nan))
        try:
            x, data = self.data(seeds[0])
            made.parameters = x
            problem = self.problem(data)
            check_truth(problem, x)
            self.rank(made, problem, data, seeds[1:])
        except SamplingWarning as warning:  # if warnings are turned into errors
            made.interrupted = getattr(warning.result, "status", "") == "interrupted"
            made.failure = f"SamplingWarning: {warning}"
        except Exception as error:
            made.failure = f"{type(error).__name__}: {error}"
        return made

    def rank(self, made: Fit, problem: Problem, data: Any, seeds: Any) -> None:
        """Sample, and store the ranks in `made`."""
        result = self.run(problem, seeds[0])
        if result.status == "interrupted":
            made.interrupted = True
            return
        made.effective = least_effective(result.state)
        made.findings = {
            one.kind for one in result.warnings if one.status != "ok"} - TOO_SHORT
        draws = result.draws.reshape(-1, result.d)
        kept = ((np.arange(self.draws) + 0.5) * len(draws) / self.draws).astype(int)
        points = np.concatenate([made.parameters[None], draws[kept]])
        rng = np.random.default_rng(seeds[1])
        for name, values in self.values(problem, data, points).items():
            ties = int((values[1:] == values[0]).sum())
            below = int((values[1:] < values[0]).sum())
            made.ranks[name] = below + int(rng.integers(ties + 1))
            made.ties[name] = ties

    def run(self, problem: Problem, seed: np.random.SeedSequence) -> Any:
        """A Result with an effective sample size of about SPARE times the number of draws to keep.

        Talts et al. (2018), Algorithm 2, with the factor SPARE.
        """
        needed = SPARE * self.draws
        chains = int(self.of_sample.get("chains", LEAST_CHAINS))
        rows = max(LEAST_ROWS, -(-FIRST * needed // chains))
        result = sample(problem, draws=rows, seed=seed, **self.of_sample, **QUIET)
        while result.status == "complete" and result.trace.rows < MOST_ROWS * rows:
            effective = least_effective(result.state)
            if effective >= needed:
                break
            growth = min(1.2 * needed / max(effective, 1.0), MOST_GROWTH)
            more = int(np.ceil(result.trace.rows * (growth - 1)))
            result = result.resume(min(more, MOST_ROWS * rows - result.trace.rows), **QUIET)
        return result


def flat(values: Any) -> dict[str, float]:
    """A dict of numbers and arrays as one of numbers, "name[i, j]"."""
    if not isinstance(values, Mapping):
        raise TypeError(f"quantities must return a dict of numbers and arrays, not {values!r}")
    found = {}
    for name, value in values.items():
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"quantities must return real numbers and arrays of them, and "
                            f"{name!r} is {value!r}")
        for index in np.ndindex(*array.shape):
            label = f"{name}[{', '.join(map(str, index))}]" if index else str(name)
            found[label] = float(array[index])
    return found


def check_truth(problem: Problem, x: Array) -> None:
    """Refuse a likelihood that is not finite at the parameters of the simulation."""
    value = problem.log_likelihood(x)
    if not np.isfinite(value):
        raise ValueError(f"the log likelihood is {value} at the parameters {x} with which the data "
                         "were simulated: simulate and loglike must be of the same model")


def fit_sent(payload: bytes, i: int) -> Fit:
    """Fit number i in another process."""
    fits: Fits = pickle.loads(payload)
    return fits.fit(i)
