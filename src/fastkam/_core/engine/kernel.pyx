"""The contract of a sampler: fields, propose, consider, adapt, freeze.

A step of the engine is

    propose            fills y and log_q
    (the engine)       log pi(y), and its gradient for kernels that need it
    consider           completes log_q where that needs the density or gradient at y; or fills y
                       with another point and returns AGAIN: it is evaluated and considered in turn
    (the engine)       alpha = min(1, exp(log pi(y) - log pi(x) + log_q)), decision
    adapt              while the schedule says so; it sees x, y, alpha, accepted; x has not moved
    (the engine)       x <- y if accepted, record

A kernel that makes the accept/reject decision itself returns DECIDED. A kernel with width > 1
fills that number of rows of y, marks those that are `wanted`, and finds their densities in `logps`.
All chains of a group are evaluated together at each AGAIN, so that a density of many points at once
serves kernels of several evaluations too; and a run may end at any evaluation, so whatever
`consider` keeps from one call to the next is a field. Points that may become y later are kept with
`keep_point` (step.pxd).

A density that is estimated is a known function of (x, u), u its noise, N(0, I) beforehand. The
chain is one in (x, u): a step moves u to v by a kernel that is reversible for N(0, I), and that is
right for any sampler of one evaluation a step. One of several says at each AGAIN which `noise` the
next evaluation takes, so that the step as a whole is right: tries one after another move the noise
on (FURTHER); one that must see a smooth density holds it (HELD), and moves it in a step of its own.

The random numbers of a step come from the chain's generator in this order: those of propose, one
exponential variate for the decision, those of noise, those of consider, those of noise again where
it asks for another evaluation, those of adapt.
"""
from libc.stdint cimport INT64_MAX, int64_t

from fastkam._core.engine.state cimport State

import threading

held_back = threading.local()       # .any: a KeyboardInterrupt of this thread has been deferred


def interrupt_later():
    """Let the run of this thread end as by KeyboardInterrupt when its chunk of steps has ended.

    A signal cannot stand for it: where SIGINT is ignored it would never arrive.
    """
    held_back.any = True


def take_interrupt():
    """Whether `interrupt_later` has been called in this thread since the last time."""
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

    FIELDS is all the state there is (see state.pyx). Fields marked `shared` are those that chains
    may have in common: what is learnt of pi, as against what belongs to one chain's step. Arrays
    among them become one memory by `join`, numbers are handed on by `take`. Where no field is
    shared, each chain learns for itself.

    GRADIENT says that the kernel needs the gradient, SEVERAL that `consider` may return AGAIN.

    LANES says that chains of this class itself, not of one derived from it, may step side by side
    (lockstep.pyx): its methods use no more of a Chain than d, rng, x, y, their gradients, logp_x,
    logp_y, log_q, alpha, accepted and adapting, which are in another place at each call; never
    return FATAL; and raise nothing. Then propose_lanes, consider_lanes and adapt_lanes are called,
    on one of the kernels, to do the same with all of them. A class writes its own only where these
    here, with a call of a method for each chain, take long. An object whose propose begins with d
    normals, which `draw_normals` makes (step.pxd), sets normals_first: they are drawn for all
    chains at once.
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
        """Learn as one with `first`, a kernel of the same parameters, and others: `sharers` in all.

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
        """The chain has its target, and its arrays stay where they are: keep pointers to them."""

    cdef void plan(self, int64_t end_of_adaptation) noexcept:
        """Adaptation ends at this step, or never."""
        self.end_of_adaptation = end_of_adaptation

    cdef int propose(self, Chain *c) except -1 nogil:
        with gil:
            raise TypeError(f"{type(self).__name__} has no propose")

    cdef int consider(self, Chain *c) except -1 nogil:
        return DECIDE

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        return 0

    cdef int freeze(self, Chain *c) except -1 nogil:
        """Adaptation has ended: from here on every step must leave pi invariant."""
        return 0

    # ---- chains side by side ----

    cdef void lay_out(self, Lanes *g) noexcept nogil:
        """Put a number of each kernel in g.own, for a propose_lanes that would read no other.

        It is called before the first step and whenever the kernels may have changed.
        """

    cdef int propose_lanes(self, Lanes *g) except -1 nogil:
        """`propose` of each chain."""
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
        """`consider` of each chain that waits for it; return how many wait for another point."""
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
        """`adapt` of each chain."""
        cdef Py_ssize_t k
        cdef Chain c
        blank(g, &c)
        for k in range(g.K):
            enter(g, k, &c)
            (<Kernel>g.kernels[k]).t = g.t
            (<Kernel>g.kernels[k]).adapt(&c, gain)
        return 0

    cdef void displaced(self) noexcept nogil:
        """Another kernel has moved x: whatever was computed there is void."""

    cdef void take(self, Kernel other) noexcept nogil:
        """Another kernel that was joined with this one has learnt: take over its shared numbers.

        Its shared arrays are those of this kernel: whatever was computed from them may be void.
        """
        self.copy_shared_numbers(other)

    cdef void record(self, Chain *c, double *row) noexcept nogil:
        """Write the statistics of the step."""
        self.record_numbers(row)
