"""The noise of an estimated density: how a proposal's is drawn given that of the state.

    fresh        v ~ N(0, I)
    correlated   v = rho u + sqrt(1 - rho^2) xi,   xi ~ N(0, I)
    block        v = u except for one block of its elements, chosen at random, which is drawn again

Each is reversible with respect to N(0, I).

Andrieu, C. and Roberts, G. O. (2009). The pseudo-marginal approach for efficient Monte Carlo
computations. Annals of Statistics 37, 697-725. Deligiannidis, G., Doucet, A. and Pitt, M. K.
(2018). The correlated pseudo-marginal method. Journal of the Royal Statistical Society B 80,
839-870. Tran, M.-N., Kohn, R., Quiroz, M. and Villani, M. (2016). The block pseudo-marginal
sampler. arXiv:1603.02485.
"""
from libc.math cimport sqrt
from libc.string cimport memmove

from fastkam._core.engine.rng cimport bitgen_t, integer, normal, normals
from fastkam._core.density.target cimport Refresh


cdef inline void refresh_noise(const Refresh *r, bitgen_t *rng, Py_ssize_t k, const double *u,
                               double *v) noexcept nogil:
    """Draw v (k,) given u (k,), which may be the same array."""
    cdef Py_ssize_t i, b
    cdef double s
    if r.correlation > 0:
        s = sqrt((1 - r.correlation) * (1 + r.correlation))
        for i in range(k):
            v[i] = r.correlation * u[i] + s * normal(rng)
    elif r.blocks > 1:
        memmove(v, u, k * sizeof(double))
        b = integer(rng, r.blocks)
        i = b * k // r.blocks
        normals(rng, (b + 1) * k // r.blocks - i, v + i)
    else:
        normals(rng, k, v)
