"""Replica exchange around other references (Syed et al. 2022; Surjanovic et al. 2022)."""

from math import exp, inf, isnan

import numpy as np

from fastkam.samplers import Decision, Point
from reference.base import Composite, covariance, log_normal, moves


class Rung:
    """A chain at an inverse temperature: its state, and its step as far as it has come."""

    def __init__(self, own, x, logp, grad):
        self.own, self.x, self.logp, self.grad = own, x, logp, grad


class Exchange(Composite):
    """Each rung: pi^beta q^(1 - beta); swaps by exp((beta_a - beta_b) (W_b - W_a))."""

    lockstep = True
    every, scheme, fits, tunes, normal = 1, "even-odd", False, False, None

    @property
    def WIDTH(self):
        return sum(part.WIDTH for part in self.moved)

    def begin(self, x0, ladder):
        Composite.start(self, x0)
        self.ladder, self.R = np.array(ladder, dtype=float), len(ladder)
        self.rungs, self.rounds = None, 0
        self.clear()

    def clear(self):
        self.attempted, self.swapped, self.states = np.zeros(self.R), np.zeros(self.R), []

    # ---- the tempered densities ----

    def log_q_at(self, x):
        return 0.0 if self.normal is None else log_normal(x, *self.normal)

    def level(self, r, x, logp):
        b = self.ladder[r]
        if logp == -inf:
            return self.log_q_at(x) if b == 0 else -inf
        return b * logp + (1 - b) * self.log_q_at(x)

    def slope(self, r, x, grad):
        """Gradient of the level."""
        b = self.ladder[r]
        if grad is None or self.normal is None:
            return None if grad is None else b * grad
        mean, cov = self.normal
        return b * grad - (1 - b) * np.linalg.solve(cov, x - mean)

    def tempered(self, r, point):
        return Point(point.x, self.level(r, point.x, point.logp),
                     self.slope(r, point.x, point.grad))

    def W(self, r):
        return self.rungs[r].logp - self.log_q_at(self.rungs[r].x)

    def is_reference(self, r):
        return self.normal is not None and self.ladder[r] == 0

    # ---- a step ----

    def step(self, x, rng):
        grad = self.grad_x if self.needs_gradient else None
        if self.rungs is None:
            self.rungs = [Rung(own, x, self.logp_x, grad) for own in self.inner]
        else:
            self.rungs[0].x, self.rungs[0].logp, self.rungs[0].grad = x, self.logp_x, grad
            if self.t % self.every == 0:
                self.exchange(rng)
        self.before = [rung.x for rung in self.rungs]
        start = Point(self.rungs[0].x, self.rungs[0].logp, self.rungs[0].grad)
        for r, rung in enumerate(self.rungs):
            self.propose_at(r, rung, rng)
        self.keep = self.rungs[0].own.keep
        waiting = list(range(self.R))
        while waiting:
            points = yield [y for r in waiting for y in self.rungs[r].asked]
            for r in waiting:
                mine = points[:len(self.rungs[r].asked)]
                points = points[len(mine):]
                self.consider_at(r, self.rungs[r], mine)
            waiting = [r for r in waiting if self.rungs[r].asked]
        cold = self.rungs[0]
        verdict = Decision(cold.point, alpha=cold.alpha, accepted=cold.accepted, x=start)
        for rung in self.rungs:
            if rung.accepted:
                rung.x, rung.logp, rung.grad = rung.point.x, rung.point.logp, rung.point.grad
        self.show()
        return verdict

    def propose_at(self, r, rung, rng):
        own = rung.own
        own.t, own.adapting, own.keep = self.t, self.adapting, True
        own.end_of_adaptation = self.end_of_adaptation
        own.logp_x = self.level(r, rung.x, rung.logp)
        own.grad_x = self.slope(r, rung.x, rung.grad)
        if self.is_reference(r):
            rung.going = None
            rung.asked = [self.normal[0] + np.linalg.cholesky(self.normal[1])
                          @ rng.standard_normal(self.d)]
        else:
            rung.going = moves(own, rung.x, rng)
            self.ask(rung, next(rung.going))
        rung.E, rung.received = rng.standard_exponential(), []

    def ask(self, rung, found):
        rung.single = np.ndim(found) == 1
        rung.asked = [found] if rung.single else list(found)

    def consider_at(self, r, rung, points):
        """Let a rung go on with the points of log pi that it has asked for."""
        own, levels = rung.own, [self.tempered(r, point) for point in points]
        rung.received += zip(levels, points, strict=True)
        rung.asked = []
        if rung.going is None:
            rung.point, rung.level, rung.alpha, rung.accepted = points[0], levels[0], 1.0, True
            return
        own.E = rung.E
        try:
            self.ask(rung, rung.going.send(levels[0] if rung.single else levels))
            rung.E = own.E
        except StopIteration as stop:
            rung.E = own.E
            self.decide_at(rung, stop.value)

    def decide_at(self, rung, verdict):
        own, rung.point, rung.level = rung.own, None, verdict.point
        for level, point in rung.received:
            if level is verdict.point:
                rung.point = point
        if isinstance(verdict, Decision):
            rung.alpha, rung.accepted = verdict.alpha, verdict.accepted
            return
        log_ratio = verdict.point.logp - own.logp_x + verdict.log_q
        log_ratio = -inf if isnan(log_ratio) else log_ratio
        rung.alpha, rung.accepted = exp(min(0.0, log_ratio)), rung.E > -log_ratio

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
                self.attempted[a] += 1
                self.swapped[a] += exp(min(0.0, log_ratio))
            if -log_ratio < E:
                one, other = self.rungs[a], self.rungs[b]
                one.x, other.x = other.x, one.x
                one.logp, other.logp = other.logp, one.logp
                one.grad, other.grad = other.grad, one.grad

    # ---- adaptation ----

    def adapt(self, x, y, alpha, accepted, gain, rng):
        for r, rung in enumerate(self.rungs):
            if not self.is_reference(r):
                x, own = self.before[r], rung.own
                y = x if rung.point is None else rung.point.x
                if rung.level is not None:
                    own.logp_y, own.grad_y = rung.level.logp, rung.level.grad
                own.adapt(x, y, rung.alpha, rung.accepted, gain, rng)
                self.states.append(x)
        rounds = (self.fits or self.tunes) and self.end_of_adaptation < inf and self.rounds < 5
        if rounds and (self.t + 1) * 2 ** (5 - self.rounds) >= self.end_of_adaptation:
            self.end_round()
        self.show()

    def end_round(self):
        self.rounds += 1
        if self.fits and len(self.states) > 2 * self.d:
            X = np.array(self.states)
            C = np.cov(X.T, bias=True).reshape(self.d, self.d)
            if np.linalg.eigvalsh(C)[0] > 0:
                self.normal = X.mean(axis=0), C * self.widening
        if self.tunes:
            with np.errstate(invalid="ignore"):
                rejected = np.where(self.attempted > 0, 1 - self.swapped / self.attempted, 0.5)[:-1]
            barrier = np.r_[0, np.cumsum(np.maximum(rejected, 1e-3))]
            self.ladder[1:-1] = np.interp(np.linspace(0, barrier[-1], self.R)[1:-1], barrier,
                                          self.ladder)
        self.clear()

    def freeze(self):
        for own in self.inner:
            own.t = self.t
            own.freeze()
        self.clear()

    def fields(self):
        return {"ladder": self.ladder, "swaps.attempted": self.attempted,
                "swaps.swapped": self.swapped}


class ParallelTempering(Exchange, of="pt"):
    def start(self, x0):
        s = self.s
        self.begin(x0, s.first_ladder())
        self.every, self.scheme = s.swap_interval, s.scheme
        self.widening = s.reference_scale or 1 + 2 / np.sqrt(self.d)
        self.tunes = s.tune_betas and s.betas is None
        if not isinstance(s.reference, str):
            self.normal = np.array(s.reference[0]), covariance(s.reference[1], self.d)
        elif s.reference == "fitted":
            self.fits, self.normal = True, (x0, np.diag(10 * (1 + np.abs(x0))) ** 2)


class Scout(Exchange, of="scout"):
    def start(self, x0):
        self.begin(x0, [1.0, self.s.beta])
        self.every = self.s.swap_interval
