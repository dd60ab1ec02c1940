"""Adaptive Metropolis with delayed rejection (Haario et al. 2006), from the densities."""

from math import exp, inf

import numpy as np

from reference.adaptive_metropolis import AdaptiveMetropolis
from reference.chain import jittered, log_normal


class DelayedRejectionAdaptiveMetropolis(AdaptiveMetropolis):
    def step(self, x, lp, rng):
        C = self.scale * jittered(self.s, rng) ** 2 * self.Sigma
        self.e = rng.standard_normal(self.d)
        E = rng.standard_exponential()
        first, lp_first = self.look(x + np.linalg.cholesky(C) @ self.e)
        self.stage = 1
        if lp_first - lp > -E:
            return first, lp_first, lp_first - lp, True
        self.stage, self.lp_first = 2, lp_first
        self.f = rng.standard_normal(self.d)
        E = rng.standard_exponential()
        y, lp_y = self.look(x + np.sqrt(self.s.shrink) * np.linalg.cholesky(C) @ self.f)
        if lp_y == -inf:
            return y, lp_y, -inf, False
        with np.errstate(divide="ignore"):
            log_ratio = lp_y - lp + log_normal(first, y, C) - log_normal(first, x, C) + np.log(
                (1 - exp(min(0, lp_first - lp_y))) / (1 - exp(lp_first - lp)))
        return y, lp_y, log_ratio, log_ratio > -E

    def fields(self):
        return super().fields() | {"e": self.e, "f": self.f, "stage": self.stage,
                                   "logp_first": self.lp_first}

    def stats(self):
        return {"stage": self.stage}
