"""Adaptive Metropolis (Andrieu and Thoms 2008, Algorithms 2 to 4) and its two-component form."""

import numpy as np

from reference.chain import Reference, covariance, jittered


class AdaptiveMetropolis(Reference):
    """mu <- mu + g (X - mu);  Sigma <- Sigma + g ((X - mu) (X - mu)' - Sigma), X the new state."""

    def __init__(self, s, x0):
        super().__init__(s, x0)
        self.mu = np.array(x0 if s.mean is None else s.mean, dtype=float)
        self.Sigma = covariance(s.cov, self.d)
        self.scale = 2.38**2 / self.d if s.scale is None else s.scale

    def propose(self, x, rng):
        C = self.scale * jittered(self.s, rng) ** 2 * self.Sigma
        return x + np.linalg.cholesky(C) @ rng.standard_normal(self.d)

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.learn(y if accepted else x, gain)

    def learn(self, X, g):
        D = X - self.mu
        self.mu = self.mu + g * D
        self.Sigma = self.Sigma + g * (np.outer(D, D) - self.Sigma)

    def fields(self):
        return {"mu": self.mu, "L": np.linalg.cholesky(self.Sigma)}


class RaoBlackwellisedAdaptiveMetropolis(AdaptiveMetropolis):
    """The expectation of the update over the decision."""

    def adapt(self, x, y, alpha, accepted, gain, rng):
        D, E = x - self.mu, y - self.mu
        learnt = alpha * np.outer(E, E) + (1 - alpha) * np.outer(D, D)
        self.mu = self.mu + gain * (alpha * E + (1 - alpha) * D)
        self.Sigma = self.Sigma + gain * (learnt - self.Sigma)


class GlobalAdaptiveMetropolis(AdaptiveMetropolis):
    """log lambda <- log lambda + g (alpha - alpha*)"""

    def adapt(self, x, y, alpha, accepted, gain, rng):
        super().adapt(x, y, alpha, accepted, gain, rng)
        self.scale *= np.exp(gain * (alpha - self.s.target_acceptance))

    def fields(self):
        return super().fields() | {"log_scale": np.log(self.scale)}

    def stats(self):
        return {"log_scale": np.log(self.scale)}


class AdaptiveRandomWalk(AdaptiveMetropolis):
    """N(x, 2.38^2 Sigma / d), or with probability b, and while t < 2 d, N(x, s^2 I / d)."""

    def __init__(self, s, x0):
        Reference.__init__(self, s, x0)
        self.mu = np.array(x0, dtype=float)
        self.safe = s.safe_scale**2 / self.d * np.eye(self.d)
        self.Sigma = self.safe

    def propose(self, x, rng):
        safe = rng.random() < self.s.safe_weight or self.t < 2 * self.d
        cov = self.safe if safe else 2.38**2 / self.d * self.Sigma
        return x + np.linalg.cholesky(cov) @ rng.standard_normal(self.d)
