"""The Barker proposal (Livingstone and Zanella 2022), in the coordinates of the preconditioner."""

import numpy as np

from fastkam.samplers import Field
from reference.base import Reference, covariance, is_dense, jittered


class BarkerProposal(Reference, of="barker"):
    """q(y|x) = prod_i 2 N(w_i; 0, s^2) / (1 + exp(-g_i(x) w_i)),  w = F^-1 (y - x)"""

    GRADIENT = True
    FIELDS = {"log_s": Field("log of the step size", shared=True, learned=True),
              "step_size": Field("that of the last step, jitter included", stat="step_size"),
              "mu": Field("learned mean", shared=True, learned=True),
              "Sigma": Field("preconditioner", shared=True, learned=True)}

    def start(self, x0):
        s, d = self.s, self.d
        self.mu = np.array(x0 if s.mean is None else s.mean, dtype=float)
        self.Sigma = covariance(s.preconditioner, d)
        self.step_size = 2.4 * d ** (-1 / 6) if s.step_size is None else s.step_size
        self.log_s = np.log(self.step_size)

    def dense(self):
        return is_dense(self.s.metric, self.s.preconditioner, self.d)

    def sign_probability(self, grad, w):
        """Return the probability of each sign of w, with the gradient at a point."""
        return 1 / (1 + np.exp(-(np.linalg.cholesky(self.Sigma).T @ grad) * w))

    def propose(self, x, rng):
        self.step_size = np.exp(self.log_s) * jittered(self.s, rng)
        z = self.step_size * rng.standard_normal(self.d)
        self.w = np.where(rng.random(self.d) < self.sign_probability(self.grad_x, z), z, -z)
        self.log_forward = -np.log(self.sign_probability(self.grad_x, self.w)).sum()
        return x + np.linalg.cholesky(self.Sigma) @ self.w

    def log_q(self, x, y):
        return np.log(self.sign_probability(self.grad_y, -self.w)
                      / self.sign_probability(self.grad_x, self.w)).sum()

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.log_s += gain * (alpha - self.s.target_acceptance)
        if self.s.metric == "fixed":
            return
        D = (y if accepted else x) - self.mu
        self.mu = self.mu + gain * D
        new = np.outer(D, D) if self.dense() else np.diag(D**2)
        self.Sigma = self.Sigma + gain * (new - self.Sigma)

    def fields(self):
        F = np.linalg.cholesky(self.Sigma)
        return {"log_s": self.log_s, "s": self.step_size, "mu": self.mu, "w": self.w,
                "log_forward": self.log_forward, "F": F.T.ravel() if self.dense() else np.diag(F)}
