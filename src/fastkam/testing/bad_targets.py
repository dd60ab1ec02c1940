"""Tests of a sampler on densities with invalid values, jumps, heavy tails or errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_integer, checked_names
from fastkam.density.target import Target
from fastkam.diagnostics import ess_bulk, mcse_mean
from fastkam.diagnostics.table import aligned
from fastkam.errors import SamplingError
from fastkam.result import Result
from fastkam.samplers import as_sampler
from fastkam.samplers.sampler import Sampler
from fastkam.sampling import sample

Array = NDArray[np.float64]

EDGE = 1.0              # of the half-space x0 > EDGE
BELOW_EDGE = -0.2875999709391784  # mean of a standard normal x0 given x0 < EDGE
STEP, STEP_AT = 3.0, 0.5  # drop of the log density, and the x0 at which it drops
BEYOND_STEP = 0.021732690656794913  # of the probability
NARROW = 1e-3
BOX = 0.01
WITHIN_1_OF_T3 = 0.6089977810442294   # P(|x| < 1) of Student's t with 3 degrees of freedom
LIMIT = 5.0             # standard errors: 6e-7 for a right sampler
LEAST_ESS = 100.0       # below which a standard error is not known well enough
FAILS_AT = 1500         # evaluations; by then warm-up is over, or nearly


@dataclass(frozen=True)
class Trial:
    """A sampler on one bad target.

    Attributes
    ----------
    name : str
        The problem of the target.
    expected : str
        The right behavior.
    happened : str
        The behavior of the sampler.
    verdict : str
        "right", "wrong", or "slow": the chains have moved too little to tell whether their draws
        are right.
    """

    name: str
    expected: str
    happened: str
    verdict: str


@dataclass(frozen=True, repr=False)
class BadTargets:
    """The report of `bad_targets`; prints as a table.

    Attributes
    ----------
    trials : tuple of Trial
    """

    trials: tuple[Trial, ...]

    @property
    def ok(self) -> bool:
        """Whether no trial went wrong; slow trials prove nothing."""
        return all(trial.verdict != "wrong" for trial in self.trials)

    @property
    def wrong(self) -> list[Trial]:
        """The trials that went wrong."""
        return [trial for trial in self.trials if trial.verdict == "wrong"]

    def __str__(self) -> str:
        rows = [["target", "", "what happened"]]
        rows += [[one.name, one.verdict, one.happened] for one in self.trials]
        width = max(len(row[2]) for row in rows)
        table = aligned([[*row[:2], row[2].ljust(width)] for row in rows])
        expected = [f"{one.name}: expected {one.expected}" for one in self.wrong]
        return "\n".join([table, *([""] if expected else []), *expected])

    __repr__ = __str__


@dataclass(frozen=True)
class BadTarget:
    """A density, the set where it is positive, and a known mean.

    Attributes
    ----------
    name, expected : str
    density : callable
        ``density(x) -> (logp, gradient)`` at x (d,).
    inside : callable
        Whether draws X (..., d) are possible, (...).
    statistic : callable
        A function of X (..., d), (...).
    mean : float
        Its mean.
    x0 : float
        Value of every coordinate of the starting point.
    gradient : bool
        Whether it is only for samplers that use the gradient.
    """

    name: str
    expected: str
    density: Callable[[Array], tuple[float, Array]]
    inside: Callable[[Array], Any]
    statistic: Callable[[Array], Any]
    mean: float
    x0: float = 0.0
    gradient: bool = False


def everywhere(X: Array) -> Any:
    """Every finite point."""
    return np.isfinite(X).all(axis=-1)


def below_edge(X: Array) -> Any:
    return everywhere(X) & (X[..., 0] <= EDGE)


def in_box(X: Array) -> Any:
    return (np.abs(X) <= BOX).all(axis=-1)


def first(X: Array) -> Array:
    return X[..., 0]


def square(X: Array, center: float = 0.0, scale: float = 1.0) -> Array:
    values: Array = ((X[..., 0] - center) / scale) ** 2
    return values


def normal(x: Array) -> tuple[float, Array]:
    return -0.5 * float(x @ x), -x


def cut(x: Array, value: float) -> tuple[float, Array]:
    return (value, np.full(len(x), np.nan)) if x[0] > EDGE else normal(x)


def gradient_cut(x: Array) -> tuple[float, Array]:
    return normal(x)[0], np.where(x[0] > EDGE, np.nan, -x)


def gradient_wrong(x: Array) -> tuple[float, Array]:
    return normal(x)[0], -0.5 * x + 0.3


def box(x: Array) -> tuple[float, Array]:
    return (0.0 if in_box(x) else -np.inf), np.zeros(len(x))


def narrow(x: Array) -> tuple[float, Array]:
    u = (x - 1) / NARROW
    return -0.5 * float(u @ u), -u / NARROW


def heavy(x: Array) -> tuple[float, Array]:
    return -2 * float(np.log1p(x * x / 3).sum()), -4 * x / (3 + x * x)


def stepped(x: Array) -> tuple[float, Array]:
    value, gradient = normal(x)
    return value - STEP * (x[0] > STEP_AT), gradient


REJECTED = "such points are rejected, and the draws are those of the rest"
TARGETS = (
    BadTarget("NaN in a half-space", REJECTED, partial(cut, value=np.nan), below_edge, first,
              BELOW_EDGE),
    BadTarget("-inf in a half-space", REJECTED, partial(cut, value=-np.inf), below_edge, first,
              BELOW_EDGE),
    BadTarget("flat in a small box, -inf outside", REJECTED, box, in_box,
              partial(square, scale=BOX), 1 / 3),
    BadTarget("narrow", "the right draws, as warm-up finds the scale", narrow, everywhere,
              partial(square, center=1.0, scale=NARROW), 1.0, x0=1.0),
    BadTarget("heavy tails", "the right draws", heavy, everywhere,
              lambda X: (np.abs(X[..., 0]) < 1).astype(float), WITHIN_1_OF_T3),
    BadTarget("discontinuous", "the right draws", stepped, everywhere,
              lambda X: (X[..., 0] > STEP_AT).astype(float), BEYOND_STEP),
    BadTarget("gradient NaN in a half-space", REJECTED, gradient_cut, below_edge, first,
              BELOW_EDGE, gradient=True),
    BadTarget("gradient wrong", "the right draws, if slowly: the density alone decides",
              gradient_wrong, everywhere, square, 1.0, gradient=True),
)


class Raised(Exception):
    """The error that a bad target raises."""


@checked_names
def bad_targets(sampler: str | Sampler, *, d: int = 2, draws: int = 2000, tune: int = 1000,
                chains: int = 4, seed: int = 1, **options: Any) -> BadTargets:
    """Run a sampler on targets with invalid values or errors, and report what it does wrong.

    Some targets return NaN or -inf in a half-space, -inf outside a small box, or a gradient that is
    not finite or wrong, or have a jump, heavy tails, or a scale of 1e-3. Their draws must stay
    where the density is positive, and a known mean must be right to 5 standard errors (a right
    sampler fails with probability 1e-6 for each target). Others return +inf or raise: the run must
    end with a `fastkam.SamplingError`, and must resume bit for bit as if nothing had happened,
    which detects state that is not among the sampler's FIELDS.

    Parameters
    ----------
    sampler : str or Sampler
        The sampler, such as a `fastkam.PythonSampler`.
    d : int
        Number of coordinates.
    draws, tune, chains, seed
        As in `fastkam.sample`.
    **options
        Further arguments of `fastkam.sample`.

    Returns
    -------
    BadTargets
        Prints as a table.

    Raises
    ------
    TypeError, ValueError
        For a bad argument, before any work.
    SamplingError
        If the sampler fails on a normal density without such problems.

    Examples
    --------
    >>> import fastkam as fk
    >>> fk.testing.bad_targets("ram").ok
    True
    """
    method = as_sampler(sampler)
    d = check_integer("d", d, least=1)
    given: dict[str, Any] = {
        "draws": check_integer("draws", draws, least=100), "tune": tune, "chains": chains,
        "seed": seed, "progress": False, "diagnose": False, "check_gradient": False}

    def run(target: Target, x0: Array, **more: Any) -> Result:
        return sample(target, x0, sampler=method, **given, **options | more)

    run(Target.from_python(normal, d, gradient=True), np.zeros(d))  # raises for a bad argument
    trials = [tried(run, one, d) for one in TARGETS if method.needs_gradient or not one.gradient]
    return BadTargets((*trials, *stopped(run, d)))


def tried(run: Callable[..., Any], one: BadTarget, d: int) -> Trial:
    """Test a target whose draws must be right."""
    trial = partial(Trial, one.name, one.expected)
    try:
        result = run(Target.from_python(one.density, d, gradient=True), np.full(d, one.x0))
    except Exception as error:
        return trial(f"it ended with {type(error).__name__}: {error}", "wrong")
    draws = result.draws
    outside = draws[~one.inside(draws)]
    if len(outside):
        return trial(f"{len(outside)} draws where the density is 0 or was not finite, the first "
                    f"at {outside[0]}", "wrong")
    if (draws == draws[:, :1]).all():
        return trial("no chain has moved", "wrong")
    values = one.statistic(draws)[:, :, None]
    effective, mean = float(ess_bulk(values)[0]), float(values.mean())
    if not effective >= LEAST_ESS:
        return trial(f"the effective sample size is {effective:.2g}", "slow")
    z = (mean - one.mean) / float(mcse_mean(values)[0])
    where = f"a mean is {mean:.4g}, {abs(z):.1f} standard errors from {one.mean:.4g}"
    return trial(where, "right" if abs(z) < LIMIT else "wrong")


def stopped(run: Callable[..., Any], d: int) -> Iterator[Trial]:
    """Test targets that stop the run, which is then resumed."""
    expected = "SamplingError, after which resume() makes the draws of a run without the fault"

    for name, bad in (("+inf", np.inf), ("raises", Raised("on purpose"))):
        trial = partial(Trial, name, expected)
        failing = Failing(bad)
        try:
            run(Target.from_python(failing, d, gradient=True), np.zeros(d), search=False)
        except SamplingError as error:
            yield trial(*resumed(run, error, d))
        except Exception as error:
            yield trial(f"it ended with {type(error).__name__}: {error}", "wrong")
        else:
            if failing.calls >= FAILS_AT:
                yield trial("the run went on", "wrong")
            else:
                yield trial(f"{failing.calls} evaluations, before the {FAILS_AT}th fails", "slow")


def resumed(run: Callable[..., Any], error: SamplingError, d: int) -> tuple[str, str]:
    """The outcome of resuming a run that has failed, and the verdict."""
    if error.result is None:
        return f"it was not the target that failed: {error}", "wrong"
    try:
        draws = error.result.resume(progress=False, diagnose=False).draws
        whole = run(Target.from_python(normal, d, gradient=True), np.zeros(d), search=False).draws
    except Exception as other:
        return f"then it ended with {type(other).__name__}: {other}", "wrong"
    if not np.array_equal(draws, whole):
        return "resume() makes other draws: is all state in FIELDS?", "wrong"
    return "SamplingError, and resume() makes the same draws", "right"


class Failing:
    """A normal density that fails at one evaluation, once."""

    def __init__(self, bad: Any) -> None:
        self.bad, self.calls = bad, 0

    def __call__(self, x: Array) -> tuple[float, Array]:
        self.calls += 1
        value, gradient = normal(x)
        if self.calls == FAILS_AT:
            if isinstance(self.bad, Exception):
                raise self.bad
            return self.bad, gradient
        return value, gradient
