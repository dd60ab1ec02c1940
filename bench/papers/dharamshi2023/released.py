"""The authors' programs where they differ from the paper: an adaptive walk, two inexact samplers.

Of the adaptive random walk, one Gaussian where its source, Roberts and Rosenthal (2009), has a
mixture of two:

    y = x + L e,   L L' = w (0.01 / d) I + (1 - w) (2.38^2 / d) Cov(all states so far),   w = 0.05,

and w = 1 in the first 2 d steps. Of parallel tempering, before each step but the first one pair
(a, b), a != b, in random order:

    x_a <- x_b   with probability min(1, exp((beta_a - beta_b) (log pi(x_b) - log pi(x_a))))

where a swap would exchange the two; a is as often the colder as the hotter one. Of the finite form
of divergence minimization:

    y = x + C_i e,   alpha = min(1, pi(y) N(x; y, C_k C_k') / (pi(x) N(y; x, C_i C_i')))

with k the entry of the bank nearest to x, where the paper has that nearest to y; an acceptance
makes k the next i.
"""

import numpy as np

import fastkam as fk
from fastkam.samplers import Decision, Field, Point, Proposal
from fastkam.schedules import constant

SAFE_WEIGHT, SAFE_VARIANCE = 0.05, 0.01


class AdaptiveRandomWalk(fk.PythonSampler):
    """Adaptive random walk of one Gaussian, the weighted sum of two covariances."""

    FIELDS = {
        "mu": Field("mean of all states", learned=True),
        "S": Field("their scatter: the sum of the outer products of deviations"),
        "n": Field("number of states", dtype="i8"),
        "L": Field("lower-triangular factor of the proposal", learned=True),
    }

    def start(self, x0):
        self.mu, self.S, self.n = x0.copy(), np.zeros((self.d, self.d)), 1
        self.L = np.sqrt(SAFE_VARIANCE / self.d) * np.eye(self.d)

    def propose(self, x, rng):
        return x + self.L @ rng.standard_normal(self.d)

    def adapt(self, x, y, alpha, accepted, gain, rng):
        state = y if accepted else x
        self.n += 1
        deviation = state - self.mu
        self.mu = self.mu + deviation / self.n
        self.S = self.S + np.outer(deviation, state - self.mu)
        if self.t + 1 >= 2 * self.d:
            learned = (1 - SAFE_WEIGHT) * 2.38**2 / self.d / (self.n - 1) * self.S
            safe = SAFE_WEIGHT * SAFE_VARIANCE / self.d
            self.L = np.linalg.cholesky(learned + safe * np.eye(self.d))

    def default_gain(self, d):
        return constant(1.0)


class ParallelTempering(fk.PythonSampler):
    """Random walks at several inverse temperatures, of which one may become another's copy.

    Parameters
    ----------
    n_replicas : int
        Number of inverse temperatures, equally spaced.
    variance : float
        Of the proposals' coordinates, at all temperatures.
    """

    n_replicas: int = 2
    variance: float = 1.0
    WIDTH = 10
    FIELDS = {
        "states": Field("states of all rungs; the first is the chain's"),
        "logps": Field("log density there"),
    }

    def start(self, x0):
        self.states, self.logps = np.tile(x0, (self.n_replicas, 1)), np.full(self.n_replicas,
                                                                             np.nan)

    def step(self, x, rng):
        betas = np.linspace(1, 0.1, self.n_replicas)
        if self.t == 0:
            self.logps[:] = self.logp_x
        else:
            self.exchange(betas, rng)
        e, E = np.empty((self.n_replicas, self.d)), np.empty(self.n_replicas)
        for r in range(self.n_replicas):
            e[r], E[r] = rng.standard_normal(self.d), rng.standard_exponential()
        cold = Point(self.states[0].copy(), self.logps[0])
        found = yield self.states + np.sqrt(self.variance) * e
        log_ratio = betas * ([point.logp for point in found] - self.logps)
        accepted = log_ratio > -E
        for r in np.flatnonzero(accepted):
            self.states[r], self.logps[r] = found[r].x, found[r].logp
        return Decision(found[0], alpha=np.exp(min(0.0, log_ratio[0])), accepted=accepted[0],
                        x=cold)

    def exchange(self, betas, rng):
        a = int(self.n_replicas * rng.random())
        b = int((self.n_replicas - 1) * rng.random())
        b += b >= a
        log_ratio = (betas[a] - betas[b]) * (self.logps[b] - self.logps[a])
        if log_ratio > -rng.standard_exponential():
            self.swap(a, b)

    def swap(self, a, b):
        self.states[a], self.logps[a] = self.states[b], self.logps[b]


class DivergenceMinimization(fk.PythonSampler):
    """The finite form, with the reverse factor of the current point.

    Parameters
    ----------
    proposal_cov : float
        Covariance of the first proposal.
    entropy_weight, shrink, bank
        As of `fastkam.DivergenceMinimization`.
    """

    proposal_cov: float = 4.0
    entropy_weight: float = 0.2
    rejection_factor: float = 1.0
    bank_size: int = 1000
    GRADIENT = True
    WIDTH = 10                  # J
    FIELDS = {
        "C": Field("lower-triangular factor, of any sign on its diagonal", learned=True),
        "banked": Field("entries of the bank", dtype="i8"),
        "bank_x": Field("their points"),
        "bank_C": Field("their factors"),
        "frozen": Field("whether adaptation has ended", dtype="i8"),
        "at": Field("i, an entry of the bank; -1 if not known", dtype="i8"),
    }

    def start(self, x0):
        self.C = np.sqrt(self.proposal_cov) * np.eye(self.d)
        self.bank_x = np.tile(x0, (self.bank_size, 1))
        self.bank_C = np.tile(self.C, (self.bank_size, 1, 1))
        self.banked, self.frozen, self.at = 0, 0, -1

    def nearest(self, x):
        return np.argmin(((self.bank_x[:self.banked] - x) ** 2).sum(1))

    def step(self, x, rng):
        if self.frozen and self.at < 0:
            self.at = self.nearest(x)
        C = self.bank_C[self.at] if self.frozen else self.C
        self.e = rng.standard_normal((self.WIDTH if self.adapting else 1, self.d))
        self.points = yield x + self.e @ C.T
        y = self.points[0]
        if not self.frozen or y.logp == -np.inf:
            return Proposal(y)
        k = self.reverse(x, y.x)
        log_q = self.log_ratio(x, y.x, k)
        if y.logp - self.logp_x + log_q > -self.E:
            self.at = k
        return Proposal(y, log_q=log_q)

    def reverse(self, x, y):
        """Return k."""
        return self.nearest(x)

    def log_ratio(self, x, y, k):
        """Return log N(x; y, C_k C_k') - log N(y; x, C_i C_i')."""
        if k == self.at:
            return 0.0
        v, e = np.linalg.solve(self.bank_C[k], x - y), self.e[0]
        pivots = np.diag(self.bank_C[self.at]) / np.diag(self.bank_C[k])
        return np.log(np.abs(pivots)).sum() + 0.5 * (e @ e - v @ v)

    def adapt(self, x, y, alpha, accepted, gain, rng):
        b, G = self.entropy_weight, np.zeros((self.d, self.d))
        for point, e in zip(self.points, self.e, strict=True):
            if point.logp > -np.inf:
                G += (b + (point.logp < self.logp_x)) / self.WIDTH * np.outer(point.grad, e)
        G = np.tril(G) + np.diag(b / np.diag(self.C))
        self.C = self.C + np.clip(gain * (1 if accepted else self.rejection_factor) * G, -10, 10)
        self.learn_bank(y if accepted else x)

    def learn_bank(self, x):
        """Store states and factors of the second half of adaptation, equally spaced in time."""
        if self.end_of_adaptation == np.inf or self.banked == self.bank_size:
            return
        start = self.end_of_adaptation // 2
        t, length = self.t - start, self.end_of_adaptation - start
        n = min(self.bank_size, length)
        if t >= 0 and (t + 1) * n // length > t * n // length:
            self.bank_x[self.banked], self.bank_C[self.banked] = x, self.C
            self.banked += 1

    def freeze(self):
        self.frozen, self.banked = 1, max(1, self.banked)

    def default_gain(self, d):
        return constant(0.002)
