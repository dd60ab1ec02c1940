"""The divergence-minimization sampler, in both forms (Dharamshi, Ngo and Rosenthal 2023)."""

from math import inf

import numpy as np

from fastkam.samplers import Proposal
from reference.base import Reference, covariance, given, log_normal


class DivergenceMinimization(Reference, of="dm"):
    """G = lower(mean_j c_j grad log pi(y_j) e_j') + b / diag(C),  C <- C + g G, cut"""

    GRADIENT = True
    lockstep = True

    @property
    def WIDTH(self):
        return self.s.n_gradients

    def start(self, x0):
        self.C = np.linalg.cholesky(covariance(given(self.s.proposal_cov, 4.0), self.d))
        self.bank, self.frozen = [], False

    def nearest(self, x):
        return np.argmin(np.sum((x - np.array([point for point, _ in self.bank])) ** 2, axis=1))

    def step(self, x, rng):
        C = self.C if not self.frozen else self.bank[self.nearest(x)][1]
        self.e = rng.standard_normal((self.s.n_gradients if self.adapting else 1, self.d))
        self.found = yield [x + C @ e for e in self.e]
        y = self.found[0]
        if not self.frozen or y.logp == -inf:
            return Proposal(y)
        D = self.bank[self.nearest(y.x)][1]
        return Proposal(y, log_normal(x, y.x, D @ D.T) - log_normal(y.x, x, C @ C.T))

    def adapt(self, x, y, alpha, accepted, gain, rng):
        G = np.zeros((self.d, self.d))
        for point, e in zip(self.found, self.e, strict=True):
            if point.logp > -inf:
                c = self.s.entropy_weight + (point.logp < self.logp_x)
                G += c / self.s.n_gradients * np.outer(point.grad, e)
        G = np.tril(G) + np.diag(self.s.entropy_weight / np.diag(self.C))
        step = gain * (1 if accepted else self.s.rejection_factor) * G
        most = given(self.s.largest_step, 10.0)
        step = np.clip(step, -most, most)
        if self.s.norm_clip is not None:
            step *= min(1, self.s.norm_clip / np.linalg.norm(step))
        self.C = self.C + step
        stop = self.end_of_adaptation
        start = stop // 2 if stop < inf else inf
        if self.t >= start:
            t, length = self.t - start, stop - start
            n = min(self.s.bank_size, length)
            if len(self.bank) < n and (t + 1) * n // length > t * n // length:
                self.bank.append((y if accepted else x, self.C))

    def freeze(self):
        self.frozen = True

    def fields(self):
        fields = {"C": self.C}
        if self.bank:
            fields["bank_x"] = np.array([x for x, _ in self.bank])
            fields["bank_C"] = np.array([C for _, C in self.bank])
        return fields
