"""Distances between draws and a target: maximum mean discrepancy, Kullback-Leibler by histogram."""

from __future__ import annotations

import numpy as np

from fastkam.arguments import check_integer, check_list, check_number, real_array, shown

BLOCK = 2**20  # kernel values held at a time
LARGEST_GRID = 2**26


def mmd2(x, y, *, degree=3, offset=1.0):
    """Squared maximum mean discrepancy, unbiased, of the kernel (offset + <a, b>)^degree.

        sum_(i != j) k(x_i, x_j) / (n (n - 1)) + sum_(i != j) k(y_i, y_j) / (m (m - 1))
        - 2 mean_ij k(x_i, y_j)

    It compares all moments up to `degree`. It is unbiased, so it may be negative where the
    distributions agree.

    Gretton, A. et al. (2012). A kernel two-sample test. Journal of Machine Learning Research 13,
    723-773.

    Parameters
    ----------
    x : array (n, d)
    y : array (m, d)
    degree : int
    offset : float

    Returns
    -------
    float
    """
    x, y = check_sample("x", x), check_sample("y", y)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"y must have {x.shape[1]} columns as x has, not {y.shape[1]}")
    degree = check_integer("degree", degree, least=1)
    offset = check_number("offset", offset, least=0)

    def within(a):
        diagonal = ((offset + np.square(a).sum(axis=1)) ** degree).sum()
        return (kernel_sum(a, a, degree, offset) - diagonal) / (len(a) * (len(a) - 1))

    between = kernel_sum(x, y, degree, offset) / (len(x) * len(y))
    return float(within(x) + within(y) - 2 * between)


def kernel_sum(x, y, degree, offset):
    """sum_ij (offset + <x_i, y_j>)^degree, in blocks of rows of x."""
    rows = max(1, BLOCK // len(y))
    return sum(
        float(((offset + x[i : i + rows] @ y.T) ** degree).sum()) for i in range(0, len(x), rows)
    )


def check_sample(name, x):
    """Return `x` as a finite float array (n, d) with n at least 2."""
    x = real_array(name, x, copy=False)
    if x.ndim != 2 or len(x) < 2:
        raise ValueError(f"{name} must have shape (n, d) with n at least 2, not {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError(f"{name} must be finite")
    return x


# ---- Kullback-Leibler ----


def symmetric_kl(draws, logp, bounds, bins=100, *, prior_draws=1.0, refine=1):
    """Return KL(p, q) + KL(q, p) of the target p and the draws' histogram q, over bins of a box.

    q is (n_i + c p_i) / (n + c) with c = `prior_draws`, as if c further draws had come from the
    target itself. So a bin without draws contributes p_i log((n + c) / c): a missed mode counts,
    and more so in a longer run. A draw outside the box counts in the nearest bin, and a draw at
    which the density is zero makes the result infinite. Independent draws of the target do not give
    0, but about the number of bins that have probability, divided by n.

    Parameters
    ----------
    draws : array (n, d)
        For d above 2 or 3, see `marginal_symmetric_kl`.
    logp : callable
        ``logp(X) -> (k,)`` for X (k, d): the log density up to a constant. A `Target` is one.
    bounds : array (d, 2)
        The box; it should contain nearly all of the target's probability.
    bins : int
        Number of bins along each axis.
    prior_draws : float
        c above, positive.
    refine : int
        p_i is the mean density at refine^d points of the bin; 1 takes its center alone.

    Returns
    -------
    float
    """
    draws = check_sample("draws", draws)
    if not callable(logp):
        raise TypeError(f"logp must be a function, not {shown(logp)}")
    d = draws.shape[1]
    bounds = check_bounds(bounds, d)
    bins = check_integer("bins", bins, least=2)
    refine = check_integer("refine", refine, least=1)
    prior_draws = check_number("prior_draws", prior_draws, above=0)
    if (bins * refine) ** d > LARGEST_GRID:
        raise ValueError(
            f"bins must give at most {LARGEST_GRID} points, not {bins * refine}^{d}: use fewer "
            "bins, or marginal_symmetric_kl"
        )
    log_p = on_grid(logp, [centers(low, high, bins * refine) for low, high in bounds])
    log_p = coarse(log_p, bins, refine)
    return smoothed_kl(log_p, histogram(draws, bounds, bins), prior_draws)


def marginal_symmetric_kl(draws, logps, bounds, bins=100, *, prior_draws=1.0, refine=1):
    """Return `symmetric_kl` of each coordinate with its marginal; papers print the mean of these.

    Parameters
    ----------
    draws : array (n, d)
    logps : callable, or list of d callables
        Log density of each marginal, up to a constant, ``logp(t) -> (k,)`` for t (k,); a single
        one is taken for all coordinates.
    bounds : array (2,) or (d, 2)
    bins, prior_draws, refine
        As in `symmetric_kl`.

    Returns
    -------
    ndarray, shape (d,)
    """
    draws = check_sample("draws", draws)
    d = draws.shape[1]
    logps = [logps] * d if callable(logps) else check_list("logps", logps)
    if len(logps) != d:
        raise ValueError(f"logps must be one function, or {d}, not {len(logps)}")
    if not all(callable(logp) for logp in logps):
        raise TypeError(f"logps must be functions, not {shown(logps)}")
    bounds = real_array("bounds", bounds, copy=False)
    bounds = check_bounds([bounds] * d if bounds.ndim == 1 else bounds, d)
    return np.array([
        symmetric_kl(draws[:, [i]], lambda t, i=i: logps[i](t[:, 0]), bounds[[i]], bins,
                     prior_draws=prior_draws, refine=refine)
        for i in range(d)
    ])


def check_bounds(bounds, d):
    """Return `bounds` as an array (d, 2), low below high."""
    bounds = real_array("bounds", bounds, copy=False)
    if bounds.shape != (d, 2) or not np.isfinite(bounds).all():
        raise ValueError(f"bounds must be {d} pairs of numbers, shape ({d}, 2), not "
                         f"{shown(bounds)}")
    if not (bounds[:, 0] < bounds[:, 1]).all():
        raise ValueError(f"bounds must have each low end below the high one, not {bounds.tolist()}")
    return bounds


def centers(low, high, bins):
    """Return the midpoints of `bins` equal bins."""
    return low + (np.arange(bins) + 0.5) * (high - low) / bins


def on_grid(logp, axes):
    """Return the normalized log density on the grid of the axes, (n_1, ..., n_d)."""
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    shape = grid.shape[:-1]
    values = real_array("logp(x)", logp(grid.reshape(-1, len(axes))), copy=False)
    if values.shape != (np.prod(shape),):
        raise TypeError(f"logp must return shape ({np.prod(shape)},), not {values.shape}")
    if np.isnan(values).any() or values.max() in (np.inf, -np.inf):
        raise ValueError("logp must be a number or -inf on the grid, and finite somewhere")
    values = values.reshape(shape) - values.max()
    return values - np.logaddexp.reduce(values, axis=None)


def coarse(log_p, bins, refine):
    """Return the log probabilities of bins from those of refine^d points in each."""
    d = log_p.ndim
    blocks = log_p.reshape((bins, refine) * d)
    return np.logaddexp.reduce(
        np.moveaxis(blocks, range(1, 2 * d, 2), range(d, 2 * d)).reshape((bins,) * d + (-1,)),
        axis=-1,
    )


def histogram(draws, bounds, bins):
    """Return the counts of draws in bins, (bins, ..., bins); the nearest bin for those outside."""
    low, high = bounds.T
    place = np.clip((draws - low) / (high - low) * bins, 0, bins - 1).astype(np.intp)
    d = draws.shape[1]
    flat = np.ravel_multi_index(tuple(place.T), (bins,) * d)
    return np.bincount(flat, minlength=bins**d).reshape((bins,) * d)


def smoothed_kl(log_p, counts, prior_draws):
    """Return the sum of both divergences, with q smoothed by `prior_draws` draws of p."""
    p = np.exp(log_p)
    q = (counts + prior_draws * p) / (counts.sum() + prior_draws)
    if np.isneginf(log_p[counts > 0]).any():
        return np.inf
    some = q > 0
    difference = p[some] - q[some]
    # log q = log p where both are so small that nothing is left of them
    return float((difference * (log_p[some] - np.log(q[some]))).sum())
