"""Mistakes with estimated densities and with surrogates."""

from twins.twin import IMPORT_CHAIN, twin

TWINS = [
    twin("estimate_repeated", "rwm", "estimates",
         "The density at x is estimated again at every step.",
         ("bitgen_t, jittered, tables\n", "bitgen_t, jittered, normals, tables\n"),
         ("    cdef double s = self.s * jittered(c.rng, self.jitter)\n",
          "    cdef double s = self.s * jittered(c.rng, self.jitter)\n"
          "    normals(c.rng, c.n_aux, c.v)\n"
          "    c.target.noisy(c.d, c.x, c.n_aux, c.v, &c.logp_x, c.target.data)\n")),
    twin("root_forgotten", "rwm", "estimates",
         "The noise becomes v = rho u + (1 - rho) xi, which shrinks.",
         (IMPORT_CHAIN, "from fastkam._core.engine.kernel cimport SAME, Chain, Kernel"),
         ("bitgen_t, jittered, tables\n", "bitgen_t, jittered, normals, tables\n"),
         ("    cdef double s = self.s * jittered(c.rng, self.jitter)\n",
          "    cdef double s = self.s * jittered(c.rng, self.jitter)\n"
          "    normals(c.rng, c.n_aux, c.v)\n"
          "    for i in range(c.n_aux):\n"
          "        c.v[i] = 0.5 * c.u[i] + 0.5 * c.v[i]\n"
          "    c.noise[0] = SAME\n")),
    twin("one_noise_for_two_tries", "dram", "estimates",
         "The two tries of delayed rejection share their noise.",
         ("cimport AGAIN, DECIDE, FURTHER, Chain", "cimport AGAIN, DECIDE, SAME, Chain"),
         ("c.noise[0] = FURTHER", "c.noise[0] = SAME")),
    twin("noise_always_taken", "autorwm", "estimates",
         "A search for the step size begins with new noise, whatever the estimate with it.",
         ("autostep", "if accepts(exponential(c.rng), &log_ratio):", "if True:")),
    twin("second_stage_alone", "delayed", "estimates",
         "The second stage forgets that there was a first.",
         ("log_ratio = log_target_ratio(c) - (self.log_s_y - self.log_s_x)",
          "log_ratio = log_target_ratio(c)")),
    twin("stale_surrogate", "delayed", "estimates",
         "The surrogate's density at x is that of the start.",
         ("        if c.accepted:\n            self.log_s_x = self.log_s_y\n", "")),
    twin("silent_second_estimate", "rwm", "refused",
         "A second estimate is asked for, and not said with which noise.",
         (IMPORT_CHAIN, "from fastkam._core.engine.kernel cimport AGAIN, Chain, Kernel"),
         ("    FIELDS = {", "    SEVERAL = True\n    FIELDS = {"),
         ("    cdef int adapt(",
          "    cdef int consider(self, Chain *c) except -1 nogil:\n"
          "        return AGAIN\n\n"
          "    cdef int adapt(")),
]
