"""The contract of a sampler: fields, propose, consider, adapt, freeze.

A step of the engine is

    propose            fills y and log_q
    (the engine)       log pi(y), and its gradient for kernels that need it
    consider           completes log_q if that needs the density or gradient at y; or fills y
                       with another point and returns AGAIN: it is evaluated and considered next
    (the engine)       alpha = min(1, exp(log pi(y) - log pi(x) + log_q)), decision
    adapt              while the schedule says so; it sees x, y, alpha, accepted; x has not moved
    (the engine)       x <- y if accepted, record

A kernel that makes the accept/reject decision itself returns DECIDED. A kernel with width > 1
fills that number of rows of y, marks those that are `wanted`, and finds their densities in `logps`.
All chains of a group are evaluated together at each AGAIN, so that a vectorized density also serves
kernels with several evaluations. A run may end at any evaluation, so everything that `consider`
keeps from one call to the next is a field. Points that may become y later are stored with
`keep_point` (step.pxd).

An estimated density is a known function of (x, u), with noise u that is N(0, I) a priori. The chain
is one in (x, u): a step moves u to v by a kernel that is reversible for N(0, I), which is correct
for any sampler with one evaluation a step. A sampler with several chooses at each AGAIN the `noise`
of the next evaluation, so that the step as a whole is correct: successive tries move the noise
further (FURTHER); samplers that need a smooth density hold it (HELD) and move it in other steps.

The random numbers of a step come from the chain's generator in this order: those of propose, one
exponential variate for the decision, those of noise, those of consider, those of noise for each
further evaluation, those of adapt.
"""
from libc.stdint cimport INT64_MAX, int64_t

from fastkam._core.engine.state cimport State

import threading

held_back = threading.local()       # .any: a KeyboardInterrupt of this thread has been deferred


def interrupt_later():
    """End this thread's run as KeyboardInterrupt would, after its current chunk of steps.

    A signal would not suffice, since a process may ignore SIGINT.
    """
    held_back.any = True


def take_interrupt():
    """Return whether `interrupt_later` has been called in this thread since the last call."""
    waiting, held_back.any = getattr(held_back, "any", False), False
    return waiting


def uninterrupted(function, *args):
    """Run an idempotent function; defer a KeyboardInterrupt until it has returned.

    A run can be resumed between two evaluations, not within an adaptation.
    """
    interrupted = False
    while True:
        try:
            function(*args)
        except KeyboardInterrupt:
            interrupted = True
        else:
            break
    if interrupted:
        interrupt_later()


cdef class Kernel(State):
    """One sampler's state and moves, for one chain.

    FIELDS declares all state (see state.pyx). Fields marked `shared` are those that chains may have
    in common: the learned quantities, as opposed to those of one chain's step. `join` makes chains
    use the same arrays, and `take` copies the numbers. If no field is shared, each chain adapts
    separately.

    With GRADIENT the kernel needs the gradient; with SEVERAL `consider` may return AGAIN.

    LANES means that chains of this class itself, not of a derived class, may step side by side
    (lockstep.pyx): its methods use no other members of a Chain than d, rng, x, y, their gradients,
    logp_x, logp_y, log_q, alpha, accepted and adapting, whose addresses may differ at each call;
    never return FATAL; and raise nothing. Then propose_lanes, consider_lanes and adapt_lanes of one
    kernel are called to do the same for all of them. A class overrides them only if these defaults,
    with a method call for each chain, take long. An object whose propose begins with d normals from
    `draw_normals` (step.pxd) sets normals_first: they are drawn for all chains at once.
    """
    GRADIENT = False
    SEVERAL = False
    LANES = False

    def __cinit__(self, *args, **options):
        self.width = self.sharers = 1
        self.end_of_adaptation = INT64_MAX
        self.gradient, self.several = self.GRADIENT, self.SEVERAL
        self.in_lanes = type(self).__dict__.get("LANES", False)

    def allocate(self, **sizes):
        self.d = sizes["d"]
        super().allocate(**sizes)

    def join(self, first, int sharers):
        """Share the adaptation with `first`, one of `sharers` kernels with the same parameters.

        From now on the shared arrays are those of `first`.
        """
        self.sharers = sharers
        for name, field in self.FIELDS.items():
            if field.shared and field.shape:
                setattr(self, name, getattr(first, name))
        theirs = first.parts()
        for name, part in self.parts().items():
            part.join(theirs[name], sharers)

    cdef void connect(self, Chain *c) noexcept:
        """Take pointers to the chain's target and arrays, which no longer move."""

    cdef void plan(self, int64_t end_of_adaptation) noexcept:
        """Set the step at which adaptation ends; INT64_MAX for never."""
        self.end_of_adaptation = end_of_adaptation

    cdef int propose(self, Chain *c) except -1 nogil:
        with gil:
            raise TypeError(f"{type(self).__name__} has no propose")

    cdef int consider(self, Chain *c) except -1 nogil:
        return DECIDE

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        return 0

    cdef int freeze(self, Chain *c) except -1 nogil:
        """End adaptation: from now on every step must leave pi invariant."""
        return 0

    # ---- chains side by side ----

    cdef void lay_out(self, Lanes *g) noexcept nogil:
        """Copy a number of each kernel to g.own, if propose_lanes reads no other attribute.

        It is called before the first step and whenever the kernels may have changed.
        """

    cdef int propose_lanes(self, Lanes *g) except -1 nogil:
        """Call `propose` for each chain."""
        cdef Py_ssize_t k
        cdef Chain c
        blank(g, &c)
        for k in range(g.K):
            enter(g, k, &c)
            (<Kernel>g.kernels[k]).t = g.t
            (<Kernel>g.kernels[k]).propose(&c)
            proposed(g, k, &c)
        return 0

    cdef int consider_lanes(self, Lanes *g) except -1 nogil:
        """Call `consider` for each chain that waits; return how many wait for another point."""
        cdef Py_ssize_t k
        cdef int waiting = 0
        cdef Chain c
        blank(g, &c)
        for k in range(g.K):
            if not has_considered(g, k):
                enter(g, k, &c)
                (<Kernel>g.kernels[k]).t = g.t
                waiting += considered(g, k, &c, (<Kernel>g.kernels[k]).consider(&c))
        return waiting

    cdef int adapt_lanes(self, Lanes *g, double gain) except -1 nogil:
        """Call `adapt` for each chain."""
        cdef Py_ssize_t k
        cdef Chain c
        blank(g, &c)
        for k in range(g.K):
            enter(g, k, &c)
            (<Kernel>g.kernels[k]).t = g.t
            (<Kernel>g.kernels[k]).adapt(&c, gain)
        return 0

    cdef void displaced(self) noexcept nogil:
        """Mark values computed at x as invalid, since another kernel has moved x."""

    cdef void take(self, Kernel other) noexcept nogil:
        """Copy the shared numbers of another kernel, joined with this one, after it has adapted.

        Both have the same shared arrays, so that values computed from them may be invalid now.
        """
        self.copy_shared_numbers(other)

    cdef void record(self, Chain *c, double *row) noexcept nogil:
        """Write the statistics of the step."""
        self.record_numbers(row)
