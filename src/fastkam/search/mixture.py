"""The mixture q that a search fits, with the tails that `ModeJumping` gives it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.linalg.decomposition import product
from fastkam._core.numerics import mixture as compiled
from fastkam.samplers import modes

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Mixture:
    """A wide Student component in front, and normal ones with tails (see ``_core/samplers/jumps``).

    Attributes
    ----------
    weights : ndarray, shape (K + 1,)
    means : ndarray, shape (K + 1, d)
    factors : ndarray, shape (K + 1, d, d)
        Lower-triangular factors of the components' covariances.
    """

    weights: Array
    means: Array
    factors: Array

    @staticmethod
    def fitted(
        states: Array, rng: np.random.Generator, most: int, effective: float
    ) -> Mixture | None:
        """Fit up to `most` components to states (n, d); None if these have no spread.

        Repeated states of a walker must be consecutive; `effective` is the effective number of
        independent states.
        """
        found = modes.fit(states, int(rng.integers(2**53)), most=most, effective=effective)
        return None if found is None else Mixture(*found)

    def joined(self, other: Mixture, weight: float) -> Mixture:
        """This mixture with the components of another, which get a given weight together."""
        more = other.weights[1:] / other.weights[1:].sum()
        return self.extended(more, other.means[1:], other.factors[1:], weight)

    def extended(self, weights: Array, means: Array, factors: Array, weight: float) -> Mixture:
        """This mixture with further components, whose weights (n,) sum to 1, times `weight`.

        Those whose weight is 0, being too small for a number, are left out.
        """
        own = (1 - weight) * self.weights[1:] / self.weights[1:].sum()
        some = weight * weights > 0
        return Mixture(*modes.with_wide(
            np.r_[own, weight * weights[some]], np.vstack([self.means[1:], means[some]]),
            np.concatenate([self.factors[1:], factors[some]])))

    @property
    def n(self) -> int:
        """Number of components, without the wide one."""
        return len(self.weights) - 1

    @property
    def within(self) -> Array:
        """The mean covariance within components, (d, d), without the wide one."""
        covs = product(self.factors[1:], self.factors[1:].transpose(0, 2, 1))
        return np.asarray(np.average(covs, axis=0, weights=self.weights[1:]))

    @cached_property
    def packed(self) -> compiled.Mixture:
        """The compiled mixture."""
        return compiled.packed(self.weights, self.means, self.factors)

    def __reduce__(self) -> Any:
        return Mixture, (self.weights, self.means, self.factors)

    def log_density(self, X: Array) -> Array:
        """log q at the rows of X (n, d)."""
        return self.packed.log_densities(np.ascontiguousarray(X))

    def nearest(self, X: Array) -> tuple[Array, NDArray[np.intp]]:
        """(squared Mahalanobis distance (n,), number (n,)) of the component nearest to each row."""
        squares, k = compiled.nearest(np.ascontiguousarray(X), self.means[1:],
                                      np.ascontiguousarray(self.factors[1:]))
        return squares, k + 1

    @cached_property
    def cumulated(self) -> Array:
        """The sums of the first 1, 2, ... weights, in parts of the sum of all, (K + 1,)."""
        sums = (self.weights / self.weights.sum()).cumsum()
        return np.asarray(sums / sums[-1])

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """n independent points of q, (n, d)."""
        k = self.cumulated.searchsorted(rng.random(n), side="right")  # as rng.choice, but quicker
        heavy = np.sqrt(compiled.DEGREES / rng.chisquare(compiled.DEGREES, n))
        scale = np.where(rng.random(n) < compiled.TAIL, compiled.TAIL_SCALE, 1.0)
        scale = np.where(k == 0, heavy, scale)
        normals = rng.standard_normal((n, self.means.shape[1]))
        steps = product(self.factors[k], normals[:, :, None])[:, :, 0]
        return np.asarray(self.means[k] + scale[:, None] * steps)
