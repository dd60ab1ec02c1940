"""All replicas of a chain, which carry out each part of a step rung by rung.

The state of rung 0 is that of the chain, which the engine moves.
"""
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from fastkam._core.engine.kernel cimport AGAIN, FATAL, Chain
from fastkam._core.engine.step cimport accept
from fastkam._core.linalg.dense cimport copy
from fastkam._core.samplers.reference cimport Reference
from fastkam._core.samplers.replica cimport Replica


cdef class Replicas:
    """The replicas that kernels move, from the coldest to the hottest.

    Parameters
    ----------
    kernels : list of Kernel
        One for each rung.
    reference : Reference
        The reference distribution of the tempered densities.
    """

    def __cinit__(self, list kernels, Reference reference):
        cdef int r
        self.rungs, self.reference, self.members = len(kernels), reference, []
        self.gradient = any(kernel.gradient for kernel in kernels)
        for kernel in kernels:
            self.members.append(Replica(kernel, reference, self.width))
            self.width += kernel.width
        self.pointers = <void **>calloc(self.rungs, sizeof(void *))
        if self.pointers == NULL:
            raise MemoryError
        for r in range(self.rungs):
            self.pointers[r] = <void *>self.members[r]

    def __dealloc__(self):
        free(self.pointers)

    cdef Chain *chain(self, int r) noexcept nogil:
        """Return the chain of a rung, as its kernel sees it."""
        return &(<Replica>self.pointers[r]).c

    cdef void set_ladder(self, const double *ladder) noexcept nogil:
        """Set the inverse temperatures (rungs,)."""
        cdef int r
        for r in range(self.rungs):
            (<Replica>self.pointers[r]).beta = ladder[r]

    cdef void connect(self, Chain *c) noexcept:
        cdef int r
        for r in range(self.rungs):
            (<Replica>self.pointers[r]).connect(c, self.gradient)

    cdef void plan(self, int64_t end_of_adaptation) noexcept:
        cdef int r
        for r in range(self.rungs):
            (<Replica>self.pointers[r]).kernel.plan(end_of_adaptation)

    # ---- a step ----

    cdef void begin(self, const Chain *c) noexcept nogil:
        """Begin all rungs at the state of the chain, with its noise."""
        cdef int r
        for r in range(self.rungs):
            copy(c.n_aux, c.u, self.chain(r).u)
            (<Replica>self.pointers[r]).follow(c, True)

    cdef void move(self, const Chain *c, bint displaced) noexcept nogil:
        """Move each rung by its decision; another kernel may have `displaced` the chain."""
        cdef int r
        (<Replica>self.pointers[0]).follow(c, displaced)
        if displaced:
            (<Replica>self.pointers[0]).kernel.displaced()
        for r in range(1, self.rungs):
            if self.chain(r).accepted:
                accept(self.chain(r))

    cdef void lead(self, Chain *c) noexcept nogil:
        """Move the chain to where rung 0 is, after a swap."""
        cdef const Chain *cold = self.chain(0)
        copy(c.d, cold.x, c.x)
        c.logp_x = cold.parts.log_pi_x
        if c.grad_x != NULL:
            copy(c.d, cold.parts.grad_pi_x, c.grad_x)

    cdef int propose(self, const Chain *c, int64_t t) except -1 nogil:
        cdef int r
        for r in range(self.rungs):
            (<Replica>self.pointers[r]).propose(c, t)
        return 0

    cdef int consider(self, Chain *c, int64_t t) except -1 nogil:
        """Let the undecided rungs consider; return the number still undecided, or -FATAL."""
        cdef int r, answer, waiting = 0
        for r in range(self.rungs):
            if (<Replica>self.pointers[r]).waits:
                answer = (<Replica>self.pointers[r]).consider(c, t)
                if answer == FATAL:
                    return -FATAL
                waiting += answer == AGAIN
        return waiting

    # ---- adaptation ----

    cdef int adapt(self, double gain, int64_t t) except -1 nogil:
        """Adapt the kernels, and the reference if it is fitted."""
        cdef int r
        for r in range(self.rungs):
            (<Replica>self.pointers[r]).kernel.t = t
            if not (<Replica>self.pointers[r]).is_reference():
                (<Replica>self.pointers[r]).kernel.adapt(self.chain(r), gain)
                if self.reference.fits:
                    self.reference.learn(self.chain(r).x)
        return 0

    cdef void fit_reference(self) noexcept nogil:
        """Fit the reference to the states since the last fit, if there are enough."""
        cdef int r
        if self.reference.fit():
            for r in range(self.rungs):
                (<Replica>self.pointers[r]).refer()

    cdef int freeze(self, int64_t t) except -1 nogil:
        cdef int r
        for r in range(self.rungs):
            (<Replica>self.pointers[r]).kernel.t = t
            (<Replica>self.pointers[r]).kernel.freeze(self.chain(r))
        return 0

    cdef void record(self, int64_t t, double *row) noexcept nogil:
        """Write the statistics of rung 0."""
        (<Replica>self.pointers[0]).kernel.t = t
        (<Replica>self.pointers[0]).kernel.record(self.chain(0), row)
