"""Mode jumping around other references: jumps, independent draws and hops, from their densities."""

from math import ceil, inf

import numpy as np

from fastkam import modes
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
        if s.means is not None:
            weights, means, covs = s.given(self.d)
            self.guess = {"means": means, "covs": None if s.covs is None else covs}
            self.learn(modes.with_wide(weights, means, covs))

    def learn(self, found):
        weights, means, factors = found
        self.mixture = weights, means, [L @ L.T for L in factors]

    def choose(self, rng):
        u, kinds = rng.random(), self.s.kinds()
        if u >= self.s.chance:
            return 0
        kind = KINDS.index(kinds[int(len(kinds) * u / self.s.chance)])
        modes = 0 if self.mixture is None else len(self.mixture[0]) - 1
        return 0 if modes < (0, 0, 1, 2)[kind] else kind

    # ---- the moves ----

    def step(self, x, lp, rng):
        self.move = self.choose(rng)
        if self.move:
            return super().step(x, lp, rng)
        inner = self.inner
        inner.t, inner.gain, inner.stop = self.inner_steps, self.gain, self.stop
        if self.stop < inf:
            inner.stop = ceil((1 - self.s.chance) * self.stop)
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
            return means[k] + np.linalg.cholesky(covs[k]) @ rng.standard_normal(self.d)
        self.a = 1 + np.searchsorted(np.cumsum(self.chances(x)), rng.random(), side="right")
        self.b = 1 + int((len(weights) - 2) * rng.random())
        self.b += self.b >= self.a
        L_a, L_b = (np.linalg.cholesky(covs[k]) for k in (self.a, self.b))
        return means[self.b] + L_b @ np.linalg.solve(L_a, x - means[self.a])

    def log_terms(self, x):
        return np.array([np.log(w) + log_normal(x, m, C)
                         for w, m, C in zip(*self.mixture, strict=True)])

    def chances(self, x):
        """Of each mode to be the one that a hop at x leaves."""
        logs = self.log_terms(x)[1:]
        p = np.exp(logs - logs.max())
        return p / p.sum()

    def log_q(self, x, y):
        if self.move == 1:
            return 0.0
        if self.move == 2:
            return np.logaddexp.reduce(self.log_terms(x)) - np.logaddexp.reduce(self.log_terms(y))
        half_log_dets = [np.linalg.slogdet(C)[1] / 2 for C in self.mixture[2]]
        log_r = [self.log_terms(z)[k] - np.logaddexp.reduce(self.log_terms(z)[1:])
                 for z, k in ((x, self.a), (y, self.b))]
        return log_r[1] - log_r[0] + half_log_dets[self.b] - half_log_dets[self.a]

    # ---- adaptation ----

    def adapt(self, x, y, alpha, accepted, gain, rng):
        if self.move == 0:
            self.inner.adapt(x, y, alpha, accepted, gain, rng)
        if not self.s.fit or self.s.kinds() == ("jump",):
            return
        self.states.append(y if accepted else x)
        n = len(self.states)
        if n in (2**k for k in range(8, 40)) or self.t + 1 == self.stop:
            X = self.states
            while len(X) > self.s.states + self.s.states % 2:
                X = X[::2]
            X = np.array(X[len(X) // 4:])
            found = modes.fit(X, int(rng.random() * 2**53), most=self.s.components, **self.guess)
            if found is not None:
                self.learn(found)

    def freeze(self):
        self.inner.t = self.inner_steps
        self.inner.freeze()

    def fields(self):
        return {"t": self.inner_steps, "move": self.move, "seen": len(self.states)} | {
            f"inner.{name}": value for name, value in self.inner.fields().items()}

    def stats(self):
        return {"move": self.move} | self.inner.stats()
