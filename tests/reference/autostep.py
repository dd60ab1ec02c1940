"""Step sizes by doubling and halving (autoMALA; AutoStep), with the two searches written out."""

from math import inf, log

import numpy as np

from fastkam.samplers import Decision, Field, Proposal
from reference.base import Reference, covariance


class AutoStep(Reference):
    """mu, variances as in adaptive Metropolis; log eps_0 <- log eps_0 + g j log 2"""

    FIELDS = {"log_eps": Field("log eps_0, with which the search begins", shared=True, learnt=True),
              "mu": Field("learnt mean", shared=True, learnt=True),
              "variances": Field("learnt variances", shared=True, learnt=True),
              "eps": Field("the step size chosen", stat="step_size"),
              "agreed": Field("whether the search backwards agreed", dtype="i8",
                              stat="reversible")}

    def start(self, x0):
        s, d = self.s, self.d
        self.mu = np.array(x0 if s.mean is None else s.mean, dtype=float)
        self.variances = np.diag(covariance(s.preconditioner, d))
        self.log_eps = log(s.first_step_size(d) if s.step_size is None else s.step_size)
        self.eps, self.agreed = 0.0, False

    def shoot(self, x, grad, p, logp, k):
        """(point, q, r) for the step size 2^k eps_0 from x with momentum p."""
        raise NotImplementedError

    def step(self, x, rng):
        p, (u, v) = rng.standard_normal(self.d), 1 - rng.random(2)
        low, high = -log(max(u, v)), -log(min(u, v))
        grad = self.grad_x if self.GRADIENT else None
        found = {0: (yield from self.shoot(x, grad, p, self.logp_x, 0))}

        def size(r):
            return abs(r) if np.isfinite(r) else inf

        self.direction = int(size(found[0][2]) < low) - int(size(found[0][2]) > high)

        def goes_on(r):
            return size(r) < low if self.direction == 1 else size(r) > high

        k = 0
        while self.direction and goes_on(found[k][2]):
            k += self.direction
            found[k] = yield from self.shoot(x, grad, p, self.logp_x, k)
        self.j = k - 1 if self.direction == 1 else k
        self.eps = np.exp(self.log_eps) * 2.0**self.j
        point, q, r = found[self.j]
        self.agreed = True
        for k in sorted(set(found) - {self.j}, reverse=self.direction == 1):
            *_, back = yield from self.shoot(point.x, point.grad, -q, point.logp, k)
            if goes_on(back) != goes_on(found[k][2]):
                self.agreed = False
                return Decision(alpha=0.0, accepted=False)
        return Proposal(point, r - point.logp + self.logp_x if point.logp > -inf else 0.0)

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.log_eps += gain * self.j * log(2)
        if self.s.metric == "diagonal":
            D = (y if accepted else x) - self.mu
            self.mu = self.mu + gain * D
            self.variances = self.variances + gain * (D**2 - self.variances)

    def fields(self):
        return {"log_eps": self.log_eps, "mu": self.mu, "s": np.sqrt(self.variances), "j": self.j,
                "chosen": self.eps, "direction": self.direction, "agreed": self.agreed}


class AutoMALA(AutoStep, of="automala"):
    """A leapfrog step in the coordinates in which the learnt variances are 1."""

    GRADIENT = True

    def shoot(self, x, grad, p, logp, k):
        eps, S = np.exp(self.log_eps) * 2.0**k, np.diag(np.sqrt(self.variances))
        half = p + eps / 2 * S @ grad
        point = yield x + eps * S @ half
        q = half + eps / 2 * S @ point.grad
        return point, q, point.logp - logp + (p @ p - q @ q) / 2


class AutoStepRandomWalk(AutoStep, of="autorwm"):
    """y = x + eps S p"""

    def shoot(self, x, grad, p, logp, k):
        point = yield x + np.exp(self.log_eps) * 2.0**k * np.sqrt(self.variances) * p
        return point, p, point.logp - logp
