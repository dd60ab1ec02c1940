"""The No-U-Turn sampler, with multinomial draws from the trajectory.

    weight of a point: exp(H_0 - H),   H = -log pi(x) + |p|^2 / 2

From the start, trajectories of 1, 2, 4, ... points are added, each forward or backward in time at
random, until a (sub)trajectory turns: with rho the sum of its momenta, p'rho <= 0 at one of its
ends. The same condition is checked for each half together with the nearest point of the other half.
Among the points that are added a point is drawn by the weights: each replaces the former one with
probability (its weight / the weight of all so far). The point drawn from them replaces that of the
trajectory with probability min(1, weight of the new points / weight of the trajectory).

Subtrajectories are merged like carries in a binary counter: after the i-th point there are as many
merges as i has trailing zeros. So there is no recursion, and a step can stop after any point.

Hoffman, M. D. and Gelman, A. (2014). The No-U-Turn sampler. Journal of Machine Learning Research
15, 1593-1623. Betancourt, M. (2017). A conceptual introduction to Hamiltonian Monte Carlo.
arXiv:1701.02434, appendix A: the weights and the criterion.
"""
from libc.math cimport INFINITY, exp, fabs
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport AGAIN, DECIDED, Chain
from fastkam._core.linalg.dense cimport copy
from fastkam._core.engine.rng cimport random_standard_uniform
from fastkam._core.samplers.hamiltonian cimport NONE, Hamiltonian
from fastkam._core.engine.step cimport copy_point, keep_point, own_of, point_size, recall_point

from fastkam._core.engine.fields import Field
from fastkam._core.engine.ranges import BadField
from fastkam._core.samplers.hamiltonian import Hamiltonian as Base

cdef extern from "trajectory.h" nogil:
    bint turns "fk_turns" (
        Py_ssize_t d, const double *a_first, const double *a_last, const double *a_rho,
        const double *b_first, const double *b_last, const double *b_rho, double *rho)
    bint two_turn "fk_two_turn" (Py_ssize_t d, const double *a, const double *b, double *rho)

cdef enum:
    X = 0           # rows of an end of the trajectory
    P = 1
    G = 2
    FIRST = 0       # rows of a subtrajectory: momenta of its first and last point, sum of all;
    LAST = 1        # for one point they are equal, and only FIRST is set
    RHO = 2

cdef double MOST = 1e200    # weights


cdef class NUTS(Hamiltonian):
    LANES = True
    FIELDS = Base.FIELDS | {
        "ends": Field("point, momentum, gradient at both ends of the trajectory",
                      ("two", "three", "d")),
        "rho": Field("sum of the trajectory's momenta", ("d",)),
        "weight": Field("weight of the trajectory", least=0),
        "log_unit": Field("log of the unit of weights, above 0 where H falls by hundreds", least=0),
        "draw": Field("the point drawn from it, with H - H_0 as its own number", ("point",)),
        "stack": Field("subtrajectories that wait to be merged", ("levels", "three", "d")),
        "new_weight": Field("weight of the points of this doubling", least=0),
        "new_draw": Field("the point drawn from these", ("point",)),
        "direction": Field("in which the trajectory grows: 0 backward, 1 forward", dtype="i8",
                           least=0, most=1),
        "depth": Field("doublings made", dtype="i8", stat="tree_depth", least=0, below="levels"),
        "leaves": Field("points of this doubling", dtype="i8", least=0),
        "n_steps": Field("leapfrog steps made", dtype="i8", stat="n_steps", least=0),
        "diverging": Field("whether H rose by more than the limit", dtype="i8", stat="diverging",
                           least=0, most=1),
        "moved": Field("whether the point drawn is not the start", dtype="i8", least=0, most=1),
        "sum_alpha": Field("sum of min(1, weight) over the points"),
        "worst": Field("largest |H - H_0|"),
    }
    cdef public double[:, :, ::1] ends
    cdef public double[::1] rho
    cdef public double weight
    cdef public double log_unit
    cdef public double[::1] draw
    cdef public double[:, :, ::1] stack
    cdef public double new_weight
    cdef public double[::1] new_draw
    cdef public int64_t direction
    cdef public int64_t depth
    cdef public int64_t leaves
    cdef public int64_t n_steps
    cdef public int64_t diverging
    cdef public int64_t moved
    cdef public double sum_alpha
    cdef public double worst
    cdef int64_t max_depth
    cdef double error_limit

    def __init__(self, d, *, int64_t max_depth, double divergence_threshold, **options):
        super().__init__(d, two=2, three=3, levels=max_depth + 1, point=point_size(d), **options)
        self.max_depth, self.error_limit = max_depth, divergence_threshold

    def check_relations(self, state, step):
        super().check_relations(state, step)
        if state["leaves"] > 1 << int(state["depth"]):
            raise BadField("leaves", f"must be at most 2^depth, 2^{state['depth']}, not "
                                     f"{state['leaves']}")

    cdef int launch(self, Chain *c) except -1 nogil:
        self.eps = exp(self.log_eps)
        self.weight = 1
        self.log_unit = self.sum_alpha = self.worst = 0
        self.depth = self.n_steps = self.diverging = self.moved = 0
        self.double_trajectory(c)
        return 0

    cdef void double_trajectory(self, Chain *c) noexcept nogil:
        """Choose a direction, and take the first step from that end."""
        cdef double *end
        self.direction = random_standard_uniform(c.rng) < 0.5
        self.leaves = 0
        self.new_weight = 0
        if self.depth == 0:         # x is both ends
            self.set_end(c, 1 - self.direction, c.x, c.grad_x)
            self.kick_and_drift(c, self.signed_eps(), c.x, c.grad_x)
            return
        end = &self.ends[self.direction, 0, 0]
        copy(c.d, end + P * c.d, &self.p[0])
        self.kick_and_drift(c, self.signed_eps(), end, end + G * c.d)

    cdef void set_end(
            self, Chain *c, Py_ssize_t k, const double *x, const double *grad) noexcept nogil:
        copy(c.d, x, &self.ends[k, X, 0])
        copy(c.d, &self.p[0], &self.ends[k, P, 0])
        copy(c.d, grad, &self.ends[k, G, 0])

    cdef double signed_eps(self) noexcept nogil:
        return self.eps if self.direction else -self.eps

    cdef int consider(self, Chain *c) except -1 nogil:
        cdef double error = INFINITY
        cdef int64_t top, size
        if self.searching > NONE:
            return self.search(c)
        if c.logp_y > -INFINITY:
            error = self.last_kick(c, self.signed_eps()) - self.H0
        self.n_steps += 1
        self.worst = max(self.worst, fabs(error))
        self.diverging = not error <= self.error_limit
        if self.diverging:
            return self.decide(c)
        self.offer(c, error)
        top = self.push_momentum(c.d)
        size = self.leaves
        while size & 1 == 0:
            top -= 1
            if self.merge(c.d, top, size == self.leaves):
                return self.decide(c)
            size >>= 1
        if self.leaves == 1 << self.depth:
            return self.extend(c)
        if size < self.leaves:
            copy(c.d, &self.p[0], &self.stack[top, LAST, 0])
        self.kick_and_drift(c, self.signed_eps(), c.y, c.grad_y)
        return AGAIN

    cdef void offer(self, Chain *c, double error) noexcept nogil:
        """Add the weight of y to that of the doubling, and draw y from its points so far or not."""
        cdef double w = exp(-error - self.log_unit), less
        if w > MOST:
            less = exp(error + self.log_unit)
            self.weight *= less
            self.new_weight *= less
            self.log_unit = -error
            w = 1
        self.sum_alpha += 1 if error <= 0 else exp(-error)
        self.new_weight += w
        if random_standard_uniform(c.rng) * self.new_weight < w:
            keep_point(c, error, &self.new_draw[0])

    cdef int64_t push_momentum(self, Py_ssize_t d) noexcept nogil:
        """Push y as a subtrajectory of one point; return its place, the number of bits set."""
        cdef int64_t top = 0, n = self.leaves
        while n:
            top += n & 1
            n >>= 1
        copy(d, &self.p[0], &self.stack[top, FIRST, 0])
        self.leaves += 1
        return top

    cdef bint merge(self, Py_ssize_t d, int64_t top, bint points) noexcept nogil:
        """Merge the two subtrajectories from `top` on, which end at y; return True if it turns.

        `points` is True if they have one point each.
        """
        cdef double *a = &self.stack[top, 0, 0]
        cdef double *b = &self.stack[top + 1, 0, 0]
        if points:
            return two_turn(d, a, b, a + RHO * d)
        return turns(d, a, a + LAST * d, a + RHO * d, b, &self.p[0], b + RHO * d, a + RHO * d)

    cdef int extend(self, Chain *c) except -1 nogil:
        """Add a complete doubling that does not turn to the trajectory, and continue."""
        cdef const double *start = &self.ends[1 - self.direction, P, 0]
        cdef const double *end = &self.ends[self.direction, P, 0]
        cdef const double *new = &self.stack[0, 0, 0]
        cdef bint stop
        if random_standard_uniform(c.rng) * self.weight < self.new_weight:
            copy_point(c, &self.new_draw[0], &self.draw[0])
            self.moved = True
        self.weight += self.new_weight
        if self.depth == 0:
            stop = two_turn(c.d, start, new, &self.rho[0])
        else:
            stop = turns(c.d, start, end, &self.rho[0], new, &self.p[0], new + RHO * c.d,
                         &self.rho[0])
        self.depth += 1
        if stop or self.depth >= self.max_depth:
            return self.decide(c)
        self.set_end(c, self.direction, c.y, c.grad_y)
        self.double_trajectory(c)
        return AGAIN

    cdef int decide(self, Chain *c) except -1 nogil:
        """Copy the point drawn to y; alpha is the mean over the trajectory."""
        c.accepted = self.moved
        c.alpha = self.sum_alpha / self.n_steps
        if self.moved:
            recall_point(c, &self.draw[0])
        self.set_energies(own_of(&self.draw[0]) if self.moved else 0, self.worst)
        return DECIDED
