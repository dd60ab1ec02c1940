"""Checks by the sampler's own quantities: energies, trees, swaps, a fitted mixture."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fastkam.diagnostics import signs
from fastkam.diagnostics.look import MOST_DRAWS, Finding, Look, chain_names
from fastkam.diagnostics.tempering import Rungs, mean_of
from fastkam.evidence.pareto import k_hat
from fastkam.evidence.proposals import MOST_MISSED, NEXT_TO_NONE, has_frozen, stored
from fastkam.samplers.exchange import Coupled
from fastkam.samplers.jumps import ModeJumping

LEAST_ENERGY = 0.2          # E-BFMI
MOST_DEEP = 0.2             # of the trajectories, that end at the largest depth
LEAST_SWAPS = 0.02          # mean probability of swaps between two neighbors
LEAST_TRIED = 200           # swaps of a pair, below which there is no finding
MOST_ROWS = 400             # draws of all chains at which a mixture is evaluated
MOST_OF_Q = 0.9             # k-hat of the weights of its draws
LEAST_OF_Q = 100            # of them
ENOUGH_FOR_Q = 20_000       # evaluations of a run, beside which the time of this is negligible
MANY_EVALUATIONS = 500_000  # of a run, beside which the time of the error of log Z is negligible
MOST_DIFFERENCE = 4.0       # standard errors between two estimates of log Z
LEAST_DIFFERENCE = 0.1


def of_methods(look: Look) -> Iterator[Finding]:
    """Yield the findings of all these checks that apply to the sampler."""
    yield from energies(look)
    yield from trees(look)
    yield from ladders(look)
    yield from mixtures(look)


def recorded(look: Look, name: str) -> np.ndarray | None:
    """Return the last draws of a statistic of the sampler, (chains, n), or None."""
    trace = look.state.trace
    if trace.stat_names is None or name not in trace.stat_names:
        return None
    rows = trace.rows
    n = min(rows, max(1, MOST_DRAWS // look.state.chains))
    return np.asarray(trace.extra[:, rows - n : rows, trace.stat_names.index(name)])


def energies(look: Look) -> Iterator[Finding]:
    """Yield a finding for chains whose energy changes too little between trajectories: E-BFMI."""
    energy = recorded(look, "energy")
    if energy is None or look.state.thin != 1 or not np.isfinite(energy).all():
        return
    values = signs.energy_fractions(energy)
    low = np.flatnonzero(values < LEAST_ENERGY)
    if len(low):
        yield Finding(
            "energy", f"{chain_names(low)}: E-BFMI is down to {values[low].min():.2g}. Momenta "
            "change the energy too little for the tails of the density: reparametrize, or run "
            "longer.", chains=tuple(low.tolist()))


def trees(look: Look) -> Iterator[Finding]:
    """Yield a finding if trajectories of `nuts` were cut off at the largest depth."""
    depth = recorded(look, "tree_depth")
    most = getattr(look.state.sampler, "max_tree_depth", None)
    if depth is None or most is None:
        return
    share = float((depth >= most).mean())
    if share > MOST_DEEP:
        yield Finding(
            "tree_depth", f"{100 * share:.2g} % of the trajectories were cut off after 2^{most} "
            "steps: the chains move slowly. Tune for longer (tune=), rescale the parameters, or "
            "raise max_tree_depth.")


def rungs_of(look: Look) -> list[Rungs]:
    """Return the states of the coupled kernel of each chain; an empty list if there is none."""
    sampler, prefix = look.state.sampler, "kernel."
    if isinstance(sampler, ModeJumping):
        (sampler,), prefix = sampler.parts(), "kernel.inner."
    if not isinstance(sampler, Coupled):
        return []
    return [Rungs(state, prefix) for state in look.state.states]


def ladders(look: Look) -> Iterator[Finding]:
    """Yield findings on swaps that are hardly ever accepted, and on two values of log Z."""
    rungs = rungs_of(look)
    if not rungs or len(rungs[0].ladder) < 2:
        return
    tried = np.array([one["swaps.attempted"][:-1] for one in rungs]).sum(axis=0)
    swapped = np.array([one["swaps.swapped"][:-1] for one in rungs]).sum(axis=0)
    rates = swapped / np.maximum(tried, 1)
    trips = sum(int(one[name]) for one in rungs for name in ("swaps.round_trips",))
    enough = tried.min(initial=np.inf) >= LEAST_TRIED
    alone = not isinstance(look.state.sampler, ModeJumping)
    if enough and alone and (rates.min() < LEAST_SWAPS or trips == 0):
        i = int(rates.argmin())
        yield Finding(
            "swaps", f"Of the swaps between rungs {i} and {i + 1} {100 * rates[i]:.2g} % are "
            f"accepted, and there were {trips} round trips: what the hot replicas find does not "
            "reach the draws. Take more rungs, or tune for longer (tune=).")
    if look.evaluations.sum() < MANY_EVALUATIONS:
        return
    stones = mean_of([one.log_z(one.stepping_stones) for one in rungs])
    thermo = mean_of([one.log_z(one.thermodynamic) for one in rungs])
    quadrature = abs(mean_of([(one.correction(), 0.0) for one in rungs])[0])
    difference = abs(stones[0] - thermo[0])
    error = np.sqrt(stones[1] ** 2 + thermo[1] ** 2 + quadrature**2)
    if difference > max(LEAST_DIFFERENCE, MOST_DIFFERENCE * error):
        yield Finding(
            "evidence", f"The log evidence by stepping stones and by thermodynamic integration "
            f"differ by {difference:.2g}, {difference / error:.2g} standard errors: replicas have "
            "not been everywhere. Tune for longer (tune=), or take more rungs.")


def mixtures(look: Look) -> Iterator[Finding]:
    """Yield findings on draws that the frozen q of `jumps` misses, and on draws of q.

    With Z the median of p / q over the draws of the chain, p / (q Z) is near 1 where p and q agree.
    It is above 1000 at draws that q misses; its largest values at draws of q have a tail with a
    k-hat.
    """
    state = look.state
    if (state.trace.stat_names is None or look.evaluations.sum() < ENOUGH_FOR_Q
            or not has_frozen(state)):
        return
    pairs = stored(state, MOST_ROWS)
    if len({len(one.chain) for one in pairs}) != 1:
        return
    here = np.concatenate([one.chain - np.median(one.chain) for one in pairs])
    missed = float((here > NEXT_TO_NONE).mean())
    weights = np.concatenate([one.of_q - np.median(one.chain) for one in pairs])
    k = k_hat(weights) if len(weights) >= LEAST_OF_Q else np.nan
    if missed > MOST_MISSED:
        yield Finding(
            "mixture", f"{100 * missed:.2g} % of the draws are where the mixture that was fitted "
            "in warm-up has next to no mass: warm-up had not been there, and nothing says that the "
            "draws have been everywhere. Tune for longer (tune=), or compare with another run "
            "(seed=).")
    elif k > MOST_OF_Q and weights.max() > here.max():
        yield Finding(
            "mixture", "A few draws from the mixture that was fitted in warm-up have nearly "
            f"all of the weight (k-hat {k:.2g}): the density has mass where the chains have "
            "hardly been. Run longer (tune=, draws=).")
