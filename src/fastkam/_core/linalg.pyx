"""Small dense factors, for Python: what fastkam.linalg has checked goes straight to C."""
import os

from libc.math cimport M_PI, log

import numpy as np


def named_level():
    """The instruction set that FASTKAM_LEVEL asks for: "base", "avx2", "avx512"; else b""."""
    cdef bytes name = os.environ.get("FASTKAM_LEVEL", "").encode()
    if fk_factor_for(name) == NULL:
        raise ValueError(
            f"FASTKAM_LEVEL={name.decode()!r} is not an instruction set of this processor")
    return name


cdef const fk_factor *chosen = fk_factor_for(<bytes>named_level())
cholesky, rank_one, solve_L = chosen.cholesky, chosen.rank_one, chosen.solve_L


def factorise(double[::1, :] A):
    """A <- L with L L' = A, in the lower triangle; False where A is not positive definite."""
    return cholesky(A.shape[0], &A[0, 0], NULL) == 0


def update(double[::1, :] L, double[::1] v, double a, double s):
    """L L' <- a L L' + s v v'; v is destroyed; False where that is not positive definite."""
    return rank_one(L.shape[0], &L[0, 0], a, s, &v[0]) == 0


def log_densities(const double[:, ::1] x, const double[::1] mean, const double[::1, :] L):
    """log N(x_i; mean, L L'), (n,), of the points x (n, d)."""
    cdef Py_ssize_t i, j, d = mean.shape[0]
    cdef double[::1] out = np.empty(x.shape[0])
    cdef double[::1] v = np.empty(d)
    cdef double constant
    with nogil:
        constant = -0.5 * d * log(2 * M_PI) - log_det_L(d, &L[0, 0])
        for i in range(x.shape[0]):
            for j in range(d):
                v[j] = x[i, j] - mean[j]
            solve_L(d, &L[0, 0], &v[0])
            out[i] = constant - 0.5 * square(d, &v[0])
    return np.asarray(out)
