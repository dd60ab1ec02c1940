"""Random-walk Metropolis and robust adaptive Metropolis (Vihola 2012, eq. 1)."""

import numpy as np

from fastkam.samplers import Field
from reference.base import Reference, covariance, jittered


class RandomWalk(Reference, of="rwm"):
    """y ~ N(x, scale^2 Sigma); log scale <- log scale + g (alpha - alpha*)"""

    FIELDS = {"scale": Field("scale of the walk", shared=True, learned=True)}

    def start(self, x0):
        self.scale = 1.0
        cov = self.s.proposal_cov
        self.Sigma = covariance(2.38**2 / self.d if cov is None else cov, self.d)

    def propose(self, x, rng):
        C = (self.scale * jittered(self.s, rng)) ** 2 * self.Sigma
        return x + np.linalg.cholesky(C) @ rng.standard_normal(self.d)

    def adapt(self, x, y, alpha, accepted, gain, rng):
        if self.s.target_acceptance is not None:
            self.scale *= np.exp(gain * (alpha - self.s.target_acceptance))

    def fields(self):
        return {"s": self.scale}


class RobustAdaptiveMetropolis(RandomWalk, of="ram"):
    """S S' <- S (I + g (alpha - alpha*) u u' / |u|^2) S', halved after ten refusals in a row.

    Windows of states also give the shape; in each of them the scale is learned from its start.
    """

    FIELDS = {"Sigma": Field("covariance of the proposal", shared=True, learned=True),
              "refused": Field("proposals in a row with alpha < 0.01", dtype="i8", shared=True),
              "begin": Field("the step before which the window began", dtype="i8", shared=True),
              "end": Field("the step after which it ends", dtype="i8", shared=True)}
    SHARED = ("states",)
    lockstep = True     # rounding in the shape grows from window to window

    def start(self, x0):
        super().start(x0)
        self.refused, self.states, self.begin, self.end = 0, [], 0, 0

    def propose(self, x, rng):
        scale = jittered(self.s, rng)
        self.u = rng.standard_normal(self.d)
        return x + scale * np.linalg.cholesky(self.Sigma) @ self.u

    def adapt(self, x, y, alpha, accepted, gain, rng):
        S, u = np.linalg.cholesky(self.Sigma), self.u
        shape = np.outer(u, u) / (u @ u)
        change = alpha - self.s.target_acceptance
        self.Sigma = S @ (np.eye(self.d) + gain * change * shape) @ S.T
        windows = self.s.windows and self.end_of_adaptation < np.inf
        if windows:
            h = 2 * (len(self.states) + 1) ** (-2 / 3)
            self.Sigma = np.exp(h * change) * self.Sigma
        if self.t < self.end_of_adaptation / 2 < np.inf:
            self.refused = self.refused + 1 if alpha < 0.01 else 0
            if self.refused == 10:
                self.refused, self.Sigma = 0, self.Sigma / 4
        if windows:
            self.see(y if accepted else x)

    def see(self, x):
        """Windows of states of which each is half as long again as the last."""
        if self.end == 0:
            self.begin = self.t
            self.plan_window(3 * (self.d + 2))
        self.states = [*self.states, x]
        if self.t >= self.end:
            self.learn_shape()
            length, self.begin, self.states = self.t - self.begin, self.t, []
            self.plan_window(int(1.5 * length))

    def plan_window(self, length):
        """The last window ends at nine tenths of warm-up."""
        last = int(0.9 * self.end_of_adaptation)
        if self.t >= last - 1:
            self.end = 2**63 - 1
        else:
            self.end = last if self.t + int(2.5 * length) > last else self.t + length

    def learn_shape(self):
        """Sigma <- (tr(P^-1 Sigma) / d) P, P the covariance of the window and of what was known."""
        states = np.array(self.states)
        n, w = len(states), 5 * self.d
        C = np.cov(states.T, ddof=0).reshape(self.d, self.d)
        P = (n * C + w * self.d / 2.38**2 * self.Sigma) / (n + w)
        self.Sigma = np.trace(np.linalg.solve(P, self.Sigma)) / self.d * P

    def fields(self):
        windows = {"n": len(self.states), "begin": self.begin, "end": self.end}
        if self.states:
            states = np.array(self.states)
            D = states - states.mean(axis=0)
            windows |= {"mean": states.mean(axis=0), "scatter": np.tril(D.T @ D)}
        return windows | {"S": np.linalg.cholesky(self.Sigma), "u": self.u, "refused": self.refused}
