"""The kernel-PCA form of kernel adaptive Metropolis (Sejdinovic et al. 2014, Appendix C)."""

import numpy as np
from scipy.special import logsumexp

from reference.base import log_normal
from reference.kernel_adaptive import KernelAdaptiveMetropolis
from reference.kernels import kernel


class KernelPCAMetropolis(KernelAdaptiveMetropolis, of="kpca"):
    """y ~ sum_c p_c N(x, gamma^2 I + nu^2 v_c v_c'),  v_c = M H a_c,  H K H a_c = l_c a_c."""

    SHARED = (*KernelAdaptiveMetropolis.SHARED, "Ha", "p", "used")

    def start(self, x0):
        super().start(x0)
        self.p = np.eye(self.s.n_components)[0]
        self.Ha, self.used = np.zeros((0, self.s.n_components)), self.z

    def gradient(self, y):
        self.z, z = self.used, self.z
        found = super().gradient(y)
        self.z = z
        return found

    def directions(self, x):
        """v_c, (components, d)."""
        return self.Ha.T @ (2 * self.gradient(x)).reshape(-1, self.d)

    def propose(self, x, rng):
        c = min(np.searchsorted(np.cumsum(self.p), rng.random(), side="right"), len(self.p) - 1)
        self.nu, self.e = np.exp(self.log_nu), rng.standard_normal(self.d)
        along = self.nu * rng.standard_normal()
        return x + self.A @ (self.gamma() * self.e + along * self.directions(x)[c])

    def log_mixture(self, y, x):
        """log q(y|x)"""
        isotropic, nu2 = self.gamma() ** 2 * np.eye(self.d), np.exp(2 * self.log_nu)
        x, y, directions = self.white(x), self.white(y), self.directions(x)
        return logsumexp([np.log(p) + log_normal(y, x, isotropic + nu2 * np.outer(v, v))
                          for p, v in zip(self.p, directions, strict=True) if p > 0])

    def log_q(self, x, y):
        self.e = self.white(y - x)
        return self.log_mixture(x, y) - self.log_mixture(y, x)

    def learn_length(self):
        super().learn_length()
        n, most = len(self.z), self.s.n_components
        k = min(n, most)
        white = self.white(self.z)
        K = np.array([kernel(self.s.kernel, self.length, z, white) for z in white])
        H = np.eye(n) - np.ones((n, n)) / n
        values, vectors = np.linalg.eigh(H @ K @ H)
        values, vectors = np.maximum(values[::-1], 0)[:k], vectors[:, ::-1][:, :k]
        for v in vectors.T:     # + for the first element that is about the largest
            v *= np.sign(v[np.abs(v) > 0.9 * np.abs(v).max()][0])
        self.Ha = np.hstack([H @ vectors, np.zeros((n, most - k))])
        self.p = np.append((values + 1) / (values.sum() + k), np.zeros(most - k))
        self.used = self.z

    def fields(self):
        n = len(self.used)
        a = np.vstack([self.Ha, np.zeros((self.s.subsample - n, len(self.p)))])
        return super().fields() | {"used": n, "a": a, "p": self.p}
