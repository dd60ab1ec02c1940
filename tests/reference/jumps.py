"""Mode jumping around other references: jumps, independent draws and hops, from their densities."""

from math import ceil, inf, lgamma

import numpy as np

from fastkam.samplers import modes
from reference.chain import Reference, covariance, log_normal

KINDS = ("sampler", "jump", "independent", "hop")


class ModeJumping(Reference):
    """log_q: 0; log q(x) / q(y); log r_b(y) |L_b| / (r_a(x) |L_a|), r_k(x) = w_k N_k(x) / s(x)"""

    lockstep = True     # the shape of q follows from every state

    def __init__(self, s, x0):
        from fastkam.samplers import SAMPLERS
        from reference import REFERENCES

        super().__init__(s, x0)
        names = {cls: name for name, cls in SAMPLERS.items()}
        (part,) = s.parts()
        self.inner = REFERENCES[names[type(part)]](part, x0)
        self.inner_steps, self.states, self.mixture, self.guess = 0, [], None, {}
        self.tempered, self.warmer = hasattr(self.inner, "swapped"), []
        self.chances = np.zeros(3)
        self.used = [KINDS.index(kind) - 1 for kind in s.kinds()]
        self.chances[self.used] = (s.chance or 0.2) / len(self.used)
        self.tried, self.taken, self.fitted = np.zeros(3), np.zeros(3), 0
        if s.means is not None:
            weights, means, factors = s.given(self.d)
            covs = None if s.covs is None else np.array([L @ L.T for L in factors])
            self.guess = {"means": means, "covs": covs}
            self.learn(modes.with_wide(weights, means, factors))

    def learn(self, found):
        weights, means, factors = found
        self.mixture = weights, means, [L @ L.T for L in factors]

    def choose(self, rng):
        kind = 1 + int(np.searchsorted(np.cumsum(self.chances), rng.random(), side="right"))
        modes = 0 if self.mixture is None else len(self.mixture[0]) - 1
        return 0 if kind > 3 or modes < (0, 0, 1, 2)[kind] else kind

    # ---- the moves ----

    def displace(self, x, lp, rng):
        self.move, inner = self.choose(rng), self.inner
        if self.move:
            return x, lp
        inner.t, inner.gain, inner.stop = self.inner_steps, self.gain, self.stop
        if self.stop < inf:
            inner.stop = ceil((1 - (self.s.chance or 0.5)) * self.stop)
        if self.tempered and inner.xs is not None:
            inner.xs[0], inner.lps[0] = x, lp
        return inner.displace(x, lp, rng)

    def step(self, x, lp, rng):
        if self.move:
            return super().step(x, lp, rng)
        inner = self.inner
        inner.logp, inner.grad, inner.look = self.logp, self.grad, self.look
        if "step_size" in (self.given or {}):
            inner.given = {"step_size": {inner.t: self.given["step_size"][self.t]}}
        self.inner_steps += 1
        found = inner.step(x, lp, rng)
        self.keep = inner.keep
        return found

    def propose(self, x, rng):
        if self.move == 1:
            L = np.linalg.cholesky(covariance(self.s.cov, self.d))
            return x + L @ rng.standard_normal(self.d)
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

    def log_terms(self, x):
        return np.array([np.log(w) + log_normal(x, m, C)
                         for w, m, C in zip(*self.mixture, strict=True)])

    def log_density(self, x):
        """log q(x), with the tails of Student's law and of other normals."""
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
        """Of each mode to be the one that a hop at x leaves."""
        logs = self.log_terms(x)[1:]
        p = np.exp(logs - logs.max())
        return p / p.sum()

    def log_q(self, x, y):
        if self.move == 1:
            return 0.0
        if self.move == 2:
            return self.log_density(x) - self.log_density(y)
        half_log_dets = [np.linalg.slogdet(C)[1] / 2 for C in self.mixture[2]]
        log_r = [self.log_terms(z)[k] - np.logaddexp.reduce(self.log_terms(z)[1:])
                 for z, k in ((x, self.a), (y, self.b))]
        return log_r[1] - log_r[0] + half_log_dets[self.b] - half_log_dets[self.a]

    # ---- adaptation ----

    def adapt(self, x, y, alpha, accepted, gain, rng):
        if self.move == 0:
            self.inner.adapt(x, y, alpha, accepted, gain, rng)
        else:
            self.tried[self.move - 1] += 1
            self.taken[self.move - 1] += accepted
        self.states.append(y if accepted else x)
        if self.tempered:
            begun = self.inner.xs is not None
            self.warmer.append(self.inner.before[0][1] if begun else self.states[-1])
        n = len(self.states)
        last = self.t + 1 == self.stop and n >= self.fitted + 32
        if n not in (2**k for k in range(8, 40)) and not last:
            return
        self.fitted = n
        if self.s.chance is None and self.tried.sum() >= 50:
            a = np.where(self.tried > 0, (self.taken + 1) / (self.tried + 4), 0)
            p = np.clip(min(0.8, 2 * a.max()) * a**2 / (a**2).sum(), 0.01, [0.1, 0.7, 0.2])
            self.chances[self.used] = p[self.used]
            self.tried, self.taken = self.tried / 2, self.taken / 2
        if not self.s.fit or self.s.kinds() == ("jump",):
            return
        X = np.array(self.states)[self.kept(n)]
        if self.tempered:
            X = np.vstack([X, np.array(self.warmer)[self.kept(n)][::3]])
        near = 1 if self.mixture is None else len(self.mixture[0]) - 1
        found = modes.fit(X, int(rng.random() * 2**53), near, most=self.s.components, **self.guess)
        if found is not None:
            self.learn(found)

    def kept(self, n):
        """Which of n states are fitted to."""
        rows = np.arange(n)
        while len(rows) > self.s.states + self.s.states % 2:
            rows = rows[::2]
        return rows[len(rows) // 4:]

    def freeze(self):
        self.inner.t = self.inner_steps
        self.inner.freeze()

    def fields(self):
        return {"t": self.inner_steps, "move": self.move, "seen": len(self.states),
                "chances": self.chances, "taken": self.taken} | {
            f"inner.{name}": value for name, value in self.inner.fields().items()}

    def stats(self):
        counts = ("diverging", "n_steps", "tree_depth")
        return {"move": self.move} | {
            name: 0 if self.move and name in counts else value
            for name, value in self.inner.stats().items()}
