"""Base of the built-in targets: their parameters, true moments and exact draws."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_array, check_generator, check_integer, real_array


class BuiltIn:
    """A target with a compiled density and known moments.

    Attributes
    ----------
    mean : ndarray (d,) or None
        The exact mean; None where it is not known or does not exist.
    cov : ndarray (d, d) or None
        The exact covariance.
    second_moment : ndarray (d,) or None
        The exact E x_j^2.
    parameters : dict
        The arguments that rebuild the target, for example when it is unpickled.

    Notes
    -----
    ``sample``, ``quantile_region`` and ``mode_of`` exist only if they are exact: check with
    ``hasattr``.
    """

    name = ""
    mean: NDArray[np.float64] | None = None
    cov: NDArray[np.float64] | None = None
    parameters: dict[str, Any]
    dim: int

    @property
    def second_moment(self):
        """The exact E x_j^2, (d,)."""
        if self.cov is None or self.mean is None:
            return None
        return np.diag(self.cov) + self.mean**2

    def named(self, name):
        """Return this target, with the name that a paper gives it."""
        self.name = name
        return self

    def __reduce__(self):
        return partial(type(self), **self.parameters), (), {"name": self.name}

    def __setstate__(self, state):
        self.__dict__.update(state)

    def __repr__(self):
        name = f"{self.name}: " if self.name else ""
        numbers = {key: v for key, v in self.parameters.items() if np.ndim(v) == 0}
        short = [f"{key}={v!r}" for key, v in numbers.items()]
        if "d" not in self.parameters:
            short.insert(0, f"d={self.dim}")
        return f"<{name}{type(self).__name__} {', '.join(short)}>"


class Exact(BuiltIn):
    """A built-in target with exact draws, which each family defines in `draw`."""

    def sample(self, n, seed=None):
        """Independent exact draws.

        Parameters
        ----------
        n : int
            Number of draws.
        seed : int, SeedSequence, BitGenerator or Generator, optional
            As for numpy.random.default_rng; a Generator is advanced.

        Returns
        -------
        ndarray (n, d)

        Raises
        ------
        TypeError, ValueError
            If `n` is not an integer of at least 0, or `seed` is not a valid seed.
        """
        n = check_integer("n", n, least=0)
        return self.draw(n, check_generator("seed", seed))

    def draw(self, n, rng):
        """n exact draws (n, d) from a numpy Generator."""
        raise NotImplementedError


def check_points(target, x):
    """x as floats (..., d)."""
    x = real_array("x", x, copy=False)
    if x.ndim == 0 or x.shape[-1] != target.dim:
        raise ValueError(f"x must have {target.dim} coordinates a point, not shape {x.shape}")
    return x


def check_labels(y, n):
    """Labels y (n,), 0 and 1 or -1 and 1: as they are, and as -1 and 1."""
    y = check_array("y", y, shape=(n,))
    if not (np.isin(y, (0, 1)).all() or np.isin(y, (-1, 1)).all()):
        wrong = y[~np.isin(y, (-1, 0, 1))]
        raise ValueError(
            f"y must be 0 and 1, or -1 and 1, not {wrong[0] if len(wrong) else np.unique(y)}")
    return y, np.where(y > 0, 1.0, -1.0)


def full_matrix(factor):
    """The covariance (d, d) of standard deviations (d,) or of a lower factor (d, d)."""
    return np.diag(factor**2) if factor.ndim == 1 else factor @ factor.T


def spread(factor, z):
    """Standard normal draws z (n, d), given the covariance of that factor."""
    return z * factor if factor.ndim == 1 else z @ factor.T


def mixture_moments(weights, means, covs):
    """Mean (d,) and covariance (d, d) of a mixture, from (K,), (K, d) and (K, d, d)."""
    mean = weights @ means
    centered = means - mean
    return mean, np.tensordot(weights, covs, 1) + (weights[:, None] * centered).T @ centered
