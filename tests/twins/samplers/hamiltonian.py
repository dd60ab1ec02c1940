"""Mistakes in Hamiltonian trajectories."""

from twins.twin import twin

TWINS = [
    twin("without_kinetic_energy", "hmc", "invariance",
         "The decision is by the density alone.",
         ("c.log_q = self.H0 - self.H - log_target_ratio(c)", "c.log_q = 0")),
    twin("whole_kick", ("hmc", "nuts"), "invariance",
         "The last kick of a leapfrog step is a whole one, so that the step cannot be reversed.",
         ("hamiltonian", "0.5 * last_kick(c.d, eps,", "0.5 * last_kick(c.d, 2 * eps,"),
         ("hamiltonian", "self.Ft_times(0.5 * eps, c.grad_y, &self.p[0])",
          "self.Ft_times(eps, c.grad_y, &self.p[0])")),
    twin("always_the_newest", "nuts", "invariance",
         "The point of each new subtrajectory is taken, whatever its weight.",
         ("if random_standard_uniform(c.rng) * self.weight < self.new_weight:",
          "if True:")),
]
