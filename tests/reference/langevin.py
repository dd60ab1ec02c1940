"""Langevin samplers, from the densities of their proposals."""

import numpy as np

from fastkam.samplers import Field
from reference.base import Reference, covariance, given, jittered, log_normal


class Langevin(Reference):
    """y ~ N(x + F F' grad log pi(x) / 2, F F')"""

    GRADIENT = True

    def factor(self):
        """F, (d, d)"""
        raise NotImplementedError

    def mean(self, x, grad):
        F = self.factor()
        return x + 0.5 * F @ F.T @ grad

    def propose(self, x, rng):
        self.e = rng.standard_normal(self.d)
        return self.mean(x, self.grad_x) + self.factor() @ self.e

    def log_q(self, x, y):
        C = self.factor() @ self.factor().T
        return (log_normal(x, self.mean(y, self.grad_y), C)
                - log_normal(y, self.mean(x, self.grad_x), C))


class MALA(Langevin, of="mala"):
    """F = s L, L L' = cov;  log s <- log s + g (alpha - alpha*)"""

    FIELDS = {"log_s": Field("log of the step size", shared=True, learned=True),
              "step_size": Field("that of the last step, jitter included", stat="step_size")}

    def start(self, x0):
        self.step_size = self.d ** (-1 / 6) if self.s.step_size is None else self.s.step_size
        self.log_s = np.log(self.step_size)

    def factor(self):
        return self.step_size * np.linalg.cholesky(covariance(self.s.preconditioner, self.d))

    def propose(self, x, rng):
        self.step_size = np.exp(self.log_s) * jittered(self.s, rng)
        y = super().propose(x, rng)
        self.h = np.linalg.solve(self.factor(), y - x)
        return y

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.log_s += gain * (alpha - self.s.target_acceptance)

    def fields(self):
        return {"log_s": self.log_s, "s": self.step_size, "e": self.e, "h": self.h}


class FisherAdaptiveMALA(MALA, of="fishermala"):
    """R R' = (sum of v v' + lambda I)^-1, and F F' = s^2 R R' d / tr R R'"""

    FIELDS = MALA.FIELDS | {
        "information": Field("sum of v v'", shared=True),
        "R": Field("square root of its damped inverse", shared=True, learned=True),
        "n": Field("adaptations made", dtype="i8", shared=True)}

    def start(self, x0):
        super().start(x0)
        self.information, self.n = np.zeros((self.d, self.d)), 0
        self.R = np.eye(self.d) / np.sqrt(given(self.s.damping, 10.0))

    def inverse_information(self):
        return np.linalg.inv(self.information + given(self.s.damping, 10.0) * np.eye(self.d))

    def factor(self):
        return self.step_size * np.sqrt(self.d / np.trace(self.inverse_information())) * self.R

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.n += 1
        if self.n > self.s.plain_steps and alpha > 0:
            signal = np.sqrt(alpha) * (self.grad_y - self.grad_x)
            self.information = self.information + np.outer(signal, signal)
            # of all the square roots it is R times the symmetric one
            values, vectors = np.linalg.eigh(self.R.T @ np.outer(signal, signal) @ self.R)
            self.R = self.R @ (vectors / np.sqrt(1 + values)) @ vectors.T
        super().adapt(x, y, alpha, accepted, gain, rng)

    def fields(self):
        A = self.inverse_information()
        np.testing.assert_allclose(self.R @ self.R.T, A, rtol=1e-9, atol=1e-9 * np.trace(A))
        return super().fields() | {"R": self.R, "trace": np.trace(A), "n": self.n}
