"""The small dense factors that samplers work with, for other people's programs."""

from __future__ import annotations

from math import prod

import numpy as np

from fastkam._core import linalg as compiled
from fastkam.errors import (
    check_array,
    check_integer,
    check_number,
    check_out,
    check_symmetric,
    real_array,
)
from fastkam.pieces import in_pieces


def mvn_logpdf(x, mean, cov=None, *, factor=None, out=None, threads=1):
    """Log density of multivariate normal distributions.

    The leading dimensions of points, means and covariances are broadcast as numpy does: many points
    of one distribution, a point each of many, or both. Each covariance is factorised once.

    Parameters
    ----------
    x : array (..., d)
        Points. One with a NaN has the density NaN. Contiguous float64 is not copied.
    mean : array (..., d)
    cov : array (..., d, d), optional
        The covariances; they are factorised at each call.
    factor : array (..., d, d), optional
        Instead of them, their lower Cholesky factors; what stands above the diagonals is not read.
    out : ndarray of float64, optional
        Where the densities go: contiguous, of the shape broadcast from the leading dimensions.
    threads : int
        Threads to work in, without the GIL. The bits do not depend on it.

    Returns
    -------
    float or ndarray, shape (...)

    Raises
    ------
    TypeError, ValueError
        If not exactly one of `cov` and `factor` is given, a shape is wrong, or a covariance is not
        symmetric and positive definite.

    Examples
    --------
    >>> import numpy as np, fastkam as fk
    >>> round(fk.linalg.mvn_logpdf([0.0, 0.0], [0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]]), 4)
    -1.694
    >>> covs = np.eye(2) * np.array([1.0, 2.0])[:, None, None]
    >>> fk.linalg.mvn_logpdf(np.zeros((3, 1, 2)), [0.0, 0.0], covs).shape
    (3, 2)
    """
    if np.ndim(mean) < 1:
        raise ValueError(f"mean must have shape (..., d), not {np.shape(mean)}")
    mean = check_array("mean", mean, shape=np.shape(mean), copy=False)
    d = mean.shape[-1]
    if d == 0:
        raise ValueError("mean must have at least one coordinate")
    if (cov is None) == (factor is None):
        raise TypeError("one of cov and factor must be given, and not both")
    threads = check_integer("threads", threads, least=1)
    points = real_array("x", x, copy=False)
    if points.ndim < 1 or points.shape[-1] != d:
        raise ValueError(f"x must have shape ({d},) or (..., {d}), not {points.shape}")
    name, given = ("factor", factor) if cov is None else ("cov", cov)
    shape = np.shape(given)
    if shape[-2:] != (d, d):
        raise ValueError(f"{name} must have shape (..., {d}, {d}), not {shape}")
    leading = (points.shape[:-1], mean.shape[:-1], shape[:-2])
    try:
        total = np.broadcast_shapes(*leading)
    except ValueError:
        raise ValueError(
            "the leading dimensions of x, mean and " + name + " must broadcast, not "
            + ", ".join(str(part) for part in leading)
        ) from None
    densities = check_out(out, total)
    L = columns_of(name, given, threads)
    which = np.empty((densities.size, 3), np.int64)
    for column, part in zip(which.T, leading, strict=True):
        places = np.arange(prod(part), dtype=np.int64).reshape(part)
        column[:] = np.broadcast_to(places, total).ravel()
    x_rows, mean_rows, values = points.reshape(-1, d), mean.reshape(-1, d), densities.reshape(-1)

    def work(begin, end):
        compiled.log_densities(x_rows, mean_rows, L, which, values, begin, end)

    in_pieces(work, len(values), threads)
    return float(densities) if out is None and not total else densities


def cholupdate(L, v, a=1.0, s=1.0, out=None):
    """The lower Cholesky factor of ``a L L' + s v v'``, from L in O(d^2).

    Parameters
    ----------
    L : array (d, d)
        A lower factor with a positive diagonal; what stands above the diagonal is not read.
    v : array (d,)
    a : float
        Positive.
    s : float
        Of either sign: a negative one makes a downdate.
    out : ndarray (d, d), optional
        Where the factor goes; it may be L itself. It stays as it was where an error is raised.

    Returns
    -------
    ndarray, shape (d, d)
        Lower triangular, zero above the diagonal; `out` where it is given.

    Raises
    ------
    TypeError, ValueError
        If a shape is wrong, or the result would not be positive definite.

    Examples
    --------
    >>> import numpy as np, fastkam as fk
    >>> fk.linalg.cholupdate(np.eye(2), [0.0, 1.0], s=3.0)[1, 1]
    np.float64(2.0)
    """
    v = check_array("v", v, shape=(np.size(v),))
    d = len(v)
    if d == 0:
        raise ValueError("v must have at least one coordinate")
    factor = lower_factor("L", L, d)
    a, s = check_number("a", a, above=0), check_number("s", s)
    if out is not None and not (isinstance(out, np.ndarray) and out.shape == (d, d)
                                and out.dtype == np.float64 and out.flags.writeable):
        raise TypeError(f"out must be a writable float64 array of shape {(d, d)}, not {out!r}")
    if not compiled.update(factor, v, a, s):
        raise ValueError(f"a L L' + s v v' is not positive definite with a = {a!r}, s = {s!r}")
    if out is None:
        return factor
    out[...] = factor
    return out


def lower_factor(name, value, d):
    """A copy of a lower factor (d, d), column-major, zero above its diagonal."""
    factor = check_array(name, np.tril(value) if np.ndim(value) == 2 else value, shape=(d, d))
    if not (np.diag(factor) > 0).all():
        raise ValueError(
            f"{name} must have a positive diagonal, not {float(np.diag(factor).min())!r}"
        )
    return np.asfortranarray(factor)


def columns_of(name, value, threads=1):
    """The lower factors of covariances, or of factors, (k, column, row), from (..., d, d)."""
    array = check_array(name, value, shape=np.shape(value), copy=False)
    d = array.shape[-1]
    L = np.array(array.reshape(-1, d, d).swapaxes(1, 2), order="C")
    labels = [name] if array.ndim == 2 else [f"{name}[{k}]" for k in range(len(L))]
    if name == "factor":
        least = np.diagonal(L, axis1=1, axis2=2).min(axis=1)
        if not (least > 0).all():
            k = int(np.argmin(least > 0))
            raise ValueError(
                f"{labels[k]} must have a positive diagonal, not {float(least[k])!r}")
        return L
    check_all_symmetric(labels, L)
    bad = []

    def work(begin, end):
        k = compiled.factorise(L, begin, end)
        if k >= 0:
            bad.append(k)

    in_pieces(work, len(L), threads)
    if bad:
        k = min(bad)
        least = np.linalg.eigvalsh(array.reshape(-1, d, d)[k])[0]
        raise ValueError(
            f"{labels[k]} must be positive definite; its least eigenvalue is {least:.3g}")
    return L


def check_all_symmetric(labels, matrices):
    """Refuse the first of the matrices (k, d, d) that is not symmetric."""
    root = np.sqrt(np.abs(np.diagonal(matrices, axis1=1, axis2=2)))
    off = np.abs(matrices - matrices.swapaxes(1, 2)) > 1e-8 * root[:, :, None] * root[:, None]
    if off.any():
        k = int(np.argmax(off.any(axis=(1, 2))))
        check_symmetric(labels[k], matrices[k].T)


def cholesky(name, value, d):
    """The lower factor of a covariance (d, d), column-major."""
    cov = check_array(name, value, shape=(d, d))
    return np.tril(columns_of(name, cov)[0].T).copy(order="F")
