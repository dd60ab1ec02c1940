"""Replica exchange around other references (Syed et al. 2022; Surjanovic et al. 2022)."""

from math import exp, inf, isnan

import numpy as np

from reference.chain import Reference, covariance, log_normal


class Exchange(Reference):
    """Each rung: pi^beta q^(1 - beta); swaps by exp((beta_a - beta_b) (W_b - W_a))."""

    lockstep = True
    every, scheme, fits, tunes, normal = 1, "even-odd", False, False, None

    def __init__(self, s, x0, ladder):
        from reference import REFERENCES

        super().__init__(s, x0)
        self.ladder, self.R = np.array(ladder, dtype=float), len(ladder)
        names = {cls: name for name, cls in self.registry().items()}
        self.inner = [REFERENCES[names[type(part)]](part, x0) for part in s.parts()]
        self.xs = None
        self.rounds, self.states = 0, []
        self.clear()

    @staticmethod
    def registry():
        from fastkam.samplers import SAMPLERS

        return SAMPLERS

    def clear(self):
        self.tried, self.swapped, self.states = np.zeros(self.R), np.zeros(self.R), []

    def log_q_at(self, x):
        return 0.0 if self.normal is None else log_normal(x, *self.normal)

    def level(self, r, x, lp):
        b = self.ladder[r]
        if lp == -inf:
            return self.log_q_at(x) if b == 0 else -inf
        return b * lp + (1 - b) * self.log_q_at(x)

    def slope(self, r, x):
        """Gradient of the level."""
        b = self.ladder[r]
        if self.normal is None:
            return b * self.grad(x)
        mean, cov = self.normal
        return b * self.grad(x) - (1 - b) * np.linalg.solve(cov, x - mean)

    def W(self, r):
        return self.lps[r] - self.log_q_at(self.xs[r])

    def displace(self, x, lp, rng):
        if self.xs is None:
            self.xs, self.lps = [x] * self.R, [lp] * self.R
        elif self.t % self.every == 0:
            self.exchange(rng)
        return self.xs[0], self.lps[0]

    def step(self, x, lp, rng):
        ys, E = [], []
        for r, inner in enumerate(self.inner):
            inner.t, inner.gain, inner.stop = self.t, self.gain, self.stop
            inner.grad = lambda x, r=r: self.slope(r, x)
            if self.normal is not None and self.ladder[r] == 0:
                ys.append(self.normal[0] + np.linalg.cholesky(self.normal[1])
                          @ rng.standard_normal(self.d))
            else:
                ys.append(inner.propose(self.xs[r], rng))
            E.append(rng.standard_exponential())
        rng.standard_exponential()
        self.before, self.decisions = (list(self.xs), list(self.lps)), []
        for r, inner in enumerate(self.inner):
            fresh = self.normal is not None and self.ladder[r] == 0
            points = [ys[r]] if fresh else inner.around(self.xs[r], ys[r])
            found = [self.look(point) for point in points]
            inner.found = [(point, self.level(r, point, lp)) for point, lp in found]
            inner.lp_x = self.level(r, self.xs[r], self.lps[r])
            y, lp_y = found[0]
            log_ratio = self.level(r, y, lp_y) - self.level(r, self.xs[r], self.lps[r])
            if fresh:
                log_ratio = inf
            elif lp_y > -inf:
                log_ratio += inner.log_q(self.xs[r], y)
            log_ratio = -inf if isnan(log_ratio) else log_ratio
            accepted = log_ratio > -E[r]
            self.decisions.append((self.xs[r], y, exp(min(0.0, log_ratio)), accepted))
            if accepted:
                self.xs[r], self.lps[r] = y, lp_y
        _, y, alpha, accepted = self.decisions[0]
        return y, self.lps[0], np.log(alpha) if alpha > 0 else -inf, accepted

    def exchange(self, rng):
        R = self.R
        if self.scheme == "even-odd":
            first = (self.t // self.every) % 2 if R > 2 else 0
            pairs = [(a, a + 1) for a in range(first, R - 1, 2)]
        else:
            a = int(R * rng.random())
            b = int((R - 1) * rng.random())
            b += b >= a
            pairs = [(min(a, b), max(a, b))]
        for a, b in pairs:
            log_ratio = (self.ladder[a] - self.ladder[b]) * (self.W(b) - self.W(a))
            log_ratio = -inf if isnan(log_ratio) else log_ratio
            E = rng.standard_exponential()
            if b == a + 1:
                self.tried[a] += 1
                self.swapped[a] += exp(min(0.0, log_ratio))
            if -log_ratio < E:
                for values in (self.xs, self.lps):
                    values[a], values[b] = values[b], values[a]

    def adapt(self, x, y, alpha, accepted, gain, rng):
        for r, inner in enumerate(self.inner):
            if self.normal is None or self.ladder[r] > 0:
                inner.adapt(*self.decisions[r], gain, rng)
                self.states.append(self.before[0][r])
        rounds = (self.fits or self.tunes) and self.stop < inf and self.rounds < 5
        if rounds and (self.t + 1) * 2 ** (5 - self.rounds) >= self.stop:
            self.end_round()

    def end_round(self):
        self.rounds += 1
        if self.fits and len(self.states) > 2 * self.d:
            X = np.array(self.states)
            C = np.cov(X.T, bias=True).reshape(self.d, self.d)
            if np.linalg.eigvalsh(C)[0] > 0:
                self.normal = X.mean(axis=0), C * self.widening
        if self.tunes:
            with np.errstate(invalid="ignore"):
                rejected = np.where(self.tried > 0, 1 - self.swapped / self.tried, 0.5)[:-1]
            barrier = np.r_[0, np.cumsum(np.maximum(rejected, 1e-3))]
            self.ladder[1:-1] = np.interp(np.linspace(0, barrier[-1], self.R)[1:-1], barrier,
                                          self.ladder)
        self.clear()

    def freeze(self):
        for inner in self.inner:
            inner.freeze()
        self.clear()

    def fields(self):
        return {"ladder": self.ladder, "tried": self.tried, "swapped": self.swapped}


class ParallelTempering(Exchange):
    def __init__(self, s, x0):
        super().__init__(s, x0, s.first_ladder())
        self.every, self.scheme = s.every, s.scheme
        self.widening = s.widening or 1 + 2 / np.sqrt(self.d)
        self.tunes = s.tune_ladder and s.ladder is None
        if not isinstance(s.reference, str):
            self.normal = np.array(s.reference[0]), covariance(s.reference[1], self.d)
        elif s.reference == "fitted":
            self.fits, self.normal = True, (x0, np.diag(10 * (1 + np.abs(x0))) ** 2)


class Scout(Exchange):
    def __init__(self, s, x0):
        super().__init__(s, x0, [1.0, s.tau])
        self.every = s.every
