"""Tests of samplers that need only exact draws of a target.

A kernel leaves pi invariant if a point drawn from pi still has the distribution pi after some
steps. So: draw exact points, move each by a fixed number of steps with a kernel that is set to the
same state every time, and compare before and after.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastkam._core.engine.chain import ChainState
from fastkam._core.engine.fault import Fault
from fastkam._core.engine.group import Group
from fastkam._core.engine.ranges import BadField, Step
from fastkam.arguments import (
    MOST_COUNT,
    check_array,
    check_flag,
    check_generator,
    check_integer,
    shown,
)
from fastkam.density.forms import as_target
from fastkam.run.starts import seed_sequence
from fastkam.samplers import as_sampler
from fastkam.samplers.exchange import Coupled
from fastkam.samplers.sampler import Composite
from fastkam.sampling import sample
from fastkam.schedules import Perpetual, Plan, as_schedule

LEAST_REPLICATES = 2


@dataclass(frozen=True)
class Invariance:
    """The report of `invariance`.

    Attributes
    ----------
    p_value : float
        Probability of so large a deviation under invariance, Bonferroni-corrected over features.
    worst : str
        The feature that deviates most.
    z : float
        Its deviation in standard errors.
    moved : float
        Fraction of points that have moved at all.
    """

    p_value: float
    worst: str
    z: float
    moved: float

    def __str__(self) -> str:
        if self.moved == 0:
            return "no point has moved: nothing can be said about the sampler"
        return (f"the largest deviation is that of {self.worst}, {self.z:.1f} standard errors; "
                f"with a sampler that leaves the target invariant one as large has probability "
                f"{self.p_value:.2g} at most; {100 * self.moved:.3g} % of the points have moved")


def replicate(sampler, target, points, steps, *, seed, state=None, schedule=None):
    """Move each point by `steps` steps of the sampler, from the same kernel state each time.

    Parameters
    ----------
    sampler : str or Sampler
    target : Target
    points : array (n, d)
        If the density is estimated, (n, d + n_aux): each point, then its noise.
    steps : int
    seed : int
    state : dict, optional
        The kernel's fields; by default those of a new kernel.
    schedule : Schedule, optional
        Schedule of the adaptation; by default the kernel is frozen.

    Returns
    -------
    ndarray, of the shape of points

    Raises
    ------
    ValueError
        For samplers with replicas, "pt" and "scout", alone or within "jumps": see `invariance`.
    """
    sampler, seed = without_replicas(sampler), seed_sequence(seed)
    d, steps = target.dim, check_integer("steps", steps, least=0)
    points = np.ascontiguousarray(check_rows("points", points, d + target.n_aux))
    kernel = sampler.build(points[0, :d])
    first = kernel.state() if state is None else checked_state(kernel, state)
    chain = ChainState(kernel, np.random.PCG64(seed), points[0, :d], n_aux=target.n_aux)
    plan = Plan() if schedule is None else as_schedule(schedule).compiled(sampler, d, 0)
    group = Group(target.bind(), [chain], plan)
    moved = np.empty_like(points)
    for i, point in enumerate(points):
        kernel.restore(first)
        if target.is_estimate:
            noise = point[d:]
            chain.place(point[:d], noise, target.estimate(point[:d], noise))
        else:
            chain.place(point)
        try:
            group.start()
        except Fault:
            raise ValueError(f"points[{i}] must have a finite density, and {point[:d]} has "
                             "none") from None
        group.run(steps)
        moved[i, :d] = chain.position
        if target.is_estimate:
            moved[i, d:] = chain.noise_at_x
    return moved


def without_replicas(sampler):
    """A Sampler, which must move a single state: `points` are states of it, not of replicas.

    What a coupling of replicas leaves invariant is the joint distribution of all of them.
    """
    sampler = as_sampler(sampler)
    if isinstance(sampler, Coupled):
        raise ValueError(
            f"sampler must be one without replicas, and {type(sampler).__name__} has some at other "
            "temperatures, of which exact draws are not known: test the sampler of its replicas by "
            "itself")
    for part in sampler.parts() if isinstance(sampler, Composite) else ():
        without_replicas(part)
    return sampler


def check_rows(name, points, d=None):
    """`points` as a finite array (n, d) with n and d at least 1."""
    points = check_array(name, points)
    if points.ndim != 2 or 0 in points.shape or d not in (None, points.shape[1]):
        raise ValueError(f"{name} must have shape (n, {d or 'd'}), not {points.shape}")
    return points


def checked_state(kernel, state):
    """The fields of a kernel, if they fit it; others could crash the process."""
    own = kernel.state()
    if not isinstance(state, dict) or set(state) != set(own):
        raise ValueError(f"state must be a dict of the fields {sorted(own)}, not {shown(state)}")
    try:
        kernel.check(state, Step(MOST_COUNT, False, "PCG64"))
    except BadField as error:
        raise ValueError(f"state: {error}") from None
    return state


def learned_state(sampler, target, tune, *, seed, start=None):
    """The fields of a kernel after `tune` steps of adaptation from `start`, or an exact draw."""
    if start is None:
        start = target.sample(1, seed)[0, :target.dim]
    result = sample(target, start, sampler=sampler, search=False, draws=1, tune=tune, chains=1,
                    seed=seed, keep_warmup=False, diagnose=False, progress=False)
    return {name.removeprefix("kernel."): value for name, value in result.states[0].items()
            if name.startswith("kernel.")}


def features(x, directions, scale, center):
    """Bounded and polynomial functions of each point, {name: (n,)}."""
    u = (x - center) / scale
    found = {f"x[{j}]": u[:, j] for j in range(u.shape[1])}
    found |= {f"x[{j}]^2": u[:, j] ** 2 for j in range(u.shape[1])}
    phases = directions @ u.T  # each in adjacent memory, which is faster
    found |= {f"cos {k}": np.cos(phase) for k, phase in enumerate(phases)}
    found |= {f"sin {k}": np.sin(phase) for k, phase in enumerate(phases)}
    return found


def compare(before, after, *, seed, reversible=False, n_directions=24):
    """Whether paired points before and after have the same distribution.

    Parameters
    ----------
    before, after : array (n, d)
    seed : int
        Seed of the random directions.
    reversible : bool
        Whether (before, after) and (after, before) must have the same joint distribution, which
        is a stronger test.

    Returns
    -------
    Invariance

    Raises
    ------
    TypeError, ValueError
        For a bad argument, or a coordinate that is the same in all points of `before`.
    """
    from scipy.stats import norm

    rng = check_generator("seed", seed)
    before = check_rows("before", before)
    after = check_array("after", after, shape=before.shape)
    n_directions = check_integer("n_directions", n_directions, least=1)
    check_flag("reversible", reversible)
    n, d = before.shape
    center, scale = before.mean(axis=0), before.std(axis=0)
    if not (scale > 0).all():
        k = int(np.argmin(scale > 0))
        raise ValueError("before must have different values of each coordinate, and coordinate "
                         f"{k} is {before[0, k]} in all points")
    directions = rng.standard_normal((n_directions, d)) * rng.uniform(0.3, 3, (n_directions, 1))
    f, g = (features(x, directions, scale, center) for x in (before, after))
    deviations = {name: g[name] - f[name] for name in f}
    if reversible:
        names = list(f)
        for _ in range(2 * n_directions):
            a, b = rng.choice(len(names), 2, replace=False)
            a, b = names[a], names[b]
            deviations[f"{a} then {b}"] = f[a] * g[b] - g[a] * f[b]
    z = {}
    for name, values in deviations.items():
        error = values.std(ddof=1) / np.sqrt(n)
        z[name] = values.mean() / error if error > 0 else 0.0
    worst = max(z, key=lambda name: abs(z[name]))
    p_value = min(1.0, 2 * norm.sf(abs(z[worst])) * len(z))
    moved = float((before != after).any(axis=1).mean())
    return Invariance(float(p_value), worst, float(z[worst]), moved)


def invariance(sampler, target, *, steps=3, replicates=20_000, tune=2000, seed=1,
               reversible=False, exact=None):
    """Test that the frozen kernel of a sampler leaves a target invariant.

    Parameters
    ----------
    sampler : str or Sampler
        The sampler adapts for `tune` steps; the resulting state is used for every replicate. It
        must not have replicas, as "pt" and "scout" do, alone or within "jumps": they leave the
        joint distribution of all replicas invariant, and exact draws of the tempered densities are
        not known.
    target : Target
        A target with exact draws ``target.sample(n, seed)``; if it is estimated, draws of points
        and noise together, (n, d + n_aux). With an array `exact`, a density in any form that
        `fastkam.as_target` takes.
    steps, replicates, tune, seed : int
    reversible : bool
        Whether the kernel is reversible over `steps` steps; single Metropolis steps are.
    exact : Target or array (n + 1, d), optional
        Target of the exact draws; by default `target`. With any other distribution the test must
        fail. With an array, adaptation starts at the first point, and the n others are the
        replicates.

    Returns
    -------
    Invariance
        A right sampler gives a p-value below p with probability at most p. Prints as a sentence.

    Raises
    ------
    TypeError, ValueError
        For a bad argument, before any work.
    """
    sampler, steps = without_replicas(sampler), check_integer("steps", steps, least=1)
    replicates = check_integer("replicates", replicates, least=LEAST_REPLICATES)
    tune, seed = check_integer("tune", tune, least=0), check_integer("seed", seed, least=0)
    check_flag("reversible", reversible)
    start, before = None, None
    if exact is not None and not hasattr(exact, "sample"):
        points = check_rows("exact", exact)
        if len(points) <= LEAST_REPLICATES:
            raise ValueError(f"exact must have at least {LEAST_REPLICATES + 1} rows, not "
                             f"{len(points)}")
        start, before = points[0], points[1:]
        target = as_target(target, points.shape[1], gradient=sampler.needs_gradient)
    elif not hasattr(target, "sample"):
        raise TypeError(f"target must have exact draws, target.sample(n, seed), and "
                        f"{shown(target)} has none: give them as exact")
    state = learned_state(sampler, target, tune, seed=seed, start=start)
    if before is None:
        before = (exact or target).sample(replicates, seed + 1)
    after = replicate(sampler, target, before, steps, seed=seed + 2, state=state)
    return compare(before, after, seed=seed + 3, reversible=reversible)


def invariance_as_published(sampler, target, *, steps, replicates=20_000, seed=1):
    """The same test for a sampler that adapts perpetually, restarted at every exact point."""
    sampler = as_sampler(sampler)
    before = target.sample(replicates, seed + 1)
    after = replicate(sampler, target, before, steps, seed=seed + 2, schedule=Perpetual())
    return compare(before, after, seed=seed + 3)
