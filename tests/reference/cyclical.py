"""Cyclical kernel adaptive Metropolis (Li et al., Algorithm 2), with a bank for its frozen form."""

import numpy as np

from fastkam.samplers import Field
from reference.base import power
from reference.kernel_adaptive import KernelAdaptiveMetropolis


class CyclicalKernelAdaptiveMetropolis(KernelAdaptiveMetropolis, of="ckam"):
    """Exploration is KAM begun again; Sampling is N(x, nu_i^2 Sigma) with a falling cosine."""

    FIELDS = KernelAdaptiveMetropolis.FIELDS | {
        "exploring": Field("1 in Exploration, 0 in Sampling", dtype="i8", stat="exploring")}
    SHARED = ()

    def start(self, x0):
        super().start(x0)
        self.first = self.log_nu, self.length
        self.T, self.T_e = self.s.cycle, int(self.s.exploration_fraction * self.s.cycle)
        self.origin, self.frozen, self.bank, self.banked = 0, False, {}, 0
        self.exploring, self.x_e = True, None

    def first_nu(self):
        return 2 * 2.38 / np.sqrt(self.d) if self.s.step_size is None else self.s.step_size

    def place(self):
        """i, the place within the cycle."""
        return (self.t - self.origin) % self.T

    def nu_i(self):
        """nu_i = nu_0 / 2 (cos(pi i / T) + 1), nu_0 = 2 nu_exp / (cos(beta pi) + 1)"""
        nu_0 = 2 * np.exp(self.log_nu) / (np.cos(self.s.exploration_fraction * np.pi) + 1)
        return nu_0 / 2 * (np.cos(np.pi * self.place() / self.T) + 1)

    def propose(self, x, rng):
        i = self.place()
        if i == 0 and self.frozen:
            entry = self.bank[int(len(self.bank) * rng.random())]
            self.z, self.log_nu, self.length, self.x_e = entry
            if self.s.metric == "dense":
                self.learn_median()
        elif i == 0:
            self.history.clear()
            self.z = np.empty((0, self.d))
            self.log_nu, self.length = self.first
        self.keep = i >= self.T_e
        self.exploring = i < self.T_e
        if self.exploring:
            self.age = i
            return super().propose(x, rng)
        if i == self.T_e and not self.frozen:
            self.x_e = x
            self.bank[self.banked % self.s.bank_size] = self.z, self.log_nu, self.length, self.x_e
            self.banked += 1
        # nu^2 Sigma, Sigma = R / nu_exp^2
        self.nu = self.nu_i()
        return self.draw(x, self.x_e, self.nu / np.exp(self.log_nu), rng)

    def log_q(self, x, y):
        return super().log_q(x, y) if self.place() < self.T_e else 0.0

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.learn_metric(y if accepted else x)
        if self.place() < self.T_e:
            self.learn_subsample(x, rng)
            step_gain = power(self.s.step_gain, self.place() + 1)
            self.log_nu += step_gain * (alpha - self.s.target_acceptance)

    def freeze(self):
        self.frozen, self.origin = True, self.t

    def fields(self):
        bank = [self.bank[b] for b in sorted(self.bank)]
        return super().fields() | {
            "origin": self.origin, "frozen": self.frozen, "banked": self.banked,
            "x_e": self.x_e, "bank_n": np.array([len(b[0]) for b in bank]),
            "bank_log_nu": np.array([b[1] for b in bank]),
            "bank_length": np.array([b[2] for b in bank]),
            "bank_x_e": np.array([b[3] for b in bank]),
            "bank_z": [b[0] for b in bank],
        }
