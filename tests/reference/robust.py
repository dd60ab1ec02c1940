"""Random-walk Metropolis and robust adaptive Metropolis (Vihola 2012, eq. 1)."""

import numpy as np

from fastkam.samplers import Field
from reference.base import Reference, covariance, jittered


class RandomWalk(Reference, of="rwm"):
    """y ~ N(x, scale^2 Sigma); log scale <- log scale + g (alpha - alpha*)"""

    FIELDS = {"scale": Field("scale of the walk", shared=True, learnt=True)}

    def start(self, x0):
        self.scale = 1.0
        cov = self.s.proposal_cov
        self.Sigma = covariance(2.38**2 / self.d if cov is None else cov, self.d)

    def propose(self, x, rng):
        C = (self.scale * jittered(self.s, rng)) ** 2 * self.Sigma
        return x + np.linalg.cholesky(C) @ rng.standard_normal(self.d)

    def adapt(self, x, y, alpha, accepted, gain, rng):
        if self.s.target_acceptance is not None:
            self.scale *= np.exp(gain * (alpha - self.s.target_acceptance))

    def fields(self):
        return {"s": self.scale}


class RobustAdaptiveMetropolis(RandomWalk, of="ram"):
    """S S' <- S (I + g (alpha - alpha*) u u' / |u|^2) S', halved after ten refusals in a row."""

    FIELDS = {"Sigma": Field("covariance of the proposal", shared=True, learnt=True),
              "refused": Field("proposals in a row with alpha < 0.01", dtype="i8", shared=True)}

    def start(self, x0):
        super().start(x0)
        self.refused = 0

    def propose(self, x, rng):
        scale = jittered(self.s, rng)
        self.u = rng.standard_normal(self.d)
        return x + scale * np.linalg.cholesky(self.Sigma) @ self.u

    def adapt(self, x, y, alpha, accepted, gain, rng):
        S, u = np.linalg.cholesky(self.Sigma), self.u
        shape = np.outer(u, u) / (u @ u)
        self.Sigma = S @ (np.eye(self.d) + gain * (alpha - self.s.target_acceptance) * shape) @ S.T
        if self.t < self.end_of_adaptation / 2 < np.inf:
            self.refused = self.refused + 1 if alpha < 0.01 else 0
            if self.refused == 10:
                self.refused, self.Sigma = 0, self.Sigma / 4

    def fields(self):
        return {"S": np.linalg.cholesky(self.Sigma), "u": self.u, "refused": self.refused}
