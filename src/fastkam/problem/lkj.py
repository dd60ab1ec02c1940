"""The LKJ distribution of correlation matrices, by their Cholesky factors."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from fastkam.arguments import check_generator, check_integer, check_list, check_number, real_array


@dataclass(frozen=True)
class LKJ:
    """A prior of the Cholesky factor L of a correlation matrix R = L L'.

        p(R) = det(R)^(eta - 1) / constant

    The density is that of the elements of L below the diagonal: it includes the Jacobian of R.

    Parameters
    ----------
    n : int
        L has shape (n, n).
    eta : float
        1 for a uniform distribution of R; the larger, the closer correlations are to 0.

    References
    ----------
    Lewandowski, D., Kurowicka, D. and Joe, H. (2009). Generating random correlation matrices based
    on vines and extended onion method. Journal of Multivariate Analysis 100, 1989-2001.
    """

    n: int
    eta: float = 1.0

    def __post_init__(self) -> None:
        check_integer("n", self.n, least=2, most=2**14)
        object.__setattr__(self, "eta", check_number("eta", self.eta, above=0))

    @property
    def exponents(self) -> NDArray[np.float64]:
        """The powers (n n,) of the elements of L in the density: those of its diagonal."""
        i = np.arange(self.n)
        powers = np.where(i > 0, self.n - i - 3 + 2 * self.eta, 0.0)
        return np.diag(powers).reshape(-1)

    @property
    def constant(self) -> float:
        """Log of the normalizing constant."""
        a = self.partial
        j = np.arange(self.n - 1)
        each = (2 * a - 1) * np.log(2) + scipy.special.betaln(a, a)
        return float(-((self.n - 1 - j) * each).sum())

    @property
    def partial(self) -> NDArray[np.float64]:
        """a_j (n - 1,): partial correlations of column j are 2 Beta(a_j, a_j) - 1."""
        return np.asarray(self.eta + (self.n - 2 - np.arange(self.n - 1)) / 2)

    def logpdf(self, L: Any) -> Any:
        """The log density at L (..., n, n)."""
        L = real_array("L", L, copy=False)
        if L.shape[-2:] != (self.n, self.n):
            raise ValueError(f"L must have shape (..., {self.n}, {self.n}), not {L.shape}")
        diagonal = np.log(np.diagonal(L, axis1=-2, axis2=-1))
        powers = np.diagonal(self.exponents.reshape(self.n, self.n))
        return self.constant + (powers * diagonal).sum(axis=-1)

    def rvs(self, size: Any = (), random_state: Any = None) -> NDArray[np.float64]:
        """Independent draws (*size, n, n)."""
        rng = check_generator("random_state", random_state)
        sizes = [size] if isinstance(size, numbers.Integral) else check_list("size", size)
        size = tuple(check_integer("size", n, least=0) for n in sizes)
        L = np.zeros((*size, self.n, self.n))
        a = self.partial
        for i in range(self.n):
            rest = np.ones(size)
            for j in range(i):
                y = 2 * rng.beta(a[j], a[j], size=size) - 1
                L[..., i, j] = y * np.sqrt(rest)
                rest = rest * (1 - y * y)
            L[..., i, i] = np.sqrt(rest)
        return L
