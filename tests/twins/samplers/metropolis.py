"""Mistakes in random walks, and in what they learn."""

from twins.twin import twin

TWINS = [
    twin("drifting_walk", "rwm", "invariance",
         "The walk favors one direction, and does not correct for it.",
         ("    cdef int propose(self, Chain *c) except -1 nogil:\n        walk(self, c)\n",
          "    cdef int propose(self, Chain *c) except -1 nogil:\n"
          "        cdef Py_ssize_t i\n"
          "        walk(self, c)\n"
          "        for i in range(c.d):\n"
          "            c.y[i] += 0.1 * self.s * self.length\n")),
    twin("walk_scaled_by_state", "rwm", "invariance",
         "The scale of the step depends on the state, and the ratio does not know it.",
         ("cdef double s = self.s * jittered(c.rng, self.jitter)",
          "cdef double s = self.s * (1.5 if c.x[0] > 0 else 1.0)")),
    twin("walk_learns_away", "rwm", "oracle",
         "The scale shrinks where too much is accepted.",
         ("gain * (c.alpha - self.target_acceptance)",
          "gain * (self.target_acceptance - c.alpha)")),
    twin("gain_forgotten", "am", "oracle",
         "A constant rate of learning in place of the schedule's gain.",
         ("learn_moments(c.d, gain, ", "learn_moments(c.d, 0.01, ")),
    twin("new_mean", "am", "oracle",
         "The covariance takes the deviation from the new mean.",
         ("moments", "    if update(d, L, 1.0 - g, g, work):",
          "    for i in range(d):\n"
          "        work[i] *= 1.0 - g\n"
          "    if update(d, L, 1.0 - g, g, work):")),
    twin("learns_from_proposals", "am", "oracle",
         "It learns from the proposal, accepted or not.",
         ("c.y if c.accepted else c.x", "c.y")),
    twin("scaled_by_state", "am", "invariance",
         "The scale of the step depends on the state, and the ratio does not know it.",
         ("cdef double scale = sqrt(self.scale) * jittered(c.rng, self.jitter)",
          "cdef double scale = sqrt(self.scale) * (1.5 if c.x[0] > self.mu[0] else 1.0)")),
    twin("outer_product_of_average", "rbam", "oracle",
         "The outer product of the average in place of the average of the two outer products.",
         ("        if update_twice(c.d, &self.L[0, 0], 1 - gain, gain * (1 - a), &self.D[0], "
          "gain * a,\n                        &self.E[0]):\n",
          "        for i in range(c.d):\n"
          "            self.D[i] = a * self.E[i] + (1 - a) * self.D[i]\n"
          "        if update_twice(c.d, &self.L[0, 0], 1 - gain, gain, &self.D[0], 0.0, "
          "&self.E[0]):\n")),
    twin("variance_for_scale", "gam", "oracle",
         "lambda is taken for its square root.",
         ("exp(0.5 * self.log_scale)", "exp(self.log_scale)")),
    twin("scale_from_decisions", "gam", "oracle",
         "The scale learns from the decision, not from its probability.",
         ("gain * (c.alpha - self.target_acceptance)",
          "gain * (c.accepted - self.target_acceptance)")),
    twin("wrong_way", "ram", "oracle",
         "Steps become longer where too little is accepted.",
         ("change = c.alpha - self.target_acceptance",
          "change = 0.5 * (self.target_acceptance - c.alpha)")),
    twin("moment_of_second_order", "ram", "oracle",
         "The covariance of a window is taken about the first state, not the mean.",
         ("moments", "mean[i] += D[i] / n", "mean[i] += D[i] if n == 1 else 0")),
    twin("not_in_a_row", "ram", "oracle",
         "An accepted proposal does not end the row of refused ones, so that halving goes on.",
         ("if c.alpha < REFUSED else 0", "if c.alpha < REFUSED else self.refused")),
    twin("halved_for_ever", "ram", "oracle",
         "Once begun, halving goes on with every refused proposal.",
         ("            if self.refused == ROW:\n                self.refused = 0\n",
          "            if self.refused >= ROW and c.alpha < REFUSED:\n")),
    twin("square_for_root", "arwm", "oracle",
         "2.38^2 / d scales the factor, not the covariance.",
         ("STEP / sqrt(c.d)", "STEP * STEP / c.d")),
    twin("safe_by_state", "arwm", "invariance",
         "The component is chosen by the state, and the ratio does not know it.",
         ("random_standard_uniform(c.rng) < self.safe_weight or",
          "random_standard_uniform(c.rng) < self.safe_weight or c.x[0] > self.mu[0] or")),
    twin("without_identity", "cholam", "oracle",
         "A = w w' in place of w w' - I, so that the factor only grows.",
         ("g * (w * r - column[i])", "g * (w * r)")),
    twin("strictly_lower", "cholam", "oracle",
         "The mask leaves the diagonal out.",
         ("column[i] += g * (", "column[i] += (i > j) * g * (")),
    twin("second_try_for_first", "dram", "invariance",
         "A second try is accepted as if there had been no first.",
         ("        return (0.5 * total + log_rejection(self.logp_first - c.logp_y)\n"
          "                - log_rejection(self.logp_first - c.logp_x))",
          "        return 0")),
    twin("without_first_density", "dram", "invariance",
         "The ratio of a second try leaves out the densities of the first.",
         ("return (0.5 * total + log_rejection(", "return (log_rejection(")),
]
