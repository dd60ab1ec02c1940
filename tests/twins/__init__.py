"""Samplers with one classic mistake each, which a test must detect.

A twin is a change of the source of a registered sampler. The tests apply it to a copy, compile that
(build.py), and demand that the test named by `caught_by` fails:

    "invariance"    a frozen kernel leaves its target invariant: tests/stat/test_invariance.py
    "oracle"        the kernel equals its NumPy reference, in what it learns too:
                    tests/oracle/test_mistakes.py
    "sharing"       the same of chains that learn as one: tests/oracle/test_few_points.py
    "jumps"         moves between modes leave a target invariant: tests/stat/test_jumps.py
    "exchange"      couplings leave the joint distribution of their rungs invariant:
                    tests/stat/test_exchange.py
    "estimates"     the same of point and noise, and of surrogates: tests/stat/test_estimates.py
    "refused"       the engine refuses the kernel: tests/api/test_noisy.py
"""

from typing import NamedTuple

__all__ = ["CHECKS", "TWINS", "Change", "Twin", "caught_by"]

CHECKS = ("invariance", "oracle", "sharing", "jumps", "exchange", "estimates", "refused")


class Change(NamedTuple):
    """A change of a module of the core: `old`, which stands in one place there, becomes `new`."""

    module: str
    old: str
    new: str


class Twin(NamedTuple):
    """A mistake in one or several samplers."""

    name: str
    spoils: tuple[str, ...]     # registered names; "delayed" for delayed acceptance
    caught_by: str
    mistake: str
    changes: tuple[Change, ...]


def twin(name, spoils, caught_by, mistake, *changes):
    """Return a twin; a change is (module, old, new), or (old, new) of the sampler's own module."""
    spoils = (spoils,) if isinstance(spoils, str) else spoils
    changes = [change if len(change) == 3 else (spoils[0], *change) for change in changes]
    return Twin(name, spoils, caught_by, mistake, tuple(
        Change(HELPERS.get(module, f"samplers.{module}"), old, new)
        for module, old, new in changes))


HELPERS = {"moments": "linalg.moments", "step": "engine.step"}     # elsewhere than samplers
IMPORT_CHAIN = "from fastkam._core.engine.kernel cimport Chain, Kernel"

LIST = [
    # ---- random walks, and what they learn ----
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
         ("self.mean[i] += D[i] / self.n", "self.mean[i] += D[i] if self.n == 1 else 0")),
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

    # ---- kernel adaptive ----
    twin("without_hastings", "kam", "invariance",
         "The proposal is taken for symmetric.",
         ("c.log_q = self.reverse_log_q(c) if c.logp_y > -INFINITY else 0.0", "c.log_q = 0")),
    twin("wrong_determinant", "kam", "invariance",
         "The log determinants have the wrong sign.",
         ("self.reverse_log_q(c) if c.logp_y > -INFINITY",
          "self.reverse_log_q(c) - 2 * (self.at_x.log_det - self.at_y.log_det) "
          "if c.logp_y > -INFINITY")),
    twin("stale_reverse", "kam", "invariance",
         "The covariance of an earlier proposal is taken for that of the reverse move.",
         ("        self.at_y.seen = False\n",
          "        self.at_y.seen = self.at_y.seen and not c.accepted\n")),
    twin("stale_distances", "kam", "oracle",
         "Distances of points of the subsample are kept when these have been replaced.",
         ("local_normal", "        self.measured = min(self.measured, i)\n", "")),
    twin("own_distances", "kam", "sharing",
         "They are kept where another chain has replaced the points.",
         ("            self.forget_points()\n",
          "            self.measured = min(self.measured, self.n)\n            self.forget()\n")),
    twin("pca_without_hastings", "kpca", "invariance",
         "The proposal is taken for symmetric.",
         ("        return (self.log_mixture(&self.V_y[0, 0], &self.e[0])\n"
          "                - self.log_mixture(&self.V_x[0, 0], &self.e[0]))",
          "        return 0")),
    twin("pca_equal_weights", "kpca", "oracle",
         "The ratio takes every component of the mixture for equally probable.",
         ("exponent = (log(self.p[k]) - 0.5 * log1p(c)", "exponent = (-0.5 * log1p(c)")),
    twin("cycles_without_hastings", "ckam", "invariance",
         "The proposals of Exploration are taken for symmetric.",
         ("c.log_q = self.reverse_log_q(c) if exploring else 0.0", "c.log_q = 0")),
    twin("cycles_forget_bank", "ckam", "oracle",
         "A frozen cycle makes the covariance of Sampling where it stands, as while it adapts.",
         ("        if self.frozen:\n            return\n        copy(self.d, c.x, &self.x_e[0])\n",
          "        copy(self.d, c.x, &self.x_e[0])\n        if self.frozen:\n"
          "            return\n")),

    # ---- Langevin ----
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

    # ---- Hamiltonian ----
    twin("without_kinetic_energy", "hmc", "invariance",
         "The decision is by the density alone.",
         ("c.log_q = self.H0 - self.H - log_target_ratio(c)", "c.log_q = 0")),
    twin("whole_kick", ("hmc", "nuts"), "invariance",
         "The last kick of a leapfrog step is a whole one, so that the step cannot be reversed.",
         ("hamiltonian", "self.Ft_times(0.5 * eps, c.grad_y, &self.p[0])",
          "self.Ft_times(eps, c.grad_y, &self.p[0])")),
    twin("always_the_newest", "nuts", "invariance",
         "The point of each new subtrajectory is taken, whatever its weight.",
         ("if random_standard_uniform(c.rng) < exp(self.stack_log_w[0] - self.log_w):",
          "if True:")),

    # ---- gradient-based adaptation, divergence minimization ----
    twin("gradient_at_x", "gadrwm", "oracle",
         "It learns from the gradient at x for that at y.",
         ("self.ascend(rho, c.grad_y, ", "self.ascend(rho, c.grad_x, ")),
    twin("wrong_sign", "gadmala", "invariance",
         "The ratio of the proposal densities is upside down.",
         ("c.log_q = langevin_log_q(", "c.log_q = -langevin_log_q(")),
    twin("curvature_twice", "gadmala", "oracle",
         "A factor 1/2 is lost where the gradient is differentiated.",
         ("times_Lt(c.d, -0.25, ", "times_Lt(c.d, -0.5, ")),
    twin("index_of_current_point", "dm", "invariance",
         "The entry of the reverse move is that nearest to x, not to y.",
         ("return self.index.find(c.y)", "return self.index.find(c.x)")),
    twin("better_points_only", "dm", "oracle",
         "It learns from the points that are better than x, not from those that are worse.",
         ("(c.logps[j] < c.logp_x)", "(c.logps[j] > c.logp_x)")),

    # ---- replica exchange ----
    twin("swaps_upside_down", ("pt", "scout"), "exchange",
         "The ratio of a swap is upside down.",
         ("swaps", "(<Replica>replicas[b]).W() - (<Replica>replicas[a]).W())",
          "(<Replica>replicas[a]).W() - (<Replica>replicas[b]).W())")),
    twin("swaps_without_beta", ("pt", "scout"), "exchange",
         "The ratio of a swap leaves the difference of the inverse temperatures out.",
         ("swaps", "((<Replica>replicas[a]).beta - (<Replica>replicas[b]).beta) * (", "(")),
    twin("swap_copies", ("pt", "scout"), "exchange",
         "A swap copies one state over the other.",
         ("swaps", "            swap_states(<", "            copy_state(<"),
         ("swaps", "cdef class Swaps(State):\n    FIELDS",
          "cdef void copy_state(Replica cold, Replica hot) noexcept nogil:\n"
          "    cdef Py_ssize_t i\n"
          "    for i in range(cold.c.d):\n"
          "        cold.c.x[i] = hot.c.x[i]\n"
          "    for i in range(cold.c.n_aux):\n"
          "        cold.c.u[i] = hot.c.u[i]\n"
          "    cold.parts_of.log_pi_x = hot.parts_of.log_pi_x\n"
          "    cold.parts_of.log_ref_x = hot.parts_of.log_ref_x\n\n\n"
          "cdef class Swaps(State):\n    FIELDS")),
    twin("stale_reference", "pt", "exchange",
         "The coldest rung keeps the log reference density of the state before.",
         ("replica", "            self.parts_of.log_ref_x = self.parts_of.log_ref_y\n",
          "            pass\n")),
    twin("half_recalled", "nuts", "exchange",
         "With the point drawn from the trajectory, the densities of its last point are kept.",
         ("step", "        c.parts.log_pi_y, c.parts.log_ref_y = point[1], point[2]\n",
          "        pass\n")),
    twin("swaps_unannounced", ("pt", "scout"), "exchange",
         "Kernels do not learn that a swap has replaced their states.",
         ("swaps", "    a.kernel.displaced()\n    b.kernel.displaced()\n", "")),
    twin("noise_stays", ("pt", "scout"), "estimates",
         "A swap leaves the noise of the two estimates where it is.",
         ("swaps", "    swap_arrays(a.c.n_aux, a.c.u, b.c.u)\n", "")),

    # ---- mode jumping ----
    twin("jumps_without_ratio", "jumps", "jumps",
         "Hops lack the Jacobian, independent draws the ratio of q.",
         ("c.log_q = self.log_q_x - self.log_q_y", "c.log_q = 0"),
         ("c.log_q = log(self.weights[b] / self.weights[a]) + log_s - self.log_modes(c.y)",
          "c.log_q = 0")),
    twin("jumps_unannounced", "jumps", "jumps",
         "The inner sampler treats every decision as its own.",
         ("        if self.move == INNER:\n            self.accepted = c.accepted\n"
          "        elif c.accepted:\n            self.accepted = False\n"
          "            self.inner.displaced()\n",
          "        self.accepted = c.accepted\n")),

    # ---- estimated densities and surrogates ----
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
TWINS = {one.name: one for one in LIST}


def caught_by(check):
    """Return (twin, sampler) of every mistake that a test has to see."""
    return [(one.name, name) for one in LIST if one.caught_by == check for name in one.spoils]
