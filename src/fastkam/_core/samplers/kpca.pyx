"""The kernel-PCA form of kernel adaptive Metropolis.

    K_ij = k(z_i, z_j),   H K H a_c = l_c a_c for the k largest l,   |a_c| = 1
    v_c(x) = M H a_c,     M = 2 [grad_x k(x, z_1), ..., grad_x k(x, z_n)]
    y ~ sum_c p_c N(x, gamma^2 I + nu^2 v_c(x) v_c(x)'),     p_c = (l_c + 1) / (sum l + k)

and the whole mixture enters the acceptance ratio. nu and z are learned as in kernel adaptive
Metropolis; the eigenvectors are renewed with z or, while z grows, when n is a power of 2 or full.

Sejdinovic, D., Strathmann, H., Lomeli Garcia, M., Andrieu, C. and Gretton, A. (2014). Kernel
adaptive Metropolis-Hastings. Proceedings of Machine Learning Research 32, 1665-1673. Appendix C.
A proposal draws a uniform variate for c, e ~ N(0, I) and u ~ N(0, 1): x + gamma e + nu u v_c.
With c = nu^2 |v|^2 / gamma^2, a component at D = y - x has the density

    N(D; 0, gamma^2 I) (1 + c)^(-1/2) exp(nu^2 (v'D)^2 / (2 gamma^4 (1 + c))),

whose first factor is the same in both directions. All this is in the coordinates in which the
metric is I: see kam.pyx.
"""
from libc.math cimport INFINITY, exp, log, log1p
from libc.stdint cimport int64_t
from libc.string cimport memset

from fastkam._core.engine.kernel cimport Chain
from fastkam._core.kam.kernel_gradient cimport gradients
from fastkam._core.linalg.dense cimport add_Lz, copy
from fastkam._core.engine.rng cimport normals, random_standard_uniform
from fastkam._core.samplers.kam cimport KernelAdaptiveMetropolis
from fastkam._core.engine.sums cimport LogSum, add_term, log_total

from fastkam._core.samplers import kam

from fastkam._core.engine.fields import Field
from fastkam._core.engine.kernel import uninterrupted
from fastkam._core.engine.state import zeros
from fastkam._core.linalg.decomposition import eigen

import numpy as np


cdef class KernelPCAMetropolis(KernelAdaptiveMetropolis):
    FIELDS = kam.KernelAdaptiveMetropolis.FIELDS | {
        "e": Field("the last standard normal draw; A^-1 (y - x) after the evaluation", ("d",)),
        "used": Field("points of the subsample when the directions were made", dtype="i8",
                      shared=True, least=0, most="subsample"),
        "a": Field("H a_c, the directions in feature space, as columns",
                   ("subsample", "components"), shared=True),
        "p": Field("the weights of the mixture", ("components",), shared=True, least=0),
    }
    cdef public int64_t used
    cdef public double[:, ::1] a
    cdef public double[::1] p
    cdef object kernel
    cdef Py_ssize_t components
    cdef double[::1] w                  # (8 blocks,)
    cdef double[:, ::1] M               # (subsample, d)
    cdef double[:, ::1] V_x             # (d, components), v_c at x and y as columns
    cdef double[:, ::1] V_y

    def __init__(self, d, function, *, kernel, components, subsample, **options):
        self.kernel, self.components = kernel, components
        super().__init__(d, function, subsample=subsample, **options)
        self.w = zeros(8 * self.z.shape[0])
        self.M = zeros((subsample, d))
        self.V_x = zeros((d, components))
        self.V_y = zeros((d, components))
        self.p[0] = 1.0         # before there are directions: N(x, gamma^2 I)

    def allocate(self, **sizes):
        super().allocate(components=self.components, **sizes)

    cdef void look(self, const double *x, double *V) noexcept nogil:
        """Compute v_c(x) = M H a_c, the columns of V (d, components)."""
        cdef int64_t i, j, k, n = self.components
        cdef double m
        cdef const double *a
        cdef double *v
        copy(self.d, x, &self.v[0])
        self.whiten(&self.v[0])
        self.function.k.length = self.length
        gradients(&self.function.k, self.used, self.d, &self.z[0, 0, 0], &self.v[0], &self.w[0],
                  &self.M[0, 0])
        memset(V, 0, self.d * n * sizeof(double))
        for i in range(self.used):
            a = &self.a[i, 0]
            for j in range(self.d):
                v, m = V + j * n, self.M[i, j]
                for k in range(n):
                    v[k] += m * a[k]

    cdef int move(self, Chain *c) noexcept nogil:
        cdef Py_ssize_t j, k = 0
        cdef double u = random_standard_uniform(c.rng)
        cdef double gamma = self.gamma(), along
        while k < self.components - 1 and u >= self.p[k]:
            u -= self.p[k]
            k += 1
        normals(c.rng, c.d, &self.e[0])
        normals(c.rng, 1, &along)
        along *= exp(self.log_nu)
        self.look(c.x, &self.V_x[0, 0])
        self.at_x.seen = True
        if not self.metric:
            for j in range(c.d):
                c.y[j] = c.x[j] + gamma * self.e[j] + along * self.V_x[j, k]
            return 0
        for j in range(c.d):
            self.v[j] = gamma * self.e[j] + along * self.V_x[j, k]
        copy(c.d, c.x, c.y)
        add_Lz(c.d, 1.0, &self.A[0], &self.v[0], c.y)
        return 0

    cdef double log_mixture(self, const double *V, const double *D) noexcept nogil:
        """Return log q(y|x), V at x and D = y - x, without the factor common to both directions."""
        cdef Py_ssize_t j, k, n = self.components
        cdef double gamma2 = self.gamma() ** 2
        cdef double h = exp(2 * self.log_nu) / gamma2
        cdef LogSum total = LogSum(-INFINITY, 0)
        cdef double c, along, v, exponent
        for k in range(n):
            if self.p[k] <= 0:
                continue
            c = along = 0
            for j in range(self.d):
                v = V[j * n + k]
                c += v * v
                along += v * D[j]
            c *= h
            exponent = (log(self.p[k]) - 0.5 * log1p(c)
                        + 0.5 * h * along * along / (gamma2 * (1 + c)))
            add_term(&total, exponent)
        return log_total(&total)

    cdef double reverse_log_q(self, Chain *c) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.d):
            self.e[j] = c.y[j] - c.x[j]
        self.whiten(&self.e[0])
        if not self.at_x.seen:          # restored between propose and consider
            self.look(c.x, &self.V_x[0, 0])
        self.look(c.y, &self.V_y[0, 0])
        # the densities are even in D
        return (self.log_mixture(&self.V_y[0, 0], &self.e[0])
                - self.log_mixture(&self.V_x[0, 0], &self.e[0]))

    cdef int learn_length(self) except -1 nogil:
        """Learn the length, then the directions: called whenever z has been renewed."""
        KernelAdaptiveMetropolis.learn_length(self)
        with gil:
            uninterrupted(self.learn_directions)
        return 0

    def learn_directions(self):
        n, k = self.n, min(self.n, self.components)
        z = np.asarray(self.z).transpose(0, 2, 1).reshape(-1, self.d)[:n]
        K = self.kernel.matrix(z, self.length)
        K = K - K.mean(axis=0)
        K = K - K.mean(axis=1, keepdims=True)
        eigenvalues, eigenvectors = eigen(0.5 * (K + K.T))
        largest, a = np.maximum(eigenvalues[:k], 0.0), eigenvectors[:, :k]
        # an eigenvector's sign is arbitrary: take + for its first element of about the largest size
        size = np.abs(a)
        first = (size > 0.9 * size.max(axis=0)).argmax(axis=0)
        a = a * np.sign(a[first, np.arange(k)])
        np.asarray(self.a)[...] = 0.0
        np.asarray(self.a)[:n, :k] = a - a.mean(axis=0)
        np.asarray(self.p)[...] = 0.0
        np.asarray(self.p)[:k] = (largest + 1) / (largest.sum() + k)
        self.used = n
