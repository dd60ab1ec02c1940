"""The contract of a sampler: fields, propose, consider, adapt, freeze.

A step of the engine is

    propose            fills y and log_q
    (the engine)       log pi(y), and its gradient for kernels of gradients
    consider           completes log_q, where that needs y's neighbourhood; or fills y with another
                       point and answers AGAIN: it is evaluated and considered in its turn
    (the engine)       alpha = min(1, exp(beta (log pi(y) - log pi(x)) + log_q)), decision
    adapt              while the schedule says so; it sees x, y, alpha, accepted; x has not moved
    (the engine)       x <- y if accepted, record

A kernel that decides by itself answers DECIDED. One of several points at once (`width`) fills as
many rows of y and says which are `wanted`; it finds their densities in `logps`. All chains of a
group are evaluated together at each AGAIN, so that a density of many points at once serves kernels
of many evaluations too; and a run may end at any evaluation, so whatever `consider` keeps from one
call to the next is a field.

A density that is estimated is a known function of (x, u), u its noise, N(0, I) beforehand. The
chain is one in (x, u): a step moves u to v by a kernel that is reversible for N(0, I), and that is
right for any sampler of one evaluation a step. One of several says at each AGAIN which `noise` the
next evaluation takes, so that the step as a whole is right: tries one after another move the noise
on (FURTHER); one that must see a smooth density holds it (HELD), and moves it in a step of its own.

The draws of a step come from the chain's generator in this order: those of propose, one
exponential variate for the decision, those of noise, those of consider, those of noise again where
it asks for another evaluation, those of adapt.
"""
from cpython.exc cimport PyErr_SetInterrupt

import numpy as np


LINE = 16       # float64 elements to leave free: two cache lines


def zeros(shape, dtype=float, order="C"):
    """An array of zeros with cache lines of its own, so that threads do not wait for each other."""
    n = int(np.prod(shape))
    return np.zeros(n + 2 * LINE, dtype)[LINE:LINE + n].reshape(shape, order=order)


def uninterrupted(function, *args):
    """Call what gives the same when called anew; an interrupt takes effect after it.

    A run can be taken up between two evaluations, not within an adaptation.
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
        PyErr_SetInterrupt()


cdef class Kernel:
    """One sampler's state and moves, for one chain.

    FIELDS declares all the state there is, {name: (shape, meaning)} or, where it is not of
    float64, {name: (shape, meaning, dtype)}; the shape names sizes given to `allocate`. Checkpoint,
    attributes and documentation are derived from it. A field of shape ("d", something) is a
    matrix and column-major; any other is row-major.
    LEARNT names the fields whose course through warm-up the result keeps.
    SHARED names those that chains may have in common: what is learnt of pi, as against what belongs
    to one chain's step. Arrays among them become one memory by `join`, numbers are handed on by
    `take`. Where it is empty, each chain learns for itself.
    STATS declares what `record` writes for each draw, {name: meaning}.
    """
    FIELDS = {}
    LEARNT = ()
    SHARED = ()
    STATS = {}

    def __cinit__(self, *args, **options):
        self.width = self.sharers = 1

    def allocate(self, **sizes):
        """Make every field, zero."""
        self.d = sizes["d"]
        for name, (shape, _meaning, *dtype) in self.FIELDS.items():
            if shape:
                order = "F" if shape[0] == "d" and len(shape) == 2 else "C"
                setattr(self, name, zeros([sizes[s] for s in shape], *dtype, order=order))

    def parts(self):
        """Kernels within this one, {name: kernel}; their fields are "name.field" in the state."""
        return {}

    def state(self):
        """A copy of every field, {name: array}."""
        state = {name: np.array(getattr(self, name)) for name in self.FIELDS}
        for name, part in self.parts().items():
            state |= {f"{name}.{field}": value for field, value in part.state().items()}
        return state

    def restore(self, state):
        """Set every field from the answer of `state`."""
        for name, part in self.parts().items():
            start = f"{name}."
            part.restore({field.removeprefix(start): value for field, value in state.items()
                          if field.startswith(start)})
        for name, (shape, *_) in self.FIELDS.items():
            if shape:
                np.asarray(getattr(self, name))[...] = state[name]
            else:
                setattr(self, name, state[name].item())

    def join(self, first, int sharers):
        """Learn as one with `first`, a kernel of the same parameters, and others: `sharers` in all.

        From now on the arrays of SHARED are those of `first`.
        """
        self.sharers = sharers
        for name in self.SHARED:
            if self.FIELDS[name][0]:
                setattr(self, name, getattr(first, name))
        theirs = first.parts()
        for name, part in self.parts().items():
            part.join(theirs[name], sharers)

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

    cdef void displaced(self) noexcept nogil:
        """x has been exchanged for another state: whatever was computed there is void."""
        pass

    cdef void take(self, Kernel other) noexcept nogil:
        """Another kernel that was joined with this one has learnt: take over its numbers of SHARED.

        Its arrays are here already: whatever was computed from them may be void.
        """
        pass

    cdef void record(self, Chain *c, double *row) noexcept nogil:
        pass
