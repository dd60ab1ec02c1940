"""The small dense factors that samplers work with, for other people's programs."""

from __future__ import annotations

import numpy as np

from fastkam._core import linalg as compiled
from fastkam.errors import check_array, check_number, check_symmetric


def mvn_logpdf(x, mean, cov=None, *, factor=None):
    """Log density of a multivariate normal distribution.

    Parameters
    ----------
    x : array (d,) or (n, d)
        A point, or a point a row. A point with a NaN has the density NaN.
    mean : array (d,)
    cov : array (d, d), optional
        The covariance; it is factorised at each call.
    factor : array (d, d), optional
        Instead of it, its lower Cholesky factor; what stands above the diagonal is not read.

    Returns
    -------
    float or ndarray, shape (n,)

    Raises
    ------
    TypeError, ValueError
        If not exactly one of `cov` and `factor` is given, a shape is wrong, or the covariance is
        not symmetric and positive definite.

    Examples
    --------
    >>> import fastkam as fk
    >>> round(fk.linalg.mvn_logpdf([0.0, 0.0], [0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]]), 4)
    -1.694
    """
    mean = check_array("mean", mean, shape=(np.size(mean),))
    d = len(mean)
    if d == 0:
        raise ValueError("mean must have at least one coordinate")
    if (cov is None) == (factor is None):
        raise TypeError("one of cov and factor must be given, and not both")
    L = lower_factor("factor", factor, d) if cov is None else cholesky("cov", cov, d)
    try:
        points = np.array(x, dtype=float, order="C")
    except (TypeError, ValueError):
        raise TypeError(f"x must be an array of numbers, not {x!r}") from None
    if points.ndim not in (1, 2) or points.shape[-1] != d:
        raise ValueError(f"x must have shape ({d},) or (n, {d}), not {points.shape}")
    values = compiled.log_densities(points.reshape(-1, d), mean, L)
    return float(values[0]) if points.ndim == 1 else values


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


def cholesky(name, value, d):
    """The lower factor of a covariance (d, d), column-major."""
    cov = check_array(name, value, shape=(d, d))
    check_symmetric(name, cov)
    L = np.asfortranarray(np.tril(cov))
    if not compiled.factorise(L):
        least = np.linalg.eigvalsh(cov)[0]
        raise ValueError(f"{name} must be positive definite; its least eigenvalue is {least:.3g}")
    return L
