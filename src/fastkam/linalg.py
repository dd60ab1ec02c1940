"""Public dense linear algebra: normal log densities and rank-one updates of Cholesky factors."""

from __future__ import annotations

from math import prod

import numpy as np

from fastkam._core.linalg import dense as compiled
from fastkam.arguments import (
    apart,
    check_array,
    check_numbers,
    check_out,
    check_symmetric,
    check_threads,
    coordinates,
    real_array,
)
from fastkam.numerics.pieces import first_in_pieces, in_pieces


def mvn_logpdf(x, mean, cov=None, *, factor=None, out=None, threads=1):
    """Log density of multivariate normal distributions.

    The leading dimensions of points, means and covariances are broadcast by numpy's rules: many
    points of one distribution, one point of each of many, or both. Each covariance is factorized
    once.

    Parameters
    ----------
    x : array (..., d)
        Points. The log density is NaN at a point with a NaN, and -inf at one with an infinity
        otherwise. Contiguous float64 is not copied.
    mean : array (..., d)
    cov : array (..., d, d), optional
        The covariances; they are factorized at each call.
    factor : array (..., d, d), optional
        Lower Cholesky factors in place of the covariances; elements above the diagonals are not
        read.
    out : ndarray of float64, optional
        Array for the log densities: contiguous, of the shape broadcast from the leading dimensions.
    threads : int
        Number of threads, which work without the GIL. The result does not depend on it.

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
    mean = check_array("mean", mean, copy=False)
    d = coordinates("mean", mean)
    if (cov is None) == (factor is None):
        raise TypeError("one of cov and factor must be given, and not both")
    threads = check_threads(threads)
    points = real_array("x", x, copy=False)
    if points.ndim < 1 or points.shape[-1] != d:
        raise ValueError(f"x must have shape ({d},) or (..., {d}), not {points.shape}")
    name, given = ("factor", factor) if cov is None else ("cov", cov)
    matrices = square_matrices(name, given, "mean", d)
    total, which = pair(
        {"x": points.shape[:-1], "mean": mean.shape[:-1], name: matrices.shape[:-2]})
    densities = check_out(out, total)
    L = columns_of(name, apart(out, matrices), threads)
    x_rows, mean_rows = (apart(out, rows).reshape(-1, d) for rows in (points, mean))
    values = densities.reshape(-1)

    def work(begin, end):
        compiled.log_densities(x_rows, mean_rows, L, which, values, begin, end)

    in_pieces(work, len(values), threads)
    return float(densities) if out is None and not total else densities


def cholupdate(L, v, a=1.0, s=1.0, out=None, *, threads=1):
    """The lower Cholesky factors of ``a L L' + s v v'``, from L in O(d^2).

    The leading dimensions of factors, vectors and both weights are broadcast by numpy's rules.

    Parameters
    ----------
    L : array (..., d, d)
        Lower factors with positive diagonals; elements above the diagonals are not read.
        float64 that is contiguous, by rows or by columns, is not copied.
    v : array (..., d)
    a : float or array (...)
        Positive.
    s : float or array (...)
        Of either sign: a negative value makes a downdate.
    out : ndarray of float64 (..., d, d), optional
        Array for the factors: contiguous by rows or, which is faster, by columns. It may be L
        itself. A result that is not positive definite is not written; the other factors are.
    threads : int
        Number of threads, which work without the GIL. The result does not depend on it.

    Returns
    -------
    ndarray, shape (..., d, d)
        Lower triangular, zero above the diagonals; `out` if it is given, else contiguous by
        columns (``L.swapaxes(-1, -2)`` is in C order).

    Raises
    ------
    TypeError, ValueError
        If a shape or a number is wrong, before anything is written; or if a result is not positive
        definite: the message has the index of the first.

    Examples
    --------
    >>> import numpy as np, fastkam as fk
    >>> fk.linalg.cholupdate(np.eye(2), [0.0, 1.0], s=3.0)[1, 1]
    np.float64(2.0)
    >>> fk.linalg.cholupdate(np.eye(2), [[0.0, 1.0], [1.0, 0.0]], s=[[3.0], [8.0]]).shape
    (2, 2, 2, 2)
    """
    vectors = check_array("v", v, copy=False)
    d = coordinates("v", vectors)
    threads = check_threads(threads)
    a, s = check_numbers("a", a, above=0), check_numbers("s", s)
    factors = square_matrices("L", L, "v", d)
    check_factors("L", factors, threads)
    total, which = pair(
        {"L": factors.shape[:-2], "v": vectors.shape[:-1], "a": a.shape, "s": s.shape})
    found = check_columns_out(out, (*total, d, d))
    if factors is not out:      # a factor is read before it is written
        factors = apart(out, factors)
    matrices, results = factors.reshape(-1, d, d), found.reshape(-1, d, d)
    rows, a_values, s_values = (
        apart(out, array).reshape(shape) for array, shape in ((vectors, (-1, d)), (a, -1), (s, -1)))

    def work(begin, end):
        return compiled.update(matrices, rows, a_values, s_values, which, results, begin, end)

    i = first_in_pieces(work, len(which), threads)
    if i >= 0:
        where = f" at index {entry(total, i)}" if total else ""
        a_i, s_i = float(a_values[which[i, 2]]), float(s_values[which[i, 3]])
        raise ValueError(
            f"a L L' + s v v' is not positive definite, or overflows,{where} with a = {a_i!r}, "
            f"s = {s_i!r}")
    return found


def pair(leading):
    """The shape broadcast from {argument: leading dimensions}, and the entry of each argument.

    The latter has the shape (places, arguments): for each place of the broadcast shape the index
    of the argument's entry; places and entries are counted in C order.
    """
    try:
        total = np.broadcast_shapes(*leading.values()) if any(leading.values()) else ()
    except (ValueError, RuntimeError):  # the latter beyond 32 dimensions
        *names, last = leading
        raise ValueError(
            f"the leading dimensions of {', '.join(names)} and {last} must broadcast, not "
            + ", ".join(str(part) for part in leading.values())
        ) from None
    which = np.zeros((prod(total), len(leading)), np.int64)
    for column, part in zip(which.T, leading.values(), strict=True):
        if part:
            entries = np.arange(prod(part), dtype=np.int64).reshape(part)
            column[:] = np.broadcast_to(entries, total).ravel()
    return total, which


def entry(leading, k):
    """The index of entry k of an array of that shape."""
    return tuple(int(i) for i in np.unravel_index(k, leading))


def label(name, leading, k):
    """The name of entry k, in error messages, of an argument with those leading dimensions."""
    return name + (str(list(entry(leading, k))) if leading else "")


def square_matrices(name, value, vectors, d):
    """`value` as floats (..., d, d), contiguous by rows or by columns; copied if it must be."""
    array = real_array(name, value, copy=False, order="K")
    if array.shape[-2:] != (d, d):
        raise ValueError(f"{name} must have shape (..., {d}, {d}), since {vectors} has {d} "
                         f"coordinates, not {array.shape}")
    return array if array.swapaxes(-1, -2).flags.c_contiguous else np.ascontiguousarray(array)


def check_columns_out(out, shape):
    """The same as check_out, for matrices that are contiguous by columns or by rows."""
    if out is None:
        return np.empty(shape).swapaxes(-1, -2)
    if (type(out) is np.ndarray and out.shape == shape
            and out.swapaxes(-1, -2).flags.c_contiguous):
        check_out(out.swapaxes(-1, -2), shape)
        return out
    return check_out(out, shape)


def check_factors(name, factors, threads):
    """Refuse the first of the factors (..., d, d) that is not finite with a positive diagonal."""
    *leading, _, d = factors.shape
    matrices = factors.reshape(-1, d, d)
    k = first_in_pieces(
        lambda begin, end: compiled.first_unfit(matrices, begin, end), len(matrices), threads)
    if k >= 0:
        which, bad = label(name, leading, k), np.tril(matrices[k])
        check_array(which, bad, shape=(d, d))
        raise ValueError(
            f"{which} must have a positive diagonal, not {float(np.diag(bad).min())!r}")


def columns_of(name, matrices, threads=1):
    """The lower factors of covariances, or of factors, (k, column, row), from (..., d, d)."""
    *leading, _, d = matrices.shape
    columns = matrices.reshape(-1, d, d).swapaxes(1, 2)
    if name == "factor":
        check_factors(name, matrices, threads)
        return np.ascontiguousarray(columns)
    L = np.array(columns, order="C")
    k = first_in_pieces(
        lambda begin, end: compiled.first_asymmetric(L, begin, end), len(L), threads)
    if k >= 0:
        which = label(name, leading, k)
        check_symmetric(which, check_array(which, L[k].T, shape=(d, d)))
    k = first_in_pieces(lambda begin, end: compiled.factorize(L, begin, end), len(L), threads)
    if k >= 0:
        least = np.linalg.eigvalsh(columns[k])[0]
        raise ValueError(f"{label(name, leading, k)} must be positive definite; its least "
                         f"eigenvalue is {least:.3g}")
    return L


def cholesky(name, value, d):
    """The lower factor of a covariance (d, d), column-major."""
    cov = check_array(name, value, shape=(d, d))
    return np.tril(columns_of(name, cov)[0].T).copy(order="F")
