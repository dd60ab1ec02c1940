"""A density in a package of its own: all that it knows of fastkam is the public target.pxd."""
from cpython.pycapsule cimport PyCapsule_New
from fastkam.target cimport FK_TARGET_ABI, FK_TARGET_CAPSULE, fk_target


cdef int banana(size_t n, const double *x, double *logp, void *data) noexcept nogil:
    cdef double bend = (<double *>data)[0]
    cdef double u = x[0], v = x[1] - bend * u * u
    logp[0] = -0.5 * (u * u + v * v)
    return 0


cdef class Banana:
    """u = x0 and v = x1 - bend x0^2 are independent standard normals."""
    cdef fk_target target       # zero, but for what __cinit__ sets
    cdef double bend

    def __cinit__(self, double bend):
        self.bend = bend
        self.target.abi = FK_TARGET_ABI
        self.target.dim = 2
        self.target.logp = banana
        self.target.data = &self.bend

    def __fk_target__(self):
        return PyCapsule_New(&self.target, FK_TARGET_CAPSULE, NULL)
