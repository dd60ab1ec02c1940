"""Adaptive Metropolis (Andrieu and Thoms 2008, Algorithms 2 to 4) and its two-component form."""

import numpy as np

from fastkam.samplers import Field
from reference.base import Reference, covariance, given, jittered


class AdaptiveMetropolis(Reference, of="am"):
    """mu <- mu + g (X - mu);  Sigma <- Sigma + g ((X - mu) (X - mu)' - Sigma), X the new state."""

    FIELDS = {"mu": Field("learned mean", shared=True, learned=True),
              "Sigma": Field("learned covariance", shared=True, learned=True)}

    def start(self, x0):
        self.mu = np.array(x0 if self.s.mean is None else self.s.mean, dtype=float)
        self.Sigma = covariance(self.s.target_cov, self.d)

    def scale(self):
        """lambda"""
        return 2.38**2 / self.d if self.s.scale is None else self.s.scale

    def propose(self, x, rng):
        C = self.scale() * jittered(self.s, rng) ** 2 * self.Sigma
        return x + np.linalg.cholesky(C) @ rng.standard_normal(self.d)

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.learn(y if accepted else x, gain)

    def learn(self, X, g):
        D = X - self.mu
        self.mu = self.mu + g * D
        self.Sigma = self.Sigma + g * (np.outer(D, D) - self.Sigma)

    def fields(self):
        return {"mu": self.mu, "L": np.linalg.cholesky(self.Sigma)}


class RaoBlackwellizedAdaptiveMetropolis(AdaptiveMetropolis, of="rbam"):
    """The expectation of the update over the decision."""

    def adapt(self, x, y, alpha, accepted, gain, rng):
        D, E = x - self.mu, y - self.mu
        learned = alpha * np.outer(E, E) + (1 - alpha) * np.outer(D, D)
        self.mu = self.mu + gain * (alpha * E + (1 - alpha) * D)
        self.Sigma = self.Sigma + gain * (learned - self.Sigma)


class GlobalAdaptiveMetropolis(AdaptiveMetropolis, of="gam"):
    """log lambda <- log lambda + g (alpha - alpha*)"""

    FIELDS = AdaptiveMetropolis.FIELDS | {
        "log_scale": Field("log lambda", shared=True, learned=True, stat="log_scale")}

    def start(self, x0):
        super().start(x0)
        self.log_scale = np.log(super().scale())

    def scale(self):
        return np.exp(self.log_scale)

    def adapt(self, x, y, alpha, accepted, gain, rng):
        super().adapt(x, y, alpha, accepted, gain, rng)
        self.log_scale += gain * (alpha - self.s.target_acceptance)

    def fields(self):
        return super().fields() | {"log_scale": self.log_scale}


class AdaptiveRandomWalk(AdaptiveMetropolis, of="arwm"):
    """N(x, 2.38^2 Sigma / d), or with probability b, and while t < 2 d, N(x, s^2 I / d)."""

    def start(self, x0):
        self.mu = np.array(x0, dtype=float)
        self.safe = given(self.s.safe_scale, 0.1)**2 / self.d * np.eye(self.d)
        self.Sigma = self.safe

    def propose(self, x, rng):
        safe = rng.random() < self.s.safe_weight or self.t < 2 * self.d
        cov = self.safe if safe else 2.38**2 / self.d * self.Sigma
        return x + np.linalg.cholesky(cov) @ rng.standard_normal(self.d)
