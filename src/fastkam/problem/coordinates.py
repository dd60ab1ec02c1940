"""Coordinates: the map between the sampler's unconstrained points and the user's, storable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.density.space import KINDS, SPREAD, Space
from fastkam.arguments import real_array
from fastkam.numerics.periods import Periods
from fastkam.parameters import plain, revived

PERIODS = {"periodic": 1, "reflect": 2}  # in units of the distance of the bounds
SIDES = {"log": 1, "upper": -1}  # where x is infinite, as the sign of z
BLOCK = 65_536  # points that are mapped together


@dataclass(frozen=True)
class Coordinates:
    """The transforms of named parameters.

    Attributes
    ----------
    parts : tuple of (str, int)
        Each parameter, and its number of segments.
    rows : list of tuple
        The segments, see `fastkam._core.density.space.Space`.
    """

    parts: tuple[tuple[str, int], ...]
    rows: list[tuple[Any, ...]]

    @property
    def n_z(self) -> int:
        """Number of coordinates that the sampler has."""
        return sum(row[3] for row in self.rows)

    @property
    def n_x(self) -> int:
        """Number of coordinates that the user has."""
        return sum(row[4] for row in self.rows)

    @property
    def repeats(self) -> bool:
        """Whether any coordinate is periodic or reflected."""
        return any(row[0] in PERIODS for row in self.rows)

    @property
    def sides(self) -> NDArray[np.int64]:
        """1 for each z of which x is low + exp(z), -1 for high - exp(-z), 0 for others, (n_z,)."""
        return np.array([SIDES.get(row[0], 0) for row in self.rows for _ in range(row[3])], int)

    @property
    def unbounded(self) -> dict[int, int]:
        """The index of the x of each z, where x is z, low + exp(z) or high - exp(-z)."""
        found: dict[int, int] = {}
        z = x = 0
        for kind, inner, _, n_z, n_x, *_ in self.rows:
            n = n_z if kind == "identity" or kind in SIDES else 0
            if kind == "ordered" and inner == "identity":
                n = 1  # the others are sums
            found.update((z + i, x + i) for i in range(n))
            z, x = z + n_z, x + n_x
        return found

    def tails(
        self, of_z: NDArray[np.float64], of_logarithms: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Rows (k, a) of tails of z that x has as well, and of tails of x = exp(z), (n, 2).

        An integral over z that is infinite is so over x.
        """
        sides = self.sides
        same = [row for row in of_z if not sides[int(row[0])] or row[1] <= 0]
        return np.array([*same, *of_logarithms]).reshape(-1, 2)

    @property
    def periods(self) -> NDArray[np.float64]:
        """A row for each coordinate that repeats, (m, 6), as `ModeJumping` takes them.

        It has the index in z, the lower bound, the distance of the bounds, the period, and the mean
        and the standard deviation of the normal density by which the periods are weighted.
        """
        rows, start = [], 0
        for kind, _, _, n, _, low, high, *_ in self.rows:
            if kind in PERIODS:
                period = PERIODS[kind] * (high - low)
                rows += [(i, low, high - low, period, (low + high) / 2, SPREAD * period)
                         for i in range(start, start + n)]
            start += n
        return np.array(rows, float).reshape(-1, 6)

    @property
    def circles(self) -> list[tuple[int, float, float]]:
        """(index in x, low, high) of the coordinates that are periodic."""
        found: list[tuple[int, float, float]] = []
        start = 0
        for kind, _, _, _, n, low, high, *_ in self.rows:
            if kind == "periodic":
                found += [(i, low, high) for i in range(start, start + n)]
            start += n
        return found

    def log_weight(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """The log weight at z of the periods of periodic and reflected coordinates."""
        return Periods(self.periods).log_weight(z)

    def wrapped(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """The images of z (..., n_z) in one period, those of reflected z between their bounds."""
        return Periods(self.periods).points(z)

    def constrain(self, z: ArrayLike) -> NDArray[np.float64]:
        """The user's points (..., n_x) of the sampler's (..., n_z)."""
        return self.mapped(z)[0]

    def log_jacobian(self, z: ArrayLike) -> NDArray[np.float64]:
        """log |dx/dz| at z (..., n_z); -inf beyond hard bounds.

        Along a periodic or a reflected coordinate, the log of the weight of each period.
        """
        return self.mapped(z)[1]

    def mapped(self, z: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The user's points of z, and the log Jacobian there."""
        Z = self.points("z", z, self.n_z)
        flat = np.ascontiguousarray(Z.reshape(-1, self.n_z))
        space = Space(self.rows)
        X, log_jacobian = np.empty((len(flat), self.n_x)), np.empty(len(flat))
        for start in range(0, len(flat), BLOCK):
            some = slice(start, start + BLOCK)
            X[some], log_jacobian[some] = space.constrain(flat[some])
        return X.reshape(*Z.shape[:-1], self.n_x), log_jacobian.reshape(Z.shape[:-1])

    def unconstrain(self, x: ArrayLike, name: str = "x") -> NDArray[np.float64]:
        """The sampler's points (..., n_z) of the user's (..., n_x).

        Raises
        ------
        ValueError
            If a parameter is outside its support, or on an edge of it.
        """
        X = self.points(name, x, self.n_x)
        flat = np.ascontiguousarray(X.reshape(-1, self.n_x))
        Z, invalid = Space(self.rows).unconstrain(flat)
        if (invalid >= 0).any():
            k = int(np.argmax(invalid >= 0))
            raise ValueError(self.described(name, int(invalid[k]), flat[k]))
        return np.asarray(Z.reshape(*X.shape[:-1], self.n_z))

    def inside(
        self, x: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The sampler's points (n, n_z) of the user's x (n, n_x), and where x has one, (n,)."""
        Z, invalid = Space(self.rows).unconstrain(np.ascontiguousarray(x))
        return Z, np.asarray(invalid) < 0

    def nearby(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Points of the support near x (k, n_x), whose coordinates were drawn independently.

        The elements of a simplex are divided by their sum, those of an ordered vector are sorted,
        and the rows of a Cholesky factor are divided by their length. All others stay the same.
        """
        x, start = self.points("x0", x, self.n_x), 0
        for kind, *_, n, _, _, _ in self.rows:
            if kind in NEARBY:
                x[:, start : start + n] = NEARBY[kind](x[:, start : start + n])
            start += n
        return x

    def invalid(self, x: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Mask of the rows of x (k, n_x) that violate a simplex, an order or a factor, (k,)."""
        wrong, start = np.zeros(len(x), bool), 0
        for row in self.rows:
            if row[0] in ("simplex", "ordered", "cholesky_corr"):
                wrong |= ~is_valid(row[0], x[:, start : start + row[4]])
            start += row[4]
        return wrong

    def points(self, name: str, value: ArrayLike, n: int) -> NDArray[np.float64]:
        """An array (..., n) of points."""
        array = real_array(name, value)
        if array.ndim == 0 or array.shape[-1] != n:
            raise ValueError(f"{name} must have shape (..., {n}), not {array.shape}")
        return array

    def described(self, name: str, segment: int, x: NDArray[np.float64]) -> str:
        """Describe what is wrong with a point."""
        start = sum(row[4] for row in self.rows[:segment])
        of = [name for name, n in self.parts for _ in range(n)]
        parameter = of[segment]
        kind, _, _, _, n_x, low, high, _ = self.rows[segment]
        bounds = {"simplex": "positive numbers that add up to 1",
                  "cholesky_corr": "a lower triangular matrix with rows of length 1 and a positive "
                                   "diagonal",
                  "ordered": f"numbers that increase, within ({low:g}, {high:g})",
                  "python": "a point that its transform takes"}
        edges = "[]" if kind in ("identity", "periodic", "reflect") else "()"
        what = bounds.get(kind, f"within {edges[0]}{low:g}, {high:g}{edges[1]}")
        value = np.array2string(x[start : start + n_x], threshold=8)
        return f"{name} must have {parameter!r} as {what}, not {value}" if kind in bounds else (
            f"{name} must have {parameter!r} {what}, not {value}")

    # ---- for files ----

    def header(self) -> dict[str, Any]:
        """The coordinates as JSON types, for a file."""
        return {"parts": [list(part) for part in self.parts], "rows": plain(self.rows)}

    @classmethod
    def from_header(cls, header: dict[str, Any] | None) -> Coordinates | None:
        """The inverse of `header`; ValueError if it does not describe coordinates."""
        if header is None:
            return None
        rows = [checked_row(row) for row in revived(header["rows"])]
        parts = tuple((name, n) for name, n in header["parts"])
        if any(type(name) is not str or type(n) is not int or n < 0 for name, n in parts) or (
                sum(n for _, n in parts) != len(rows)):
            raise ValueError(f"coordinates.parts must have {len(rows)} segments, not "
                             f"{parts!r:.200}")
        return cls(parts, rows)


def checked_row(row: Any) -> tuple[Any, ...]:
    """A segment of a file, as `fastkam._core.density.space.Space` takes it."""
    kind, inner, logs, n_z, n_x, low, high, transform = row
    good = (kind in KINDS and inner in SCALAR and logs in (0, 1, 2, 3)
            and all(type(n) is int and 1 <= n < 2**31 for n in (n_z, n_x))
            and all(type(bound) is float and not np.isnan(bound) for bound in (low, high))
            and low <= high
            and SIZES.get(kind, same_size)(n_z, n_x)
            and bool(np.isfinite([(low, high)[i] for i in FINITE.get(kind, ())]).all())
            and (transform is None) == (kind != "python"))
    if not good:
        raise ValueError(f"coordinates.rows must have segments (kind, inner, logs, n_z, n_x, low, "
                         f"high, transform), not {row!r:.200}")
    return tuple(row)


def same_size(n_z: int, n_x: int) -> bool:
    """Whether an elementwise or an ordered segment may have these sizes."""
    return n_z == n_x


SCALAR = ("identity", "log", "upper", "interval", "periodic", "reflect")
# of the other kinds: whether they may have these sizes; which of the two bounds are finite
SIZES: dict[str, Callable[[int, int], bool]] = {
    "simplex": lambda n_z, n_x: n_x == n_z + 1,
    "cholesky_corr": lambda n_z, n_x: (n := isqrt(n_x)) ** 2 == n_x and 2 * n_z == n * (n - 1),
    "python": lambda n_z, n_x: True,
}
FINITE = {"log": (0,), "upper": (1,), "interval": (0, 1), "periodic": (0, 1), "reflect": (0, 1)}


def factors(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows (k, n n) as Cholesky factors with rows of length 1."""
    n = isqrt(x.shape[1])
    L = np.tril(x.reshape(-1, n, n))
    return np.asarray((L / np.sqrt((L * L).sum(axis=2, keepdims=True))).reshape(-1, n * n))


NEARBY: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "simplex": lambda x: np.asarray(x / x.sum(axis=1, keepdims=True)),
    "ordered": lambda x: np.sort(x, axis=1),
    "cholesky_corr": factors,
}


def is_valid(kind: str, x: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mask of the rows of x that are such vectors, edges included, (k,)."""
    if kind == "simplex":
        return (x >= 0).all(axis=1) & (np.abs(x.sum(axis=1) - 1) <= 1e-8)
    if kind == "ordered":
        return np.asarray((np.diff(x, axis=1) >= 0).all(axis=1))
    n = round(np.sqrt(x.shape[1]))
    L = x.reshape(-1, n, n)
    rows = np.abs((L * L).sum(axis=2) - 1) <= 1e-8
    return (rows.all(axis=1) & (np.diagonal(L, axis1=1, axis2=2) >= 0).all(axis=1)
            & (np.triu(L, 1) == 0).all(axis=(1, 2)))
