"""Mode jumping with one mistake each, which the invariance test has to see."""
from fastkam._core.kernel cimport Chain
from fastkam._core.samplers.jumps cimport INNER, ModeJumping


cdef class WithoutRatio(ModeJumping):
    """Hops without the Jacobian, independent draws without q."""
    cdef int propose(self, Chain *c) except -1 nogil:
        ModeJumping.propose(self, c)
        if self.move != INNER:
            c.log_q = 0
        return 0


cdef class Unannounced(ModeJumping):
    """The sampler within takes every decision for its own."""
    cdef void look_back(self, Chain *c) noexcept nogil:
        self.accepted = c.accepted
