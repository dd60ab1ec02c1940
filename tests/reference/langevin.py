"""Langevin samplers, from the densities of their proposals."""

import numpy as np

from reference.chain import Reference, covariance, log_normal


class Langevin(Reference):
    """y ~ N(x + F F' grad log pi(x) / 2, F F')"""

    def factor(self):
        """F, (d, d)"""
        raise NotImplementedError

    def mean(self, x):
        F = self.factor()
        return x + 0.5 * F @ F.T @ self.grad(x)

    def propose(self, x, rng):
        self.e = rng.standard_normal(self.d)
        return self.mean(x) + self.factor() @ self.e

    def log_q(self, x, y):
        C = self.factor() @ self.factor().T
        return log_normal(x, self.mean(y), C) - log_normal(y, self.mean(x), C)


class MALA(Langevin):
    """log s <- log s + g (alpha - alpha*)"""

    def __init__(self, s, x0):
        super().__init__(s, x0)
        self.log_s = np.log(self.d ** (-1 / 6) if s.step_size is None else s.step_size)

    def factor(self):
        return np.exp(self.log_s) * np.linalg.cholesky(covariance(self.s.cov, self.d))

    def propose(self, x, rng):
        y = super().propose(x, rng)
        self.h = np.linalg.solve(self.factor(), y - x)
        return y

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.log_s += gain * (alpha - self.s.target_acceptance)

    def fields(self):
        return {"log_s": self.log_s, "e": self.e, "h": self.h}

    def stats(self):
        return {"log_step_size": self.log_s}
