"""An entry of the fuzzer, its densities, and the conditions on its results."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import scipy.stats

import fastkam as fk

D, TUNE, DRAWS = 2, 12, 10
MOST_CALLS = 30_000  # of a density: a run that was asked for more is long, not wrong


class TooManyCalls(BaseException):
    """Raised where a run is as long as its arguments ask for, which is no fault."""


def nothing(result):
    """Accept any result."""


@dataclass(frozen=True)
class Entry:
    """A function, arguments that work, and what else is known of it."""

    call: Callable[..., Any]
    good: Callable[[], dict[str, Any]]
    optional: tuple[str, ...] = ()  # arguments that are absent from `good`
    fixed: tuple[str, ...] = ()  # what stays as it is
    check: Callable[[Any], None] = nothing  # raises an AssertionError where the result is odd
    words: tuple[str, ...] = ()  # what an argument is called in messages besides its name
    raises: tuple[type[BaseException], ...] = ()  # beside TypeError, ValueError, SamplingError
    weight: float = 1.0
    covers: tuple[str, ...] = field(default=())  # public names


# ---- densities that count their calls ----


class Calls:
    """Counts the calls of densities since the last call of a public function began."""

    number = 0

    @classmethod
    def count(cls):
        cls.number += 1
        if cls.number > MOST_CALLS:
            raise TooManyCalls


class Density:
    """log N(0, I), as a function."""

    def __init__(self, gradient=False):
        self.gradient = gradient

    def __call__(self, x):
        Calls.count()
        x = np.asarray(x)
        if x.ndim == 2:
            return -0.5 * (x * x).sum(axis=1)
        value = -0.5 * float(x @ x)
        return (value, -x) if self.gradient else value


class Funnel(Density):
    """x_0 ~ N(0, 9), x_1 ~ N(0, exp x_0), of which a search makes many calls: every tenth counts.
    """

    calls = 0

    def __call__(self, x):
        Funnel.calls += 1
        if Funnel.calls % 10 == 0:
            Calls.count()
        return -x[0] * x[0] / 18 - 0.5 * x[0] - 0.5 * float(np.exp(-x[0])) * x[1] * x[1]


def loglike():
    counted = Density()

    def function(mu, sigma):
        return counted(np.array([mu, np.log(sigma)]))

    return function


def prior():
    return {"mu": scipy.stats.norm(0, 2), "sigma": scipy.stats.halfnorm()}


def problem():
    return fk.Problem(loglike(), prior())


def estimator(x, u):
    Calls.count()
    return -0.5 * float(x @ x) + 0.1 * float(u.sum())


@cache
def result():
    """A run, of which functions of results are asked."""
    return fk.sample(Density(), np.zeros(D), sampler="ram", search=False, tune=TUNE,
                     draws=30, chains=2, seed=1, diagnose=False, names=["a", "b"])


@cache
def tempered():
    pt = fk.ParallelTempering(n_replicas=3)
    return fk.sample(Density(), np.zeros(D), sampler=pt, search=False, tune=TUNE,
                     draws=30, chains=2, seed=1, diagnose=False)


@cache
def weighted():
    """A run with weighted draws."""
    return fk.sample(**learned_run())


@cache
def saved():
    """The path of a file of a run, in the folder of the process."""
    result().save("run.fk")
    return "run.fk"


def draws(*shape):
    return np.random.default_rng(1).normal(size=shape or (2, 30, D))


SPD = np.array([[1.0, 0.3], [0.3, 2.0]])

# ---- what must be true of what comes back ----


def is_run(found):
    """A result has the shapes that it says, and no draw that is not finite."""
    assert isinstance(found, fk.Result)
    assert found.draws.shape[0] == found.chains
    assert np.isfinite(found.draws).all()
    assert len(repr(found))


def is_array(found):
    """Numbers."""
    assert np.asarray(found).dtype.kind in "fiu"


def is_target(found):
    """A density that can be evaluated; NaN and infinities are values of densities."""
    if isinstance(found, fk.targets.GaussianProcessClassification):
        value = found.estimate(np.full(found.dim, 0.1), np.zeros(found.n_aux))
    else:
        value = found.logp(np.full(found.dim, 0.1))
    assert np.shape(value) == ()


def prints(found):
    """Something that can be printed."""
    assert isinstance(repr(found), str)
    assert isinstance(str(found), str)


# ---- arguments ----

# of the error of a function that is called with arguments it does not take
FUNCTION = ("positional arguments", "positional argument", "required argument", "interpreted",
            "0-dimensional", "matmul", "scalar index")


def options_of(function):
    """The names of the arguments of a function that have a default."""
    return tuple(name for name, one in inspect.signature(function).parameters.items()
                 if one.default is not one.empty)


def options_of_any(function):
    """The named arguments of a function, none where it tells none."""
    return tuple(name for name, one in inspect.signature(function).parameters.items()
                 if one.kind is not one.VAR_KEYWORD)


def learned_run():
    return {"target": Density(), "x0": np.ones(D), "surrogate": "learn", "budget": 250,
            "draws": 2 * DRAWS, "chains": 2, "seed": 1, "diagnose": False, "progress": False}


def plain_run(sampler="ram", gradient=False, **more):
    return {"target": Density(gradient), "x0": np.zeros(D), "sampler": sampler, "draws": DRAWS,
            "tune": TUNE, "chains": 2, "seed": 1, "search": False, "diagnose": False,
            "progress": False, **more}
