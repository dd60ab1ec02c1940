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
from libc.math cimport INFINITY, exp, fabs, log1p
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport AGAIN, DECIDED, Chain
from fastkam._core.linalg.dense cimport copy
from fastkam._core.engine.rng cimport random_standard_uniform
from fastkam._core.samplers.hamiltonian cimport NONE, Hamiltonian
from fastkam._core.engine.step cimport copy_point, keep_point, own_of, point_size, recall_point
from fastkam._core.engine.sums cimport log_add

from fastkam._core.engine.fields import Field
from fastkam._core.engine.ranges import BadField
from fastkam._core.samplers.hamiltonian import Hamiltonian as Base

cdef extern from "trajectory.h" nogil:
    bint turns "fk_turns" (
        Py_ssize_t d, const double *a_first, const double *a_last, const double *a_rho,
        const double *b_first, const double *b_last, const double *b_rho, double *rho)

cdef enum:
    X = 0           # rows of an end of the trajectory
    P = 1
    G = 2
    FIRST = 0       # rows of a subtrajectory: momenta of its first and last point, sum of all;
    LAST = 1        # for one point they are equal, and only FIRST is set
    RHO = 2


cdef class NUTS(Hamiltonian):
    LANES = True
    FIELDS = Base.FIELDS | {
        "ends": Field("point, momentum, gradient at both ends of the trajectory",
                      ("two", "three", "d")),
        "rho": Field("sum of the trajectory's momenta", ("d",)),
        "log_w": Field("log weight of the trajectory"),
        "draw": Field("the point drawn from it, with H - H_0 as its own number", ("point",)),
        "stack": Field("subtrajectories that wait to be merged", ("levels", "three", "d")),
        "new_log_w": Field("log weight of the points of this doubling"),
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
    cdef public double log_w
    cdef public double[::1] draw
    cdef public double[:, :, ::1] stack
    cdef public double new_log_w
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
        cdef int end
        for end in range(2):
            copy(c.d, c.x, &self.ends[end, X, 0])
            copy(c.d, &self.p[0], &self.ends[end, P, 0])
            copy(c.d, c.grad_x, &self.ends[end, G, 0])
        copy(c.d, &self.p[0], &self.rho[0])
        self.eps = exp(self.log_eps)
        self.log_w = self.sum_alpha = self.worst = 0
        self.depth = self.n_steps = self.diverging = self.moved = 0
        self.double_trajectory(c)
        return 0

    cdef void double_trajectory(self, Chain *c) noexcept nogil:
        """Choose a direction, and take the first step from that end."""
        self.direction = random_standard_uniform(c.rng) < 0.5
        self.leaves = 0
        self.new_log_w = -INFINITY
        copy(c.d, &self.ends[self.direction, P, 0], &self.p[0])
        self.step(c, &self.ends[self.direction, X, 0], &self.ends[self.direction, G, 0])

    cdef double signed_eps(self) noexcept nogil:
        return self.eps if self.direction else -self.eps

    cdef void step(self, Chain *c, const double *x, const double *grad) noexcept nogil:
        self.first_kick(c, self.signed_eps(), grad)
        self.drift(c, self.signed_eps(), x)

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
        self.sum_alpha += min(1.0, exp(-error))
        self.offer(c, -error)
        top = self.push_momentum(c.d)
        size = self.leaves
        while size & 1 == 0:
            top -= 1
            if self.merge(c.d, top, size == self.leaves):
                return self.decide(c)
            size >>= 1
        if self.leaves < 1 << self.depth:
            self.step(c, c.y, c.grad_y)
            return AGAIN
        return self.extend(c)

    cdef void offer(self, Chain *c, double log_w) noexcept nogil:
        """Add the weight of y to that of the doubling, and draw y from its points so far or not."""
        cdef double more = log_w - self.new_log_w
        # e^b / (e^a + e^b), and log(e^a + e^b), with the exponential that does not overflow
        cdef double less = exp(-fabs(more))
        if random_standard_uniform(c.rng) < (1 if more > 0 else less) / (1 + less):
            keep_point(c, -log_w, &self.new_draw[0])
        self.new_log_w = max(self.new_log_w, log_w) + log1p(less)

    cdef int64_t push_momentum(self, Py_ssize_t d) noexcept nogil:
        """Push y as a subtrajectory of one point; return its place, the number of bits set."""
        cdef int64_t top = 0, n = self.leaves
        while n:
            top += n & 1
            n >>= 1
        copy(d, &self.p[0], &self.stack[top, FIRST, 0])
        self.leaves += 1
        return top

    cdef bint merge(self, Py_ssize_t d, int64_t a, bint points) noexcept nogil:
        """Merge the two subtrajectories on top of the stack, into a; return True if it turns.

        `points` is True if they have one point each.
        """
        cdef int64_t b = a + 1
        cdef int last = FIRST if points else LAST, rho = FIRST if points else RHO
        if turns(d, &self.stack[a, FIRST, 0], &self.stack[a, last, 0], &self.stack[a, rho, 0],
                 &self.stack[b, FIRST, 0], &self.stack[b, last, 0], &self.stack[b, rho, 0],
                 &self.stack[a, RHO, 0]):
            return True
        copy(d, &self.stack[b, last, 0], &self.stack[a, LAST, 0])
        return False

    cdef int extend(self, Chain *c) except -1 nogil:
        """Add a complete doubling that does not turn to the trajectory, and continue."""
        cdef double *new_end = &self.ends[self.direction, 0, 0]
        cdef int last = FIRST if self.depth == 0 else LAST, rho = FIRST if self.depth == 0 else RHO
        cdef bint stop
        if random_standard_uniform(c.rng) < exp(self.new_log_w - self.log_w):
            copy_point(c, &self.new_draw[0], &self.draw[0])
            self.moved = True
        self.log_w = log_add(self.log_w, self.new_log_w)
        self.depth += 1
        stop = turns(c.d, &self.ends[1 - self.direction, P, 0], new_end + c.d, &self.rho[0],
                     &self.stack[0, FIRST, 0], &self.stack[0, last, 0], &self.stack[0, rho, 0],
                     &self.rho[0])
        if stop or self.depth >= self.max_depth:
            return self.decide(c)
        copy(c.d, c.y, new_end)
        copy(c.d, &self.p[0], new_end + c.d)
        copy(c.d, c.grad_y, new_end + 2 * c.d)
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
