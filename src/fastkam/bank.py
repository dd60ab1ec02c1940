"""Factors of proposals by place: the factor that belongs to the nearest of many points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.nearest import NearestIndex
from fastkam.errors import check_array, check_integer, check_out
from fastkam.linalg import cholesky
from fastkam.pieces import in_pieces


class CholeskyBank:
    """Points with a factor each; which factor belongs to a place is that of the nearest point.

    A tree finds it where there are few dimensions and many points, s >= 2^(d + 3) (as measured:
    bench/perf/test_nearest.py); elsewhere distances in single precision to all points, and exact
    ones to those that remain. The answers are the same.

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
        shape = np.shape(points)
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"points must have shape (s, d), not {shape}")
        s, d = shape
        self.points = check_array("points", points, shape=shape).copy()
        self.factors = np.tril(check_array("factors", factors, shape=(s, d, d)))
        if isinstance(metric, str) and metric != "euclidean":
            raise ValueError(f'metric must be "euclidean" or a matrix, not {metric!r}')
        self._L = None if isinstance(metric, str) else cholesky("metric", metric, d)
        self._index = NearestIndex(self._in_metric(self.points))

    def _in_metric(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.ascontiguousarray(x if self._L is None else x @ self._L)

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
        x : array (d,) or (n, d)
            A place, or one a row. Contiguous float64 is not copied.
        out : ndarray of int64 (n,), optional
            Where the indices of many places go; contiguous.
        threads : int
            Threads to work in, without the GIL. The answers do not depend on it.

        Returns
        -------
        int, or ndarray of int64 (n,)

        Raises
        ------
        TypeError, ValueError
            If a shape is wrong or a number not finite.
        """
        d = self.points.shape[1]
        shape = np.shape(x)
        if shape != (d,) and (len(shape) != 2 or shape[1] != d):
            raise ValueError(f"x must have shape ({d},) or (n, {d}), not {shape}")
        threads = check_integer("threads", threads, least=1)
        rows = self._in_metric(check_array("x", x, shape=shape, copy=False).reshape(-1, d))
        found = check_out(out, (len(rows),), np.int64)

        def work(begin: int, end: int) -> None:
            self._index.find_all(rows[begin:end], found[begin:end])

        in_pieces(work, len(rows), threads)
        return int(found[0]) if len(shape) == 1 else found
