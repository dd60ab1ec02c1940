"""Small dense factors, for Python; fastkam.linalg checks the arguments."""
import os

from libc.math cimport INFINITY, M_PI, fabs, isnan, log, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy

import numpy as np

cdef extern from "levels.h":
    int fk_level()

cdef extern from "factor.h" nogil:
    int fk_cholesky(Py_ssize_t d, double *A, double *v, double *log_det)
    int fk_rank_one(Py_ssize_t d, double *L, double a, double s, double *v)
    void fk_solve(Py_ssize_t d, const double *L, double *v)
    void fk_squares(Py_ssize_t d, const double *L, double *V, double *out)
    void fk_add_Lz(Py_ssize_t d, double a, const double *L, const double *z, double *y)
    void fk_add_Rz(Py_ssize_t d, double a, const double *R, const double *z, double *y)
    void fk_times_Lt(Py_ssize_t d, double a, const double *L, const double *g, double *u)
    void fk_times_Rt(Py_ssize_t d, double a, const double *R, const double *g, double *u)

cdef extern from "elementwise.h" nogil:
    void fk_add_products(Py_ssize_t d, double a, const double *s, const double *g, double *v)
    double fk_long_square(Py_ssize_t d, const double *v)
    bint fk_long_all_finite(Py_ssize_t d, const double *v)

if fk_level() < 0:
    raise ValueError(f"FASTKAM_LEVEL={os.environ['FASTKAM_LEVEL']!r} is not an instruction set of "
                     "this processor")

cholesky, rank_one, solve_L = fk_cholesky, fk_rank_one, fk_solve
add_Lz, times_Lt = fk_add_Lz, fk_times_Lt
add_Rz, times_Rt = fk_add_Rz, fk_times_Rt
add_products = fk_add_products
long_square, long_all_finite = fk_long_square, fk_long_all_finite


def factorize(double[:, :, ::1] A, Py_ssize_t begin, Py_ssize_t end):
    """Set A_k <- L_k with L_k L_k' = A_k, column-major (k, column, row), for begin <= k < end.

    Returns the first k whose A_k is not positive definite, or -1.
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
    """Add a M z to y, for M lower triangular or square."""
    (add_Lz if triangular else add_Rz)(y.shape[0], a, &M[0, 0], &z[0], &y[0])


def transposed_product(double[::1] u, double a, const double[::1, :] M, const double[::1] g,
                       bint triangular):
    """Set u <- a M' g, for M lower triangular or square."""
    (times_Lt if triangular else times_Rt)(u.shape[0], a, &M[0, 0], &g[0], &u[0])


def first_asymmetric(const double[:, :, ::1] A, Py_ssize_t begin, Py_ssize_t end):
    """Return the first k of begin <= k < end whose A_k is not finite and symmetric, or -1.

    The tolerance of symmetry is 1e-8 of the scales on the diagonal.
    """
    cdef Py_ssize_t i, j, k, d = A.shape[1]
    cdef double[::1] scale = np.empty(d)
    cdef bint fits = True
    with nogil:
        for k in range(begin, end):
            for i in range(d):
                scale[i] = sqrt(fabs(A[k, i, i]))
                fits &= scale[i] < INFINITY
                for j in range(i):
                    fits &= fabs(A[k, i, j] - A[k, j, i]) <= 1e-8 * (scale[i] * scale[j])
            if not fits:
                break
        else:
            k = -1
    return k


def first_unfit(const double[:, :, :] L, Py_ssize_t begin, Py_ssize_t end):
    """Return the first k of begin <= k < end whose L_k is not finite with a positive diagonal.

    The result is -1 if there is none. Rows or columns are contiguous; elements above the diagonal
    are not read.
    """
    cdef Py_ssize_t j, k, d = L.shape[1]
    cdef bint by_rows = L.strides[2] == sizeof(double)
    cdef bint fits = True
    with nogil:
        for k in range(begin, end):
            for j in range(d):
                fits &= L[k, j, j] > 0
                fits &= all_finite(j + 1, &L[k, j, 0]) if by_rows else all_finite(
                    d - j, &L[k, j, j])
            if not fits:
                break
        else:
            k = -1
    return k


cdef void load_lower(Py_ssize_t d, const double *L, bint by_rows, double *columns) noexcept nogil:
    """Copy the lower triangle of L (d, d), stored by rows or by columns, to columns."""
    cdef Py_ssize_t i, j, k
    if not by_rows:
        for j in range(d):
            memcpy(columns + j * (d + 1), L + j * (d + 1), (d - j) * sizeof(double))
        return
    for k in range(0, d, 8):        # a cache line of each row at a time
        for i in range(k, d):
            for j in range(k, min(k + 8, i + 1)):
                columns[j * d + i] = L[i * d + j]


cdef void store(Py_ssize_t d, const double *columns, bint by_rows, double *out) noexcept nogil:
    """Copy columns (d, d) to rows or to columns."""
    cdef Py_ssize_t i, j, k
    if not by_rows:
        memcpy(out, columns, d * d * sizeof(double))
        return
    for k in range(0, d, 8):        # a cache line of each row at a time
        for i in range(d):
            for j in range(k, min(k + 8, d)):
                out[i * d + j] = columns[j * d + i]


def update(
        const double[:, :, :] L, const double[:, ::1] v, const double[::1] a, const double[::1] s,
        const int64_t[:, ::1] which, double[:, :, :] out, Py_ssize_t begin, Py_ssize_t end):
    """out_i out_i' = a_m L_j L_j' + s_n v_k v_k' with j, k, m, n = which_i, for begin <= i < end.

    If that is not positive definite, out_i is unchanged; return the first such i, or -1.
    """
    cdef Py_ssize_t i, d = L.shape[1], first = -1
    cdef double[:, ::1] columns = np.zeros((d, d))
    cdef double[::1] w = np.empty(d)
    with nogil:
        for i in range(begin, end):
            load_lower(d, &L[which[i, 0], 0, 0], L.strides[2] == sizeof(double), &columns[0, 0])
            memcpy(&w[0], &v[which[i, 1], 0], d * sizeof(double))
            if rank_one(d, &columns[0, 0], a[which[i, 2]], s[which[i, 3]], &w[0]):
                first = i if first < 0 else first
                continue
            store(d, &columns[0, 0], out.strides[2] == sizeof(double), &out[i, 0, 0])
    return first


def log_densities(
        const double[:, ::1] x, const double[:, ::1] mean, const double[:, :, ::1] L,
        const int64_t[:, ::1] which, double[::1] out, Py_ssize_t begin, Py_ssize_t end):
    """Set out_i = log N(x_a; mean_b, L_c L_c') with a, b, c = which_i, for begin <= i < end.

    L is (c, column, row). Eight densities with the same factor are computed at once. The log
    density is -inf at an infinite point.
    """
    cdef Py_ssize_t i = begin, j, k, d = mean.shape[1], known = -1
    cdef double[::1] V = np.empty(8 * d)
    cdef double[8] squares
    cdef double constant = 0
    cdef const double *at
    cdef const double *center
    with nogil:
        while i < end:
            if which[i, 2] != known:
                known = which[i, 2]
                constant = -0.5 * d * log(2 * M_PI) - log_det_L(d, &L[known, 0, 0])
            k = 0
            while k < 8 and i + k < end and which[i + k, 2] == known:
                k += 1
            if k < 8:       # one by one
                at, center = &x[which[i, 0], 0], &mean[which[i, 1], 0]
                for j in range(d):
                    V[j] = at[j] - center[j]
                solve_L(d, &L[known, 0, 0], &V[0])
                out[i] = constant - 0.5 * square(d, &V[0])
                i += 1
                continue
            for k in range(8):
                at, center = &x[which[i + k, 0], 0], &mean[which[i + k, 1], 0]
                for j in range(d):
                    V[8 * j + k] = at[j] - center[j]
            fk_squares(d, &L[known, 0, 0], &V[0], squares)
            for k in range(8):
                out[i + k] = constant - 0.5 * squares[k]
            i += 8
        for i in range(begin, end):
            if isnan(out[i]):       # inf - inf
                k = which[i, 0]
                for j in range(d):
                    if isnan(x[k, j]):
                        break
                else:
                    out[i] = -INFINITY
