"""The choice of a sampler for a density: what `sampler="auto"` means."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.engine.fault import Fault
from fastkam._core.linalg.decomposition import product
from fastkam.arguments import check_flag, check_integer
from fastkam.density.forms import as_target
from fastkam.diagnostics.table import Summary
from fastkam.errors import SamplingError
from fastkam.interop.doors import opened
from fastkam.numerics.periods import Periods
from fastkam.problem.described import Described
from fastkam.run.blas import one_blas_thread
from fastkam.run.drawn_starts import by_labels, drawn_starts, labels_of
from fastkam.run.faults import describe
from fastkam.run.hints import advice
from fastkam.run.starts import seed_sequence, starting_points
from fastkam.run.streams import Stream, generator_of
from fastkam.samplers import (
    MALA,
    NUTS,
    FisherAdaptiveMALA,
    GlobalAdaptiveMetropolis,
    ModeJumping,
    RandomWalk,
    RobustAdaptiveMetropolis,
    Sampler,
)
from fastkam.samplers.metropolis import optimal_scale
from fastkam.search.estimates import for_noise
from fastkam.search.found import Known, Search, unsearched
from fastkam.search.search import NEARLY_NORMAL, Searcher
from fastkam.search.tails import BEYOND, logarithmic_tails
from fastkam.search.watch import Spent, Watch

if TYPE_CHECKING:
    from fastkam._core.density.target import Target
    from fastkam.run.shapes import Layout
    from fastkam.run.workers import CallExecutor
    from fastkam.search.spread import Spread

log = logging.getLogger("fastkam")

MOST_GATHERED = 15  # dimensions in which walkers are still used if there is a gradient
FIRST_EVALUATIONS, EVALUATIONS_PER_DIMENSION = 60_000, 4_000  # that a search may take
MOST_EVALUATIONS = 400_000
LEARNED_TUNE = 300  # warm-up steps of a sampler that starts with a shape learned by the search
NORMAL_TUNE, INDEPENDENT = 100, 0.7  # the same for one component; share of independent proposals
PLAIN_TUNE = 1000
LEAST_ACCEPTED = 0.1  # share of independent proposals, below which the gradient does more
LONG_JUMPS = 25.0  # covariance of jumps, in units of that of the whole density
LEAST_WEIGHT = 0.001  # of a component, in units of the largest, whose place counts for the tails


@dataclass(frozen=True)
class Choice:
    """A sampler, and the reason for choosing it.

    Attributes
    ----------
    sampler : Sampler
    reason : str
    search : Search
        The outcome of the search on which the choice is based.
    tune : int
        Number of warm-up steps that the sampler needs.
    """

    sampler: Sampler
    reason: str
    search: Search
    tune: int

    def __str__(self) -> str:
        return f"{described(self.sampler)}, because {self.reason}"


def described(sampler: Sampler) -> str:
    """The names of a sampler and of those within it, as A(B)."""
    parts = ", ".join(dict.fromkeys(described(part) for part in getattr(sampler, "parts", list)()))
    return type(sampler).__name__ + (parts and f"({parts})")


def choose(
    target: Target,
    points: NDArray[np.float64],
    chains: int,
    rng: np.random.Generator,
    *,
    search: bool,
    surrogate: bool,
    threads: int,
    differentiable: Callable[[], Target],
    known: Known | None = None,
    executor: CallExecutor | None = None,
    watch: Watch | None = None,
) -> Choice:
    """Search the density, and choose a sampler by the outcome.

    Parameters
    ----------
    target : Target
    points : array (m, d)
        Points at which the search begins.
    chains : int
        Number of chains of the run.
    rng : Generator
        Generator of the search.
    search : bool
        Whether to search at all.
    surrogate : bool
        Whether the run uses a surrogate.
    threads : int
        Number of threads that may evaluate a slow compiled density.
    differentiable : callable
        Returns the target in a form with gradients, if the density has them.
    known : Known, optional
        Hints about the density.
    executor : CallExecutor, optional
        Executor whose workers evaluate a slow density.
    watch : Watch, optional
        Reports the progress of the search, and ends it when it has used its share.
    """
    if surrogate:
        found = find(target, points, chains, rng, search=search, surrogate=True,
                     executor=executor, watch=watch)
        return Choice(GlobalAdaptiveMetropolis(), "a surrogate stands in for it", found, PLAIN_TUNE)
    watch = watch or Watch()
    estimated = target.is_estimate
    gradient = not estimated and has_gradient(target, points)
    reason = ("the density is estimated" if estimated else
              f"the density has {'a' if gradient else 'no'} gradient")
    if not search:
        unknown = NUTS() if gradient else ModeJumping(sampler="gam")
        return Choice(unknown, f"{reason}, and nothing was searched", unsearched(points),
                      PLAIN_TUNE)
    searcher = Searcher(target, points, rng, known, spread_over(executor, target), watch)
    choice = chosen(searcher, chains, threads, reason, differentiable if gradient else None)
    if not estimated:
        return choice
    sampler, found = for_noise(choice.sampler, target, choice.search, rng, watch)
    return replace(choice, sampler=sampler, search=found)


def chosen(
    searcher: Searcher,
    chains: int,
    threads: int,
    reason: str,
    differentiable: Callable[[], Target] | None,
) -> Choice:
    """Make a search and choose a sampler by its outcome, as `choose` does."""
    d, gradient = searcher.d, differentiable is not None
    with searcher.evaluate.helped(threads):
        if differentiable is not None and d > MOST_GATHERED:
            nearly_normal = searcher.by_gradients(chains, differentiable())
            if nearly_normal is None:
                found = searcher.brief(chains, disperse=True)
                return Choice(NUTS(), f"{reason}, and many dimensions", found, NUTS.TUNE)
            if searcher.alone:
                return around_mixture(nearly_normal, reason, gradient)
        most = min(MOST_EVALUATIONS, FIRST_EVALUATIONS + EVALUATIONS_PER_DIMENSION * d)
        found = with_tails_of_x(searcher, searcher.full(chains, most))
    hard = gradient and found.independent_acceptance < LEAST_ACCEPTED
    if found.is_constant or found.is_density:
        why = ("does not change" if found.is_constant else
               "is never negative, as a density is and the logarithm of one is not")
        return Choice(RandomWalk(), f"what the function returns {why}", found, PLAIN_TUNE)
    if found.mixture is None or hard:
        why = ("the search has ended early" if searcher.spent else
               "walkers have found no spread" if found.mixture is None else
               "no mixture of normal components fits it")
        plain = NUTS() if gradient else learning_walk(found)
        return Choice(plain, f"{reason}, and {why}", found, PLAIN_TUNE)
    if searcher.spent:
        return around_provisional(found, f"{reason}, and the search has ended early", gradient)
    if searcher.evaluate.noise is not None:  # other noise moves the density
        return around_provisional(found, f"{reason}, and with fixed noise a mixture fits it", False)
    return around_mixture(found, reason, gradient)


def with_tails_of_x(searcher: Searcher, found: Search) -> Search:
    """The outcome, with the tails of x in the coordinates that are logarithms of it."""
    q, sides = found.mixture, searcher.known.sides
    if q is None or sides is None or not sides.any():
        return found
    main = 1 + int(q.weights[1:].argmax())
    each = np.sqrt((q.factors[1:] ** 2).sum(axis=2))
    sd = each[main - 1]
    ends = sides * (q.means[1:] - q.means[main]) + BEYOND * each
    reach = ends[q.weights[1:] > LEAST_WEIGHT * q.weights[main]].max(axis=0)
    tails = np.zeros((0, 2))
    with suppress(Spent):
        tails = logarithmic_tails(searcher.evaluate, q.means[main], sd, sides, reach)
    return replace(found, of_logarithms=tails, evaluations=searcher.evaluate.n)


def choose_sampler(
    target: Any,
    x0: ArrayLike | None = None,
    *,
    vectorized: bool = False,
    surrogate: bool = False,
    chains: int = 4,
    seed: Any = None,
) -> Choice:
    """Choose the sampler that ``sampler="auto"`` takes for a density, by the same search.

    Parameters
    ----------
    target : callable, pointer, Target, TargetRecipe or Problem
        As in `sample`. A Python function is called once, at `x0`, to see whether it returns a
        gradient.
    x0 : array (d,) or (chains, d), optional
        Starting points, as in `sample`; optional for a `Problem` with priors or bounds.
    vectorized : bool
        The Python function takes points (k, d).
    surrogate : bool
        Whether the run will have a surrogate, with which gradients are not used.
    chains : int
        Number of chains of the run.
    seed : int, SeedSequence, Generator or BitGenerator, optional
        As in `sample`: with the same seed the choice is the same.

    Returns
    -------
    Choice

    Examples
    --------
    >>> import fastkam as fk
    >>> choice = fk.choose_sampler(lambda x: -0.5 * x @ x, [0.0, 0.0], seed=1)
    >>> type(choice.sampler).__name__
    'ModeJumping'
    >>> print(fk.choose_sampler(lambda x: (-0.25 * (x**4).sum(), -x**3), [1.0] * 50, seed=1))
    NUTS, because the density has a gradient, and many dimensions
    """
    chains, seed = check_integer("chains", chains, least=1), seed_sequence(seed)
    check_flag("surrogate", surrogate)
    labels, independent = labels_of(x0), isinstance(x0, Summary)
    target, x0 = opened(target), drawn_starts(x0, chains, seed)
    problem = cast(Any, target) if isinstance(target, Described) else None
    if problem is not None and labels:
        x0 = by_labels(x0, labels, problem.layout.labels)
        if independent:
            x0 = problem.coordinates.nearby(x0)
    with one_blas_thread():
        points = (starting_points(x0, chains) if problem is None
                  else problem.start(x0, chains, seed))
        made = as_target(target, points.shape[1], vectorized=vectorized)
        with before_the_run(made, problem):
            return choose(made, points, chains, generator_of(seed, Stream.SEARCH), search=True,
                          surrogate=surrogate, threads=1, known=known_of(problem),
                          differentiable=partial(as_target, target, points.shape[1],
                                                 vectorized=vectorized, gradient=True))


def known_of(problem: Any, layout: Layout | None = None) -> Known:
    """The hints of a problem about its density; without one, those of a layout."""
    if problem is None:
        return Known(layout=layout)
    return Known(problem.sample_prior if problem.has_prior else None,
                 Periods(problem.coordinates.periods) if problem.coordinates.repeats else None,
                 problem.log_prior_z, problem.coordinates.sides, problem.layout,
                 problem.coordinates)


def find(
    target: Target,
    points: NDArray[np.float64],
    chains: int,
    rng: np.random.Generator,
    *,
    search: bool,
    surrogate: bool = False,
    executor: CallExecutor | None = None,
    watch: Watch | None = None,
) -> Search:
    """Make a brief search, without a choice: scales, and dispersed starting points.

    With a `surrogate`, which may be 0 nearby, starting points are not dispersed.
    """
    if not search:
        return unsearched(points)
    one = bool((points == points[0]).all())
    disperse = one and not (surrogate or target.is_estimate or target.surrogate is not None)
    spread = spread_over(executor, target)
    return Searcher(target, points, rng, None, spread, watch).brief(chains, disperse=disperse)


def spread_over(executor: CallExecutor | None, target: Target) -> Spread | None:
    """The workers of an executor that evaluate points, if it has any."""
    if executor is None:
        return None
    from fastkam.search.spread import Spread

    return None if executor.local else Spread(executor, target)


def around_mixture(search: Search, reason: str, gradient: bool) -> Choice:
    """ModeJumping with the mixture that the search has fitted, around a walk with its shape."""
    q, d = search.mixture, len(search.scales)
    assert q is not None
    inner: Sampler = (MALA(preconditioner=q.within) if gradient else RandomWalk(
        proposal_cov=optimal_scale(d) * q.within, target_acceptance=0.234))
    away = q.means[1:] - np.average(q.means[1:], axis=0, weights=q.weights[1:])
    whole = q.within + product((q.weights[1:, None] * away).T, away) / q.weights[1:].sum()
    accepted, n = search.independent_acceptance, search.components
    normal = n == 1 and accepted > NEARLY_NORMAL and not len(search.tails)
    moves: dict[str, Any] = {"jump_cov": LONG_JUMPS * whole}
    if normal:
        moves = {"moves": "independent", "jump_probability": INDEPENDENT}
    sampler = ModeJumping(
        sampler=inner, weights=q.weights[1:], means=q.means[1:],
        covs=product(q.factors[1:], q.factors[1:].transpose(0, 2, 1)), fit=False,
        periods=rows_of(search.periods), **moves)
    reason += (f", and {'one normal component' if n == 1 else f'a mixture of {n} components'} fits "
               f"it: {100 * accepted:.0f} % of independent proposals accepted")
    return Choice(sampler, reason, search, NORMAL_TUNE if normal else LEARNED_TUNE)


def around_provisional(search: Search, reason: str, gradient: bool) -> Choice:
    """ModeJumping that begins with a mixture that does not describe the density, and fits it again.

    The search has been cut short, or the density is estimated.
    """
    q = search.mixture
    assert q is not None
    sampler = ModeJumping(
        sampler=FisherAdaptiveMALA() if gradient else learning_walk(search),
        weights=q.weights[1:], means=q.means[1:],
        covs=product(q.factors[1:], q.factors[1:].transpose(0, 2, 1)),
        periods=rows_of(search.periods))
    return Choice(sampler, f"{reason} with {q.n} component{'s' * (q.n > 1)}", search, PLAIN_TUNE)


def rows_of(periods: Periods | None) -> NDArray[np.float64] | None:
    return None if periods is None else periods.rows


def learning_walk(found: Search) -> Sampler:
    """A random walk that learns its proposal, without a gradient."""
    if found.periods is None:
        return GlobalAdaptiveMetropolis()
    return RobustAdaptiveMetropolis(windows=False)  # states in several periods show no shape


@contextmanager
def before_the_run(target: Target, problem: Any = None) -> Iterator[None]:
    """A context in which a fault of the target becomes a SamplingError without a result.

    The point of a fault is shown in the coordinates of the problem, if there is one.
    """
    try:
        yield
    except Fault as fault:
        if fault.cause is not None and not isinstance(fault.cause, Exception):
            raise fault.cause from None  # KeyboardInterrupt, SystemExit
        if problem is not None:
            with suppress(Exception):  # a transform in Python may fail, and be the failure itself
                fault.x = problem.constrain(fault.x)
        what = describe(fault, "in the search for a start") + advice(fault, 0, target)
        raise SamplingError(f"{what}; no draw had been made", x=fault.x) from fault.cause


def has_gradient(target: Target, points: NDArray[np.float64]) -> bool:
    """Whether the target has a gradient; a Python function is called once to see."""
    function = getattr(target, "function", None)
    if function is None:
        return "logp_grad" in target.abilities
    try:
        with np.errstate(all="ignore"):
            returned = function(points.copy() if target.batched else points[0].copy())
    except Exception:  # the search will raise it again
        return False
    if type(returned) not in (tuple, list) or len(returned) < 2:
        return False
    shape = points.shape if target.batched else points[0].shape
    return not isinstance(returned[1], (str, bytes, dict)) and np.shape(returned[1]) == shape
