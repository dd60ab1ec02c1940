"""Gradient-based adaptive samplers (Titsias and Dellaportas 2019), by matrices."""

from math import inf

import numpy as np

from reference.chain import Reference, covariance
from reference.langevin import Langevin


def lower(A):
    return np.tril(A)


class Ascent:
    """What the two share: L, its optimiser, beta."""

    def __init__(self, s, x0):
        super().__init__(s, x0)
        self.L = np.linalg.cholesky(covariance(0.01 / self.d if s.cov is None else s.cov, self.d))
        self.beta, self.age = s.beta_start, 0
        self.G, self.M = np.zeros((self.d, self.d)), np.zeros((self.d, self.d))

    def ascend(self, g, rho):
        s = self.s
        g = g + self.beta * np.diag(1 / np.diag(self.L))
        g = np.diag(np.diag(g)) if s.diagonal else lower(g)
        self.age += 1
        if s.optimizer == "rmsprop":
            decay = 0.9 if s.decay is None else s.decay
            self.G = g**2 if self.age == 1 else decay * self.G + (1 - decay) * g**2
            step = g / (1 + np.sqrt(self.G))
        elif s.optimizer == "adam":
            decay, decay1 = 0.999 if s.decay is None else s.decay, s.decay_mean
            self.G = decay * self.G + (1 - decay) * g**2
            self.M = decay1 * self.M + (1 - decay1) * g
            corrected = self.G / (1 - decay**self.age)
            step = self.M / (1 - decay1**self.age) / (np.sqrt(corrected) + 1e-8)
        else:
            step = g
        self.L = self.L + rho * step
        np.fill_diagonal(self.L, np.maximum(np.diag(self.L), s.floor))

    def follow(self, accepted):
        self.beta *= 1 + self.s.beta_gain * (accepted - self.s.target_acceptance)
        cap = inf if self.s.beta_cap is None else self.s.beta_cap
        self.beta = min(max(self.beta, self.s.beta_floor), cap)

    def fields(self):
        L = np.diag(self.L)[:, None] if self.s.diagonal else self.L
        return {"L": L, "beta": self.beta, "age": self.age, "e": self.e}

    def stats(self):
        return {"beta": self.beta}


class GradientAdaptiveRandomWalk(Ascent, Reference):
    def propose(self, x, rng):
        self.e = rng.standard_normal(self.d)
        return x + self.L @ self.e

    def adapt(self, x, y, alpha, accepted, gain, rng):
        lp = self.logp(y)
        if np.isfinite(lp):
            worse = lp < self.logp(x)
            self.ascend(np.outer(self.grad(y), self.e) if worse else 0 * self.L, gain)
        self.follow(accepted)


class GradientAdaptiveMALA(Ascent, Langevin):
    lockstep = True

    def factor(self):
        return self.L

    def step(self, x, lp, rng):
        y, lp_y, log_ratio, accepted = super().step(x, lp, rng)
        self.log_ratio, self.k = log_ratio, None
        if self.s.exact and self.gain is not None and lp_y > -inf and log_ratio < 0:
            self.k = self.curvature(x, y)
        return y, lp_y, log_ratio, accepted

    def curvature(self, x, y):
        h, h_y, _ = self.parts(x, y)
        u = self.L @ (h + h_y)
        eps = 1e-5 * (1 + np.linalg.norm(y)) / np.linalg.norm(u)
        above, lp = self.look(y + eps * u)
        if lp == -inf:
            return None
        below, lp = self.look(y - eps * u)
        return None if lp == -inf else (self.grad(above) - self.grad(below)) / (2 * eps)

    def parts(self, x, y):
        """(h, h_y, difference of the gradients)"""
        h = 0.5 * self.L.T @ self.grad(x) + self.e
        return h, 0.5 * self.L.T @ self.grad(y), self.grad(x) - self.grad(y)

    def adapt(self, x, y, alpha, accepted, gain, rng):
        if np.isfinite(self.logp(y)):
            g = 0 * self.L
            if self.log_ratio < 0:
                h, h_y, D = self.parts(x, y)
                g = -0.5 * np.outer(D, h - h_y)
                if self.k is not None:
                    g -= 0.5 * np.outer(self.grad(x), 0.5 * self.L.T @ self.k)
                    g -= 0.5 * np.outer(self.k, h)
            self.ascend(g, gain)
        self.follow(accepted)
