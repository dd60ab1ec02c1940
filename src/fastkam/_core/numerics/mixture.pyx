"""A Gaussian mixture, packed for fast evaluation of its density, and a pass of EM over states."""
from libc.math cimport INFINITY, M_PI as pi, lgamma, log

from fastkam._core.engine.state import zeros

import numpy as np

cdef extern from "mixture.h" nogil:
    enum:
        LANES "FK_LANES"
    void fk_mixture_squares(Py_ssize_t blocks, Py_ssize_t d, const double *means, const double *W,
                            const double *x, double *q)
    double fk_mixture_shares(Py_ssize_t K, const double *c, double *q)
    void fk_mixture_add(Py_ssize_t d, double share, const double *x, double *sum, double *squares)
    double fk_mixture_log(Py_ssize_t K, Py_ssize_t d, const double *c, double s,
                          double log_core, double log_tail, double *q)

DEGREES = FK_DEGREES                        # of freedom, of component 0
TAIL, TAIL_SCALE = FK_TAIL, FK_TAIL_SCALE   # the share of each other one that has so wide a scale
cdef double NEGLIGIBLE = 1e-4       # a state's share in a component


cdef class Mixture:
    """A mixture of up to `most` components in d dimensions."""

    def __init__(self, Py_ssize_t d, Py_ssize_t most):
        cdef Py_ssize_t padded = (most + LANES - 1) // LANES * LANES
        self.d = d
        self.means, self.W = zeros(padded * d), zeros(padded * d * (d + 1) // 2)
        self.c, self.q = zeros(padded), zeros(padded)
        self.log_tail = log(FK_TAIL) - d * log(FK_TAIL_SCALE)
        self.to_student = (lgamma(0.5 * (FK_DEGREES + d)) - lgamma(0.5 * FK_DEGREES)
                           - 0.5 * d * log(0.5 * FK_DEGREES))

    cdef void set(self, Py_ssize_t n, const double *weights, const double *means,
                  const double *factors) noexcept nogil:
        """Pack n components: means (n, d), column-major factors (n, d, d) of the covariances."""
        cdef Py_ssize_t k, i, j, m, d = self.d, size = d * (d + 1) // 2
        cdef const double *L
        cdef double *W
        cdef double s
        self.n = n
        for k in range(self.c.shape[0]):
            self.c[k] = -INFINITY
        for k in range(n):
            L, W = factors + k * d * d, &self.W[(k // LANES) * size * LANES + k % LANES]
            self.c[k] = log(weights[k])
            for i in range(d):
                self.means[((k // LANES) * d + i) * LANES + k % LANES] = means[k * d + i]
                self.c[k] -= log(L[i * d + i])
                for j in range(i + 1):      # W = L^-1, row by row
                    s = 1 if i == j else 0
                    for m in range(j, i):
                        s -= L[m * d + i] * W[(m * (m + 1) // 2 + j) * LANES]
                    W[(i * (i + 1) // 2 + j) * LANES] = s / L[i * d + i]

    cdef void squares(self, const double *x) noexcept nogil:
        """Compute q_k = (x - m_k)' C_k^-1 (x - m_k) for each component."""
        fk_mixture_squares((self.n + LANES - 1) // LANES, self.d, &self.means[0], &self.W[0], x,
                           &self.q[0])

    cdef double log_density(self, const double *x) noexcept nogil:
        """Return log((2 pi)^(d/2) q(x)), with all tails."""
        self.squares(x)
        return fk_mixture_log((self.n + LANES - 1) // LANES * LANES, self.d, &self.c[0],
                              self.to_student, log(1 - FK_TAIL), self.log_tail, &self.q[0])

    def log_densities(self, const double[:, ::1] points):
        """Return the log density (n,), with all tails, at points (n, d)."""
        cdef Py_ssize_t i
        cdef double constant = 0.5 * self.d * log(2 * pi)
        out = np.empty(points.shape[0])
        cdef double[::1] values = out
        if points.shape[1] != self.d:
            raise ValueError(f"points must have {self.d} columns, not {points.shape[1]}")
        with nogil:
            for i in range(points.shape[0]):
                values[i] = self.log_density(&points[i, 0]) - constant
        return out

    cdef double shares(self, const double *x) noexcept nogil:
        """Return log((2 pi)^(d/2) q(x)) without tails; write each component's share to q."""
        self.squares(x)
        return fk_mixture_shares((self.n + LANES - 1) // LANES * LANES, &self.c[0], &self.q[0])


def packed(const double[::1] weights, const double[:, ::1] means, factors):
    """Return the Mixture of components with these factors (K, d, d) of the covariances."""
    cdef Py_ssize_t K = means.shape[0], d = means.shape[1]
    cdef const double[:, :, ::1] L = np.ascontiguousarray(factors.transpose(0, 2, 1))
    cdef Mixture mixture = Mixture(d, K)
    mixture.set(K, &weights[0], &means[0, 0], &L[0, 0, 0])
    return mixture


cdef Py_ssize_t nearest_component(
        Py_ssize_t d, Py_ssize_t K, const double *x, const double *means, const double *factors,
        double *z, double *square) noexcept nogil:
    """Return the component nearest to x, and the squared Mahalanobis distance.

    The factors (K, d, d) of the covariances are lower triangular; z (d,) is space to work in.
    """
    cdef Py_ssize_t j, k, m, which = 0
    cdef const double *L
    cdef double s, q
    square[0] = INFINITY
    for k in range(K):
        q = 0
        L = factors + k * d * d
        for j in range(d):      # z = L^-1 (x - m)
            s = 0
            for m in range(j):
                s += L[j * d + m] * z[m]
            z[j] = (x[j] - means[k * d + j] - s) / L[j * d + j]
            q += z[j] * z[j]
        if q < square[0]:
            square[0], which = q, k
    return which


def nearest(const double[:, ::1] points, const double[:, ::1] means,
            const double[:, :, ::1] factors):
    """Return (squared Mahalanobis distance (n,), index (n,)) of the component nearest to a point.

    The factors (K, d, d) of the covariances are lower triangular.
    """
    cdef Py_ssize_t i, K = means.shape[0], d = points.shape[1], n = points.shape[0]
    squares, indices = np.empty(n), np.empty(n, np.intp)
    cdef double[::1] least = squares, z = np.empty(d)
    cdef Py_ssize_t[::1] which = indices
    if (means.shape[1] != d or factors.shape[0] != K
            or not d == factors.shape[1] == factors.shape[2]):
        raise ValueError("points (n, d), means (K, d) and factors (K, d, d) must fit each other")
    with nogil:
        for i in range(n):
            which[i] = nearest_component(d, K, &points[i, 0], &means[0, 0], &factors[0, 0, 0],
                                         &z[0], &least[i])
    return squares, indices


def expect(const double[:, ::1] states, const double[::1] weights, const double[:, ::1] means,
           factors):
    """Make the E step of EM under a mixture without tails.

    Returns
    -------
    n : (K,) array, sums of responsibilities.
    sums : (K, d) array, of states.
    squares : (K, d, d) array, of states times their transposes.
    log_likelihood : float, without the factor (2 pi)^(-d/2) of each state.
    """
    cdef Py_ssize_t i, k, K = means.shape[0], d = means.shape[1]
    cdef Mixture mixture = packed(weights, means, factors)
    n_array, sums_array, squares_array = np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d))
    cdef double[::1] n = n_array, r = mixture.q
    cdef double[:, ::1] sums = sums_array
    cdef double[:, :, ::1] squares = squares_array
    cdef double log_likelihood = 0, share
    cdef const double *x
    with nogil:
        for i in range(states.shape[0]):
            x = &states[i, 0]
            log_likelihood += mixture.shares(x)
            for k in range(K):
                share = r[k]
                if share < NEGLIGIBLE:
                    continue
                n[k] += share
                fk_mixture_add(d, share, x, &sums[k, 0], &squares[k, 0, 0])
    return n_array, sums_array, squares_array, log_likelihood
