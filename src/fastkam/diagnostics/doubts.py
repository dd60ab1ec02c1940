"""Findings from the statistics of `signs`, about draws on which the chains agree.

They are computed if R-hat and effective sample sizes find nothing, which would show the same faults
earlier. `fastkam.diagnostics.methods` has the findings from the sampler's own quantities.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fastkam._core.numerics.elementary import exp
from fastkam.diagnostics import signs
from fastkam.diagnostics.agreement import LEAST_ESS
from fastkam.diagnostics.edges import across_ends, between_bounds
from fastkam.diagnostics.faults import LEAST_INDEX, tails
from fastkam.diagnostics.look import NAMED, Finding, Look, chain_names, listed
from fastkam.samplers.sampler import Composite

Array = NDArray[np.float64]

MOST_R_HAT_OF_RADIUS = 1.03
MOST_DRIFT = 4.5            # standard errors, from the first third to the last
MOST_STAY, STAY_SHARE = 6.0, 0.005  # times what independent stays have; of a chain's draws
MOST_EXCURSION = 0.4        # of a part of a chain, beyond the radius that 2 % of draws exceed
LEAST_PARTS = 400           # draws of a chain for that
LEAST_IN_PART, FEWEST_PARTS = 10.0, 4   # effective draws; parts
HEAVY, SURE = 0.25, 2.5     # k-hat above which there is no fourth moment; its standard errors
UNCERTAIN, LIKELY = 0.06, 1.0   # error of a standard deviation, as a part of it; the same for it
MOST_OF_SD = 0.1            # standard error of a standard deviation, as a part of it
LEAST_GAP, FEWEST_CHANGES = 1.0, 20    # standard deviations of the narrower group; changes
PLACES, LEAST_AT_PLACE = 10, 0.4    # parts of the draws; of the mean acceptance in each
LEAST_STAY = 5.0            # in a group, in units of the draws per effective draw
MOST_NESTED = 1.05
MOST_OF_GROUPS = 1.01       # of chains long enough to be checked one by one
FEWEST_CHAINS, FEWEST_ROWS = 32, 4


def doubts(
    look: Look, which: NDArray[np.int64], columns: Mapping[str, Array]
) -> Iterator[Finding]:
    """Yield the findings on the coordinates `which`, whose columns of a summary are given."""
    draws = signs.Standardized(look.x if len(which) == look.x.shape[2] else look.x[:, :, which])
    labels = [look.labels[i] for i in which]
    squares = draws.squares()
    if squares is not None:
        if not agree_as_groups(look, squares[:, :, None]):
            yield from functionals(squares)
        yield from excursion(squares, float(columns["ess_bulk"].max()))
    yield from drift(draws, labels, columns)
    if not look.is_estimate:  # a chain stays at an estimate that is too high: acceptance shows it
        yield from stay(draws)
    yield from heavy(look, draws, labels, columns)
    if columns["ess_bulk"].max() < LEAST_ESS:
        return  # in so few draws, groups and places would be found by chance
    if not look.is_estimate:
        yield from place(look, which)
    yield from modes(draws, columns)


def functionals(squares: Array) -> Iterator[Finding]:
    """Yield a finding if chains agree on each coordinate, but not on the squared radius."""
    radius, tail = signs.r_hats_of_functionals(squares)
    value = max(radius, tail)
    if value > MOST_R_HAT_OF_RADIUS:
        what = "the distance from the mean" if radius >= tail else "being in the tail"
        yield Finding(
            "functionals", f"R-hat of {what} is {value:.3g}, though the coordinates agree: chains "
            "have been in the tails for different times. Run longer (draws=).")


def drift(
    draws: signs.Standardized, labels: list[str], columns: Mapping[str, Array]
) -> Iterator[Finding]:
    """Yield a finding for means and standard deviations that drift in the course of the draws."""
    means, sds = signs.drifts(draws, columns)
    size = np.fmax(means, sds)
    where = np.flatnonzero(size > MOST_DRIFT)
    if len(where):
        where = where[np.argsort(-size[where])]
        found = [f"{'mean' if means[i] >= sds[i] else 'standard deviation'} of {labels[i]} by "
                 f"{size[i]:.2g} standard errors" for i in where[:NAMED]]
        yield Finding(
            "drift", f"There is a drift from the first third of the draws to the last: "
            f"{listed(found, len(where))}. Warm-up was too short (tune=), or the chains are still "
            "on their way.", tuple(labels[i] for i in where))


def stay(draws: signs.Standardized) -> Iterator[Finding]:
    """Yield a finding if a chain stays at one point far longer than its other stays suggest.

    Of n / m independent stays of mean m the longest is about m log(n / m).
    """
    longest, mean = signs.longest_stays(draws)
    n = draws.u.shape[2]
    ratio = longest / (mean * np.log(np.maximum(n / mean, 3.0)))
    where = np.flatnonzero((ratio > MOST_STAY) & (longest > STAY_SHARE * n))
    if len(where):
        worst = where[longest[where].argmax()]
        yield Finding(
            "stay", f"{chain_names(where)} stayed at one point for up to "
            f"{100 * longest[worst] / n:.2g} % of the draws, {ratio[worst]:.2g} times as long as "
            "other stays suggest: proposals rarely reach that place, and its weight is "
            "hardly known. Run longer, or try another sampler.", chains=tuple(where.tolist()))


def excursion(squares: Array, size: float) -> Iterator[Finding]:
    """Yield a finding if a chain was far out for much of a part of its draws.

    All draws have the effective sample size `size`, and a part at least LEAST_IN_PART effective
    draws: of fewer draws, and of many chains, some are far out by chance.
    """
    chains, n = squares.shape
    parts = int(min(signs.PARTS, size / (LEAST_IN_PART * chains)))
    if n < LEAST_PARTS or parts < FEWEST_PARTS:
        return
    shares = signs.excursions(squares, parts)
    where = np.flatnonzero(shares > MOST_EXCURSION)
    if len(where):
        yield Finding(
            "excursion", f"{chain_names(where)} made a long excursion into the tails: in one of "
            f"{parts} equal parts of its draws, {100 * shares.max():.2g} % of them are farther "
            "from the center than 98 % of all draws are. Such tails are visited too rarely to be "
            "known: run longer (draws=), or try another sampler.", chains=tuple(where.tolist()))


def place(look: Look, which: NDArray[np.int64]) -> Iterator[Finding]:
    """Yield a finding for coordinates with a tenth in which far fewer proposals are accepted.

    Steps of the right length for the middle are too wide there, as in a funnel's neck or the arms
    of a bend. Only samplers with one kind of step are checked, which adapt it to the middle.
    """
    state = look.state
    if look.log_ratio is None or state.thin != 1 or isinstance(state.sampler, Composite):
        return
    rows, chains = look.x.shape[1], look.x.shape[0]
    last = state.trace.rows
    x = state.trace.x[:, last - rows : last - 1]  # in the coordinates of the chains
    rates = exp(np.minimum(state.trace.log_ratio[:, last - rows + 1 : last], 0.0)).reshape(-1)
    n, mean = chains * (rows - 1) // PLACES, rates.mean()
    if x.shape[2] != look.x.shape[2] or not (n and mean > 0):
        return
    found = {}
    for i in which:
        values = x[:, :, i].reshape(-1)
        at = np.searchsorted(np.sort(values)[n::n][: PLACES - 1], values, side="right")
        count = np.bincount(at, minlength=PLACES)
        in_place = np.bincount(at, rates, PLACES) / np.maximum(count, 1)
        found[i] = float(in_place[count > n / 2].min() / mean)  # equal values are in one place
    where = [i for i in sorted(found, key=lambda i: found[i]) if found[i] < LEAST_AT_PLACE]
    if where:
        yield Finding(
            "place", f"{look.few(where)}: in a tenth of its range only {100 * found[where[0]]:.2g} "
            "% as many proposals are accepted as on average. The scale of the density differs from "
            "place to place, and chains hardly get where it is small: reparametrize, or try "
            "another sampler.", look.named(where))


def heavy(
    look: Look, draws: signs.Standardized, labels: list[str], columns: Mapping[str, Array]
) -> Iterator[Finding]:
    """Yield a finding on tails too heavy for the standard deviation, or its error, to be known."""
    if len(look.state.tails):  # what the search has found says more
        yield from rough_sd(labels, columns, list(tails(look)))
        return
    ends = list(across_ends(look))
    shapes, m = signs.tail_shapes(draws)
    shapes[np.isin(labels, [look.labels[i] for i, *_ in look.circles])] = 0.0  # they have no tails
    with np.errstate(invalid="ignore"):
        worth = m * np.clip(columns["ess_tail"] / draws.flat.shape[1], 0.01, 1.0)
        error = (1 + shapes) / np.sqrt(worth)
        sure, likely = shapes - SURE * error > HEAVY, shapes - LIKELY * error > HEAVY
        likely &= columns["mcse_sd"] > UNCERTAIN * columns["sd"]
    if sure.any():
        yield far_draws(np.flatnonzero(sure), shapes, labels, between_bounds(look))
        return
    power = falling(look, draws)
    if power is not None:
        yield Finding(
            "tails", "The values of the log density at the draws lie on the curve of a Student "
            f"density of {power:.2g} degrees of freedom: moments above that order do not exist. "
            "The standard deviation and its error may be far off: report quantiles.")
        return
    rough = list(rough_sd(labels, columns, ends))
    yield from rough
    if likely.any() and not rough:
        yield far_draws(np.flatnonzero(likely), shapes, labels, between_bounds(look))


def far_draws(
    where: NDArray[np.intp], shapes: Array, labels: list[str], bounded: Collection[str]
) -> Finding:
    """Return a finding on coordinates with k-hat in `shapes`, of which a few draws are far out.

    Those with labels in `bounded` have moments of all orders.
    """
    where = where[np.argsort(-shapes[where])]
    k, names = shapes[where[0]], tuple(labels[i] for i in where)
    reason = "Some of the mass is far away, where the chains rarely are."
    if not set(names) <= set(bounded):
        reason = ("Either some of the mass is far away, where the chains rarely are, or, unless "
                  f"bounds or a prior limit the tails, moments above the order {1 / k:.2g} do not "
                  "exist.")
    return Finding(
        "tails", f"{listed(list(names[:NAMED]), len(names))}: a few draws are far from all others "
        f"(k-hat of the draws' tails is {k:.2g}). {reason} The standard deviation and its error "
        "may be far off: report quantiles.", names)


def rough_sd(
    labels: list[str], columns: Mapping[str, Array], said: Sequence[Finding] = ()
) -> Iterator[Finding]:
    """Yield a finding on standard deviations with large errors, where ESS is not small.

    Coordinates that one of the findings `said` names are left out.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        known = columns["mcse_sd"] / columns["sd"]
    named = np.array([any(label in one.coordinates for one in said) for label in labels], bool)
    where = np.flatnonzero((known > MOST_OF_SD) & (columns["ess_bulk"] >= LEAST_ESS) & ~named)
    if len(where):
        where = where[np.argsort(-known[where])]
        texts = [f"{labels[i]} to {100 * known[i]:.2g} %" for i in where[:NAMED]]
        yield Finding(
            "mcse_sd", f"The standard deviation is hardly known: of {listed(texts, len(where))}. A "
            "few draws far out make much of it, and may be too few or too many: report quantiles, "
            "or run longer (draws=).", tuple(labels[i] for i in where))


def falling(look: Look, draws: signs.Standardized) -> float | None:
    """Return the order below 4 above which the density has no moments, by its values; or None.

    The order is computed if a coordinate has a large kurtosis, and if the user's coordinates are
    those of the chains: a transform changes the tails.
    """
    state = look.state
    if look.lp is None or look.is_estimate or not draws.kurtosis.max() > signs.HEAVY_KURTOSIS:
        return None
    z = state.trace.x[:, :1]
    x = state.constrain(z)
    if x.shape != z.shape or (x != z).any():
        return None
    power = signs.power_of_tails(look.x, look.lp)
    return power if power is not None and 0 < power < LEAST_INDEX else None


def modes(draws: signs.Standardized, columns: Mapping[str, Array]) -> Iterator[Finding]:
    """Yield a finding if chains moved too rarely between two groups of draws to know their shares.

    A few draws far out are not a group: in a group, chains stay for longer than the autocorrelation
    time.
    """
    series = draws.suspects()
    gaps = [signs.gap_of(one.reshape(-1)) for one in series]
    widest = int(np.argmax([gap for gap, _ in gaps]))
    if gaps[widest][0] < LEAST_GAP:
        return
    changes, share = signs.changes_of_side(series[widest], gaps[widest][1])
    stay = 2 * share * series[widest].size / max(changes, 1)
    memory = series[widest].size / columns["ess_bulk"].max()
    if changes < FEWEST_CHANGES and stay > LEAST_STAY * memory:
        yield Finding(
            "modes", f"The draws fall into two groups, one of {100 * share:.2g} % of them, between "
            f"which the chains have changed {changes} times: the shares are hardly known. Run "
            'longer, or try sampler="jumps" or "pt".')


def agree_as_groups(look: Look, x: Array) -> bool:
    """Whether many chains agree in x (chains, n, d) as groups, by where they began.

    R-hat of a chain worth few draws is above 1.01 however well all mix: R-hat^2 - 1 is about one
    over the effective draws in half a chain. The error of the mean over all chains includes this
    already.
    """
    if len(x) < FEWEST_CHAINS:
        return False
    groups = signs.groups_of_starts(look.state.x0)
    return bool((signs.nested_r_hat(x, groups) <= MOST_OF_GROUPS).all())


def of_short_chains(look: Look) -> Iterator[Finding]:
    """Yield a finding if groups of many chains disagree, each too short to be checked alone."""
    chains, n, _ = look.x.shape
    if chains < FEWEST_CHAINS or n < FEWEST_ROWS:
        return
    groups = signs.groups_of_starts(look.state.x0)
    values = signs.nested_r_hat(look.x, groups)
    # of the variance between chains a part 1 / m remains between groups of m
    noise = np.sqrt(1 + 2.5 / groups.shape[1])
    where = np.flatnonzero(values > max(MOST_NESTED, noise))
    if len(where):
        where = where[np.argsort(-values[where])]
        texts = [f"{values[i]:.3g} for {look.labels[i]}" for i in where[:NAMED]]
        yield Finding(
            "nested_r_hat", f"Nested R-hat of {len(groups)} groups of chains is high: "
            f"{listed(texts, len(where))}. The chains still remember where they began: tune for "
            "longer (tune=).", look.named(where), status="wrong" if values.max() > 1.2 else
            "doubtful")
