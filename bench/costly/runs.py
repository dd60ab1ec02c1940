"""Runs whose estimates are kept as functions of the number of calls."""

import functools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import fastkam as fk
from bench.costly.densities import CASES
from bench.costly.further import FURTHER
from bench.costly.priors import WITH_PRIORS
from bench.costly.unseen import UNSEEN
from fastkam.diagnostics.controls import Controls, calibrated
from fastkam.diagnostics.weights import normalized

BUDGET = 2000
DRAWS = 2000  # a chain of plain auto
POINTS = 400  # of a curve
Z = 1.6449  # of nominal 90 % intervals


@dataclass
class Curve:
    """Estimates after numbers of calls: calls (n,), means and standard deviations (n, d)."""

    calls: Any
    mean: Any
    sd: Any
    covered: float = np.nan  # share of coordinates whose nominal 90 % interval has the mean
    sds_covered: float = np.nan  # and of those whose interval has the standard deviation
    fourth: Any = None  # fourth central moments over the square of the variance, (d,)
    note: str = ""
    weighted: bool = False
    worst: float = np.nan  # the largest error of a mean or a standard deviation, in its own errors
    told: tuple[str, ...] = ()  # the kinds of warnings


class Counted:
    """A density that counts its calls."""

    def __init__(self, f):
        self.f, self.n = f, 0
        functools.update_wrapper(self, f)  # the names of its arguments are those of parameters

    def __call__(self, *args, **kwargs):
        self.n += 1
        return self.f(*args, **kwargs)


def learned(name, seed):
    """A run with surrogate="learn"."""
    case = (CASES | UNSEEN | FURTHER | WITH_PRIORS)[name]
    f = Counted(case.f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fk.sample(f, case.x0, surrogate="learn", seed=seed, **case.options)
    weighted = result.log_weights is not None
    # a point at which the function raises is evaluated twice; and starts of chains do not count
    assert result.evaluations == f.n or not weighted or case.options, (result.evaluations, f.n)
    told = tuple(one.kind for one in result.warnings)
    note = "; ".join(result.search[-2:])
    if not weighted:
        curve = of_chains(result, case)
        curve.note, curve.told, curve.worst = note, told, worst(result, case)
        return curve
    x, log_weights, controls = result.draws, result.log_weights, result.state.controls
    if controls is not None:
        log_weights = log_weights - calibrated(controls)[0]
    new = np.ones(x.shape[:2], bool)
    new[:, 1:] = (x[:, 1:] != x[:, :-1]).any(axis=2)
    checked = f.n - new.sum()  # design, rounds and the check of the draws
    calls = checked + np.cumsum(new.sum(axis=0))
    curve = cumulative(calls, x, log_weights, controls)
    curve.covered, curve.sds_covered = covered(result, case)
    curve.note, curve.weighted = note, True
    curve.told, curve.worst = told, worst(result, case)
    return curve


def auto(name, seed):
    """A plain run of fk.sample."""
    case = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fk.sample(Counted(case.f), case.x0, draws=DRAWS, seed=seed)
    return of_chains(result, case)


def of_chains(result, case):
    """The curve of draws without weights."""
    x = result.draws
    rows = np.arange(1, x.shape[1] + 1)
    first = result.evaluations - result.chains * x.shape[1] * result.thin
    curve = cumulative(first + result.chains * result.thin * rows, x, np.zeros(x.shape[:2]))
    curve.covered, curve.sds_covered = covered(result, case)
    return curve


def cumulative(calls, x, log_weights, controls=None):
    """The curve of draws x (chains, n, d) with weights that the controls calibrate.

    The logs of the weights (chains, n) are those before calibration; each part of the draws has
    its own.
    """
    rows = np.unique(np.linspace(0, len(calls) - 1, POINTS).astype(int))
    moments = []
    for n in rows + 1:
        log_w = log_weights[:, :n]
        found = controls and calibrated(Controls(controls.values[:, :n], controls.draws))
        w = normalized(log_w + found[0] if found else log_w)[:, :, None]
        mean = (w * x[:, :n]).mean(axis=(0, 1))
        away = x[:, :n] - mean
        moments.append([mean, *((w * away**k).mean(axis=(0, 1)) for k in (2, 4))])
    mean, variance, fourth = np.array(moments).swapaxes(0, 1)
    return Curve(np.asarray(calls)[rows], mean, np.sqrt(variance),
                 fourth=fourth[-1] / variance[-1] ** 2)


def z_of(result, case):
    """Errors of means and of standard deviations, (2, d), in units of the stated errors.

    These include the errors of the references.
    """
    table = result.summary()
    return np.array([(table[name] - truth) / np.hypot(table[f"mcse_{name}"], known) for
                     name, truth, known in zip(("mean", "sd"), (case.mean, case.sd), case.mcse,
                                               strict=True)])


def covered(result, case):
    """The shares of coordinates whose nominal 90 % intervals have the mean, and the sd."""
    return tuple((np.abs(z_of(result, case)) < Z).mean(axis=1).tolist())


def worst(result, case):
    """Return the largest error of a mean or standard deviation, in units of the stated error."""
    return float(np.nanmax(np.abs(z_of(result, case))))


def calls_until(curves, case, fourth):
    """The calls after which the error stays below that of 400 independent draws; inf if never.

    The error is the larger of those of means and of standard deviations: root mean squares over
    runs and coordinates, in units of that of 400 independent draws.
    """
    at = np.unique(np.concatenate([curve.calls for curve in curves]))
    errors = np.empty((2, len(curves), len(at)))
    for k, curve in enumerate(curves):
        row = np.searchsorted(curve.calls, at, side="right") - 1
        for i, squares in enumerate(squares_of(curve, case, fourth)):
            errors[i, k] = np.where(row >= 0, squares[row], np.inf)
    error = np.sqrt(errors.mean(axis=1)).max(axis=0)
    bad = np.flatnonzero(~(error <= 1))
    if not len(bad):
        return float(at[0])
    return float(at[bad[-1] + 1]) if bad[-1] + 1 < len(at) else np.inf


def squares_of(curve, case, fourth):
    """Mean squared errors (n,) of means and of standard deviations, over those of 400 draws."""
    mean = (curve.mean - case.mean) / case.sd * 20
    sd = (curve.sd / case.sd - 1) / np.sqrt((fourth - 1) / 4) * 20
    return (mean**2).mean(axis=1), (sd**2).mean(axis=1)
