"""Samplers that must fail where the density is estimated, or where a surrogate goes before it."""
from fastkam._core.kernel cimport AGAIN, SAME, Chain
from fastkam._core.linalg cimport copy
from fastkam._core.rng cimport normals
from fastkam._core.samplers.autorwm cimport AutoStepRandomWalk
from fastkam._core.samplers.delayed cimport DelayedAcceptance
from fastkam._core.samplers.dram cimport DelayedRejectionAdaptiveMetropolis
from fastkam._core.samplers.rwm cimport RandomWalk


cdef class EstimateRepeated(RandomWalk):
    """A random walk that estimates the density at x anew at every step."""
    cdef int propose(self, Chain *c) except -1 nogil:
        normals(c.rng, c.n_aux, c.v)
        c.target.noisy(c.d, c.x, c.n_aux, c.v, &c.logp_x, c.target.data)
        return RandomWalk.propose(self, c)


cdef class RootForgotten(RandomWalk):
    """A random walk whose noise is v = rho u + (1 - rho) xi, which shrinks."""
    cdef int propose(self, Chain *c) except -1 nogil:
        cdef Py_ssize_t i
        cdef double rho = 0.5
        normals(c.rng, c.n_aux, c.v)
        for i in range(c.n_aux):
            c.v[i] = rho * c.u[i] + (1 - rho) * c.v[i]
        c.noise[0] = SAME
        return RandomWalk.propose(self, c)


cdef class SecondEstimate(RandomWalk):
    """A random walk that asks for another estimate, and does not say with which noise."""
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.considers = True

    cdef int consider(self, Chain *c) except -1 nogil:
        return AGAIN


cdef class OneNoiseForTwoTries(DelayedRejectionAdaptiveMetropolis):
    """Delayed rejection whose two tries share their noise."""
    cdef int consider(self, Chain *c) except -1 nogil:
        cdef int answer = DelayedRejectionAdaptiveMetropolis.consider(self, c)
        c.noise[0] = SAME
        return answer


cdef class NoiseAlwaysTaken(AutoStepRandomWalk):
    """A search for the step size that begins with new noise, whatever the estimate with it."""
    cdef int move_noise(self, Chain *c) except -1 nogil:
        c.logp_x = c.logp_y
        copy(c.n_aux, c.v, c.u)
        return AutoStepRandomWalk.move_noise(self, c)


cdef class WithoutCorrection(DelayedAcceptance):
    """A second stage that forgets that there was a first."""
    cdef int consider(self, Chain *c) except -1 nogil:
        if not self.passed:
            return DelayedAcceptance.consider(self, c)
        return self.decide(c, c.beta * (c.logp_y - c.logp_x))
