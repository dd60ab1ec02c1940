"""Factors of proposals by position: the factor of the nearest of many points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.linalg.decomposition import product
from fastkam._core.numerics.nearest import NearestIndex
from fastkam.arguments import apart, check_array, check_out, check_threads, real_array, shown
from fastkam.linalg import cholesky
from fastkam.numerics.pieces import in_pieces


class CholeskyBank:
    """Nearest-neighbor look-up of Cholesky factors: each of the points has a factor.

    A tree finds the nearest point if there are few dimensions and many points, s >= 2^(d + 3) (from
    measurements: bench/perf/test_nearest.py). Otherwise distances to all points are computed in
    single precision, and exact ones to the few candidates that remain. The results are the same.

    Parameters
    ----------
    points : array (s, d)
    factors : array (s, d, d)
        Lower triangular; elements above the diagonals are not read.
    metric : "euclidean" or array (d, d)
        The distance of x from p is ``sqrt((x - p)' M (x - p))``, with M the identity or the
        symmetric, positive definite matrix given (Mahalanobis: the inverse of a covariance).

    Attributes
    ----------
    points : ndarray (s, d)
    factors : ndarray (s, d, d)

    Raises
    ------
    TypeError, ValueError
        If a shape is wrong, a number is not finite, or the metric is not positive definite.

    Examples
    --------
    >>> import numpy as np, fastkam as fk
    >>> bank = fk.CholeskyBank([[0.0, 0.0], [5.0, 5.0]], [np.eye(2), 3 * np.eye(2)])
    >>> bank.lookup([4.0, 3.0])
    1
    >>> bank.factors[bank.lookup([4.0, 3.0])] @ [1.0, -1.0]
    array([ 3., -3.])
    """

    def __init__(
        self, points: ArrayLike, factors: ArrayLike, *, metric: str | ArrayLike = "euclidean"
    ):
        self.points = check_array("points", points, copy=False).copy()
        if self.points.ndim != 2 or 0 in self.points.shape:
            raise ValueError(f"points must have shape (s, d), not {self.points.shape}")
        s, d = self.points.shape
        lower = real_array("factors", factors, copy=False)
        if lower.ndim > 1:
            lower = np.tril(lower)
        self.factors = check_array("factors", lower, shape=(s, d, d))
        if isinstance(metric, str) and metric != "euclidean":
            raise ValueError(f'metric must be "euclidean" or a matrix, not {shown(metric)}')
        self._L = None
        if not isinstance(metric, str):
            L = cholesky("metric", metric, d)
            # in units of its largest element: a distance in other units has the same order
            self._L = np.ldexp(L, -int(np.frexp(np.abs(L).max())[1]) - d.bit_length())
        self._index = NearestIndex(self._in_metric(self.points))

    def _in_metric(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.ascontiguousarray(x if self._L is None else product(x, self._L))

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return f"<CholeskyBank of {len(self)} factors, d = {self.points.shape[1]}>"

    def lookup(
        self, x: ArrayLike, *, out: NDArray[np.int64] | None = None, threads: int = 1
    ) -> int | NDArray[np.int64]:
        """The index of the nearest point; the lowest index among equally near ones.

        Parameters
        ----------
        x : array (..., d)
            Query points. Contiguous float64 is not copied.
        out : ndarray of int64, optional
            Array for the indices: contiguous, of shape (...).
        threads : int
            Number of threads, which work without the GIL. The results do not depend on it.

        Returns
        -------
        int or ndarray of int64, shape (...)

        Raises
        ------
        TypeError, ValueError
            If a shape is wrong, or a number is not finite.
        """
        d = self.points.shape[1]
        places = check_array("x", x, copy=False)
        if places.shape[-1:] != (d,):
            raise ValueError(f"x must have shape (..., {d}), not {places.shape}")
        threads = check_threads(threads)
        found = check_out(out, places.shape[:-1], np.int64)
        rows = self._in_metric(apart(out, places).reshape(-1, d))
        indices = found.reshape(-1)

        def work(begin: int, end: int) -> None:
            self._index.find_all(rows[begin:end], indices[begin:end])

        in_pieces(work, len(rows), threads)
        return int(found) if out is None and not found.shape else found
