"""The Barker proposal (Livingstone and Zanella 2022), in the coordinates of the preconditioner."""

import numpy as np

from reference.chain import Reference, covariance, jittered


class BarkerProposal(Reference):
    """q(y|x) = prod_i 2 N(w_i; 0, s^2) / (1 + exp(-g_i(x) w_i)),  w = F^-1 (y - x)"""

    def __init__(self, s, x0):
        super().__init__(s, x0)
        self.mu = np.array(x0 if s.mean is None else s.mean, dtype=float)
        self.Sigma = covariance(s.cov, self.d)
        self.log_s = np.log(2.4 * self.d ** (-1 / 6) if s.step_size is None else s.step_size)

    def sign_probability(self, x, w):
        """Of each sign that w has, at x."""
        return 1 / (1 + np.exp(-(np.linalg.cholesky(self.Sigma).T @ self.grad(x)) * w))

    def propose(self, x, rng):
        z = np.exp(self.log_s) * jittered(self.s, rng) * rng.standard_normal(self.d)
        self.w = np.where(rng.random(self.d) < self.sign_probability(x, z), z, -z)
        self.log_forward = -np.log(self.sign_probability(x, self.w)).sum()
        return x + np.linalg.cholesky(self.Sigma) @ self.w

    def log_q(self, x, y):
        return np.log(self.sign_probability(y, -self.w) / self.sign_probability(x, self.w)).sum()

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.log_s += gain * (alpha - self.s.target_acceptance)
        if self.s.metric == "fixed":
            return
        D = (y if accepted else x) - self.mu
        self.mu = self.mu + gain * D
        new = np.diag(D**2) if self.s.metric == "diagonal" else np.outer(D, D)
        self.Sigma = self.Sigma + gain * (new - self.Sigma)

    def fields(self):
        F = np.linalg.cholesky(self.Sigma)
        dense = self.s.metric == "dense" or np.ndim(self.s.cov) == 2
        return {"log_s": self.log_s, "mu": self.mu, "w": self.w, "log_forward": self.log_forward,
                "F": F.T.ravel() if dense else np.diag(F)}

    def stats(self):
        return {"log_step_size": self.log_s}
