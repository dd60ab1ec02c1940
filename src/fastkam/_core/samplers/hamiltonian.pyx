"""Hamiltonian dynamics in whitened momenta: metric, step size, leapfrog, and their adaptation.

    H = -log pi(x) + |p|^2 / 2,   p ~ N(0, I),   F F' = Sigma, the inverse mass matrix

    p <- p + eps/2 F' grad log pi(x)
    x <- x + eps F p
    p <- p + eps/2 F' grad log pi(x)

which is the leapfrog step for momenta F'^-1 p of mass Sigma^-1: velocities and momenta are the same
vector, and a metric needs two products, with F and with F'. F is diagonal, s; or lower triangular,
L; or a diagonal and a low-rank matrix, s (I + U' w U), with orthonormal rows of U.

The step size is learned by dual averaging (Nesterov, Y. (2009). Primal-dual subgradient methods for
convex problems. Mathematical Programming 120, 221-259), in the form of Hoffman, M. D. and Gelman,
A. (2014). The No-U-Turn sampler. Journal of Machine Learning Research 15, 1593-1623, Algorithm 5.

The metric is learned from the states of two overlapping, growing windows: the older one is used
until the younger is long enough to replace it. From draws alone, Sigma is their covariance; with
gradients it minimizes the Fisher divergence to a Gaussian (samplers/metrics.py): on the diagonal,
s_i^2 = sd(x_i) / sd(grad_i), in general the Sigma with Sigma cov(grad) Sigma = cov(x). Seyboldt,
A., Carlson, E. L. and Carpenter, B. (2026). Preconditioning Hamiltonian Monte Carlo by minimizing
Fisher divergence.
"""
from libc.math cimport INFINITY, exp, fabs, log, pow, sqrt
from libc.stdint cimport INT64_MAX, int64_t
from libc.string cimport memmove, memset

from fastkam._core.engine.kernel cimport AGAIN, Chain, Kernel
from fastkam._core.linalg.dense cimport add_Lz, add_products, copy, dot, long_square, times_Lt
from fastkam._core.linalg.moments cimport add_to_variances
from fastkam._core.engine.step cimport draw_normals

from fastkam._core.engine.fields import Field
from fastkam._core.engine.ranges import BadField
from fastkam._core.engine.kernel import uninterrupted
from fastkam._core.engine.state import zeros

import numpy as np

cdef extern from "leapfrog.h" nogil:
    void kick_and_drift "fk_kick_and_drift" (Py_ssize_t d, double eps, const double *s,
                                             const double *grad, double *p, const double *x,
                                             double *y)
    double last_kick "fk_last_kick" (Py_ssize_t d, double eps, const double *s,
                                     const double *grad, double *p)

cdef enum:
    OLD = 0                 # windows
    YOUNG = 1
    X = 0                   # rows of the moments: mean, and sum of squares after it
    GRAD = 2

# windows and the last part of warm-up as in Seyboldt et al. (2026)
cdef enum:
    FIRST_WINDOW = 10       # draws
    LEAST = 4               # least number of draws from which a metric is learned
    MORE = 5                # draws that the last variances count as: Stan's n / (n + 5)
cdef double GROWTH = 1.5    # factor from one window to the next
cdef double FINAL = 0.15    # last part of warm-up, in which only the step size is learned

# dual averaging, and the search for a first step size: Hoffman and Gelman (2014), section 3.2
cdef double SHRINKAGE, T0, KAPPA
SHRINKAGE, T0, KAPPA = 0.05, 10.0, 0.75
cdef double LOG_2 = log(2.0), LOG_0_8 = log(0.8)    # where they have 1/2, Stan has 0.8
cdef double MOST_LOG_EPS = 50                       # |log eps| at which the search ends
cdef double LEAST_SLOPE = 1e-10, MOST_SLOPE = 1e10  # of a start, that say something of a scale


cdef class Hamiltonian(Kernel):
    """The metric, the step size and the leapfrog steps of HMC and NUTS.

    Parameters
    ----------
    kind : str
        "diagonal", "dense" or "low-rank".
    factor : ndarray
        F at the start: (d,) or (d, d), lower triangular.
    estimate : callable
        (draws, gradients) -> the new metric, for the kinds that are not diagonal.
    """
    GRADIENT = True
    SEVERAL = True
    FIELDS = {
        "s": Field("diagonal of the metric's factor F", ("d",), shared=True, learned=True),
        "L": Field("lower-triangular factor F of a dense metric", ("dense", "dense"), shared=True,
                   learned=True),
        "U": Field("orthonormal directions of a low-rank metric, scaled by s",
                   ("ranks", "low_rank"), shared=True),
        "w": Field("factor by which F is longer along each, less 1", ("ranks",), shared=True),
        "rank": Field("directions in use", dtype="i8", shared=True, least=0, most="ranks"),
        "log_eps": Field("log of the step size", shared=True, learned=True),
        "log_eps_mean": Field("its weighted mean, used when adaptation has ended", shared=True),
        "mu": Field("the log step size that dual averaging shrinks to", shared=True),
        "H_mean": Field("mean of alpha* - alpha", shared=True),
        "n_eps": Field("steps since dual averaging began", dtype="i8", shared=True, least=0),
        "searching": Field("search for a step size: -1 wanted, 0 none, > 0 under way", dtype="i8",
                           least=WANTED, most=HALVING),
        "age": Field("adaptations made", dtype="i8", shared=True, least=0),
        "window": Field("steps after which the young window replaces the old one", dtype="i8",
                        shared=True, least=1),
        "counts": Field("draws in each window, with forgotten ones in the young one", ("windows",),
                        "i8", shared=True, least=0),
        "moments": Field("running mean and sum of squares of draws and of gradients",
                         ("windows", "statistics", "d"), shared=True),
        "draws": Field("draws of the old window; those of the young one are last", ("rows", "d"),
                       shared=True, finite=True),
        "gradients": Field("gradients at these", ("rows", "d"), shared=True, finite=True),
        "p": Field("momentum", ("d",)),
        "H0": Field("H where the trajectory begins"),
        "eps": Field("leapfrog step size of the trajectory", stat="step_size", least=0),
        "energy": Field("H of the accepted proposal", stat="energy", least=-INFINITY),
        "energy_error": Field("H of the accepted proposal less that of the initial point",
                              stat="energy_error", least=-INFINITY),
        "max_energy_error": Field("largest |H - H_0| along the trajectory",
                                  stat="max_energy_error", least=0),
    }

    def __init__(self, Py_ssize_t d, *, kind, factor, estimate, rows, ranks, double step_size,
                 double target_acceptance, learns_metric, from_gradients, **sizes):
        kinds = {"diagonal": DIAGONAL, "dense": DENSE, "low-rank": LOW_RANK}
        self.kind = kinds[kind]
        flat = self.kind == DIAGONAL
        self.allocate(d=d, dense=d if kind == "dense" else 0, low_rank=d, ranks=ranks, windows=2,
                      statistics=4, rows=0 if flat else rows, **sizes)
        self.u = zeros(d)
        np.asarray(self.s)[...] = 1.0
        if kind == "dense":
            np.asarray(self.L)[...] = np.diag(factor) if factor.ndim == 1 else factor.T
        else:
            np.asarray(self.s)[...] = factor
        self.estimate = estimate
        self.learns_metric, self.from_gradients = learns_metric, from_gradients
        self.target_acceptance = target_acceptance
        self.log_eps = self.log_eps_mean = log(step_size)
        self.searching = WANTED
        self.window = FIRST_WINDOW
        self.normals_first = True

    def check_relations(self, state, step):
        rows = self.sizes["rows"]
        if self.kind != DIAGONAL and state["counts"][OLD] > rows:
            raise BadField("counts", f"must be at most {rows} in the old window, whose draws are "
                                     f"kept, not {state['counts'][OLD]}")

    # ---- the metric ----

    cdef void F_times(self, double a, const double *v, double *y) noexcept nogil:
        """y += a F v"""
        cdef Py_ssize_t i, j
        cdef double b
        if self.kind == DENSE:
            add_Lz(self.d, a, &self.L[0, 0], v, y)
            return
        add_products(self.d, a, &self.s[0], v, y)
        for j in range(self.rank):
            b = a * self.w[j] * dot(self.d, &self.U[j, 0], v)
            for i in range(self.d):
                y[i] += b * self.s[i] * self.U[j, i]

    cdef void Ft_times(self, double a, const double *g, double *v) noexcept nogil:
        """v += a F' g"""
        cdef Py_ssize_t i, j
        cdef double b
        cdef double *u = &self.u[0]
        if self.kind == DENSE:
            times_Lt(self.d, a, &self.L[0, 0], g, u)
            for i in range(self.d):
                v[i] += u[i]
            return
        for i in range(self.d):
            u[i] = self.s[i] * g[i]
            v[i] += a * u[i]
        for j in range(self.rank):
            b = a * self.w[j] * dot(self.d, &self.U[j, 0], u)
            for i in range(self.d):
                v[i] += b * self.U[j, i]

    # ---- a leapfrog step is kick_and_drift, an evaluation, last_kick ----

    cdef void draw_momentum(self, Chain *c) noexcept nogil:
        draw_normals(c, c.d, &self.p[0])
        self.H0 = 0.5 * long_square(c.d, &self.p[0]) - c.logp_x

    cdef void kick_and_drift(
            self, Chain *c, double eps, const double *x, const double *grad) noexcept nogil:
        """Begin the step of size eps from x: p to its middle, y to its end."""
        if self.kind != DENSE and self.rank == 0:
            kick_and_drift(c.d, eps, &self.s[0], grad, &self.p[0], x, c.y)
            return
        self.Ft_times(0.5 * eps, grad, &self.p[0])
        if x != c.y:
            copy(c.d, x, c.y)
        self.F_times(eps, &self.p[0], c.y)

    cdef double last_kick(self, Chain *c, double eps) noexcept nogil:
        """Complete p, and compute H."""
        if self.kind != DENSE and self.rank == 0:
            return 0.5 * last_kick(c.d, eps, &self.s[0], c.grad_y, &self.p[0]) - c.logp_y
        self.Ft_times(0.5 * eps, c.grad_y, &self.p[0])
        return 0.5 * long_square(c.d, &self.p[0]) - c.logp_y

    # ---- the step size ----

    cdef int propose(self, Chain *c) except -1 nogil:
        if self.searching == WANTED and c.adapting:
            self.searching = BEGUN
            if self.learns_metric:
                self.first_metric(c)
            return self.try_step(c)
        self.draw_momentum(c)
        return self.launch(c)

    cdef int try_step(self, Chain *c) noexcept nogil:
        """Begin one step of the current size from x, with a new momentum."""
        self.draw_momentum(c)
        self.kick_and_drift(c, exp(self.log_eps), c.x, c.grad_x)
        return 0

    cdef void set_energies(self, double error, double largest) noexcept nogil:
        """Record H - H_0 of the accepted proposal, and the largest |H - H_0|."""
        self.energy, self.energy_error = self.H0 + error, error
        self.max_energy_error = largest

    cdef int launch(self, Chain *c) except -1 nogil:
        """Begin the trajectory from x with the momentum p: fill y."""
        return 0

    cdef int search(self, Chain *c) except -1 nogil:
        """Double or halve the step size until one step's acceptance probability passes 0.8."""
        cdef double delta = INFINITY
        cdef bint good
        if c.logp_y > -INFINITY:
            delta = self.last_kick(c, exp(self.log_eps)) - self.H0
        good = delta < -LOG_0_8
        if self.searching == BEGUN:
            self.searching = DOUBLING if good else HALVING
        if good == (self.searching == DOUBLING) and fabs(self.log_eps) < MOST_LOG_EPS:
            self.log_eps += LOG_2 if good else -LOG_2
            self.try_step(c)
            return AGAIN
        self.searching = NONE
        self.restart_step_size()
        self.draw_momentum(c)
        self.launch(c)
        return AGAIN

    cdef void restart_step_size(self) noexcept nogil:
        self.mu = log(10.0) + self.log_eps
        self.H_mean = self.log_eps_mean = 0
        self.n_eps = 0

    cdef void learn_step_size(self, double alpha) noexcept nogil:
        cdef double n
        self.n_eps += 1
        n = <double>self.n_eps
        # a step of all sharers counts once in the sequence: if each counted, it would overshoot
        self.H_mean += (self.target_acceptance - alpha - self.H_mean) / (n + self.sharers * T0)
        self.log_eps = self.mu - sqrt(n / self.sharers) / SHRINKAGE * self.H_mean
        self.log_eps_mean += pow(n, -KAPPA) * (self.log_eps - self.log_eps_mean)

    # ---- adaptation ----

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        self.age += 1
        self.learn_step_size(c.alpha)
        if self.learns_metric:
            self.learn_metric(c)
        return 0

    cdef int freeze(self, Chain *c) except -1 nogil:
        if self.n_eps > 0:
            self.log_eps = self.log_eps_mean
        return 0

    cdef void first_metric(self, Chain *c) noexcept nogil:
        """Set s_i^2 = 1 / |grad_i|, which is used until there are draws."""
        cdef Py_ssize_t i
        cdef double g
        for i in range(self.d):
            g = fabs(c.grad_x[i])
            if LEAST_SLOPE < g < MOST_SLOPE:
                if self.kind == DENSE:
                    self.L[i, i] = 1 / sqrt(g)
                else:
                    self.s[i] = 1 / sqrt(g)

    cdef int learn_metric(self, Chain *c) except -1 nogil:
        """Add the state after the decision to both windows, and update the metric."""
        cdef int64_t young
        if (self.end_of_adaptation != INT64_MAX
                and self.t >= (1 - FINAL) * <double>self.end_of_adaptation):
            return 0
        self.remember(c)
        young = self.counts[YOUNG]
        if young >= self.window * self.sharers:
            self.window = <int64_t>(GROWTH * <double>self.window)
            self.forget(max(0, self.counts[OLD] - young))
            self.counts[YOUNG] = 0
            if self.kind != DIAGONAL:
                with gil:
                    uninterrupted(self.learn_shape)
        if self.kind == DIAGONAL and self.counts[OLD] >= LEAST * self.sharers:
            self.learn_diagonal()
        return 0

    cdef void remember(self, Chain *c) noexcept nogil:
        """Add the state and its gradient to both windows."""
        cdef const double *x = c.y if c.accepted else c.x
        cdef const double *grad = c.grad_y if c.accepted else c.grad_x
        cdef Py_ssize_t window
        if self.kind == DIAGONAL:
            for window in range(2):
                self.counts[window] += 1
                add_to_variances(self.d, self.counts[window], x, &self.moments[window, X, 0])
                add_to_variances(self.d, self.counts[window], grad, &self.moments[window, GRAD, 0])
            return
        if self.counts[OLD] == self.draws.shape[0]:
            self.forget(self.counts[OLD] // 2)
        copy(self.d, x, &self.draws[self.counts[OLD], 0])
        copy(self.d, grad, &self.gradients[self.counts[OLD], 0])
        self.counts[OLD] += 1
        self.counts[YOUNG] += 1

    cdef void forget(self, int64_t n) noexcept nogil:
        """Drop the n oldest draws, or the moments of the old window."""
        self.counts[OLD] -= n
        if self.kind == DIAGONAL:
            copy(4 * self.d, &self.moments[YOUNG, 0, 0], &self.moments[OLD, 0, 0])
            memset(&self.moments[YOUNG, 0, 0], 0, 4 * self.d * sizeof(double))
            return
        memmove(&self.draws[0, 0], &self.draws[n, 0],
                self.counts[OLD] * self.d * sizeof(double))
        memmove(&self.gradients[0, 0], &self.gradients[n, 0],
                self.counts[OLD] * self.d * sizeof(double))

    cdef void learn_diagonal(self) noexcept nogil:
        """Set s_i^2 = sd(x_i) / sd(grad_i), or var(x_i) with the last value as MORE draws."""
        cdef Py_ssize_t i
        cdef double n = <double>self.counts[OLD], v
        for i in range(self.d):
            v = self.moments[OLD, X + 1, i]
            if self.from_gradients:
                v = sqrt(v / self.moments[OLD, GRAD + 1, i])
            else:
                v = (v + MORE * self.s[i] * self.s[i]) / (n + MORE)
            if 0 < v < INFINITY:    # otherwise nothing has moved
                self.s[i] = sqrt(v)

    def learn_shape(self):
        n = self.counts[OLD]
        draws, gradients = np.asarray(self.draws)[:n], np.asarray(self.gradients)[:n]
        if n < LEAST or not (np.ptp(draws, axis=0).all() and np.ptp(gradients, axis=0).all()):
            return
        try:
            s, U, w = self.estimate(draws, gradients)
        except np.linalg.LinAlgError:   # numbers of very different sizes: keep the last
            return
        if self.kind == DENSE:
            np.asarray(self.L)[...] = s.T
            return
        np.asarray(self.s)[...] = s
        self.rank = len(w)
        np.asarray(self.U)[:self.rank] = U
        np.asarray(self.w)[:self.rank] = w
