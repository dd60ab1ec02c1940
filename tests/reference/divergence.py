"""The divergence-minimisation sampler, in both forms (Dharamshi, Ngo and Rosenthal 2023)."""

from math import inf

import numpy as np

from reference.chain import Reference, covariance, log_normal


class DivergenceMinimization(Reference):
    """G = lower(mean_j c_j grad log pi(y_j) e_j') + b / diag(C),  C <- C + g G, cut"""

    lockstep = True
    frozen = False

    def __init__(self, s, x0):
        super().__init__(s, x0)
        self.C = np.linalg.cholesky(covariance(s.cov, self.d))
        self.bank = []

    def nearest(self, x):
        return np.argmin([np.sum((x - point) ** 2) for point, _ in self.bank])

    def propose(self, x, rng):
        self.at = self.C if not self.frozen else self.bank[self.nearest(x)][1]
        n = self.s.points if self.gain is not None else 1
        self.e = rng.standard_normal((n, self.d))
        return x + self.at @ self.e[0]

    def around(self, x, y):
        return [y] + [x + self.at @ e for e in self.e[1:]]

    def log_q(self, x, y):
        if not self.frozen:
            return 0.0
        C, D = (self.bank[self.nearest(at)][1] for at in (x, y))
        return log_normal(x, y, D @ D.T) - log_normal(y, x, C @ C.T)

    def adapt(self, x, y, alpha, accepted, gain, rng):
        G = np.zeros((self.d, self.d))
        for (point, lp), e in zip(self.found, self.e, strict=True):
            if lp > -inf:
                c = self.s.entropy_weight + (lp < self.lp_x)
                G += c / self.s.points * np.outer(self.grad(point), e)
        G = np.tril(G) + np.diag(self.s.entropy_weight / np.diag(self.C))
        step = gain * (1 if accepted else self.s.shrink) * G
        step = np.clip(step, -self.s.largest_step, self.s.largest_step)
        if self.s.norm_clip is not None:
            step *= min(1, self.s.norm_clip / np.linalg.norm(step))
        self.C = self.C + step
        start = self.stop // 2 if self.stop < inf else inf
        if self.t >= start:
            t, length = self.t - start, self.stop - start
            n = min(self.s.bank, length)
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
