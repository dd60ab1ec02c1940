"""Adaptive Metropolis on the Cholesky factor (Titsias and Dellaportas 2019, supplement)."""

import numpy as np

from fastkam.samplers import Field
from reference.base import Reference, covariance, given


class CholeskyAdaptiveMetropolis(Reference, of="cholam"):
    """L <- L + g L [w w' - I]_lower or L + g [L (w w' - I)]_lower, w = L^-1 (X - mu)."""

    FIELDS = {"mu": Field("learned mean", shared=True, learned=True),
              "L": Field("factor of the proposal", shared=True, learned=True),
              "delta": Field("global scale", shared=True, learned=True, stat="scale")}

    def start(self, x0):
        s, d = self.s, self.d
        self.mu = np.array(x0 if s.mean is None else s.mean, dtype=float)
        first = 0.01 / d if s.proposal_cov is None else s.proposal_cov
        self.L = np.linalg.cholesky(covariance(first, d))
        self.delta = s.scale

    def propose(self, x, rng):
        return x + np.sqrt(self.delta) * self.L @ rng.standard_normal(self.d)

    def adapt(self, x, y, alpha, accepted, gain, rng):
        X, s, L = y if accepted else x, self.s, self.L
        self.mu = self.mu + (gain if s.mean_gain is None else s.mean_gain) * (X - self.mu)
        w = np.linalg.solve(L, X - self.mu)
        A = np.outer(w, w) - np.eye(self.d)
        self.L = L + gain * L @ np.tril(A)
        np.fill_diagonal(self.L, np.maximum(np.diag(self.L), given(s.min_diagonal, 1e-3)))
        self.delta += s.scale_gain * (accepted / s.target_acceptance - 1) * self.delta

    def fields(self):
        return {"mu": self.mu, "L": self.L, "delta": self.delta}
