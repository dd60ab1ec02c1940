"""The kernels of KAM, the fused kernel-gradient pass, and the covariance from it."""
from fastkam._core.kam.kernel cimport (
    FK_CELLS, FK_FIRST_OCTAVE, FK_GAUSSIAN, FK_LINEAR, FK_MATERN, FK_MATERN_HALF, FK_OCTAVES,
)
from fastkam._core.kam.kernel_pass cimport fk_kernel_pass, fk_kernel_pass_work, fk_kernel_weights
from fastkam._core.kam.low_rank cimport fk_distances
from fastkam._core.linalg.dense cimport cholesky

from fastkam._core.linalg.lanes import blocked

import numpy as np

cdef enum:
    LANES = 8

CELLS, FIRST_OCTAVE, OCTAVES = FK_CELLS, FK_FIRST_OCTAVE, FK_OCTAVES


cdef class KernelFunction:
    """A kernel in the form for the pass.

    Parameters
    ----------
    kind : str
        "linear", "gaussian", "matern" or "matern half" (v = 3/2, 5/2, ...).
    length, order : float
        l, and v for Matern.
    table, origin, a, b :
        See kernel.h; for Matern only.
    """

    def __init__(self, kind, length=1.0, order=1.0, table=None, origin=0.0, a=0.0, b=0.0):
        self.k.kind = {"linear": FK_LINEAR, "gaussian": FK_GAUSSIAN, "matern": FK_MATERN,
                       "matern half": FK_MATERN_HALF}[kind]
        self.k.length, self.k.order = length, order
        self.k.origin, self.k.a, self.k.b = origin, a, b
        if table is not None:
            self.table = table
            self.k.table = &self.table[0, 0]
            self.k.degree = self.table.shape[1] - 1

    def moments(self, y, z):
        """Return Q = sum_i M_i M_i' (d, d) and s = sum_i M_i (d,), M_i = 2 grad_y k(y, z_i)."""
        cdef const double[::1] point = np.ascontiguousarray(y, dtype=float)
        cdef const double[:, :, ::1] blocks = blocked(z)
        cdef Py_ssize_t d = point.shape[0]
        cdef Py_ssize_t n = len(z)
        cdef double[::1, :] Q = np.zeros((d, d), order="F")
        cdef double[::1] s = np.zeros(d)
        cdef double[::1] work = np.empty(fk_kernel_pass_work(d))
        if n:
            fk_kernel_pass(&self.k, n, d, &blocks[0, 0, 0], &point[0], &work[0], &Q[0, 0],
                           &s[0])
        lower = np.asarray(Q)
        return lower + np.tril(lower, -1).T, np.asarray(s)

    def covariances(
            self, const double[:, ::1] y, const double[:, :, ::1] blocks, Py_ssize_t n,
            double step_size, double noise, double[:, :, ::1] out, Py_ssize_t begin,
            Py_ssize_t end):
        """Set out_i = noise^2 I + step_size^2 (Q - s s' / n) at y_i, for begin <= i < end."""
        cdef Py_ssize_t i, j, k, d = y.shape[1]
        cdef double[::1] s = np.zeros(d)
        cdef double[::1] work = np.empty(fk_kernel_pass_work(d))
        cdef double[:, ::1] Q = np.zeros((d, d))
        cdef double r
        with nogil:
            for i in range(begin, end):
                if n > 0:
                    fk_kernel_pass(&self.k, n, d, &blocks[0, 0, 0], &y[i, 0], &work[0],
                                   &Q[0, 0], &s[0])
                for j in range(d):
                    for k in range(j, d):
                        r = step_size**2 * (Q[j, k] - s[k] * s[j] / n) if n > 0 else 0.0
                        out[i, j, k] = out[i, k, j] = r
                    out[i, j, j] += noise**2


cdef int proposal_factor(
        Py_ssize_t d, Py_ssize_t n, double gamma, double nu, const double *Q, const double *s,
        double *L, double *v, double *log_det) noexcept nogil:
    """Factor L L' = gamma^2 I + nu^2 (Q - s s' / n); v <- L^-1 v unless NULL; set log det L.

    Return 1 if L overflows, else 0.
    """
    cdef Py_ssize_t i, j
    cdef double c = nu * nu
    for j in range(d):
        for i in range(j, d):
            L[i + j * d] = c * (Q[i + j * d] - s[i] * s[j] / n) if n > 0 else 0.0
        L[j + j * d] += gamma * gamma
    return cholesky(d, L, v, log_det)


cdef void gradients(
        const fk_kernel *k, Py_ssize_t n, Py_ssize_t d, const double *z, const double *y,
        double *w, double *M) noexcept nogil:
    """Set M_i = 2 grad_y k(y, z_i) = w_i (z_i - y), (n, d), z in blocks; w has whole blocks."""
    cdef Py_ssize_t i, j
    cdef const double *at
    if n == 0:
        return
    fk_distances(n, d, z, y, w)
    fk_kernel_weights(k, (n + LANES - 1) // LANES, w)
    for i in range(n):
        at = z + i // LANES * LANES * d + i % LANES
        for j in range(d):
            M[i * d + j] = w[i] * (at[LANES * j] - y[j])
