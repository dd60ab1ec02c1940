"""Factors of proposals by place: the factor that belongs to the nearest of many points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.linalg.decomposition import product
from fastkam._core.numerics.nearest import NearestIndex
from fastkam.arguments import apart, check_array, check_out, check_threads, real_array, shown
from fastkam.linalg import cholesky
from fastkam.numerics.pieces import in_pieces


class CholeskyBank:
    """Points with a factor each; which factor belongs to a place is that of the nearest point.

    A tree finds it where there are few dimensions and many points, s >= 2^(d + 3) (as measured:
    bench/perf/test_nearest.py); elsewhere distances in single precision to all points, and exact
    ones to those that remain. The results are the same.

    Parameters
    ----------
    points : array (s, d)
    factors : array (s, d, d)
        Lower triangular; what stands above the diagonals is not read.
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
        If a shape is wrong, a number is not finite, or the metric not positive definite.

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
        """The index of the nearest point; of equally near ones the lowest.

        Parameters
        ----------
        x : array (..., d)
            Places. Contiguous float64 is not copied.
        out : ndarray of int64, optional
            Where the indices go: contiguous, of shape (...).
        threads : int
            Threads to work in, without the GIL. The results do not depend on it.

        Returns
        -------
        int or ndarray of int64, shape (...)

        Raises
        ------
        TypeError, ValueError
            If a shape is wrong or a number not finite.
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
