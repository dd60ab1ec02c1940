"""Small dense factors, for Python: what fastkam.linalg has checked goes straight to C."""
import os

from libc.math cimport M_PI, log
from libc.stdint cimport int64_t

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
add_Lz, times_Lt = chosen.add_Lz, chosen.times_Lt
add_Rz, times_Rt = chosen.add_Rz, chosen.times_Rt


def factorise(double[:, :, ::1] A, Py_ssize_t begin, Py_ssize_t end):
    """A_k <- L_k with L_k L_k' = A_k, column-major (k, column, row), for begin <= k < end.

    Answers the first k whose A_k is not positive definite, or -1.
    """
    cdef Py_ssize_t k, d = A.shape[1]
    with nogil:
        for k in range(begin, end):
            if cholesky(d, &A[k, 0, 0], NULL, NULL):
                break
        else:
            k = -1
    return k


def add_product(double[::1] y, double a, const double[::1, :] M, const double[::1] z,
                bint triangular):
    """y += a M z, M lower triangular or square."""
    (add_Lz if triangular else add_Rz)(y.shape[0], a, &M[0, 0], &z[0], &y[0])


def transposed_product(double[::1] u, double a, const double[::1, :] M, const double[::1] g,
                       bint triangular):
    """u <- a M' g, M lower triangular or square."""
    (times_Lt if triangular else times_Rt)(u.shape[0], a, &M[0, 0], &g[0], &u[0])


def update(double[::1, :] L, double[::1] v, double a, double s):
    """L L' <- a L L' + s v v'; v is destroyed; False where that is not positive definite."""
    return rank_one(L.shape[0], &L[0, 0], a, s, &v[0]) == 0


def log_densities(
        const double[:, ::1] x, const double[:, ::1] mean, const double[:, :, ::1] L,
        const int64_t[:, ::1] which, double[::1] out, Py_ssize_t begin, Py_ssize_t end):
    """out_i = log N(x_a; mean_b, L_c L_c') with a, b, c = which_i, for begin <= i < end.

    L (c, column, row). Eight densities of one factor are made at once.
    """
    cdef Py_ssize_t i = begin, j, k, d = mean.shape[1], known = -1
    cdef double[::1] V = np.empty(8 * d)
    cdef double[8] squares
    cdef double constant = 0
    cdef const double *at
    cdef const double *centre
    with nogil:
        while i < end:
            if which[i, 2] != known:
                known = which[i, 2]
                constant = -0.5 * d * log(2 * M_PI) - log_det_L(d, &L[known, 0, 0])
            k = 0
            while k < 8 and i + k < end and which[i + k, 2] == known:
                k += 1
            if k < 8:       # one by one
                at, centre = &x[which[i, 0], 0], &mean[which[i, 1], 0]
                for j in range(d):
                    V[j] = at[j] - centre[j]
                solve_L(d, &L[known, 0, 0], &V[0])
                out[i] = constant - 0.5 * square(d, &V[0])
                i += 1
                continue
            for k in range(8):
                at, centre = &x[which[i + k, 0], 0], &mean[which[i + k, 1], 0]
                for j in range(d):
                    V[8 * j + k] = at[j] - centre[j]
            chosen.squares(d, &L[known, 0, 0], &V[0], squares)
            for k in range(8):
                out[i + k] = constant - 0.5 * squares[k]
            i += 8
