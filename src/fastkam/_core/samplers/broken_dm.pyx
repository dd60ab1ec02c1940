"""A divergence-minimisation sampler that must fail."""
from libc.stdint cimport int64_t

from fastkam._core.kernel cimport Chain
from fastkam._core.samplers.dm cimport DivergenceMinimization


cdef class IndexOfCurrentPoint(DivergenceMinimization):
    """The authors' finite form: the entry of the reverse move is that nearest to x, not to y."""
    cdef int64_t nearest_for_reverse(self, Chain *c) noexcept nogil:
        return self.index.find(c.x)
