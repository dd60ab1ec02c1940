"""The Metropolis step that all references share, and the calendar of adaptation."""

from math import ceil, exp, inf, isnan

import numpy as np


class Reference:
    """One sampler's moves and memory.

    A sampler of one evaluation a step has propose and log_q; others have a `step` of their own.
    `s` is the sampler's parameter object, `x0` the start, (d,).
    """

    keep = True  # whether the state after this step is a draw
    lockstep = False  # whether the points looked at are to be taken over from the sampler
    t = 0  # steps made
    stop = inf  # steps of warm-up, where it ends

    def __init__(self, s, x0):
        self.s, self.d = s, len(x0)

    def propose(self, x, rng):
        raise NotImplementedError

    def log_q(self, x, y):
        """log q(x|y) - log q(y|x)"""
        return 0.0

    def around(self, x, y):
        """All points that the step looks at, the proposal first."""
        return [y]

    def adapt(self, x, y, alpha, accepted, gain, rng):
        """Learn; the points of the step and their densities are in `found`, log pi(x) in `lp_x`."""

    def freeze(self):
        pass

    def fields(self):
        """What the compiled kernel keeps, by the same names."""
        return {}

    def stats(self):
        """What the compiled kernel records, by the same names."""
        return {}

    def displace(self, x, lp, rng):
        """(x, log pi(x)) from which the step begins."""
        return x, lp

    def step(self, x, lp, rng):
        """(y, log pi(y), log of the acceptance ratio, whether y is accepted)."""
        y = self.propose(x, rng)
        E = rng.standard_exponential()
        self.found, self.lp_x = [self.look(point) for point in self.around(x, y)], lp
        y, lp_y = self.found[0]
        log_ratio = lp_y - lp + self.log_q(x, y) if lp_y > -inf else -inf
        log_ratio = -inf if isnan(log_ratio) else log_ratio
        return y, lp_y, log_ratio, log_ratio > -E

    def look(self, y):
        """(y, log pi(y)), -inf where there is no density; the next of the given points replaces y.

        Gradients are for the asking: `self.grad(y)`.
        """
        self.looked.append(y)
        if self.points is not None:
            y = self.points[len(self.looked) - 1]
        lp = self.logp(y)
        return y, lp if np.isfinite(lp) else -inf

    def run(self, logp, x, steps, rng, calendar, stop=inf, points=None, grad=None,
            given=None):
        """`steps` steps from `x`; {name: (steps, ...)} of what happened, a row each.

        Under "y" are the points looked at. With `points`, each is recorded as it is here, and then
        replaced. `given` has the sampler's own statistics, {name: (steps,)}.
        """
        self.given = given
        self.logp, self.grad, self.points, self.looked = logp, grad, points, []
        self.stop = stop
        rows, lp = [], logp(x)
        for self.t in range(steps):
            if self.t == stop == 0:
                self.freeze()
            self.gain = calendar.gain_at(self.t) if self.t < stop else None
            x, lp = self.displace(x, lp, rng)
            y, lp_y, log_ratio, accepted = self.step(x, lp, rng)
            alpha = exp(min(0.0, log_ratio))
            if self.gain is not None:
                self.adapt(x, y, alpha, accepted, self.gain, rng)
            if accepted:
                x, lp = y, lp_y
            rows.append({"x": x, "logp": lp, "alpha": alpha, "accepted": accepted,
                         "keep": self.keep} | self.stats())
            if self.t + 1 == stop:
                self.t += 1
                self.freeze()
        rows = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        return rows | {"y": np.array(self.looked)}


class Calendar:
    """Which steps adapt, and with which gain: ``min(cap, c (offset + n)^-k)`` at the n-th."""

    def __init__(self, gain, start=0, rarity=0.0):
        self.gain, self.start, self.n = gain, start, 0
        self.rare = rarity > 0
        self.times = {start - 1 + ceil(j ** (1 + rarity)) for j in range(1, 5000)}

    def gain_at(self, t):
        if t < self.start or (self.rare and t not in self.times):
            return None
        self.n += 1
        return power(self.gain, self.n)


def jittered(s, rng):
    """A factor on the step size, uniform on 1 - jitter .. 1 + jitter."""
    return 1 + s.jitter * (2 * rng.random() - 1) if s.jitter > 0 else 1.0


def power(p, n):
    """The n-th term of a decaying sequence, n = 1, 2, ..."""
    return min(p.cap, p.c * (p.offset + n) ** -p.k)


def covariance(value, d):
    """(d, d) from a variance, variances or a matrix."""
    value = np.asarray(value, dtype=float)
    return value if value.ndim == 2 else np.eye(d) * value


def log_normal(x, mean, cov):
    """log N(x; mean, cov)"""
    D = x - mean
    return -0.5 * (D @ np.linalg.solve(cov, D) + np.linalg.slogdet(2 * np.pi * cov)[1])
