"""Mistakes in replica exchange."""

from twins.twin import twin

TWINS = [
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
]
