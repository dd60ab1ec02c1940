"""Adaptive Metropolis on the Cholesky factor (Titsias and Dellaportas 2019, supplement)."""

import numpy as np

from reference.chain import Reference, covariance


class CholeskyAdaptiveMetropolis(Reference):
    """L <- L + g L [w w' - I]_lower, w = L^-1 (X - mu)."""

    def __init__(self, s, x0):
        super().__init__(s, x0)
        self.mu = np.array(x0 if s.mean is None else s.mean, dtype=float)
        self.L = np.linalg.cholesky(covariance(0.01 / self.d if s.cov is None else s.cov, self.d))
        self.delta = s.delta

    def propose(self, x, rng):
        return x + np.sqrt(self.delta) * self.L @ rng.standard_normal(self.d)

    def adapt(self, x, y, alpha, accepted, gain, rng):
        X, s, L = y if accepted else x, self.s, self.L
        self.mu = self.mu + (gain if s.mean_gain is None else s.mean_gain) * (X - self.mu)
        w = np.linalg.solve(L, X - self.mu)
        A = np.outer(w, w) - np.eye(self.d)
        self.L = L + gain * L @ np.tril(A)
        np.fill_diagonal(self.L, np.maximum(np.diag(self.L), s.floor))
        self.delta += s.scale_gain * (accepted / s.target_acceptance - 1) * self.delta

    def fields(self):
        return {"mu": self.mu, "L": self.L, "delta": self.delta}

    def stats(self):
        return {"delta": self.delta}
