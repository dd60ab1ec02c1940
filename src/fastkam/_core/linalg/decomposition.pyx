"""Factors, eigenvalues and products of small dense matrices, with the same bits everywhere.

numpy and scipy call BLAS and LAPACK, whose bits depend on the processor. Computations that affect
draws use these functions instead. They raise `LinAlgError`, as numpy does.
"""
from libc.math cimport INFINITY, fabs, frexp, ldexp
from libc.stdint cimport uintptr_t
from libc.string cimport memset

from fastkam._core.linalg.dense cimport cholesky as factorize, solve_L

from math import prod

import numpy as np

cdef extern from "decomposition.h" nogil:
    enum:
        TILE "FK_TILE"
    Py_ssize_t padded "fk_padded" (Py_ssize_t d)
    Py_ssize_t tiled "fk_tiled" (Py_ssize_t d)
    Py_ssize_t decomposition_work "fk_decomposition_work" (Py_ssize_t d)
    int fk_eigen(Py_ssize_t d, double *A, double *values, double *vectors, double *work)
    int fk_singular(Py_ssize_t d, double *A, double *values, double *vectors, double *work)
    void fk_orthonormal(Py_ssize_t m, Py_ssize_t n, double *A, double *work)
    void fk_product(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const double *A, Py_ssize_t a_row,
                    Py_ssize_t a_column, const double *B, Py_ssize_t b_row, Py_ssize_t b_column,
                    double *C, double *work)


cdef double *aligned(double[::1] room) noexcept nogil:
    """Return the address of the first cache line in an array with 8 spare elements."""
    return &room[0] + (64 - <uintptr_t>&room[0] % 64) % 64 // 8


def cholesky(A):
    """Return the lower factors L of symmetric matrices A (..., d, d), L L' = A.

    Elements above the diagonal of A are not read; those of L are 0. Raises LinAlgError if a matrix
    is not positive definite.
    """
    result = np.array(np.swapaxes(A, -1, -2), dtype=float, order="C")
    *leading, rows, columns = result.shape
    cdef double[:, :, ::1] matrices = result.reshape((prod(leading), rows, columns))
    cdef Py_ssize_t i, j, k, d = rows
    cdef double *M
    cdef int failed = 0
    with nogil:
        for k in range(matrices.shape[0] if d else 0):
            M = &matrices[k, 0, 0]      # a row of it is a column of the factor
            failed = factorize(d, M, NULL, NULL)
            if failed:
                break
            for j in range(d):
                for i in range(j + 1, d):
                    M[i * d + j], M[j * d + i] = M[j * d + i], 0.0
    if failed:
        raise np.linalg.LinAlgError("a matrix is not positive definite")
    return result


def eigen(A):
    """Return eigenvalues (d,) of a symmetric A (d, d), the largest first, and eigenvectors.

    Eigenvectors are columns, with reproducible but arbitrary signs.
    """
    return spectral(A, False)


def singular(A):
    """Return singular values (d,) of A (d, d), the largest first, and right singular vectors.

    A = U diag(values) V', with the vectors as columns of V (d, d); those of A' are A's left ones.
    """
    return spectral(A, True)


cdef spectral(A, bint rectangular):
    cdef const double[:, :] a = A
    cdef Py_ssize_t i, j, k, d = a.shape[0], ld = padded(d)
    cdef double[::1] values = np.empty(d)
    cdef double[::1] room = np.empty(d * ld + tiled(d) + decomposition_work(d) + 8)
    cdef Py_ssize_t[::1] order = np.empty(d, np.intp)
    cdef double largest = 0, half, rest
    cdef double *columns
    cdef double *tiles
    cdef int failed = 0, exponent
    sorted_values, vectors = np.empty(d), np.empty((d, d))
    cdef double[::1] out = sorted_values
    cdef double[:, ::1] V = vectors
    with nogil:
        columns = aligned(room)
        tiles = columns + d * ld
        for i in range(d):
            for j in range(d):
                failed |= not fabs(a[i, j]) < INFINITY
                largest = max(largest, fabs(a[i, j]))
        if not failed and d:
            frexp(largest, &exponent)       # scaled by a power of 2: no square overflows
            half = ldexp(1.0, -(exponent // 2))
            rest = ldexp(1.0, exponent // 2 - exponent)
            for j in range(d):
                for i in range(d):
                    columns[j * ld + i] = a[i, j] * half * rest
                memset(columns + j * ld + d, 0, (ld - d) * sizeof(double))
            failed = (fk_singular if rectangular else fk_eigen)(
                d, columns, &values[0], tiles, tiles + tiled(d))
            for k in range(d):
                if rectangular:
                    values[k] = fabs(values[k])
                j = k
                while j > 0 and values[order[j - 1]] < values[k]:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = k
            for k in range(d):
                out[k] = values[order[k]] / half / rest
                for i in range(d):
                    V[i, k] = tiles[(i // TILE * d + order[k]) * TILE + i % TILE]
    if failed:
        raise np.linalg.LinAlgError("a matrix is not finite, or its eigenvalues do not converge")
    return sorted_values, vectors


def orthonormal(A):
    """Return the factor Q (m, n) of A = Q R, for A (m, n), m >= n."""
    cdef Py_ssize_t m = A.shape[0], n = A.shape[1], ld = padded(m)
    cdef double[::1] room = np.zeros(n * ld + 8), work = np.empty(n)
    columns = np.asarray(room)[:n * ld].reshape(n, ld)
    if not np.isfinite(A).all():
        raise np.linalg.LinAlgError("a matrix is not finite")
    if n:
        columns[:, :m] = np.ldexp(A, -np.frexp(np.abs(A).max(axis=0))[1]).T
        with nogil:
            fk_orthonormal(m, n, &room[0], &work[0])
    return np.ascontiguousarray(columns[:, :m].T)


def product(A, B):
    """Return A B for A (m, k) and B (k, n), or for each pair of A (K, m, k) and B (K, k, n)."""
    return products(A[None], B[None])[0] if A.ndim == 2 else products(A, B)


cdef products(const double[:, :, :] a, const double[:, :, :] b):
    cdef Py_ssize_t i, K = a.shape[0], m = a.shape[1], k = a.shape[2], n = b.shape[2]
    cdef double[::1] room = np.empty(TILE * k + 8)
    result = np.zeros((K, m, n))
    cdef double[:, :, ::1] C = result
    if K != b.shape[0] or k != b.shape[1]:
        raise ValueError(f"matrices {(K, m, k)} and {(b.shape[0], b.shape[1], n)} do not fit")
    if m and n and k:
        with nogil:
            for i in range(K):
                fk_product(m, n, k, &a[i, 0, 0], a.strides[1] // 8, a.strides[2] // 8,
                           &b[i, 0, 0], b.strides[1] // 8, b.strides[2] // 8, &C[i, 0, 0],
                           aligned(room))
    return result


def inverse(L):
    """Return the inverse of a lower-triangular matrix (d, d), with zeros above the diagonal."""
    columns = np.eye(len(L))
    cdef double[::1, :] factor = np.asfortranarray(L, dtype=float)
    cdef double[:, ::1] rows = columns
    cdef Py_ssize_t j, d = rows.shape[0]
    with nogil:
        for j in range(d):
            solve_L(d, &factor[0, 0], &rows[j, 0])
    return columns.T.copy()
