"""Samplers written in Python: of one evaluation a step and of several, some with the gradient."""

import numpy as np

import fastkam as fk
from fastkam.samplers import Decision, Field, Proposal
from fastkam.schedules import Power


class Scaling(fk.PythonSampler):
    """y = x + s e,   log s <- log s + g (alpha - alpha*)"""

    target_acceptance: float = 0.234
    FIELDS = {"log_s": Field("log of the scale", shared=True, learned=True, stat="log_s")}

    def start(self, x0):
        self.log_s = 0.0

    def propose(self, x, rng):
        return x + np.exp(self.log_s) * rng.standard_normal(self.d)

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.log_s += gain * (alpha - self.target_acceptance)

    def default_gain(self, d):
        return Power(k=0.6)


class Langevin(fk.PythonSampler):
    """y ~ N(x + C grad / 2, C),  C <- C + g ((X - mu) (X - mu)' - C) / 2; `w` is not stored."""

    GRADIENT = True
    FIELDS = {"mu": Field("mean", shared=True, learned=True),
              "C": Field("covariance", shared=True, learned=True),
              "n": Field("steps it has learned from", dtype="i8", shared=True, stat="n")}

    def start(self, x0):
        self.mu, self.C, self.n = x0.copy(), 0.3 * np.eye(self.d), 0

    def propose(self, x, rng):
        self.w = rng.standard_normal(self.d)
        return x + 0.5 * self.C @ self.grad_x + np.linalg.cholesky(self.C) @ self.w

    def log_q(self, x, y):
        v = np.linalg.solve(np.linalg.cholesky(self.C), x - y - 0.5 * self.C @ self.grad_y)
        self.change = v @ v - self.w @ self.w
        return -0.5 * self.change

    def adapt(self, x, y, alpha, accepted, gain, rng):
        X = y if accepted else x
        self.mu += gain * (X - self.mu)
        self.C *= 1 + 0.1 * gain * (rng.random() < alpha) - 0.05 * gain * (self.w @ self.w < 2)
        self.n += 1

    def default_gain(self, d):
        return Power(k=0.7)


class DelayedRejection(fk.PythonSampler):
    """A second, shorter step where the first is rejected; the scale is learned."""

    FIELDS = {"log_s": Field("log of the scale", shared=True, learned=True),
              "stage": Field("which try was decided on", dtype="i8", stat="stage")}

    def start(self, x0):
        self.log_s, self.stage = 0.5, 0

    def step(self, x, rng):
        self.stage, s = 1, np.exp(self.log_s)
        e = rng.standard_normal(self.d)
        first = yield x + s * e
        if first.logp - self.logp_x > -self.E:
            return Proposal(first)
        self.stage = 2
        f = rng.standard_normal(self.d)
        self.E = rng.standard_exponential()
        second = yield x + 0.3 * s * f
        if second.logp == -np.inf:
            return Proposal(second)
        with np.errstate(divide="ignore"):
            log_q = (0.5 * (e @ e - np.sum((e - 0.3 * f) ** 2))
                     + np.log1p(-np.exp(min(0.0, first.logp - second.logp)))
                     - np.log1p(-np.exp(first.logp - self.logp_x)))
        return Proposal(second, log_q=log_q)

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.log_s += gain * (alpha - 0.4)

    def default_gain(self, d):
        return Power(k=0.6)


class MultipleTry(fk.PythonSampler):
    """One of several tries, in proportion to the density; as many around it decide."""

    tries: int = 3
    WIDTH = 2
    FIELDS = {"chosen": Field("which try", dtype="i8", stat="chosen")}

    def start(self, x0):
        self.chosen = 0

    def step(self, x, rng):
        tries = yield x + rng.standard_normal((self.tries, self.d))
        w = np.array([point.logp for point in tries])
        if w.max() == -np.inf:
            return Decision(alpha=0.0, accepted=False)
        p = np.exp(w - w.max())
        self.chosen = int(np.searchsorted(np.cumsum(p) / p.sum(), rng.random()))
        y = tries[self.chosen]
        others = yield y.x + rng.standard_normal((self.tries - 1, self.d))
        v = np.array([self.logp_x, *(point.logp for point in others)])
        log_ratio = np.logaddexp.reduce(w) - np.logaddexp.reduce(v)
        return Decision(y, alpha=np.exp(min(0.0, log_ratio)), accepted=-log_ratio < self.E)


class LeapfrogSteps(fk.PythonSampler):
    """A trajectory of leapfrog steps, their number random; gradients from the points received."""

    eps: float = 0.4
    GRADIENT = True

    def step(self, x, rng):
        p = rng.standard_normal(self.d)
        y, grad, start = x, self.grad_x, 0.5 * p @ p - self.logp_x
        for _ in range(1 + int(4 * rng.random())):
            p = p + 0.5 * self.eps * grad
            point = yield y + self.eps * p
            if point.logp == -np.inf:
                return Decision(alpha=0.0, accepted=False)
            y, grad = point.x, point.grad
            p = p + 0.5 * self.eps * grad
        return Proposal(point, log_q=start + self.logp_x - 0.5 * p @ p)


SAMPLERS = {"scaling": Scaling(), "langevin": Langevin(), "rejection": DelayedRejection(),
            "tries": MultipleTry(), "leapfrog": LeapfrogSteps()}
