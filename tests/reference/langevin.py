"""Langevin samplers, from the densities of their proposals."""

import numpy as np

from reference.chain import Reference, covariance, jittered, log_normal


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
        return self.step_size * np.linalg.cholesky(covariance(self.s.cov, self.d))

    def propose(self, x, rng):
        self.step_size = np.exp(self.log_s) * jittered(self.s, rng)
        y = super().propose(x, rng)
        self.h = np.linalg.solve(self.factor(), y - x)
        return y

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.log_s += gain * (alpha - self.s.target_acceptance)

    def fields(self):
        return {"log_s": self.log_s, "s": self.step_size, "e": self.e, "h": self.h}

    def stats(self):
        return {"log_step_size": self.log_s}


class FisherAdaptiveMALA(MALA):
    """R R' = (sum of v v' + lambda I)^-1, and F F' = R R' d / tr R R'"""

    def __init__(self, s, x0):
        super().__init__(s, x0)
        self.signals, self.n = np.zeros((0, self.d)), 0
        self.R = np.eye(self.d) / np.sqrt(s.damping)

    def inverse_information(self):
        return np.linalg.inv(self.signals.T @ self.signals + self.s.damping * np.eye(self.d))

    def factor(self):
        return self.step_size * np.sqrt(self.d / np.trace(self.inverse_information())) * self.R

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.n += 1
        if self.n > self.s.plain_steps and alpha > 0:
            signal = np.sqrt(alpha) * (self.grad(y) - self.grad(x))
            self.signals = np.vstack([self.signals, signal])
            # of all the square roots it is R times the symmetric one
            values, vectors = np.linalg.eigh(self.R.T @ np.outer(signal, signal) @ self.R)
            self.R = self.R @ (vectors / np.sqrt(1 + values)) @ vectors.T
        super().adapt(x, y, alpha, accepted, gain, rng)

    def fields(self):
        A = self.inverse_information()
        np.testing.assert_allclose(self.R @ self.R.T, A, rtol=1e-9, atol=1e-9 * np.trace(A))
        fields = super().fields()
        del fields["s"]
        return fields | {"R": self.R, "trace": np.trace(A), "n": self.n}
