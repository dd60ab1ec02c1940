"""Step sizes by doubling and halving (autoMALA; AutoStep), with the two searches written out."""

from math import inf, log

import numpy as np

from fastkam.samplers import Decision, Field, Proposal
from reference.base import Reference, covariance, is_dense


class AutoStep(Reference):
    """mu, Sigma as in adaptive Metropolis; log eps_0 <- log eps_0 + g j log 2"""

    FIELDS = {"log_eps": Field("log eps_0, where the search begins", shared=True, learned=True),
              "mu": Field("learned mean", shared=True, learned=True),
              "Sigma": Field("learned covariance", shared=True, learned=True),
              "eps": Field("the step size chosen", stat="step_size"),
              "agreed": Field("whether the search backwards agreed", dtype="i8",
                              stat="reversible")}

    def start(self, x0):
        s, d = self.s, self.d
        self.mu = np.array(x0 if s.mean is None else s.mean, dtype=float)
        self.Sigma = covariance(s.preconditioner, d)
        self.dense = is_dense(s.metric, s.preconditioner, d)
        self.log_eps = log(s.first_step_size(d) if s.step_size is None else s.step_size)
        self.eps, self.agreed = 0.0, False

    @property
    def F(self):
        return np.linalg.cholesky(self.Sigma)

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
        if self.s.metric != "fixed":
            D = (y if accepted else x) - self.mu
            self.mu = self.mu + gain * D
            new = np.outer(D, D) if self.dense else np.diag(D**2)
            self.Sigma = self.Sigma + gain * (new - self.Sigma)

    def fields(self):
        F = self.F.T.ravel() if self.dense else np.diag(self.F)
        return {"F": F, "log_eps": self.log_eps, "mu": self.mu, "j": self.j,
                "chosen": self.eps, "direction": self.direction, "agreed": self.agreed}


class AutoMALA(AutoStep, of="automala"):
    """A leapfrog step in the coordinates in which the learned covariance is I."""

    GRADIENT = True

    def shoot(self, x, grad, p, logp, k):
        eps, F = np.exp(self.log_eps) * 2.0**k, self.F
        half = p + eps / 2 * F.T @ grad
        point = yield x + eps * F @ half
        q = half + eps / 2 * F.T @ point.grad
        return point, q, point.logp - logp + (p @ p - q @ q) / 2


class AutoStepRandomWalk(AutoStep, of="autorwm"):
    """y = x + eps F p"""

    def shoot(self, x, grad, p, logp, k):
        point = yield x + np.exp(self.log_eps) * 2.0**k * self.F @ p
        return point, p, point.logp - logp
