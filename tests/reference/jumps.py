"""Mode jumping around other references: jumps, independent draws and hops, from their densities."""

from math import ceil, inf, lgamma

import numpy as np

from fastkam.samplers import Field, Proposal, modes
from reference.base import Composite, covariance, given, log_normal, moves
from reference.exchange import Exchange

KINDS = ("sampler", "jump", "independent", "hop")
COUNTS = ("diverging", "n_steps", "tree_depth")


class ModeJumping(Composite, of="jumps"):
    """log_q: 0; log q(x) / q(y); log r_b(y) |L_b| / (r_a(x) |L_a|), r_k(x) = w_k N_k(x) / s(x)"""

    lockstep = True     # the shape of q follows from every state
    OWN = {"move": Field("the last step's: 0 the sampler's, 1 jump, 2 independent, 3 hop",
                         dtype="i8", stat="move")}

    @property
    def WIDTH(self):
        return self.moved[0].WIDTH

    def start(self, x0):
        s, self.move = self.s, 0
        super().start(x0)
        self.inner_steps, self.states, self.mixture, self.guess = 0, [], None, {}
        self.tempered, self.warmer, self.kept_inside = False, [], True
        self.tempered = isinstance(self.inner[0], Exchange)
        self.probabilities = np.zeros(3)
        self.used = [KINDS.index(kind) - 1 for kind in s.kinds()]
        self.probabilities[self.used] = (s.jump_probability or 0.2) / len(self.used)
        self.tried, self.taken_moves, self.fitted = np.zeros(3), np.zeros(3), 0
        self.periods = s.repeating(self.d)
        if s.means is not None:
            weights, means, factors = s.given(self.d)
            covs = None if s.covs is None else np.array([L @ L.T for L in factors])
            self.guess = {"means": means, "covs": covs}
            self.learn(modes.with_wide(weights, means, factors))

    def show(self):
        super().show()
        for name, field in self.recorded.items():
            if self.move and field.stat in COUNTS:
                setattr(self, name, 0)

    def learn(self, found):
        weights, means, factors = found
        self.mixture = weights, means, [L @ L.T for L in factors]

    def choose(self, rng):
        kind = 1 + int(np.searchsorted(np.cumsum(self.probabilities), rng.random(), side="right"))
        modes = 0 if self.mixture is None else len(self.mixture[0]) - 1
        return 0 if kind > 3 or modes < (0, 0, 1, 2)[kind] else kind

    # ---- the moves ----

    def step(self, x, rng):
        self.move = self.choose(rng)
        if self.move == 0:
            verdict = yield from self.inner_step(x, rng)
            self.kept_inside = self.inner[0].keep
        else:
            y = yield self.propose_move(x, rng)
            verdict = Proposal(y, self.log_ratio(x, y.x) if y.logp > -inf else 0.0)
        self.keep = self.kept_inside
        self.show()
        return verdict

    def inner_step(self, x, rng):
        """A step of the inner sampler, which counts its own steps."""
        (own,) = self.inner
        own.t, own.adapting, own.keep = self.inner_steps, self.adapting, True
        own.end_of_adaptation = self.end_of_adaptation
        if own.end_of_adaptation < inf:
            planned = 1 - (self.s.jump_probability or 0.5)
            own.end_of_adaptation = ceil(planned * own.end_of_adaptation)
        own.logp_x = self.logp_x
        if self.needs_gradient:
            own.grad_x = self.grad_x
        self.inner_steps += 1
        going, found = moves(own, x, rng), None
        while True:
            try:
                asked = going.send(found)
            except StopIteration as stop:
                self.E = getattr(own, "E", None) or self.E
                return stop.value
            if found is not None:
                self.E = own.E
            found = yield asked
            own.E = self.E

    def propose_move(self, x, rng):
        if self.move == 1:
            L = np.linalg.cholesky(covariance(given(self.s.jump_cov, 100.0), self.d))
            return x + L @ rng.standard_normal(self.d)
        y = self.in_window(self.into_window(x), rng)
        self.outside = not all(
            start <= y[int(k)] <= start + width for k, start, width, *_ in self.periods)
        return y if self.outside else self.image(y, rng)

    def in_window(self, x, rng):
        """Draw from q, or hop."""
        weights, means, covs = self.mixture
        if self.move == 2:
            k = np.searchsorted(np.cumsum(weights), rng.random(), side="right")
            if k == 0:
                scale = np.sqrt(3 / (rng.standard_normal(3) ** 2).sum())
            else:
                scale = 2.0 if rng.random() < 0.1 else 1.0
            return means[k] + scale * np.linalg.cholesky(covs[k]) @ rng.standard_normal(self.d)
        self.a = 1 + np.searchsorted(np.cumsum(self.shares(x)), rng.random(), side="right")
        self.b = 1 + int((len(weights) - 2) * rng.random())
        self.b += self.b >= self.a
        L_a, L_b = (np.linalg.cholesky(covs[k]) for k in (self.a, self.b))
        return means[self.b] + L_b @ np.linalg.solve(L_a, x - means[self.a])

    # ---- coordinates that repeat ----

    def into_window(self, x):
        x = x.copy()
        for k, start, width, period, *_ in self.periods:
            away = (x[int(k)] - start) % period
            x[int(k)] = start + (away if away <= width else period - away)
        return x

    def image(self, y, rng):
        """Return one of the images of y, drawn by their weights."""
        for k, start, width, period, mean, sd in self.periods:
            n, z = ceil(9 * sd / period), []
            for t in (y[int(k)], 2 * start - y[int(k)])[: 1 + (period > width)]:
                nearest = t + period * np.floor((mean - t) / period + 0.5)
                z += [nearest + m * period for m in range(-n, n + 1)]
            p = np.cumsum(np.exp(-0.5 * ((np.array(z) - mean) / sd) ** 2))
            y[int(k)] = z[np.searchsorted(p, p[-1] * rng.random(), side="right")]
        return y

    def log_images(self, x):
        return sum(-0.5 * ((x[int(k)] - mean) / sd) ** 2 for k, *_, mean, sd in self.periods)

    # ---- densities ----

    def log_terms(self, x):
        return np.array([np.log(w) + log_normal(x, m, C)
                         for w, m, C in zip(*self.mixture, strict=True)])

    def log_density(self, x):
        """log q(x), with the tails of Student's t and of wider normals."""
        weights, means, covs = self.mixture
        D = x - means[0]
        student = (lgamma((3 + self.d) / 2) - lgamma(1.5)
                   - (3 + self.d) / 2 * np.log1p(D @ np.linalg.solve(covs[0], D) / 3)
                   - np.linalg.slogdet(3 * np.pi * covs[0])[1] / 2)
        terms = [np.log(weights[0]) + student]
        for w, m, C in zip(weights[1:], means[1:], covs[1:], strict=True):
            terms += [np.log(share * w) + log_normal(x, m, scale**2 * C)
                      for share, scale in ((0.9, 1), (0.1, 2))]
        return np.logaddexp.reduce(terms)

    def shares(self, x):
        """Return the probability of each mode to be the one that a hop at x leaves."""
        logs = self.log_terms(x)[1:]
        p = np.exp(logs - logs.max())
        return p / p.sum()

    def log_ratio(self, x, y):
        if self.move == 1:
            return 0.0
        if self.outside:
            return -inf
        images = self.log_images(x) - self.log_images(y)
        x, y = self.into_window(x), self.into_window(y)
        if self.move == 2:
            return self.log_density(x) - self.log_density(y) + images
        half_log_dets = [np.linalg.slogdet(C)[1] / 2 for C in self.mixture[2]]
        log_r = [self.log_terms(z)[k] - np.logaddexp.reduce(self.log_terms(z)[1:])
                 for z, k in ((x, self.a), (y, self.b))]
        return log_r[1] - log_r[0] + half_log_dets[self.b] - half_log_dets[self.a] + images

    # ---- adaptation ----

    def adapt(self, x, y, alpha, accepted, gain, rng):
        (own,) = self.inner
        if self.move == 0:
            own.logp_y = self.logp_y
            if self.needs_gradient:
                own.grad_y = self.grad_y
            own.adapt(x, y, alpha, accepted, gain, rng)
        else:
            self.tried[self.move - 1] += 1
            self.taken_moves[self.move - 1] += accepted
        self.show()
        self.states.append(self.into_window(y if accepted else x))
        if self.tempered:
            begun = own.rungs is not None
            self.warmer.append(self.into_window(own.before[1]) if begun else self.states[-1])
        n = len(self.states)
        last = self.t + 1 == self.end_of_adaptation and n >= self.fitted + 32
        if n not in (2**k for k in range(8, 40)) and not last:
            return
        self.fitted = n
        if self.s.jump_probability is None and self.tried.sum() >= 50:
            a = np.where(self.tried > 0, (self.taken_moves + 1) / (self.tried + 4), 0)
            p = np.clip(min(0.8, 2 * a.max()) * a**2 / (a**2).sum(), 0.01, [0.1, 0.7, 0.2])
            self.probabilities[self.used] = p[self.used]
            self.tried, self.taken_moves = self.tried / 2, self.taken_moves / 2
        if not self.s.fit or self.s.kinds() == ("jump",):
            return
        X = np.array(self.states)[self.kept(n)]
        if self.tempered:
            X = np.vstack([X, np.array(self.warmer)[self.kept(n)][::3]])
        near = 1 if self.mixture is None else len(self.mixture[0]) - 1
        found = modes.fit(X, int(rng.random() * 2**53), near, most=self.s.max_components,
                          **self.guess)
        if found is not None:
            self.learn(found)

    def kept(self, n):
        """Return which of n states are used in a fit."""
        rows = np.arange(n)
        while len(rows) > self.s.n_states + self.s.n_states % 2:
            rows = rows[::2]
        return rows[len(rows) // 4:]

    def freeze(self):
        self.inner[0].t = self.inner_steps
        self.inner[0].freeze()

    def fields(self):
        return {"inner_t": self.inner_steps, "move": self.move, "seen": len(self.states),
                "probabilities": self.probabilities, "n_accepted": self.taken_moves} | {
            f"inner.{name}": value for name, value in self.inner[0].fields().items()}
