"""Summaries and checks of weighted draws.

With weights w_i of draws x_i of another distribution, the mean of h is sum w_i h(x_i) / sum w_i.
To first order its error is that of the mean of the terms

    g_i = (w_i / mean w) (h(x_i) - mean of h),

so that its standard error is that of a mean of g, with autocorrelation, and the effective sample
size is the variance of h over the squared error. Vihola, M., Helske, J. and Franks, J. (2020).
Importance sampling type estimators based on approximate marginal Markov chain Monte Carlo.
Scandinavian Journal of Statistics 47, 1339-1376. If the weights are calibrated, that is the error
of what controls do not explain in g: see `fastkam.diagnostics.controls`.

The terms are skewed, those of a variance most of all, and the estimated error of a skewed mean is
small where the mean is wrong: intervals of a mean +- z errors have the probability
2 Phi(z) - 1 less

    2 z phi(z) (c1 g^2 + c2 k + c3) / n,    c1 = (z^4 + 2 z^2 - 3) / 18,    c2 = (3 - z^2) / 12,
                                            c3 = (z^2 + 3) / 4,

with the skewness g, the excess kurtosis k and the effective number n of the terms. Errors are
therefore multiplied by 1 + (c1 g^2 + c2 k + c3) / n, for z = 1.645. Hall, P. (1992). The Bootstrap
and Edgeworth Expansion, 2.6. Springer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam._core.diagnostics.convergence import COLUMNS
from fastkam.diagnostics.agreement import LEAST_ESS, r_hats
from fastkam.diagnostics.controls import Controls
from fastkam.diagnostics.doubts import rough_sd
from fastkam.diagnostics.draws import OUTER_QUANTILES, statistics, unknown_rows, with_quantiles
from fastkam.diagnostics.faults import of_repeated_calls, often_rejected, tails
from fastkam.diagnostics.look import Finding, Look
from fastkam.diagnostics.table import Summary
from fastkam.diagnostics.unvisited import unvisited
from fastkam.evidence.pareto import MOST_K_HAT, k_hat
from fastkam.search.population import largest_drop

if TYPE_CHECKING:
    from fastkam.run.state import RunState

Array = NDArray[np.float64]

Z = 1.6449  # of the intervals whose probability is corrected, 90 %
OF_SKEWNESS, OF_KURTOSIS = (Z**4 + 2 * Z**2 - 3) / 18, (3 - Z**2) / 12
OF_ESTIMATED_VARIANCE = (Z**2 + 3) / 4
TOP_SHARE = 0.1  # of the sum, in the largest 1 % of the weights, above which k-hat counts
FIRST_CHECK = 160  # draws of a learned surrogate after which chains on the density check them
LARGEST_SHARE = 0.05  # of the sum of the weights, above which one draw dominates
MOST_SHARE = 0.5  # the same, above which means are those of one draw

TOO_LOW = "the surrogate is far too low"  # beginning of the line of a search that says so
NOT_FALLEN = "the density has not fallen"  # beginning of another one
NO_SURROGATE = "no surrogate was found"  # beginnings of lines of runs that go on without one
DOES_NOT_PAY = "surrogate does not pay"
# text before the number in the line of a search that says that the integral of the surrogate is 1
NORMALIZED = "surrogate normalized, with a standard error of its log integral of"


def normalized(log_weights: Array) -> Array:
    """Return the weights (chains, draws), normalized to the mean 1; NaN if all are 0."""
    if not log_weights.size:
        return np.asarray(log_weights)
    with np.errstate(invalid="ignore", under="ignore"):
        w = np.exp(log_weights - log_weights.max(initial=-np.inf))
        return np.asarray(w / w.mean())


def weighted_summary(
    draws: Array, log_weights: Array, labels: list[str],
    levels: tuple[float, ...] = OUTER_QUANTILES, controls: Controls | None = None,
) -> Summary:
    """Return the summary of draws (chains, draws, d) with log weights (chains, draws).

    The columns are those of `fastkam.diagnostics.summary`; R-hat is that of the draws without
    weights. Draws of weight 0 that are not finite, as those of extras, do not count. An effective
    sample size is at most 1 / s^2, where s is the largest share of a draw in the sum of the
    weights, as (sum w)^2 / sum w^2 is. With the controls of calibrated weights that bound holds
    only if one draw dominates, and the size may be larger than the number of draws.
    """
    if not log_weights.size:
        none = dict.fromkeys(COLUMNS, np.full(len(labels), np.nan))
        return Summary(labels, with_quantiles(none, levels, [none["mean"]] * len(levels)))
    w, drawn = normalized(log_weights)[:, :, None], draws
    draws = np.where((w == 0) & ~np.isfinite(draws), 0.0, draws)
    with np.errstate(invalid="ignore"):
        mean = (w * draws).mean(axis=(0, 1))
        away = draws - mean
        variance = (w * away**2).mean(axis=(0, 1))
    sd = np.sqrt(variance)
    q5, q95 = quantiles(draws, w[:, :, 0], OUTER_QUANTILES)
    with np.errstate(all="ignore"):
        s = w.max() / w.size
        s = np.where(controls is not None and s < LARGEST_SHARE, 0.0, s)
        mcse_mean = np.maximum(error_of(w * away, controls), s * sd)
        mcse_sd = np.maximum(error_of(w * (away**2 - variance), controls) / (2 * sd),
                             s * sd / np.sqrt(2))
        tails = [np.minimum(p * (1 - p) / error_of(w * ((draws <= q) - p), controls) ** 2, 1 / s**2)
                 for p, q in zip(OUTER_QUANTILES, (q5, q95), strict=True)]
        bulk = variance / mcse_mean**2
    columns = {"mean": mean, "sd": sd, "mcse_mean": mcse_mean, "mcse_sd": mcse_sd,
               "ess_bulk": bulk, "ess_tail": np.fmin(*tails), "r_hat": statistics(drawn)["r_hat"]}
    columns = with_quantiles(columns, levels, quantiles(draws, w[:, :, 0], levels))
    return Summary(labels, columns, unknown_rows(labels, draws, mean))


def error_of(terms: Array, controls: Controls | None = None) -> Array:
    """Return the standard errors (d,) of the means of skewed terms (chains, draws, d).

    Calibrated weights leave the error of what the controls do not explain, and that of the
    controls' own means.
    """
    if controls is not None:
        rest, explained = controls.unexplained(terms)
        return np.hypot(error_of(rest), np.sqrt(explained / controls.draws))
    away = terms - terms.mean(axis=(0, 1))
    unit = power_of_two(np.abs(away).max(axis=(0, 1)))  # in which no power over- or underflows
    error, away = statistics(terms / unit)["mcse_mean"], away / unit
    second, third, fourth = ((away**k).mean(axis=(0, 1)) for k in (2, 3, 4))
    share = error**2 / second  # 1 / n
    correction = (OF_SKEWNESS * third**2 / second**3 + OF_KURTOSIS * (fourth / second**2 - 3)
                  + OF_ESTIMATED_VARIANCE)
    return np.asarray(unit * error * (1 + share * correction))


def power_of_two(x: Array) -> Array:
    """Return powers of 2 near positive numbers, and 1 for others."""
    _, exponents = np.frexp(np.where((x > 0) & (x < np.inf), x, 0.5))
    return np.ldexp(1.0, np.clip(exponents, -1000, 1000))


def quantiles(draws: Array, w: Array, levels: tuple[float, ...]) -> Array:
    """Return weighted quantiles, (levels, d): the smallest draw whose share reaches the level."""
    d = draws.shape[2]
    flat, w = draws.reshape(-1, d), w.ravel() / w.sum()
    found = np.empty((len(levels), d))
    for j in range(d):
        order = np.argsort(flat[:, j], kind="stable")
        share = np.cumsum(w[order])
        at = np.minimum(np.searchsorted(share, levels), len(share) - 1)
        found[:, j] = flat[order[at], j]
    return found


def systematic(log_weights: Array, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return n indices of draws (m,) in increasing order, in proportion to their weights.

    Systematic resampling: n equally spaced points on the cumulative sum of the weights.
    """
    share = np.cumsum(normalized(log_weights))
    places = (np.arange(n) + rng.random()) / n * share[-1]
    return np.minimum(np.searchsorted(share, places), len(share) - 1)


def dominated(share: float, status: str) -> Finding:
    return Finding("weights", f"One draw has {100 * share:.0f} % of the sum of the weights: means "
                   "and errors are rough. Allow more calls (budget=).", status=status)


def far_below_calls(state: RunState, w: Array) -> Iterator[Finding]:
    """Yield a finding if the log density at the draws is far below that at the best call."""
    if state.calls is None or not len(state.calls):
        return
    lp = state.lp()
    level = float(np.average(lp[w > 0], weights=w[w > 0]))
    best, d = float(np.nanmax(state.calls[:, -1])), state.d
    if level < best - largest_drop(d):
        yield Finding(
            "weights", f"The mean log density at the draws is {level:.4g}, and {best:.4g} at one "
            "of the calls: the draws are far from the mass. Allow more calls (budget=), or run "
            "without surrogate.", status="wrong")


def weight_findings(state: RunState, log_weights: Array) -> list[Finding]:
    """Return the findings on weighted draws."""
    if not log_weights.size:
        return [Finding("weights", "There are no draws: the run has ended before any was made.")]
    w = normalized(log_weights)
    if not np.isfinite(w).all():
        return [Finding("weights", "No draw of the surrogate has a density: the weights are all 0. "
                                   "Start nearer to the mode (x0=), or run without surrogate.")]
    found = list(far_below_calls(state, w))
    k = k_hat(log_weights.ravel())
    top, largest = w.max() / w.size, np.sort(w.ravel())[-max(1, w.size // 100) :].sum() / w.size
    if top > MOST_SHARE:
        found.append(dominated(top, "wrong"))
    elif k > MOST_K_HAT and largest > TOP_SHARE:  # the tail of nearly equal weights does not matter
        found.append(Finding(
            "weights", f"Pareto k-hat of the importance weights is {k:.2f}, above {MOST_K_HAT}: "
            "the surrogate is too small somewhere, and means and errors cannot be trusted. Allow "
            "more calls (budget=), or run without surrogate."))
    elif top > LARGEST_SHARE:
        found.append(dominated(top, "doubtful"))
    doubts = [line for line in state.search if line.startswith(TOO_LOW)]
    if doubts:
        found.append(Finding(
            "weights", f"{doubts[-1][0].upper()}{doubts[-1][1:]}: the draws leave out a part of "
            "the distribution, and means and errors cannot be trusted. Allow more calls (budget=), "
            "or run without surrogate."))
    found += often_rejected(
        np.sum([one["n_rejected"] for one in state.states], axis=0), state.evaluated,
        ("nan", "failed"), "which have the weight 0")
    goes_on = [line for line in state.search if line.startswith(NOT_FALLEN)]
    if goes_on:
        found.append(Finding(
            "weights", f"{goes_on[-1][0].upper()}{goes_on[-1][1:]}: the distribution may go on "
            "where the surrogate does not. Allow more calls (budget=)."))
    table = weighted_summary(
        np.asarray(state.constrained(state.trace.draws)), log_weights, state.layout.labels,
        controls=state.controls)
    apart = r_hats(table.labels, table["r_hat"], (
        "The chains do not agree about the surrogate, whose draws these are: allow more calls "
        "(budget=, draws=), or run without surrogate."))
    if apart is not None and apart.status == "wrong":  # the errors count smaller differences
        found.append(replace(apart, status="doubtful"))
    least = np.fmin(table["ess_bulk"], table["ess_tail"])
    bad = np.flatnonzero(~(least >= LEAST_ESS))
    if len(bad):
        bad = bad[np.argsort(np.nan_to_num(least[bad]))]
        names = tuple(state.layout.labels[i] for i in bad)
        found.append(Finding(
            "ess", f"The effective sample size is below {LEAST_ESS}: {least[bad[0]]:.0f} for "
            f"{names[0]}. Means and quantiles are rough: allow more calls (budget=, draws=).",
            names))
    look = Look(state)
    found += unvisited(look)
    heavy = list(tails(look))
    found += heavy
    if not len(bad):
        found += rough_sd(table.labels, table.columns, heavy)
    found += of_repeated_calls(state)
    return found
