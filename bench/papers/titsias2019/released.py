"""The adaptive Metropolis of the authors' programs, which differs from that of the paper.

    y      = x + sqrt(delta) L e,                e ~ N(0, I)
    mu    <- mu + h (X' - mu)                    X' the state after the decision
    w      = L^-1 (X' - mu),                     A = w w' - I
    L     <- L + g [L A]_lower
    delta <- delta + h (accepted / alpha* - 1) delta

The paper has L [A]_lower in place of [L A]_lower, no scale delta, and the gain g for the mean too.
"""

import numpy as np
from scipy.linalg import solve_triangular

import fastkam as fk
from fastkam.samplers import Field
from fastkam.schedules import Power

H, TARGET_ACCEPTANCE, FLOOR = 0.01, 0.25, 1e-3      # FLOOR: of the diagonal of L


class AdaptiveMetropolis(fk.PythonSampler):
    """Adaptive Metropolis that moves the Cholesky factor itself, as released."""

    FIELDS = {
        "mu": Field("learned mean", shared=True, learned=True),
        "L": Field("lower-triangular factor of the proposal", shared=True, learned=True),
        "delta": Field("global scale", shared=True, learned=True, stat="delta"),
    }

    def start(self, x0):
        self.mu, self.L, self.delta = x0.copy(), np.eye(self.d), 0.1 / np.sqrt(self.d)

    def propose(self, x, rng):
        return x + np.sqrt(self.delta) * (self.L @ rng.standard_normal(self.d))

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.mu = self.mu + H * ((y if accepted else x) - self.mu)
        v = (y if accepted else x) - self.mu
        w = solve_triangular(self.L, v, lower=True, check_finite=False)
        self.L = self.L + gain * self.change(v, w)
        np.fill_diagonal(self.L, np.maximum(np.diag(self.L), FLOOR))
        self.delta += H * (accepted / TARGET_ACCEPTANCE - 1) * self.delta

    def change(self, v, w):
        """Return [L A]_lower; L w = v."""
        return np.tril(np.outer(v, w)) - self.L

    def default_gain(self, d):
        return Power(c=0.0005 * 5000, k=1.0, offset=5000.0)


class DiagonalAdaptiveMetropolis(AdaptiveMetropolis):
    """The same with a diagonal L, as in the authors' program for Neal's Gaussian."""

    def change(self, v, w):
        return np.diag(v * w) - self.L
