"""Replica exchange: chains at several temperatures that swap their states.

    rung r samples  pi_r = pi^beta_r q^(1 - beta_r),   1 = beta_0 > beta_1 > ... >= 0
    alpha(a, b) = min(1, exp((beta_a - beta_b) (W(x_b) - W(x_a)))),   W = log pi - log q

q, the reference, is a Gaussian, fitted to the states of all rungs during adaptation, or flat (W =
log pi). The fitted covariance is widened, by 1 + 2/sqrt(d) if not told otherwise: where the tails
of pi are longer than those of q, W is large, and a state there would swap with none. At beta = 0
the rung is drawn from q afresh. The scheme "even-odd" tries the pairs (0, 1), (2, 3), ... and
(1, 2), (3, 4), ... by turns;
"random" one pair of any two rungs. Rungs are moved by kernels of any kind, each with its own
adaptation; the state of rung 0 is the chain's. Where pi is estimated, all this holds of (x, u), u
the noise, and a swap exchanges both. A rung's x alone then has another law than pi_r, except at
beta = 1, which is the one asked for, and at 0.

The ladder is tuned in rounds, each as long as all before it, so that all neighbours swap equally
often: the rejection rates add up to the barrier Lambda(beta), and new rungs are put at equal
distances in Lambda. Round trips count how often a state has come from the hottest rung to the
coldest.

    log Z - log Z_q = sum_r log E_r+1 exp((beta_r - beta_r+1) W)               (stepping stones)
                    = integral of E_beta W over beta                           (thermodynamic)

Geyer, C. J. (1991). Markov chain Monte Carlo maximum likelihood. Computing Science and Statistics
23, 156-163. Syed, S., Bouchard-Cote, A., Deligiannidis, G. and Doucet, A. (2022). Non-reversible
parallel tempering. Journal of the Royal Statistical Society B 84, 321-350: scheme, barrier,
ladder. Surjanovic, N., Syed, S., Bouchard-Cote, A. and Campbell, T. (2022). Parallel tempering
with a variational reference. Advances in Neural Information Processing Systems 35. Xie, W. et al.
(2011). Improving marginal likelihood estimation for Bayesian phylogenetic model selection.
Systematic Biology 60, 150-160: stepping stones.
"""
from libc.math cimport INFINITY, exp, isnan, log
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from fastkam._core.kernel cimport AGAIN, DECIDE, DECIDED, FATAL, FRESH, Chain, Kernel
from fastkam._core.linalg cimport add_Lz, cholesky, copy, log_det_L, solve_L, square
from fastkam._core.rng cimport integer, normals, random_standard_exponential

import numpy as np

cdef enum:
    EVEN_ODD
    RANDOM
    COPY            # the released code of Dharamshi et al.: a swap copies one state over the other

cdef enum:
    N_BATCHES = 64

SCHEMES = {"even-odd": EVEN_ODD, "random": RANDOM, "copy": COPY}


cdef class Exchange(Kernel):
    FIELDS = {
        "ladder": (("rungs",), "inverse temperatures"),
        "x": (("rungs", "d"), "states; the first is the chain's"),
        "grad": (("rungs", "d"), "gradients of log pi there"),
        "logp": (("rungs",), "log pi there"),
        "logp_y": (("rungs",), "log pi at the proposals"),
        "log_ref": (("rungs",), "log q at the states"),
        "log_ref_y": (("rungs",), "log q at the proposals"),
        "slope": (("rungs", "d"), "gradients of log pi_r at the states"),
        "slope_y": (("rows", "d"), "gradients of log pi_r at all points of the step"),
        "level_y": (("rows",), "log pi_r there"),
        "waits": (("rungs",), "whether each rung has yet to decide", "i8"),
        "alpha": (("rungs",), "acceptance probabilities"),
        "E": (("rungs",), "-log U of the decisions"),
        "level": (("rungs",), "log pi_r at the states"),
        "log_q": (("rungs",), "log ratios of the proposal densities"),
        "accepted": (("rungs",), "decisions", "i8"),
        "begun": ((), "whether the rungs have states", "i8"),
        "moved": ((), "whether the chain has been displaced since", "i8"),
        "frozen": ((), "whether adaptation has ended", "i8"),
        "rounds": ((), "rounds of tuning made", "i8"),
        "replica": (("rungs",), "which of the replicas is at each rung", "i8"),
        "was_hot": (("rungs",), "whether each replica was at the hottest rung last", "i8"),
        "round_trips": ((), "ways from the hottest rung to the coldest", "i8"),
        "tried": (("rungs",), "swaps tried between each rung and the next"),
        "swapped": (("rungs",), "sum of their probabilities"),
        "mean": (("d",), "mean of the reference"),
        "L": (("d", "d"), "lower-triangular factor of its covariance"),
        "sum_x": (("d",), "mean of the states of this round"),
        "sum_xx": (("d", "d"), "sum of their products, centred; the lower triangle"),
        "n_x": ((), "how many"),
        "batch": ((), "batches that are full", "i8"),
        "batch_length": ((), "steps of a batch", "i8"),
        "in_batch": ((), "steps in the last", "i8"),
        "stones": (("batches", "rungs"), "log of the sum of exp((beta_r-1 - beta_r) W)"),
        "sums": (("batches", "rungs"), "sum of W"),
        "squares": (("batches", "rungs"), "sum of W^2"),
    }
    LEARNT = ("ladder",)

    def __cinit__(self, *args, **options):
        self.pointers, self.inner = NULL, NULL

    def __dealloc__(self):
        free(self.pointers)
        free(self.inner)

    def __init__(self, kernels, ladder, *, scheme, int64_t every, reference, double widening, fits,
                 tunes):
        cdef int r, R = len(kernels)
        d = kernels[0].d
        self.kernels = kernels
        self.rungs = R
        self.first = np.cumsum([0] + [kernel.width for kernel in kernels], dtype=np.int64)
        self.width = self.first[R]
        self.allocate(d=d, rungs=R, rows=self.width, batches=N_BATCHES)
        np.asarray(self.ladder)[...] = ladder
        np.asarray(self.replica)[...] = np.arange(R)
        self.u = np.zeros(d)
        self.scheme, self.every = SCHEMES[scheme], every
        self.proper, self.fits, self.tunes = reference is not None, fits, tunes
        self.widening = widening
        if self.proper:
            np.asarray(self.mean)[...] = reference[0]
            np.asarray(self.L)[...] = reference[1]
            self.find_norm()
        self.gradient = any(kernel.gradient for kernel in kernels)
        self.considers = True
        self.pointers = <void **>calloc(R, sizeof(void *))
        self.inner = <Chain *>calloc(R, sizeof(Chain))
        if self.pointers == NULL or self.inner == NULL:
            raise MemoryError
        for r in range(R):
            self.pointers[r] = <void *>kernels[r]
        self.clear()

    def parts(self):
        return {f"rung{r}": kernel for r, kernel in enumerate(self.kernels)}

    def restore(self, state):
        super().restore(state)
        self.find_norm()

    # ---- the law of a rung ----

    cdef void find_norm(self) noexcept nogil:
        """log of the reference's density where it is highest."""
        self.log_norm = -0.9189385332046727 * <double>self.d - log_det_L(self.d, &self.L[0, 0])

    cdef double log_reference(self, const double *x, double *slope) noexcept nogil:
        """log q(x), and its gradient where wanted; 0 where it is flat."""
        cdef Py_ssize_t i, j
        cdef double value, s
        cdef double *u = &self.u[0]
        if not self.proper:
            if slope != NULL:
                memset(slope, 0, self.d * sizeof(double))
            return 0.0
        for i in range(self.d):
            u[i] = x[i] - self.mean[i]
        solve_L(self.d, &self.L[0, 0], u)
        value = self.log_norm - 0.5 * square(self.d, u)
        if slope != NULL:       # -L'^-1 u
            for j in range(self.d - 1, -1, -1):
                s = -u[j]
                for i in range(j + 1, self.d):
                    s -= self.L[i, j] * slope[i]
                slope[j] = s / self.L[j, j]
        return value

    cdef double level_of(self, Chain *c, int r, double logp, double log_ref) noexcept nogil:
        """log pi_r, from log pi and log q."""
        cdef double b = self.ladder[r]
        if logp == -INFINITY:
            return log_ref if b == 0 else -INFINITY
        return b * c.beta * logp + (1 - b) * log_ref

    cdef void slope_of(self, Chain *c, int r, const double *x, const double *grad,
                       double *slope) noexcept nogil:
        """The gradient of log pi_r, from that of log pi."""
        cdef Py_ssize_t i
        cdef double b = self.ladder[r]
        self.log_reference(x, slope)
        for i in range(self.d):
            slope[i] = b * c.beta * grad[i] + (1 - b) * slope[i]

    cdef double excess(self, Chain *c, int r) noexcept nogil:
        """W at the state of a rung."""
        return c.beta * self.logp[r] - self.log_ref[r]

    cdef bint is_reference(self, int r) noexcept nogil:
        return self.proper and self.ladder[r] == 0

    # ---- propose: move, swap, then every rung proposes ----

    cdef int propose(self, Chain *c) except -1 nogil:
        cdef int r, row
        cdef Chain *p
        if not self.begun:
            self.begin(c)
        else:
            self.move(c)
            if self.frozen:
                self.add_to_batch(c)
            if c.t % self.every == 0:
                self.exchange(c)
        for r in range(self.rungs):
            p = self.connect(c, r)
            p.keep, p.log_q, self.waits[r] = 1, 0.0, True
            for row in range(self.first[r + 1] - self.first[r]):
                p.wanted[row] = row == 0
            p.logp_x = self.level[r] = self.level_of(c, r, self.logp[r], self.log_ref[r])
            if self.gradient:
                self.slope_of(c, r, p.x, &self.grad[r, 0], p.grad_x)
            if self.is_reference(r):
                normals(c.rng, c.d, &self.u[0])
                copy(c.d, &self.mean[0], p.y)
                add_Lz(c.d, 1.0, &self.L[0, 0], &self.u[0], p.y)
                p.noise[0] = FRESH
            else:
                (<Kernel>self.pointers[r]).propose(p)
            self.E[r] = random_standard_exponential(c.rng)
            self.log_q[r] = p.log_q
        c.keep = self.inner[0].keep
        return 0

    cdef Chain *connect(self, Chain *c, int r) noexcept nogil:
        """The chain of a rung, as its kernel sees it; all of it is in the fields."""
        cdef Chain *p = &self.inner[r]
        cdef int64_t first = self.first[r]
        self.target = c.target[0]
        self.target.hvp = NULL      # of log pi, not of log pi_r
        p.d, p.rng, p.target, p.beta = c.d, c.rng, &self.target, 1.0
        p.x, p.y = &self.x[r, 0], c.y + first * c.d
        p.grad_x, p.grad_y = &self.slope[r, 0], &self.slope_y[first, 0]
        p.logps, p.wanted = &self.level_y[first], c.wanted + first
        p.n_aux, p.noise = c.n_aux, c.noise + first
        if c.n_aux:
            p.u, p.v = c.u + first * c.n_aux, c.v + first * c.n_aux
        p.logp_x, p.logp_y, p.log_q, p.E = (
            self.level[r], self.level_y[first], self.log_q[r], self.E[r])
        p.alpha, p.accepted = self.alpha[r], self.accepted[r]
        p.t, p.end_of_adaptation, p.adapting = c.t, c.end_of_adaptation, c.adapting
        return p

    cdef void begin(self, Chain *c) noexcept nogil:
        """All rungs begin where the chain does."""
        cdef int r
        for r in range(self.rungs):
            copy(c.d, c.x, &self.x[r, 0])
            self.logp[r] = c.logp_x
            self.log_ref[r] = self.log_reference(c.x, NULL)
            copy(c.n_aux, c.u, c.u + self.first[r] * c.n_aux)
            if self.gradient:
                copy(c.d, c.grad_x, &self.grad[r, 0])
        self.begun = True

    cdef void move(self, Chain *c) noexcept nogil:
        """Take the last step's decisions; the chain itself has been moved."""
        cdef int r
        copy(c.d, c.x, &self.x[0, 0])
        self.logp[0] = c.logp_x
        if self.gradient:
            copy(c.d, c.grad_x, &self.grad[0, 0])
        if self.moved:
            self.log_ref[0] = self.log_reference(c.x, NULL)
            (<Kernel>self.pointers[0]).displaced()
            self.moved = False
        elif self.accepted[0]:
            self.log_ref[0] = self.log_ref_y[0]
        for r in range(1, self.rungs):
            if not self.accepted[r]:
                continue
            self.logp[r], self.log_ref[r] = self.logp_y[r], self.log_ref_y[r]
            copy(c.d, c.y + self.first[r] * c.d, &self.x[r, 0])
            copy(c.n_aux, c.v + self.first[r] * c.n_aux, c.u + self.first[r] * c.n_aux)
            if self.gradient:
                copy(c.d, c.grad_y + self.first[r] * c.d, &self.grad[r, 0])

    cdef void displaced(self) noexcept nogil:
        self.moved = True

    cdef void give_back(self, Chain *c) noexcept nogil:
        """The chain stands where rung 0 does."""
        copy(c.d, &self.x[0, 0], c.x)
        c.logp_x = self.logp[0]
        if self.gradient:
            copy(c.d, &self.grad[0, 0], c.grad_x)

    # ---- swaps ----

    cdef void exchange(self, Chain *c) noexcept nogil:
        cdef int a, b
        if self.rungs == 1:
            return
        if self.scheme == EVEN_ODD:
            a = (c.t // self.every) % 2 if self.rungs > 2 else 0
            while a + 1 < self.rungs:
                self.try_swap(c, a, a + 1)
                a += 2
        else:
            a = integer(c.rng, self.rungs)
            b = integer(c.rng, self.rungs - 1)
            b += b >= a
            self.try_swap(c, min(a, b), max(a, b))
        self.count_round_trips()
        self.give_back(c)

    cdef void try_swap(self, Chain *c, int a, int b) noexcept nogil:
        cdef double log_ratio = (self.ladder[a] - self.ladder[b]) * (
            self.excess(c, b) - self.excess(c, a))
        cdef double E = random_standard_exponential(c.rng)
        if isnan(log_ratio):
            log_ratio = -INFINITY
        if b == a + 1:
            self.tried[a] += 1
            self.swapped[a] += exp(min(0.0, log_ratio))
        if E > -log_ratio:
            self.swap(c, a, b)

    cdef void swap(self, Chain *c, int a, int b) noexcept nogil:
        cdef Py_ssize_t i
        cdef double *u = c.u + self.first[a] * c.n_aux
        cdef double *w = c.u + self.first[b] * c.n_aux
        if self.scheme == COPY:
            copy(c.d, &self.x[b, 0], &self.x[a, 0])
            copy(c.n_aux, w, u)
            self.logp[a], self.log_ref[a] = self.logp[b], self.log_ref[b]
            if self.gradient:
                copy(c.d, &self.grad[b, 0], &self.grad[a, 0])
        else:
            for i in range(c.d):
                self.x[a, i], self.x[b, i] = self.x[b, i], self.x[a, i]
                self.grad[a, i], self.grad[b, i] = self.grad[b, i], self.grad[a, i]
            for i in range(c.n_aux):
                u[i], w[i] = w[i], u[i]
            self.logp[a], self.logp[b] = self.logp[b], self.logp[a]
            self.log_ref[a], self.log_ref[b] = self.log_ref[b], self.log_ref[a]
            self.replica[a], self.replica[b] = self.replica[b], self.replica[a]
        (<Kernel>self.pointers[a]).displaced()
        (<Kernel>self.pointers[b]).displaced()

    cdef void count_round_trips(self) noexcept nogil:
        cdef int64_t cold = self.replica[0]
        self.was_hot[self.replica[self.rungs - 1]] = True
        if self.was_hot[cold]:
            self.was_hot[cold] = False
            self.round_trips += 1

    # ---- consider: each rung decides in its turn ----

    cdef int consider(self, Chain *c) except -1 nogil:
        cdef int r, answer, waiting = 0
        cdef Chain *p
        for r in range(self.rungs):
            if not self.waits[r]:
                continue
            p = self.connect(c, r)
            self.look(c, r)
            answer = DECIDE
            if (<Kernel>self.pointers[r]).considers and not self.is_reference(r):
                answer = (<Kernel>self.pointers[r]).consider(p)
            self.E[r], self.log_q[r] = p.E, p.log_q
            if c.n_aux and p.logp_x != self.level[r]:   # the kernel has moved the noise at x
                self.level[r], self.logp[r] = p.logp_x, self.logp_y[r]
                if r == 0:
                    c.logp_x = self.logp[0]
            if answer == FATAL:
                c.code = p.code
                return FATAL
            if answer == AGAIN:
                waiting += 1
            else:
                self.settle(c, r, answer)
        if waiting:
            return AGAIN
        c.accepted, c.alpha, c.logp_y = self.accepted[0], self.alpha[0], self.logp_y[0]
        return DECIDED

    cdef void look(self, Chain *c, int r) noexcept nogil:
        """log pi_r and its gradients at the points that a rung waited for; the proposal's last."""
        cdef int64_t row = self.first[r + 1]
        cdef double *y
        while row > self.first[r]:
            row -= 1
            if c.wanted[row]:
                y = c.y + row * c.d
                self.log_ref_y[r] = self.log_reference(y, NULL)
                self.level_y[row] = self.level_of(c, r, c.logps[row], self.log_ref_y[r])
                if self.gradient:
                    self.slope_of(c, r, y, c.grad_y + row * c.d, &self.slope_y[row, 0])
        self.inner[r].logp_y = self.level_y[row]
        self.logp_y[r] = c.logps[row]

    cdef int settle(self, Chain *c, int r, int answer) noexcept nogil:
        """The decision of a rung."""
        cdef Chain *p = &self.inner[r]
        cdef int64_t row
        cdef double log_ratio = p.logp_y - p.logp_x + p.log_q
        if self.is_reference(r):
            p.accepted, self.alpha[r] = True, 1.0
        elif answer == DECIDED:
            self.alpha[r] = p.alpha
        else:
            if isnan(log_ratio):
                log_ratio = -INFINITY
            p.accepted = p.E > -log_ratio
            self.alpha[r] = 1.0 if log_ratio >= 0 else exp(log_ratio)
        self.accepted[r], self.waits[r] = p.accepted, False
        self.level_y[self.first[r]] = p.logp_y
        for row in range(self.first[r], self.first[r + 1]):
            c.wanted[row] = 0
        if p.accepted and not self.is_reference(r):
            self.recover(c, r)
        return 0

    cdef void recover(self, Chain *c, int r) noexcept nogil:
        """log pi(y) and its gradient from those of pi_r, where the kernel has gone back to a y.

        A kernel of several points may take one that it has seen before the last.
        """
        cdef Py_ssize_t i
        cdef Chain *p = &self.inner[r]
        cdef double b = self.ladder[r] * c.beta
        cdef double *grad
        if p.logp_y == self.level_of(c, r, self.logp_y[r], self.log_ref_y[r]):
            return
        self.log_ref_y[r] = self.log_reference(p.y, &self.slope[r, 0])
        self.logp_y[r] = (p.logp_y - (1 - self.ladder[r]) * self.log_ref_y[r]) / b
        if self.gradient:
            grad = c.grad_y + self.first[r] * c.d
            for i in range(c.d):
                grad[i] = (p.grad_y[i] - (1 - self.ladder[r]) * self.slope[r, i]) / b

    # ---- adaptation ----

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        cdef int r
        cdef Chain *p
        for r in range(self.rungs):
            p = self.connect(c, r)
            if not self.is_reference(r):
                # the slope at x was used up by `recover`
                if self.gradient:
                    self.slope_of(c, r, p.x, &self.grad[r, 0], p.grad_x)
                (<Kernel>self.pointers[r]).adapt(p, gain)
        if self.fits:
            self.learn_reference(c)
        if (self.fits or self.tunes) and c.end_of_adaptation != INT64_MAX:
            if (c.t + 1) << (5 - self.rounds) >= c.end_of_adaptation and self.rounds < 5:
                self.end_round(c)
        return 0

    cdef void learn_reference(self, Chain *c) noexcept nogil:
        """Take the states of all rungs into this round's moments."""
        cdef Py_ssize_t i, j
        cdef int r
        cdef double *u = &self.u[0]
        cdef double shift
        for r in range(self.rungs):
            if self.is_reference(r):
                continue
            self.n_x += 1
            for i in range(self.d):
                u[i] = self.x[r, i] - self.sum_x[i]
                self.sum_x[i] += u[i] / self.n_x
            shift = (self.n_x - 1) / self.n_x
            for j in range(self.d):
                for i in range(j, self.d):
                    self.sum_xx[i, j] += shift * u[i] * u[j]

    cdef int end_round(self, Chain *c) except -1 nogil:
        """After 1/32, 1/16, ... 1/2 of warm-up: a new reference, a new ladder."""
        cdef Py_ssize_t i, j
        cdef int r
        self.rounds += 1
        if self.fits and self.n_x > 2 * self.d:
            for j in range(self.d):
                for i in range(j, self.d):
                    self.sum_xx[i, j] *= self.widening / self.n_x
            if cholesky(self.d, &self.sum_xx[0, 0], NULL, NULL) == 0:
                copy(self.d, &self.sum_x[0], &self.mean[0])
                copy(self.d * self.d, &self.sum_xx[0, 0], &self.L[0, 0])
                self.find_norm()
                for r in range(self.rungs):
                    self.log_ref[r] = self.log_reference(&self.x[r, 0], NULL)
                    self.log_ref_y[r] = self.log_reference(c.y + self.first[r] * c.d, NULL)
        if self.tunes:
            self.tune_ladder()
        self.clear()
        return 0

    cdef void tune_ladder(self) noexcept nogil:
        """Rungs at equal distances in Lambda, linear between the old ones."""
        cdef int r, s
        cdef double[N_BATCHES] old
        cdef double[N_BATCHES] barrier
        cdef double at
        barrier[0] = 0
        for r in range(self.rungs):
            old[r] = self.ladder[r]
            if r + 1 < self.rungs:
                at = 1 - self.swapped[r] / self.tried[r] if self.tried[r] > 0 else 0.5
                barrier[r + 1] = barrier[r] + max(at, 1e-3)
        s = 0
        for r in range(1, self.rungs - 1):
            at = barrier[self.rungs - 1] * r / (self.rungs - 1)
            while barrier[s + 1] < at:
                s += 1
            self.ladder[r] = old[s] + (old[s + 1] - old[s]) * (at - barrier[s]) / (
                barrier[s + 1] - barrier[s])

    cdef void clear(self) noexcept nogil:
        """Begin all averages anew."""
        cdef int r
        for r in range(self.rungs):
            self.tried[r] = self.swapped[r] = 0
        self.round_trips = self.batch = self.in_batch = 0
        self.batch_length = 1
        self.n_x = 0
        memset(&self.sum_x[0], 0, self.d * sizeof(double))
        memset(&self.sum_xx[0, 0], 0, self.d * self.d * sizeof(double))

    cdef int freeze(self, Chain *c) except -1 nogil:
        cdef int r
        for r in range(self.rungs):
            (<Kernel>self.pointers[r]).freeze(self.connect(c, r))
        self.clear()
        self.frozen = True
        return 0

    # ---- what log Z is made of, in batches ----

    cdef void add_to_batch(self, Chain *c) noexcept nogil:
        cdef int r
        cdef double W, step, high
        if self.in_batch == self.batch_length:
            self.batch += 1
            self.in_batch = 0
            if self.batch == N_BATCHES:
                self.halve_batches()
        for r in range(self.rungs):
            W = self.excess(c, r)
            step = (self.ladder[r - 1] - self.ladder[r]) * W if r else 0.0
            if self.in_batch == 0:
                self.stones[self.batch, r], self.sums[self.batch, r] = step, W
                self.squares[self.batch, r] = W * W
            else:
                high = max(self.stones[self.batch, r], step)
                if high > -INFINITY:
                    self.stones[self.batch, r] = high + log(
                        exp(self.stones[self.batch, r] - high) + exp(step - high))
                self.sums[self.batch, r] += W
                self.squares[self.batch, r] += W * W
        self.in_batch += 1

    cdef void halve_batches(self) noexcept nogil:
        """Two batches make one, of twice the length."""
        cdef int b, r
        cdef double high
        for b in range(N_BATCHES // 2):
            for r in range(self.rungs):
                high = max(self.stones[2 * b, r], self.stones[2 * b + 1, r])
                self.stones[b, r] = high
                if high > -INFINITY:
                    self.stones[b, r] += log(exp(self.stones[2 * b, r] - high)
                                             + exp(self.stones[2 * b + 1, r] - high))
                self.sums[b, r] = self.sums[2 * b, r] + self.sums[2 * b + 1, r]
                self.squares[b, r] = self.squares[2 * b, r] + self.squares[2 * b + 1, r]
        self.batch = N_BATCHES // 2
        self.batch_length *= 2

    cdef void record(self, Chain *c, double *row) noexcept nogil:
        (<Kernel>self.pointers[0]).record(self.connect(c, 0), row)
