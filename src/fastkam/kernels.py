"""Kernels of kernel adaptive Metropolis, and the proposal covariance that they give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import cos, factorial, gamma, pi, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.linalg.decomposition import product
from fastkam._core.numerics.elementary import exp, log
from fastkam.arguments import (
    apart,
    check_array,
    check_number,
    check_out,
    check_threads,
    coordinates,
)
from fastkam.numerics.pieces import in_pieces
from fastkam.parameters import Parameters, chosen

if TYPE_CHECKING:
    from fastkam._core.kam.kernel_gradient import KernelFunction

MEDIAN = "median"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Kernel(Parameters):
    """A kernel whose gradient shapes the proposal."""

    NAMES: ClassVar[dict[str, type[Any]]] = {}

    def compiled(self) -> KernelFunction:
        """The kernel as an object of compiled code."""
        raise NotImplementedError

    def matrix(self, z: NDArray[np.float64], length: float) -> NDArray[np.float64]:
        """k(z_i, z_j), (n, n), of the points z (n, d)."""
        raise NotImplementedError

    @property
    def adapts_length(self) -> bool:
        """Whether the length is the median distance of the subsample."""
        return getattr(self, "length", None) == MEDIAN

    @property
    def first_length(self) -> float:
        """The length used before there is a subsample: 1 if the median is used later."""
        return 1.0 if self.adapts_length else getattr(self, "length", 1.0)


def check_length(length: float | str) -> float | str:
    """A length as a float, or "median"."""
    if isinstance(length, str) and length == MEDIAN:
        return MEDIAN
    # l^2 and 1 / l^2 must not overflow
    return check_number("length", length, above=0, least=1e-150, most=1e150)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Linear(Kernel, name="linear"):
    """``k(x, z) = x'z``: the proposal has the global covariance of the history."""

    def compiled(self) -> KernelFunction:
        from fastkam._core.kam.kernel_gradient import KernelFunction

        return KernelFunction("linear")

    def matrix(self, z: NDArray[np.float64], length: float) -> NDArray[np.float64]:
        return product(z, z.T)


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(Kernel, name="gaussian"):
    """``k(x, z) = exp(-|x - z|^2 / 2 l^2)``.

    Parameters
    ----------
    length : float or "median"
        l; "median" is the median distance between points of the subsample, divided by sqrt(2), so
        that 2 l^2 is the median of the squared distances.
    """

    length: float | str = MEDIAN

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", check_length(self.length))

    def compiled(self) -> KernelFunction:
        from fastkam._core.kam.kernel_gradient import KernelFunction

        return KernelFunction("gaussian", self.first_length)

    def matrix(self, z: NDArray[np.float64], length: float) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):  # exp(-inf) is 0
            return exp(-0.5 * distances(z) ** 2 / length**2)


@dataclass(frozen=True, eq=False, repr=False)
class Matern(Kernel, name="matern"):
    """``k(x, z) = c_v u^v K_v(u)``, ``u = sqrt(2 v) |x - z| / l``, ``c_v = 2^(1-v) / Gamma(v)``.

    Its gradient in x is ``c_v (2 v / l^2) u^(v-1) K_(v-1)(u) (z - x)``: the order decreases by one,
    and the argument u is the same.

    Parameters
    ----------
    length : float or "median"
        l, as for `Gaussian`.
    order : float
        v, above 1 (at or below, the gradient has no limit at z) and at most 50.
    """

    length: float | str = MEDIAN
    order: float = 2.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", check_length(self.length))
        check_number("order", self.order, above=1, most=50)

    def compiled(self) -> KernelFunction:
        from fastkam._core.kam.kernel_gradient import KernelFunction

        v = float(self.order)
        if v - 0.5 in range(1, 10):
            return KernelFunction("matern half", self.first_length, v, matern_polynomial(v))
        return KernelFunction("matern", self.first_length, v, *matern_table(v))

    def matrix(self, z: NDArray[np.float64], length: float) -> NDArray[np.float64]:
        from scipy.special import gammaln, kv

        v, u = self.order, np.sqrt(2 * self.order) * distances(z) / length
        near = u < 1e-8
        u = np.where(near, 1.0, u)
        scale = exp((1 - v) * log(2.0) - gammaln(v) + v * log(u))
        tail = kv(v, u)  # 0 far away, where u^v may overflow
        return np.where(near, 1.0, np.multiply(scale, tail, out=np.zeros_like(u), where=tail > 0))


def distances(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """|z_i - z_j|, (n, n)."""
    return np.sqrt(((z[:, None] - z) ** 2).sum(axis=2))


def matern_polynomial(v: float) -> NDArray[np.float64]:
    """The coefficients (1, k + 1) of ``e^u c_v u^m K_m(u)``, m = v - 1 = k + 1/2, in u.

    They are c_v sqrt(pi / 2) (2k - i)! / (i! (k - i)!) 2^(i - k), i = 0 .. k.
    """
    k = round(v - 1.5)
    c = 2 ** (1 - v) / gamma(v) * sqrt(pi / 2)
    return np.array([[
        c * factorial(2 * k - i) / (factorial(i) * factorial(k - i)) * 2.0 ** (i - k)
        for i in range(k + 1)
    ]])


@lru_cache
def matern_table(v: float) -> tuple[NDArray[np.float64], float, float, float]:
    """(table, origin, a, b) of kernel_pass.h: ``e^u c_v u^m K_m(u)``, m = v - 1, cell by cell.

    There are 8 cells per octave, each with a polynomial through Chebyshev nodes, of degree 8 up to
    v = 10 and 18 above; the relative error is below 2e-13 for 1 < v <= 50 (tested against
    `scipy.special`).
    """
    from scipy.special import gammaln, kve

    from fastkam._core.kam.kernel_gradient import CELLS, FIRST_OCTAVE, OCTAVES

    m, degree = v - 1, 8 if v <= 10 else 18
    t = np.array([cos(pi * (2 * i + 1) / (2 * (degree + 1))) for i in range(degree + 1)])
    octave, cell = np.divmod(np.arange(OCTAVES * CELLS), CELLS)
    u = 2.0 ** (FIRST_OCTAVE + octave)[:, None] * (1 + (cell[:, None] + 0.5 * (t + 1)) / CELLS)
    log_c = (1 - v) * log(2.0) - gammaln(v)
    origin = 0.5 / m
    with np.errstate(all="ignore"):
        values = exp(log_c + m * log(u)) * kve(m, u)
        # K_m(u) overflows at small u where m is large: there u^m K_m(u) is at its limit
        series = origin * (1 - u * u / (4 * (m - 1))) * exp(u)
    values = np.where(np.isfinite(values) & (values > 0), values, series)
    table = polynomials(values, t)
    a, b = 0.0, 1.0
    if m < 1:  # u^m K_m(u) = 2^(m-1) Gamma(m) (1 - Gamma(1-m) / Gamma(1+m) (u/2)^(2m) + ...)
        a = exp(float(gammaln(1 - m) - gammaln(1 + m)) - 2 * m * log(2.0))
        b = 2 * m
    return table, origin, a, b


def polynomials(values: NDArray[np.float64], t: NDArray[np.float64]) -> NDArray[np.float64]:
    """The coefficients (k, n) of the polynomials with values (k, n) at the Chebyshev nodes t (n,).

    The coefficient of the Chebyshev polynomial T_j is 2 / n times the sum of T_j(t_i) f(t_i), or
    half of that for j = 0; and T_j+1 = 2 t T_j - T_j-1.
    """
    n = len(t)
    powers, at_nodes = np.zeros((n, n)), np.ones((n, n))  # of t in T_j, which are integers; T_j(t)
    powers[0, 0] = powers[1, 1] = 1.0
    at_nodes[1] = t
    for j in range(2, n):
        powers[j, 1:] = 2 * powers[j - 1, :-1]
        powers[j] -= powers[j - 2]
        at_nodes[j] = 2 * t * at_nodes[j - 1] - at_nodes[j - 2]
    at_nodes[0] *= 0.5
    return product(product(values, 2 / n * at_nodes.T), powers)


def as_kernel(kernel: Kernel | str) -> Kernel:
    """A Kernel from itself or from its short name."""
    return chosen("kernel", kernel, Kernel)


def proposal_covariance(
    y: ArrayLike,
    z: ArrayLike,
    kernel: Kernel | str,
    *,
    step_size: float = 1.0,
    noise: float = 0.2,
    out: NDArray[np.float64] | None = None,
    threads: int = 1,
) -> NDArray[np.float64]:
    """The covariance of KAM's proposal at each point, R = noise^2 I + step_size^2 M H M'.

    M has the columns ``2 grad_y k(y, z_i)`` and H centers them: Sejdinovic et al. (2014),
    Proposition 2 (there is no 1/n).

    Parameters
    ----------
    y : array (..., d)
        Points. Contiguous float64 is not copied.
    z : array (n, d)
        The subsample.
    kernel : Kernel
        With a length given as a number.
    step_size, noise : float
        nu and gamma.
    out : ndarray of float64 (..., d, d), optional
        Array for the covariances; contiguous.
    threads : int
        Number of threads, which work without the GIL. The result does not depend on it.

    Returns
    -------
    ndarray, shape (..., d, d)

    Raises
    ------
    TypeError, ValueError
        If a shape is wrong, a number is not finite, or the kernel's length is "median".
    """
    points = check_array("y", y, copy=False)
    d = coordinates("y", points)
    z = check_array("z", z, copy=False)
    if z.ndim != 2 or z.shape[1] != d:
        raise ValueError(f"z must have shape (n, {d}), not {z.shape}")
    kernel = as_kernel(kernel)
    step_size = check_number("step_size", step_size, least=0)
    noise = check_number("noise", noise, least=0)
    threads = check_threads(threads)
    if kernel.adapts_length:
        raise ValueError("kernel must have a length given as a number, not 'median'")
    found = check_out(out, (*points.shape, d))
    from fastkam._core.linalg.lanes import blocked

    function, blocks = kernel.compiled(), blocked(z)
    rows, R = apart(out, points).reshape(-1, d), found.reshape(-1, d, d)

    def work(begin: int, end: int) -> None:
        function.covariances(rows, blocks, len(z), step_size, noise, R, begin, end)

    in_pieces(work, len(rows), threads)
    return found
