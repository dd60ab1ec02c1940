"""Adaptive Metropolis with delayed rejection (Haario et al. 2006), from the densities."""

from math import exp, inf

import numpy as np

from fastkam.samplers import Field, Proposal
from reference.adaptive_metropolis import AdaptiveMetropolis
from reference.base import jittered, log_normal


class DelayedRejectionAdaptiveMetropolis(AdaptiveMetropolis, of="dram"):
    """The second try's ratio: q1(y1|y2) (1 - a1(y2, y1)) / (q1(y1|x) (1 - a1(x, y1)))"""

    FIELDS = AdaptiveMetropolis.FIELDS | {
        "stage": Field("which try was decided on", dtype="i8", stat="stage")}

    def start(self, x0):
        super().start(x0)
        self.stage = 0

    def step(self, x, rng):
        C = self.scale() * jittered(self.s, rng) ** 2 * self.Sigma
        self.e, self.stage = rng.standard_normal(self.d), 1
        first = yield x + np.linalg.cholesky(C) @ self.e
        if self.E > self.logp_x - first.logp:
            return Proposal(first)
        self.stage, self.logp_first = 2, first.logp
        self.f = rng.standard_normal(self.d)
        self.E = rng.standard_exponential()
        second = yield x + np.sqrt(self.s.second_cov_ratio) * np.linalg.cholesky(C) @ self.f
        if second.logp == -inf:
            return Proposal(second)
        with np.errstate(divide="ignore"):
            log_q = log_normal(first.x, second.x, C) - log_normal(first.x, x, C) + np.log(
                (1 - exp(min(0, first.logp - second.logp))) / (1 - exp(first.logp - self.logp_x)))
        return Proposal(second, log_q)

    def fields(self):
        return super().fields() | {"e": self.e, "f": self.f, "stage": self.stage,
                                   "logp_first": self.logp_first}
