"""Statistics of draws: convergence, precision, and distance from a known truth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastkam._core.diagnostics.convergence import COLUMNS, measure
from fastkam.arguments import (
    check_array,
    check_integer,
    check_list,
    check_vector,
    real_array,
    shown,
)
from fastkam.diagnostics.look import NAMED, listed
from fastkam.diagnostics.table import Summary
from fastkam.run.shapes import labeled

OUTER_QUANTILES = (0.05, 0.95)
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


# ---- convergence and precision, over all chains ----


def summary(draws, labels=None, *, quantiles=OUTER_QUANTILES):
    """Mean, sd, quantiles, Monte Carlo errors, effective sample sizes and R-hat.

    Parameters
    ----------
    draws : array (chains, draws, d), or dict of arrays (chains, draws, ...)
        A dict has quantities by name, such as functions of the draws of a run:
        ``{"ratio": result["a"] / result["b"]}``.
    labels : list of d str, optional
        Names of the coordinates; by default "x[0]", "x[1]", ..., or those of the dict.
    quantiles : list of float, optional
        Probabilities between 0 and 1; the columns are "q5", "q95", "q2.5" and so on.

    Returns
    -------
    Summary
    """
    if isinstance(draws, Mapping):
        draws, named = side_by_side(draws)
        labels = named if labels is None else labels
    draws = check_draws(draws)
    d = draws.shape[2]
    labels = [f"x[{i}]" for i in range(d)] if labels is None else check_list("labels", labels)
    if len(labels) != d or not all(isinstance(label, str) for label in labels):
        raise ValueError(f"labels must be {d} names, one a coordinate, not {shown(labels)}")
    levels, columns = check_levels("quantiles", quantiles), statistics(draws)
    if levels != OUTER_QUANTILES:
        found = np.full((len(levels), d), np.nan)
        known = np.isfinite(columns["mean"])
        found[:, known] = np.quantile(draws[..., known], levels, axis=(0, 1))
        columns = with_quantiles(columns, levels, found)
    return Summary(labels, columns, unknown_rows(labels, draws, columns["mean"]))


def unknown_rows(labels, draws, mean):
    """Return a list with a note on the draws that leave rows of a summary without numbers."""
    rows = [(int(i), int((~np.isfinite(draws[..., i])).sum()))
            for i in np.flatnonzero(~np.isfinite(mean))]
    texts = [f"{lost} of {draws[..., i].size} of {labels[i]}" for i, lost in rows if lost]
    if not texts:
        return []
    return [f"Some draws are NaN or infinite: {listed(texts[:NAMED], len(texts))}. The statistics "
            "of these rows are unknown (-)."]


def side_by_side(quantities):
    """The draws (chains, draws, d) of {name: (chains, draws, ...)}, and a label of each column."""
    labels: list[str] = []
    parts: list[NDArray[np.float64]] = []
    for name, values in quantities.items():
        what = f"draws[{name!r}]"
        if not isinstance(name, str):
            raise TypeError(f"draws must have names as its keys, not {shown(name)}")
        values = real_array(what, values, copy=False)
        if values.ndim < 2:
            raise ValueError(f"{what} must have shape (chains, draws) or (chains, draws, ...), not "
                             f"{values.shape}")
        if parts and values.shape[:2] != parts[0].shape[:2]:
            raise ValueError(f"{what} must have as many chains and draws as the others, "
                             f"{parts[0].shape[:2]}, not {values.shape[:2]}")
        shape = values.shape[2:]
        labels += labeled(name, [[str(i) for i in range(n)] for n in shape])
        parts.append(values.reshape(*values.shape[:2], math.prod(shape)))
    if not labels:
        raise ValueError("draws must have at least one quantity, not none")
    return np.concatenate(parts, axis=2), labels


def check_levels(name, value):
    """Probabilities between 0 and 1, each once, as a tuple of floats."""
    levels = real_array(name, np.atleast_1d(value)).ravel()
    inside = ((levels > 0) & (levels < 1)).all()
    if not (len(levels) and inside and len(set(levels)) == len(levels)):
        raise ValueError(f"{name} must be different probabilities above 0 and below 1, not "
                         f"{shown(value)}")
    return tuple(levels.tolist())


def with_quantiles(columns, levels, found):
    """The columns of a summary with quantiles `found` (levels, d) in place of its own."""
    named = {f"q{100 * level:.6g}": row for level, row in zip(levels, found, strict=True)}
    return {"mean": columns["mean"], "sd": columns["sd"], **named,
            **{name: columns[name] for name in COLUMNS[4:]}}


def statistics(draws, **wanted):
    """The columns of the summary, {name: (d,)}; with `wanted` as in `measure` some are NaN.

    All are NaN for a coordinate with draws that are not finite; Monte Carlo errors, effective
    sample sizes and R-hat are NaN too for one that never moves, and for fewer than four draws.
    """
    return dict(zip(COLUMNS, measure(check_draws(draws), **wanted), strict=True))


def ess_bulk(draws):
    """Effective sample size of the center: that of the rank-normalized draws.

    Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Bürkner, P.-C. (2021).
    Rank-normalization, folding, and localization: an improved R-hat. Bayesian Analysis 16, 667-718.

    Parameters
    ----------
    draws : array (chains, draws, d)

    Returns
    -------
    ndarray, shape (d,)
    """
    return statistics(draws, r_hat=False, mcse_sd=False)["ess_bulk"]


def ess_tail(draws):
    """Effective sample size of the tails: the lesser of those of the 5 % and 95 % quantiles.

    Parameters
    ----------
    draws : array (chains, draws, d)

    Returns
    -------
    ndarray, shape (d,)
    """
    return statistics(draws, r_hat=False, mcse_sd=False)["ess_tail"]


def r_hat(draws):
    """Rank-normalized split R-hat: near 1 where the chains agree, inf where none ever moves.

    Parameters
    ----------
    draws : array (chains, draws, d)
        Of at least two chains; NaN otherwise.

    Returns
    -------
    ndarray, shape (d,)
    """
    return statistics(draws, sizes=False)["r_hat"]


def mcse_mean(draws):
    """Monte Carlo standard error of the mean.

    Parameters
    ----------
    draws : array (chains, draws, d)

    Returns
    -------
    ndarray, shape (d,)
    """
    return statistics(draws, r_hat=False, mcse_sd=False)["mcse_mean"]


def mcse_sd(draws):
    """Monte Carlo standard error of the standard deviation.

    By the delta method from the error of the mean of (x - mean)^2, with the effective sample size
    of these squares.

    Parameters
    ----------
    draws : array (chains, draws, d)

    Returns
    -------
    ndarray, shape (d,)
    """
    return statistics(draws, r_hat=False)["mcse_sd"]


def in_units_of_spread(x):
    """Return (x - x[0]) / unit and the unit, the largest |x - x[0]|; NaN where all x are equal."""
    with np.errstate(over="ignore", invalid="ignore"):
        x = x - x.flat[0]
        spread = np.abs(x).max()
    if not (np.isfinite(spread) and spread > 0):
        return x, np.nan
    return x / spread, spread


def array_of(name, draws):
    """Return `draws` as a float array; otherwise raise an error, for a result that says what to do.
    """
    if hasattr(draws, "draws"):
        raise TypeError(f"{name} must be an array, not {shown(draws)}: use result.draws")
    return real_array(name, draws, copy=False)


def check_draws(draws):
    """Return `draws` as a float array (chains, draws, d); otherwise raise an error."""
    draws = array_of("draws", draws)
    if draws.ndim != 3 or draws.shape[0] < 1:
        mend = ": for one parameter give draws[:, :, None]" if draws.ndim == 2 else ""
        raise ValueError(f"draws must have shape (chains, draws, d), not {draws.shape}{mend}")
    return draws


# ---- one chain's efficiency ----


def ess_geyer(x):
    """Effective sample size by Geyer's initial monotone sequence, at most the number of draws.

    With rho_k the autocorrelation at lag k (divisor n), Gamma_j = rho_2j + rho_2j+1 is cut at its
    first value that is not positive and made decreasing by its running minimum; then
    tau = max(1, -1 + 2 sum Gamma_j) and the result is n / tau.

    Geyer, C. J. (1992). Practical Markov chain Monte Carlo. Statistical Science 7, 473-483.

    Parameters
    ----------
    x : array (..., draws, d)

    Returns
    -------
    ndarray, shape (..., d)
        NaN for a coordinate that never moves.
    """
    x = check_points("x", x)
    series = np.moveaxis(x, -2, -1)
    answer = np.empty(series.shape[:-1])
    for index in np.ndindex(answer.shape):
        answer[index] = geyer(series[index])
    return answer


def geyer(x):
    """`ess_geyer` of one series (n,)."""
    n = len(x)
    if n < 2:
        return np.nan
    pairs = autocorrelation(x)[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    if np.isnan(pairs[0]):
        return np.nan
    decreasing = np.minimum.accumulate(pairs)
    return n / max(1.0, -1.0 + 2.0 * decreasing[decreasing > 0].sum())


def autocorrelation(x):
    """rho_0 ... rho_(n-1) of a series (n,), with divisor n; NaN if it never moves."""
    from scipy.fft import irfft, next_fast_len, rfft

    n = len(x)
    x, spread = in_units_of_spread(x)
    if not spread > 0:
        return np.full(n, np.nan)
    size = next_fast_len(2 * n, real=True)
    spectrum = rfft((x - x.mean()) / x.std(), size)
    return irfft(spectrum.real**2 + spectrum.imag**2, size)[:n] / n


def ess_range(x):
    """Least, median and greatest `ess_geyer` over the coordinates.

    Parameters
    ----------
    x : array (..., draws, d)

    Returns
    -------
    tuple of ndarray, each of shape (...)
    """
    ess = ess_geyer(x)
    return ess.min(axis=-1), np.median(ess, axis=-1), ess.max(axis=-1)


def esjd(draws):
    """Expected squared jump distance: the mean over steps of |x_i - x_(i-1)|^2.

    Parameters
    ----------
    draws : array (..., draws, d)
        At least two draws, not thinned.

    Returns
    -------
    ndarray, shape (...)
    """
    draws = check_points("draws", draws, least=2)
    return np.square(np.diff(draws, axis=-2)).sum(axis=-1).mean(axis=-1)


# ---- distance from a known truth ----


def mean_error(draws, mean):
    """Euclidean distance of the draws' mean from the true one.

    Parameters
    ----------
    draws : array (..., draws, d)
    mean : array (d,)

    Returns
    -------
    ndarray, shape (...)
    """
    draws = check_points("draws", draws)
    mean = check_array("mean", mean, shape=draws.shape[-1:])
    return np.linalg.norm(draws.mean(axis=-2) - mean, axis=-1)


def quantile_deviation(q, df, levels=LEVELS):
    """|fraction of q below the p-quantile of chi^2 - p|, for each level p.

    Parameters
    ----------
    q : array (..., draws)
        A statistic of each draw, which under the target has the chi^2 distribution with `df`
        degrees of freedom.
    df : int
    levels : array (k,)
        Each in (0, 1).

    Returns
    -------
    ndarray, shape (..., k)
    """
    from scipy.stats import chi2

    df = check_integer("df", df, least=1)
    q, levels = real_array("q", q, copy=False), real_array("levels", levels, copy=False)
    if q.ndim < 1 or not q.shape[-1]:
        raise ValueError(f"q must have shape (..., draws), not {q.shape}")
    if levels.ndim != 1 or not levels.size or not ((levels > 0) & (levels < 1)).all():
        raise ValueError(f"levels must be numbers in (0, 1), not {levels}")
    below = [(q < quantile).mean(axis=-1) for quantile in chi2.ppf(levels, df)]
    return np.abs(np.stack(below, axis=-1) - levels)


class ModeOccupancy(NamedTuple):
    """Fractions of the draws in each mode.

    Attributes
    ----------
    fraction : ndarray, shape (..., k)
        Fraction of the draws in each of the k modes.
    weights : ndarray, shape (k,)
        Probabilities of the modes.
    distance : ndarray, shape (...)
        Total variation distance between the two: 0 if they agree, near 1 if most of the
        probability is missed.
    switches : ndarray of int, shape (...)
        Number of draws that are in another mode than the draw before.
    """

    fraction: np.ndarray
    weights: np.ndarray
    distance: np.ndarray
    switches: np.ndarray


def mode_occupancy(draws, mode_of, weights):
    """Return the fraction of draws in each mode, and its distance from the modes' probabilities.

    Parameters
    ----------
    draws : array (..., draws, d)
    mode_of : callable
        ``mode_of(x)`` is the index (n,) of the mode to which each row of x (n, d) belongs.
    weights : array (k,)
        Probabilities of the modes; they sum to 1.

    Returns
    -------
    ModeOccupancy
    """
    draws = check_points("draws", draws)
    if draws.size == 0:
        raise ValueError(f"draws must not be empty, but has shape {draws.shape}")
    weights = check_probabilities(weights)
    modes = mode_indices("mode_of", mode_of, draws, len(weights))
    fraction = np.stack([(modes == k).mean(axis=-1) for k in range(len(weights))], axis=-1)
    return ModeOccupancy(
        fraction=fraction,
        weights=weights,
        distance=np.abs(fraction - weights).sum(axis=-1) / 2,
        switches=(np.diff(modes, axis=-1) != 0).sum(axis=-1),
    )


def check_probabilities(weights):
    """Return `weights` as an array (k,), if they are probabilities."""
    weights = check_vector("weights", weights)
    if not (weights >= 0).all() or not np.isclose(weights.sum(), 1):
        raise ValueError(f"weights must be probabilities that sum to 1, not {weights}")
    return weights


def mode_indices(name, mode_of, draws, below):
    """Return the mode of each draw (..., draws, d) by `mode_of`, the argument `name`, (..., draws).
    """
    if not callable(mode_of):
        raise TypeError(f"{name} must be a function, not {shown(mode_of)}")
    modes = mode_of(draws.reshape(-1, draws.shape[-1]))
    real_array(f"{name}(x)", modes, copy=False)  # rows of different lengths are no array
    modes = np.asarray(modes)
    n = draws[..., 0].size
    if modes.shape != (n,) or modes.dtype.kind not in "iu":
        raise TypeError(f"{name} must return {n} integers, not {modes.dtype} {modes.shape}")
    if modes.min() < 0 or modes.max() >= below:
        wrong = modes.min() if modes.min() < 0 else modes.max()
        raise ValueError(f"{name} must return indices from 0 to {below - 1}, not {wrong}")
    return modes.reshape(draws.shape[:-1])


def check_points(name, x, *, least=1):
    """Return `x` as a float array (..., draws, d) with at least that many draws."""
    x = array_of(name, x)
    if x.ndim < 2:
        raise ValueError(f"{name} must have shape (..., draws, d), not {x.shape}")
    if x.shape[-1] < 1:
        raise ValueError(f"{name} must have shape (..., draws, d) with d at least 1, not {x.shape}")
    if x.shape[-2] < least:
        raise ValueError(f"{name} must hold at least {least} draws, not {x.shape[-2]}")
    return x
