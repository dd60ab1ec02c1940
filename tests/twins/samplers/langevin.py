"""Mistakes in Langevin and other gradient-based proposals."""

from twins.twin import twin

TWINS = [
    twin("uncorrected_langevin", "mala", "invariance",
         "The drift is taken for symmetric.",
         ("            c.log_q = langevin_log_q(c, self.s, self.ndim, &self.L[0], &self.e[0],\n"
          "                                     &self.h[0], &self.h_y[0])",
          "            c.log_q = 0")),
    twin("step_learned_away", "mala", "oracle",
         "Steps become longer where too little is accepted.",
         ("gain * (c.alpha - self.target_acceptance)",
          "gain * (self.target_acceptance - c.alpha)")),
    twin("stale_gradient", "fishermala", "invariance",
         "The gradient at x is taken for that at y in the reverse move.",
         ("    cdef int consider(self, Chain *c) except -1 nogil:\n",
          "    cdef int consider(self, Chain *c) except -1 nogil:\n"
          "        cdef double *grad_y = c.grad_y\n"
          "        c.grad_y = c.grad_x\n"),
         ("        return DECIDE\n", "        c.grad_y = grad_y\n        return DECIDE\n")),
    twin("signal_of_all_proposals", "fishermala", "oracle",
         "The signal has no weight sqrt(alpha).",
         ("self.learn(sqrt(c.alpha), c)", "self.learn(1.0, c)")),
    twin("symmetric_signs", "barker", "invariance",
         "The probabilities of the signs are taken for equal both ways.",
         ("c.log_q = self.log_forward - sum_softplus(c.d, 1.0, &self.g[0], &self.w[0])",
          "c.log_q = 0")),
    twin("one_way_search", ("automala", "autorwm"), "invariance",
         "The reverse search for the step size is left out.",
         ("autostep", "        self.backwards = True\n        return self.look(c, self.j + 1)\n",
          "        return self.decide(c)\n")),
]
