"""Faults of a density, and of the sampler's behavior on it, that show in the draws of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.chain import REJECTED
from fastkam.diagnostics.edges import across_ends, boundaries, bounds_of, cut_off
from fastkam.diagnostics.ends import extreme
from fastkam.diagnostics.identities import disagreeing
from fastkam.diagnostics.look import BLOCKS, NAMED, Finding, Look, blocks, chain_names, listed
from fastkam.diagnostics.signs import Standardized, tail_shapes
from fastkam.diagnostics.unvisited import unvisited
from fastkam.numerics.median import median
from fastkam.samplers.delayed import DelayedAcceptance
from fastkam.samplers.sampler import Composite, Sampler
from fastkam.search.estimates import NOISELESS
from fastkam.search.repeated import RANDOM, ROUGH

if TYPE_CHECKING:
    from fastkam.run.state import RunState

LEAST_DRAWS = 100           # per chain; fewer say little
FEWEST_MEASURED = 25        # per chain; a run of fewer is a trial
FAR = 1000                  # times 1 + |x0|
LEAST_ACCEPTANCE = 0.005    # of any sampler
LEAST_OF_WALK = 0.02        # of one that aims at no rate
MOST_ACCEPTANCE = 0.9       # of a random walk
MOST_DIVERGING = 0.01       # of the steps of a sampler made of others
MOST_REJECTED = {"nan": 0.01, "failed": 0.01, "gradient": 0.01, "outside": 0.9}
MOST_NAN_OF_SURROGATE = 0.001  # of its values

MOST_OF_EXPONENTIAL = 0.2   # k-hat, which is 0 for an exponential tail
LEAST_INDEX = 3.8           # of tails: from 4 on the standard deviation has a standard error
HEAVY = {1.1: "The mean does not exist, or just does.",
         2.1: "The standard deviation does not exist, or just does.",
         4.0: "The standard deviation converges slowly, and its error (mcse_sd) is too small."}


# ---- what makes draws useless ----


def grave(look: Look) -> Iterator[Finding]:
    """Yield the findings that make draws useless, in a run of any length."""
    x = look.x
    bad = ~np.isfinite(x).all(axis=(0, 1))
    if bad.any():
        where = np.flatnonzero(bad)
        yield Finding(
            "not_finite", f"{look.few(where)}: draws that are not finite. The density lets them "
            "pass: return -inf for such points.", look.named(where), status="wrong")
        return
    moves = (x != x[:, :1]).any(axis=1)  # (chains, d)
    if look.rows < (LEAST_DRAWS if moves.any() else FEWEST_MEASURED):
        return
    still = np.flatnonzero(~moves.any(axis=1))
    if len(still):
        who = "No chain ever moved" if len(still) == len(x) else f"{chain_names(still)} never moved"
        far = np.abs(look.state.x0 / look.state.scales).max() > FAR**2
        cause = (
            "If estimates are noisy (see fastkam.check_noise), one that is far too high keeps a "
            "chain where it is: make them less noisy. Otherwise begin" if look.is_estimate else
            "The chains began far from the origin, where the density is steep: is its sign wrong, "
            "or is a prior missing? Otherwise begin" if far else "Begin")
        yield Finding(
            "stuck", f"{who}: no proposal was accepted. {cause} with narrower proposals, tune for "
            "longer (tune=), or start elsewhere (x0=).", chains=tuple(still.tolist()),
            status="wrong")
    fixed = ~moves.any(axis=0)
    if look.state.coordinates is not None:  # constants of a transform are equal in all chains
        fixed &= (x != x[:1, :1]).any(axis=(0, 1))
    fixed = np.flatnonzero(fixed)
    if len(fixed) and not len(still):
        yield Finding(
            "stuck", f"{look.few(fixed)} never changed: it can have one value only, or its scale "
            "is far below those of the others.", look.named(fixed), status="wrong")


def odd(look: Look) -> Iterator[Finding]:
    """Yield the findings about the density, and about the sampler's behavior on it."""
    kind = None
    for check in (not_a_logarithm, constant, rising, cornered):
        found = check(look)
        if found is not None:
            kind = found.kind
            yield found
            break
    if kind != "improper":
        found = extreme(look)
        kind = kind if found is None else found.kind
        yield from growing(look) if found is None else [found]
    yield from rejections(look)
    yield from boundaries(look)
    yield from cut_off(look)
    yield from across_ends(look)
    yield from (one for one in tails(look) if not kind == one.kind == "improper")
    yield from moments(look)
    yield from unvisited(look)
    yield from acceptance(look)
    yield from divergences(look)


# ---- the density ----


def constant(look: Look) -> Finding | None:
    """Return a finding if the log density is constant and nowhere -inf.

    Between bounds of all coordinates, as on a circle, a constant is a density.
    """
    lp, coordinates = look.lp, look.state.coordinates
    moved = (look.x != look.x[:1, :1]).any()
    if lp is None or not moved or np.ptp(lp) > 0 or look.rejected.any():
        return None
    if coordinates is not None and all(
            np.isfinite([low, high]).all() for *_, low, high, _ in coordinates.rows):
        return None
    return Finding(
        "constant", f"The log density is {lp.flat[0] + 0.0:g} at every draw, and no point was "
        "outside its support: it does not depend on x, or it is constant far out, where it has no "
        "finite integral (is a prior missing?). Look at the function; it returns -inf where x is "
        "out of bounds.", status="wrong")


def rising(look: Look) -> Finding | None:
    """Return a finding if the log density rises from each eighth of the draws to the next."""
    lp = look.lp
    if lp is None or not np.isfinite(lp).all():
        return None
    means = blocks(lp)
    size = lp.shape[1] // BLOCKS
    within = median(lp[:, -size:].std(axis=1))
    rise = means[:, -1] - means[:, 0]
    if not (np.diff(means, axis=1) > 0).all() or not (rise > 3 * within).all():
        return None
    return Finding(
        "improper", "The log density keeps rising throughout the draws of every chain: warm-up "
        "was too short (tune=), or the density has no finite integral, or the wrong sign.",
        status="wrong")


def cornered(look: Look) -> Finding | None:
    """Return a finding if all draws are in a corner of the bounds, as where the sign is wrong.

    Each coordinate has two bounds, and all of its draws are within a thousandth of their distance
    from one of them; a hundred-thousandth if there is only one coordinate.
    """
    bounds = bounds_of(look.state)
    d = look.x.shape[2]
    if len(bounds) < d or not np.isfinite([pair for _, *pair in bounds]).all():
        return None
    part, ends = 1e-5 if d == 1 else 1e-3, []
    for i, low, high in bounds:
        x = look.x[:, :, i]
        near = part * (high - low)
        if x.max() > low + near and x.min() < high - near:
            return None
        ends.append(low if x.max() <= low + near else high)
    return Finding(
        "improper", f"All draws are in a corner of the bounds, near ({listed_numbers(ends)}): the "
        "log density rises up to it. Is its sign wrong, or are the bounds in other units?",
        look.named(np.arange(d)), status="wrong")


def listed_numbers(values: Sequence[float]) -> str:
    """Return a few numbers as a text."""
    return ", ".join(f"{value:g}" for value in values[:NAMED]) + (
        ", ..." if len(values) > NAMED else "")


def growing(look: Look) -> Iterator[Finding]:
    """Yield a finding for coordinates whose absolute values grow throughout, in all chains."""
    means = blocks(np.abs(look.x))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (means[:, -1] / means[:, 0]).min(axis=0)
    grows = (np.diff(means, axis=1) > 0).all(axis=(0, 1)) & (ratio > 3)
    if grows.any():
        where = np.flatnonzero(grows)
        where = where[np.argsort(-ratio[where])]
        yield Finding(
            "improper", f"{look.few(where)}: |x| keeps growing throughout the draws of every "
            "chain. The density may have no finite integral there (a prior is missing, or a sign "
            "is wrong), or warm-up was too short (tune=).", look.named(where), status="wrong")


def not_a_logarithm(look: Look) -> Finding | None:
    """Return a finding if the "log density" is never negative and mostly near 0: a density."""
    lp, warmup = look.lp, look.state.warmup
    if not look.state.is_density:  # what a search has seen of the function alone, without a prior
        if lp is None or lp.min() < 0 or median(lp) > 1e-3:
            return None
        before = warmup.logp[:, : min(warmup.rows, LEAST_DRAWS)]
        before = before[np.isfinite(before)]
        if before.min(initial=0) < 0 or not max(lp.max(), before.max(initial=0)) > 0:
            return None
    return Finding(
        "not_a_logarithm", "What the function returns is never negative and nearly always close to "
        "0, as a density is and the logarithm of one is not: return its logarithm.",
        status="wrong")


# ---- the sampler on it ----


def rejections(look: Look) -> Iterator[Finding]:
    """Yield a finding if the density was zero or invalid at too many of the proposals.

    Estimates may be 0 anywhere, most of them in approximate Bayesian computation.
    """
    kinds = [kind for kind in REJECTED if kind != "outside" or not look.is_estimate]
    yield from often_rejected(look.rejected.sum(axis=0), look.evaluations.sum(), kinds,
                              "which were rejected")
    yield from holes(look)


def holes(look: Look) -> Iterator[Finding]:
    """Yield a finding if a surrogate was often NaN, where proposals are rejected unseen."""
    sampler = look.state.sampler
    if not isinstance(sampler, DelayedAcceptance):
        return
    made = sampler.steps * sum(int(one["t"]) for one in look.state.states)
    nan = sum(int(one["kernel.n_nan"]) for one in look.state.states)
    if nan > MOST_NAN_OF_SURROGATE * made:
        yield Finding(
            "rejected", f"The surrogate was NaN at {nan} of {made} proposals "
            f"({100 * nan / made:.3g} %), which were rejected without a call of the density: no "
            "draw can be where it is NaN. Let it return a finite number wherever the density may "
            "be positive, and -inf elsewhere.")


def often_rejected(
    counts: NDArray[np.int64], total: int, kinds: Sequence[str], fate: str
) -> Iterator[Finding]:
    """Yield a finding for each of these `kinds` to which too many of `total` points belong."""
    words = {"nan": "The density was NaN", "failed": "The density returned a code of failure",
             "gradient": "The gradient was not finite", "outside": "The log density was -inf"}
    advice = {
        "nan": "Return -inf where x is impossible; elsewhere find what makes it NaN (with "
               'on_error="reject": what makes it fail)',
        "failed": "Find what fails",
        "gradient": "Find where the gradient overflows or divides by 0",
        "outside": "Few proposals are possible: transform the parameters so that all are, or begin "
                   "with narrower proposals",
    }
    for kind, count in zip(REJECTED, counts, strict=True):
        share = count / max(total, 1)
        if kind in kinds and share > MOST_REJECTED[kind]:
            yield Finding(
                "rejected", f"{words[kind]} at {count} of {total} points "
                f"({100 * share:.3g} %), {fate}. {advice[kind]}; the first such points are in "
                "result.offending.")


def of_repeated_calls(state: RunState) -> Iterator[Finding]:
    """Yield a finding if the search has found a random or rough density, or no noise of estimates.
    """
    mends = {
        RANDOM: "If its exponential is an unbiased estimate of the density, pass the function by "
                "Target.from_estimator; otherwise the draws are biased: make the function return "
                "the same value each time. With vectorized=True it must not depend on the other "
                "points of the call.",
        NOISELESS: "A function that draws its own random numbers, with a fixed seed, is another "
                   "density: let it use the noise that is passed to it. If it is no estimate, pass "
                   "the function itself as the target."}
    for line in state.search:
        for kind, mend in mends.items():
            if line.startswith(kind):
                yield Finding("random", f"{line[0].upper()}{line[1:]}. {mend}")
                return
        if line.startswith(ROUGH):
            yield Finding(
                "digits", f"{line[0].upper()}{line[1:]}. Does the function lose its digits, by a "
                "difference of large numbers, so that chains stay where it is far too high? Look "
                "at its values at some draws and nearby: compute them in another way, or give "
                "bounds that leave the place out (bounds=, prior=).", status="wrong")
            return


def tails(look: Look) -> Iterator[Finding]:
    """Yield a finding for coordinates whose moments converge slowly, or do not exist."""
    heavy = heavy_tails(look.state)
    where = [k for _, k in heavy]
    if heavy and heavy[0][0] <= 0:
        where = [k for a, k in heavy if a <= 0]
        yield Finding(
            "improper", f"{look.few(where)}: the density falls off so slowly that it has no finite "
            "integral: a prior is missing, or a sign is wrong.", look.named(where), status="wrong")
    elif heavy:
        a = heavy[0][0]
        what = next(text for most, text in HEAVY.items() if a < most)
        yield Finding(
            "tails", f"{look.few(where)}: P(|x| > R) falls off as R^-{a:.2g}. {what} Report "
            "quantiles.", look.named(where))


def heavy_tails(state: RunState) -> list[tuple[float, int]]:
    """Return (index of the tails, coordinate) for those whose moments do not exist, or hardly."""
    place = range(state.d) if state.coordinates is None else state.coordinates.unbounded
    known = {place[int(k)]: a for k, a in state.tails if int(k) in place}
    proper = {int(k) for k in state.proper}  # their integral is finite, however small the index
    return sorted((a if k in proper else round(a, 2), k) for k, a in known.items()
                  if a < LEAST_INDEX and not (a <= 0 and k in proper))


def moments(look: Look) -> Iterator[Finding]:
    """Yield a finding for coordinates whose moments differ from those that gradients imply."""
    implied = look.state.implied
    if not len(implied):
        return
    which, columns = look.measured
    worth = columns["ess_bulk"] if len(which) == look.x.shape[2] else None
    where = with_moments(look.state, look.x, disagreeing(implied, look.x, worth))
    if len(where):
        yield differing(look.labels, look.x, implied, where)


def with_moments(
    state: RunState, x: NDArray[np.float64], where: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return those of some coordinates of x (chains, n, m) whose moments are soon known.

    Others have moments that do not exist, or hardly. Or they are exponentials of a coordinate z of
    the chains, and their draws have a tail that is heavier than exponential, as those of a
    log-normal density: the polynomials of z from which moments are implied do not follow it.
    """
    where = np.setdiff1d(where, [k for _, k in heavy_tails(state)])
    coordinates = state.coordinates
    logs = set() if coordinates is None else {
        k for z, k in coordinates.unbounded.items() if coordinates.sides[z]}
    some = np.array([k for k in where if k in logs], np.intp)
    if len(some):
        shapes, _ = tail_shapes(Standardized(x[:, :, some]))
        where = np.setdiff1d(where, some[shapes > MOST_OF_EXPONENTIAL])
    return where


def differing(
    labels: list[str], x: NDArray[np.float64], implied: NDArray[np.float64],
    where: NDArray[np.intp]
) -> Finding:
    """Return the finding that moments of draws x (chains, n, d) differ from those implied."""
    mean, sd = x.mean(axis=(0, 1)), x.std(axis=(0, 1))
    found = [f"{labels[k]} mean {implied[k, 0]:.3g} and sd {implied[k, 2]:.3g} (the draws have "
             f"{mean[k]:.3g} and {sd[k]:.3g})" for k in where[:NAMED]]
    return Finding(
        "moments", "The slopes of the log density at the draws imply other moments than the draws "
        f"have: {listed(found, len(where))}. The chains have not been everywhere, or too rarely: "
        "run longer (draws=, tune=); if it stays so, reparametrize, or try another sampler.",
        tuple(labels[k] for k in where), status="wrong")


def acceptance_bounds(sampler: Sampler, is_estimate: bool) -> tuple[float, float]:
    """Return the mean acceptance probabilities below and above which something is wrong."""
    if isinstance(sampler, Composite) or is_estimate:
        return LEAST_ACCEPTANCE, 1.0
    aim = getattr(sampler, "target_acceptance", None)
    if not (isinstance(aim, (int, float)) and 0 < aim < 1):  # a user's sampler may have any
        return LEAST_OF_WALK, 1.0
    return max(LEAST_ACCEPTANCE, aim / 5), MOST_ACCEPTANCE if aim < 0.5 else 1.0


def acceptance(look: Look) -> Iterator[Finding]:
    """Yield a finding for chains that accept too few or too many proposals for their sampler."""
    if look.log_ratio is None:
        return
    sampler = look.state.sampler
    rates = np.exp(np.minimum(look.log_ratio, 0.0)).mean(axis=1)
    low, high = acceptance_bounds(sampler, look.is_estimate)
    worst = int(rates.argmin())
    if rates[worst] < low:
        advice = "begin with narrower ones, or tune for longer"
        if look.is_estimate:
            advice += ", or make estimates less noisy (see fastkam.check_noise)"
        yield Finding(
            "acceptance", f"Chain {worst} accepts {100 * rates[worst]:.2g} % of the proposals of "
            f"{type(sampler).__name__}: {advice}.", chains=tuple(np.flatnonzero(rates < low)))
    elif rates.min() > high:
        least = float(rates.min())
        share = "all" if least == 1 else (
            f"more than {np.floor(1000 * least) / 10:g} % of the")  # never more than 100 %
        yield Finding(
            "acceptance", f"All chains accept {share} proposals of {type(sampler).__name__}: they "
            "are too narrow, and the chains move slowly; begin with wider ones, or tune for "
            "longer.")


def divergences(look: Look) -> Iterator[Finding]:
    """Yield a finding if trajectories diverged; of a composite sampler, those at beta = 1.

    A few divergences of a composite do not matter, since its other moves and replicas reach the
    regions that these trajectories do not.
    """
    n, total = look.state.trace.n_diverging, int(look.state.trace.counts.sum())
    composite = isinstance(look.state.sampler, Composite)
    if n > (MOST_DIVERGING * total if composite else 0):
        recorded = "" if look.state.thin == 1 else "recorded "
        yield Finding(
            "divergences", f"{n} of {total} {recorded}trajectories diverged: the draws may leave "
            "out where the target bends most; raise target_acceptance, or reparametrize.")
