"""Step sizes by doubling and halving (autoMALA; AutoStep), with the two searches written out."""

from math import inf, log

import numpy as np

from reference.chain import Reference, covariance


class AutoStep(Reference):
    def __init__(self, s, x0):
        super().__init__(s, x0)
        self.mu = np.array(x0 if s.mean is None else s.mean, dtype=float)
        self.variances = np.diag(covariance(s.cov, self.d))
        self.log_eps = log(s.first_step_size(self.d) if s.step_size is None else s.step_size)

    def shoot(self, x, p, lp, k):
        """(y, q, log pi(y), r) for the step size 2^k eps_0."""
        raise NotImplementedError

    def step(self, x, lp, rng):
        p, (u, v) = rng.standard_normal(self.d), 1 - rng.random(2)
        E = rng.standard_exponential()
        low, high = -log(max(u, v)), -log(min(u, v))
        found = {0: self.shoot(x, p, lp, 0)}

        def size(point):
            return abs(point[3]) if np.isfinite(point[3]) else inf

        self.direction = int(size(found[0]) < low) - int(size(found[0]) > high)

        def goes_on(point):
            return size(point) < low if self.direction == 1 else size(point) > high

        k = 0
        while self.direction and goes_on(found[k]):
            k += self.direction
            found[k] = self.shoot(x, p, lp, k)
        self.j = k - 1 if self.direction == 1 else k
        self.eps = np.exp(self.log_eps) * 2.0**self.j
        y, q, lp_y, r = found[self.j]
        others = sorted(set(found) - {self.j}, reverse=self.direction == 1)
        self.agreed = all(goes_on(self.shoot(y, -q, lp_y, k)) == goes_on(found[k]) for k in others)
        if not self.agreed:
            return y, lp_y, -inf, False
        return y, lp_y, r, r > -E

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.log_eps += gain * self.j * log(2)
        if self.s.metric == "diagonal":
            D = (y if accepted else x) - self.mu
            self.mu = self.mu + gain * D
            self.variances = self.variances + gain * (D**2 - self.variances)

    def fields(self):
        return {"log_eps": self.log_eps, "mu": self.mu, "s": np.sqrt(self.variances), "j": self.j,
                "chosen": self.eps, "direction": self.direction, "agreed": self.agreed}

    def stats(self):
        return {"step_size": self.eps, "reversible": float(self.agreed)}


class AutoMALA(AutoStep):
    def shoot(self, x, p, lp, k):
        eps, S = np.exp(self.log_eps) * 2.0**k, np.diag(np.sqrt(self.variances))
        half = p + eps / 2 * S @ self.grad(x)
        y, lp_y = self.look(x + eps * S @ half)
        q = half + eps / 2 * S @ self.grad(y)
        return y, q, lp_y, lp_y - lp + (p @ p - q @ q) / 2


class AutoStepRandomWalk(AutoStep):
    def shoot(self, x, p, lp, k):
        y, lp_y = self.look(x + np.exp(self.log_eps) * 2.0**k * np.sqrt(self.variances) * p)
        return y, p, lp_y, lp_y - lp
