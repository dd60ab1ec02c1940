"""Swaps of the states of replicas at two inverse temperatures.

    alpha(a, b) = min(1, exp((beta_a - beta_b) (W(x_b) - W(x_a)))),   W = log pi - log q

"even-odd" attempts to swap the pairs (0, 1), (2, 3), ... and (1, 2), (3, 4), ... alternately;
"random" tries one pair of any two rungs. A round trip takes a state from the hottest rung to the
coldest.

Geyer, C. J. (1991). Markov chain Monte Carlo maximum likelihood. Computing Science and Statistics
23, 156-163. Syed, S., Bouchard-Cote, A., Deligiannidis, G. and Doucet, A. (2022). Non-reversible
parallel tempering. Journal of the Royal Statistical Society B 84, 321-350: "even-odd".
"""
from libc.math cimport exp
from libc.stdint cimport int64_t

from fastkam._core.engine.rng cimport bitgen_t, integer, exponential
from fastkam._core.samplers.replica cimport Replica
from fastkam._core.engine.state cimport State
from fastkam._core.engine.step cimport accepts

from fastkam._core.engine.fields import Field
from fastkam._core.engine.ranges import BadField

import numpy as np

cdef enum:
    EVEN_ODD
    RANDOM

SCHEMES = {"even-odd": EVEN_ODD, "random": RANDOM}


cdef inline void swap_arrays(Py_ssize_t n, double *a, double *b) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        a[i], b[i] = b[i], a[i]


cdef inline void swap_states(Replica a, Replica b) noexcept nogil:
    """Exchange the states of two replicas, with their values of log pi and log q."""
    swap_arrays(a.c.d, a.c.x, b.c.x)
    swap_arrays(a.c.n_aux, a.c.u, b.c.u)
    if a.c.grad_x != NULL:
        swap_arrays(a.c.d, a.parts_of.grad_pi_x, b.parts_of.grad_pi_x)
    swap_arrays(1, &a.parts_of.log_pi_x, &b.parts_of.log_pi_x)
    swap_arrays(1, &a.parts_of.log_ref_x, &b.parts_of.log_ref_x)
    a.kernel.displaced()
    b.kernel.displaced()


cdef class Swaps(State):
    FIELDS = {
        "attempted": Field("swaps attempted between each rung and the next", ("rungs",), least=0,
                           finite=True),
        "swapped": Field("sum of their probabilities", ("rungs",), least=0, finite=True),
        "replica": Field("index of the replica at each rung", ("rungs",), "i8",
                         permutation=True),
        "was_hot": Field("whether each replica was at the hottest rung last", ("rungs",), "i8",
                         least=0, most=1),
        "round_trips": Field("trips from the hottest rung to the coldest", dtype="i8", least=0),
    }

    def __init__(self, int rungs, *, scheme, int64_t every):
        self.rungs, self.scheme, self.every = rungs, SCHEMES[scheme], every
        self.allocate(rungs=rungs)
        np.asarray(self.replica)[...] = np.arange(rungs)

    def check_relations(self, state, step):
        if (state["swapped"] > state["attempted"]).any():
            raise BadField("swapped", "must be at most attempted, not "
                                      f"{state['swapped']} of {state['attempted']}")

    cdef bint due(self, int64_t t) noexcept nogil:
        """Return whether swaps are due before step t."""
        return self.rungs > 1 and t % self.every == 0

    cdef void exchange(self, bitgen_t *rng, int64_t t, void **replicas) noexcept nogil:
        """Attempt the swaps of step t."""
        cdef int a, b
        if self.scheme == EVEN_ODD:
            a = (t // self.every) % 2 if self.rungs > 2 else 0
            while a + 1 < self.rungs:
                self.try_swap(rng, a, a + 1, replicas)
                a += 2
        else:
            a = integer(rng, self.rungs)
            b = integer(rng, self.rungs - 1)
            b += b >= a
            self.try_swap(rng, min(a, b), max(a, b), replicas)
        self.count_round_trips()

    cdef void try_swap(self, bitgen_t *rng, int a, int b, void **replicas) noexcept nogil:
        cdef double log_ratio = ((<Replica>replicas[a]).beta - (<Replica>replicas[b]).beta) * (
            (<Replica>replicas[b]).W() - (<Replica>replicas[a]).W())
        cdef bint accepted = accepts(exponential(rng), &log_ratio)
        if b == a + 1:
            self.attempted[a] += 1
            self.swapped[a] += exp(min(0.0, log_ratio))
        if accepted:
            swap_states(<Replica>replicas[a], <Replica>replicas[b])
            self.replica[a], self.replica[b] = self.replica[b], self.replica[a]

    cdef void count_round_trips(self) noexcept nogil:
        cdef int64_t cold = self.replica[0]
        self.was_hot[self.replica[self.rungs - 1]] = True
        if self.was_hot[cold]:
            self.was_hot[cold] = False
            self.round_trips += 1

    cdef void find_rejections(self, double *rates) noexcept nogil:
        """Write the rejection rates (rungs - 1,) of neighbors; 1/2 if no swap was attempted."""
        cdef int r
        for r in range(self.rungs - 1):
            rates[r] = 1 - self.swapped[r] / self.attempted[r] if self.attempted[r] > 0 else 0.5

    cdef void forget(self) noexcept nogil:
        """Reset the counts."""
        cdef int r
        for r in range(self.rungs):
            self.attempted[r] = self.swapped[r] = 0
        self.round_trips = 0
