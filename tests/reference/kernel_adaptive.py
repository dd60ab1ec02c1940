"""Kernel adaptive Metropolis (Sejdinovic et al. 2014, Algorithm 1 and Proposition 2)."""

import numpy as np

from fastkam.samplers import Field
from reference.base import Reference, given, log_normal, power
from reference.history import History, median_length
from reference.kernels import gradient


class KernelAdaptiveMetropolis(Reference, of="kam"):
    """y ~ N(x, A R(x) A'),  R(x) = gamma^2 I + nu^2 M H M',  M = 2 [grad_u k(u, A^-1 z_i)]_i.

    Sigma = A A' is the metric, u = A^-1 x; y = x + A L e, or with few points for the dimensions y =
    x + A (gamma e + nu M H f).
    """

    lockstep = True
    FIELDS = {"log_nu": Field("log step size", shared=True, learned=True),
              "nu": Field("that of the last step", stat="step_size"),
              "length": Field("length of the kernel", shared=True, learned=True),
              "age": Field("adaptations made: the index of gamma and p", dtype="i8", shared=True)}
    # what has no fixed size: the subsample, and the history that it is drawn from
    SHARED = ("z", "history", "mu", "Sigma", "n_learned", "A")

    def start(self, x0):
        s = self.s
        self.gammas = given(s.gamma, s.default_gamma())
        self.median = getattr(s.kernel, "length", 1.0) == "median"
        self.length = 1.0 if self.median else getattr(s.kernel, "length", 1.0)
        self.nu = self.first_nu()
        self.log_nu = np.log(self.nu)
        self.z, self.age = np.empty((0, self.d)), 0
        self.history = History(s.history_size)
        self.mu, self.Sigma, self.n_learned = np.array(x0, dtype=float), np.eye(self.d), 0
        self.A = np.eye(self.d)

    def first_nu(self):
        return 2.38 / np.sqrt(self.d) if self.s.step_size is None else self.s.step_size

    def gamma(self):
        return power(self.gammas, self.age + 1)

    def white(self, x):
        """A^-1 x, of points (d,) or (n, d)."""
        return np.linalg.solve(self.A, np.transpose(x)).T

    def gradient(self, y):
        return gradient(self.s.kernel, self.length, self.white(y), self.white(self.z))

    def MH(self, y):
        n = len(self.z)
        return 2 * self.gradient(y).T @ (np.eye(n) - np.ones((n, n)) / max(n, 1))

    def R(self, y):
        B = np.exp(self.log_nu) * self.MH(y)
        return self.gamma() ** 2 * np.eye(self.d) + B @ B.T

    def propose(self, x, rng):
        self.nu = np.exp(self.log_nu)
        return self.draw(x, x, 1.0, rng)

    def draw(self, x, center, scale, rng):
        """y ~ N(x, scale^2 R(center))"""
        self.e = rng.standard_normal(self.d)
        if not self.s.few_points(self.d):
            return x + scale * self.A @ np.linalg.cholesky(self.R(center)) @ self.e
        f = rng.standard_normal(len(self.z))
        step = self.gamma() * self.e + np.exp(self.log_nu) * self.MH(center) @ f
        return x + scale * self.A @ step

    def log_q(self, x, y):
        u, v = self.white(x), self.white(y)
        return log_normal(u, v, self.R(y)) - log_normal(v, u, self.R(x))

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.learn_metric(y if accepted else x)
        self.learn_subsample(x, rng)
        self.log_nu += gain * (alpha - self.s.target_acceptance)
        self.age += 1

    def learn_metric(self, x):
        """Update mean and covariance as in adaptive Metropolis; Sigma changes with the next z."""
        self.n_learned += 1
        g, D = (1 + 5 * self.d + self.n_learned) ** -0.8, x - self.mu
        self.mu = self.mu + g * D
        self.Sigma = self.Sigma + g * (np.outer(D, D) - self.Sigma)

    def learn_subsample(self, x, rng):
        """z is all of the history until that holds n states; then it is drawn again at times."""
        h, n = self.history, self.s.subsample
        if not h.add(x):
            return
        if h.stride == 1 and len(h.rows) <= n:
            self.z = np.array(h.rows)
            if len(h.rows) == n or np.log2(len(h.rows)).is_integer():
                self.learn_length()
        elif rng.random() < power(self.s.renewal, self.age + 1):
            self.z = h.choose(n, rng).reshape(n, self.d)
            self.learn_length()

    def learn_length(self):
        """The metric, and the length in it: called whenever z is renewed."""
        if self.s.metric == "dense":
            self.A = np.linalg.cholesky(self.Sigma)
        self.learn_median()

    def learn_median(self):
        least = 1e-10 if self.s.metric == "dense" else 0.0
        length = median_length(self.z, self.A, least) if self.median and len(self.z) else None
        self.length = self.length if length is None else length

    def fields(self):
        h = self.history
        learned = {"mu": self.mu, "L": np.linalg.cholesky(self.Sigma).T.ravel(),
                  "A": self.A.T.ravel(), "n_learned": self.n_learned}
        return (learned if self.s.metric == "dense" else {}) | {
                "z": self.white(self.z), "n": len(self.z), "length": self.length,
                "log_nu": self.log_nu, "nu": self.nu, "age": self.age, "kept": len(h.rows),
                "stride": h.stride, "passed": h.passed,
                "history": np.array(h.rows).reshape(-1, self.d),
                "order": np.array(h.order), "e": self.e}
