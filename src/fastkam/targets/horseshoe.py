"""The posterior of a sparse linear regression, with the horseshoe prior."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastkam._core.targets.horseshoe import HorseshoeDensity
from fastkam.arguments import check_array, check_generator, check_integer, real_array
from fastkam.targets.builtin import BuiltIn

COEFFICIENTS = (10.0, 5.0, 2.5, 2.0, 1.0, 0.75, 0.5, 0.25, 0.2, 0.1)


class HorseshoeRegression(BuiltIn, HorseshoeDensity):
    """Linear regression with the horseshoe prior, all scales as logarithms; not normalized.

        y = X beta + N(0, sigma^2 I),   beta_j ~ N(0, l_j^2 tau^2),   l_j, tau ~ C+(0, 1),
        p(sigma^2) proportional to 1 / sigma^2

    The coordinates are (beta, log sigma^2, log l, log tau), 2 p + 2 of them. With gradient; moments
    are not known. A call takes some 0.1 µs and is O(p^2): X enters only by its products.

    Parameters
    ----------
    X : array (n, p)
        Of rank p, n > p.
    y : array (n,)

    Raises
    ------
    TypeError, ValueError
        If shapes do not fit, a number is not finite, or X does not have rank p.

    References
    ----------
    Carvalho, C. M., Polson, N. G. and Scott, J. G. (2009). Handling sparsity via the horseshoe.
    Artificial Intelligence and Statistics 5, 73-80: there the scale of tau is sigma.
    """

    coefficients: NDArray[np.float64] | None = None  # the true ones, if they are known

    def __init__(self, X, y):
        shape = real_array("X", X, copy=False).shape
        if len(shape) != 2 or not shape[0] > shape[1] > 0:
            raise ValueError(f"X must have shape (n, p) with n > p > 0, not {shape}")
        self.X = check_array("X", X, shape=shape)
        self.y = check_array("y", y, shape=shape[:1])
        rank = np.linalg.matrix_rank(self.X)
        if rank < shape[1]:
            raise ValueError(f"X must have rank {shape[1]}, not {rank}")
        Q, R = np.linalg.qr(self.X)
        b = np.linalg.solve(R, Q.T @ self.y)
        self.parameters = {"X": self.X, "y": self.y}
        self.set_up(shape[0], R, b, float(((self.y - self.X @ b) ** 2).sum()))


def horseshoe(n=1000, seed=1):
    """20 coefficients, ten of them 10, 5, 2.5, 2, 1, 0.75, 0.5, 0.25, 0.2, 0.1 and ten 0.

    X and the errors are standard normal. After Dharamshi, A., Ngo, V. and Rosenthal, J. S. (2023),
    who do not state the data, the variance of the errors, nor how the model is parametrized: the
    choices are ours.

    Parameters
    ----------
    n : int
        Number of rows, more than 20.
    seed : int
        Seed of the data.

    Returns
    -------
    HorseshoeRegression
        With the attribute `coefficients` (20,).
    """
    check_integer("n", n, least=21)
    rng = check_generator("seed", seed)
    coefficients = np.r_[COEFFICIENTS, np.zeros(10)]
    X = rng.standard_normal((n, 20))
    target = HorseshoeRegression(X, X @ coefficients + rng.standard_normal(n))
    target.coefficients = coefficients
    return target.named("horseshoe")
