"""The kernels of KAM, see kernel.h."""
cdef extern from "kernel.h" nogil:
    enum:
        FK_LINEAR
        FK_GAUSSIAN
        FK_MATERN
        FK_MATERN_HALF
        FK_CELLS
        FK_FIRST_OCTAVE
        FK_OCTAVES
    ctypedef struct fk_kernel:
        int kind
        double length
        double order
        int degree
        const double *table
        double origin
        double a
        double b
