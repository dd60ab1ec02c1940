"""Gradient-based adaptive samplers (Titsias and Dellaportas 2019), by matrices."""

from math import inf

import numpy as np

from fastkam.samplers import Field, Proposal
from reference.base import Reference, covariance, given
from reference.langevin import Langevin


class Ascent(Reference):
    """Common part of the two samplers: L, its optimizer, beta."""

    GRADIENT = True
    FIELDS = {"L": Field("factor of the proposal", shared=True, learned=True),
              "beta": Field("weight of the entropy", shared=True, learned=True,
                            stat="entropy_weight"),
              "G": Field("mean of squared gradients", shared=True),
              "M": Field("mean of gradients", shared=True),
              "age": Field("adaptations made", dtype="i8", shared=True)}

    def start(self, x0):
        cov = 0.01 / self.d if self.s.proposal_cov is None else self.s.proposal_cov
        self.L = np.linalg.cholesky(covariance(cov, self.d))
        self.beta, self.age = self.s.entropy_weight, 0
        self.G, self.M = np.zeros((self.d, self.d)), np.zeros((self.d, self.d))

    def ascend(self, g, rho):
        s = self.s
        g = g + self.beta * np.diag(1 / np.diag(self.L))
        g = np.diag(np.diag(g)) if s.diagonal else np.tril(g)
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
        np.fill_diagonal(self.L, np.maximum(np.diag(self.L), given(s.min_diagonal, 1e-3)))

    def follow(self, accepted):
        self.beta *= 1 + self.s.entropy_weight_gain * (accepted - self.s.target_acceptance)
        cap = inf if self.s.max_entropy_weight is None else self.s.max_entropy_weight
        self.beta = min(max(self.beta, self.s.min_entropy_weight), cap)

    def fields(self):
        L = np.diag(self.L)[:, None] if self.s.diagonal else self.L
        return {"L": L, "beta": self.beta, "age": self.age, "e": self.e}


class GradientAdaptiveRandomWalk(Ascent, of="gadrwm"):
    """y = x + L e"""

    def propose(self, x, rng):
        self.e = rng.standard_normal(self.d)
        return x + self.L @ self.e

    def adapt(self, x, y, alpha, accepted, gain, rng):
        if self.logp_y > -inf:
            worse = self.logp_y < self.logp_x
            self.ascend(np.outer(self.grad_y, self.e) if worse else 0 * self.L, gain)
        self.follow(accepted)


class GradientAdaptiveMALA(Ascent, Langevin, of="gadmala"):
    """y = x + L L' grad / 2 + L e; the exact gradient has a Hessian, by a central difference."""

    lockstep = True

    def factor(self):
        return self.L

    def step(self, x, rng):
        point = yield self.propose(x, rng)
        self.k, self.log_ratio = None, -inf
        if point.logp == -inf:
            return Proposal(point)
        self.grad_y = point.grad
        log_q = self.log_q(x, point.x)
        self.log_ratio = point.logp - self.logp_x + log_q
        if self.s.exact and self.adapting and self.log_ratio < 0:
            yield from self.curvature(point)
        return Proposal(point, log_q)

    def curvature(self, point):
        h, h_y, _ = self.parts()
        u = self.L @ (h + h_y)
        eps = 1e-5 * (1 + np.linalg.norm(point.x)) / np.linalg.norm(u)
        above = yield point.x + eps * u
        if above.logp > -inf:
            below = yield point.x - eps * u
            if below.logp > -inf:
                self.k = (above.grad - below.grad) / (2 * eps)

    def parts(self):
        """(h, h_y, difference of the gradients)"""
        h = 0.5 * self.L.T @ self.grad_x + self.e
        return h, 0.5 * self.L.T @ self.grad_y, self.grad_x - self.grad_y

    def adapt(self, x, y, alpha, accepted, gain, rng):
        if self.logp_y > -inf:
            g = 0 * self.L
            if self.log_ratio < 0:
                h, h_y, D = self.parts()
                g = -0.5 * np.outer(D, h - h_y)
                if self.k is not None:
                    g -= 0.5 * np.outer(self.grad_x, 0.5 * self.L.T @ self.k)
                    g -= 0.5 * np.outer(self.k, h)
            self.ascend(g, gain)
        self.follow(accepted)
