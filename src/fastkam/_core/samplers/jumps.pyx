"""Mode jumping: any sampler, mixed with moves between separated modes.

With probability p_k a move of kind k, and otherwise a step of the other sampler:

    jump           y ~ N(x, cov)
    independent    y ~ q = w_0 T_3(m_0, C_0) + sum_k>0 w_k [0.9 N(m_k, C_k) + 0.1 N(m_k, 4 C_k)],
                   ratio  q(x) / q(y)
    hop            a ~ w_a N(x; m_a, C_a) / s(x),   s = sum_k>0 w_k N(m_k, C_k),
                   b uniform among the others,
                   y = m_b + L_b L_a^-1 (x - m_a),   ratio  w_b s(x) / (w_a s(y)),   C = L L'

Component 0 has the mean and the covariance of the others, taken as equally probable, and the tails
of Student's t distribution with 3 degrees of freedom, so that pi/q is bounded unless pi has longer
tails. The modes are 1, 2, ... The reverse of a hop chooses b at y, then a, so that the ratio is
r_b(y) |L_b| / (r_a(x) |L_a|), with r the probabilities of the first choice; the ratio above follows
from N(y; m_b, C_b) |L_b| = N(x; m_a, C_a) |L_a|. The kind of a move does not depend on x: each kind
leaves pi invariant, and so does their mixture.

q is given, or fitted to the states of warm-up: after 256, 512, 1024, ... of them and at the end. A
fit draws one uniform variate as its seed. While there is no q, or only one mode, the other sampler
makes the step.

The p_k are given, or learned at the same times from the acceptance rates a_k of the moves, with
smaller weights for older moves: p_k = min(0.8, 2 max a) a_k^2 / sum a^2, at least 0.01 and at most
0.1, 0.7, 0.2 for the three kinds. Around replica exchange, q is also fitted to states of the next
warmer rung, one for three of the chain, from which a chain that rarely visits its tails learns
them.

If coordinates repeat, pi(z) is f(z) g(z) with f periodic and with a normal density g of each of
them. q and hops are in a window, which has one image of each point: z is taken for its image there,
a proposal outside is rejected, and another is moved to one of its images with a probability in
proportion to g. The ratios above are multiplied by g(x) / g(y).

Tjelmeland, H. and Hegstad, B. K. (2001). Mode jumping proposals in MCMC. Scandinavian Journal of
Statistics 28, 205-223: hops, with b chosen at y by its own proposal. Guan, Y., Fleissner, R.,
Joyce, P. and Krone, S. M. (2006). Markov chain Monte Carlo in small worlds. Statistics and
Computing 16, 193-202: jumps. Giordani, P. and Kohn, R. (2010). Adaptive independent
Metropolis-Hastings by fast estimation of mixtures of normals. Journal of Computational and
Graphical Statistics 19, 243-259.
"""
from libc.math cimport INFINITY, NAN, ceil, exp, floor, isnan, log, sqrt
from libc.stdint cimport INT64_MAX, int64_t

from fastkam._core.engine.kernel cimport DECIDE, Chain, Kernel
from fastkam._core.linalg.dense cimport add_Lz, copy, solve_L
from fastkam._core.numerics.mixture cimport FK_DEGREES, FK_TAIL, FK_TAIL_SCALE, Mixture
from fastkam._core.engine.numpy_random cimport bitgen_t
from fastkam._core.engine.rng cimport integer, normals, random_standard_uniform
from fastkam._core.samplers.exchange cimport Exchange
from fastkam._core.engine.step cimport keep_every_second, normal_step
from fastkam._core.engine.sums cimport log_sum

from fastkam._core.engine.fields import Field
from fastkam._core.engine.kernel import uninterrupted
from fastkam._core.engine.state import zeros

import numpy as np

cdef enum:
    FIRST_FIT = 256  # states; the next fits are at 512, 1024, ...
    SOON = 32       # least number of new states for another fit
    FEW_MOVES = 50  # least number from which probabilities are learned
    WARM = 3        # every third warmer state is used in a fit
    FAR = 9         # sd from the mean of g, beyond which no image is drawn

cdef enum:          # columns of periods
    INDEX, START, WIDTH, PERIOD, MEAN, SD

cdef double FIRST_PROBABILITY = 0.2     # of a move of any kind, until it is learned
cdef double LEAST_PROBABILITY = 0.01    # of each kind: none is given up
cdef double MOST_PROBABILITY = 0.8      # of all kinds: the inner sampler keeps a fifth of the steps
cdef double[3] MOST_PROBABILITIES = [0.1, 0.7, 0.2]   # of jump, independent and hop
LEARNED_SHARE = 0.5      # assumed share of the inner sampler in warm-up
COUNTS = {"diverging", "n_steps", "tree_depth"}     # statistics of the inner sampler's own steps

KINDS = {"jump": JUMP, "independent": INDEPENDENT, "hop": HOP}

cdef enum:
    INNER               # the other sampler's step
    JUMP
    INDEPENDENT
    HOP


cdef class ModeJumping(Kernel):
    FIELDS = {
        "move": Field("last step: 0 of the sampler, 1 jump, 2 independent, 3 hop", dtype="i8",
                      stat="move", least=INNER, most=HOP),
        "inner_t": Field("steps of the inner sampler: its clock", dtype="i8", least=0),
        "accepted": Field("whether the last of them was accepted and x is still there", dtype="i8",
                          least=0, most=1),
        "probabilities": Field("p_k of jump, independent and hop", ("kinds",), shared=True,
                               least=0, most=1),
        "n_proposed": Field("proposals of each, older ones weighted less", ("kinds",), shared=True,
                            least=0),
        "n_accepted": Field("those accepted, weighted alike", ("kinds",), shared=True, least=0),
        "n": Field("components of q; 0 if there is none", dtype="i8", shared=True,
                   least=0, most="components"),
        "weights": Field("weights of components, the wide one first", ("components",), shared=True,
                         learned=True, least=0, finite=True),
        "means": Field("means of components, the wide one first", ("components", "d"), shared=True,
                       learned=True, finite=True),
        "factors": Field("factors of their covariances, each transposed", ("components", "d", "d"),
                         shared=True, finite=True),
        "history": Field("states of warm-up, equally spaced in time", ("states", "d"),
                         shared=True, finite=True),
        "warmer": Field("states of the next rung at these times, if there is one",
                        ("warmer", "d"), finite=True),
        "seen": Field("states of warm-up so far", dtype="i8", shared=True, least=0),
        "fitted": Field("states at the last fit", dtype="i8", shared=True, least=0, most="seen"),
        "kept": Field("states in the history", dtype="i8", shared=True,
                      least=0, most="states"),
        "stride": Field("steps from one of them to the next", dtype="i8", shared=True, least=1),
    }
    cdef readonly Kernel inner
    cdef Exchange tempered                  # inner, if it is an Exchange; else None
    cdef object estimate
    cdef bint[3] used                       # which kinds of moves are used
    cdef int[::1] counts                    # columns of inner that count its steps
    cdef bint learns_probabilities
    cdef double planned                     # share of warm-up for which inner plans
    cdef const double[:, ::1] jump_factor   # transposed
    cdef public int64_t move
    cdef public int64_t inner_t
    cdef public int64_t accepted
    cdef public double[::1] probabilities
    cdef public double[::1] n_proposed
    cdef public double[::1] n_accepted
    cdef public int64_t n
    cdef public double[::1] weights
    cdef public double[:, ::1] means
    cdef public double[:, :, ::1] factors
    cdef public double[:, ::1] history
    cdef public double[:, ::1] warmer
    cdef public int64_t seen
    cdef public int64_t fitted
    cdef public int64_t kept
    cdef public int64_t stride
    cdef Mixture q
    cdef double log_q_x                     # log q of the current point, NaN where not known
    cdef double log_q_y
    cdef double[::1] v
    cdef const double[:, ::1] periods       # a row for each coordinate that repeats
    cdef double[::1] seen_from_window       # x, as `into_window` returns it

    def __init__(self, Kernel inner, *, probability, moves, jump_factor, mixture, components,
                 states, estimate, periods):
        cdef int k
        self.inner = inner
        self.tempered = inner if isinstance(inner, Exchange) else None
        self.allocate(d=inner.d, components=components, states=states, kinds=len(KINDS),
                      warmer=states if self.tempered is not None else 0)
        self.width, self.gradient, self.several = inner.width, inner.gradient, inner.several
        self.learns_probabilities, self.stride = probability is None, 1
        self.planned = LEARNED_SHARE if probability is None else 1 - probability
        for kind in moves:
            k = KINDS[kind] - 1
            self.used[k] = True
            self.probabilities[k] = (
                FIRST_PROBABILITY if probability is None else probability) / len(moves)
        self.counts = np.array([i for i, name in enumerate(inner.stat_names()) if name in COUNTS],
                               np.intc)
        self.jump_factor = np.ascontiguousarray(jump_factor.T)
        self.estimate = estimate
        self.q = Mixture(self.d, components)
        self.log_q_x = self.log_q_y = NAN
        self.v, self.seen_from_window = zeros(self.d), zeros(self.d)
        self.periods = periods
        if mixture is not None:
            self.set_mixture(*mixture)

    def parts(self):
        return {"inner": self.inner}

    def check(self, state, step):
        # the current step may be another move, in which the inner sampler has no part
        inner = np.array_equal(state.get("move"), INNER)
        # and the inner sampler may have made as many steps as proposals
        super().check(state, step._replace(t=step.t + (step.moves - 1) * (step.t + 1),
                                           under_way=step.under_way and inner))

    def restored(self):
        self.pack()

    def join(self, ModeJumping first, int sharers):
        super().join(first, sharers)
        self.q = first.q

    def set_mixture(self, weights, means, factors):
        """Set q, with components (K,), (K, d), (K, d, d), the wide one first."""
        self.n = n = len(weights)
        for field, values in (("weights", weights), ("means", means),
                              ("factors", factors.transpose(0, 2, 1))):
            np.asarray(getattr(self, field))[:n] = values
        self.pack()

    def pack(self):
        """Prepare q for use; values computed with the former q are no longer valid."""
        if self.n:
            self.q.set(self.n, &self.weights[0], &self.means[0, 0], &self.factors[0, 0, 0])
        self.log_q_x = self.log_q_y = NAN

    # ---- the inner sampler, which has its own step counter ----

    def stat_names(self):
        return ["move", *self.inner.stat_names()]

    cdef void connect(self, Chain *c) noexcept:
        self.inner.connect(c)

    cdef void plan(self, int64_t end_of_adaptation) noexcept:
        self.end_of_adaptation = end_of_adaptation
        if end_of_adaptation != INT64_MAX:
            end_of_adaptation = <int64_t>ceil(self.planned * end_of_adaptation)
        self.inner.plan(end_of_adaptation)

    cdef void look_back(self, Chain *c) noexcept nogil:
        """Notify the inner sampler if another move has displaced x; keep its own last decision."""
        if c.accepted:
            self.log_q_x = self.log_q_y if self.move == INDEPENDENT else NAN
        elif self.move == INNER and self.tempered is not None:
            self.log_q_x = NAN          # x may have been swapped
        if self.move == INNER:
            self.accepted = c.accepted
        elif c.accepted:
            self.accepted = False
            self.inner.displaced()

    cdef void displaced(self) noexcept nogil:
        self.accepted = False
        self.log_q_x = NAN
        self.inner.displaced()

    # ---- propose and consider ----

    cdef int propose(self, Chain *c) except -1 nogil:
        cdef int row
        self.look_back(c)
        self.move = self.choose(random_standard_uniform(c.rng))
        c.log_q = 0
        if self.move == INNER:
            self.inner.t = self.inner_t
            c.accepted = self.accepted
            self.inner.propose(c)
            self.inner_t += 1
            return 0
        for row in range(self.width):
            c.wanted[row] = row == 0
        if self.move == JUMP:
            self.jump(c)
        elif self.move == INDEPENDENT:
            self.draw_independently(c)
        else:
            self.hop(c)
        return 0

    cdef int choose(self, double u) noexcept nogil:
        cdef int kind
        for kind in range(JUMP, HOP + 1):
            if u < self.probabilities[kind - 1]:
                if kind == INDEPENDENT and self.n == 0 or kind == HOP and self.n < 3:
                    return INNER
                return kind
            u -= self.probabilities[kind - 1]
        return INNER

    cdef void put(self, Chain *c, const double *center, double scale,
                  const double *L) noexcept nogil:
        """y = center + scale L v"""
        copy(c.d, center, c.y)
        add_Lz(c.d, scale, L, &self.v[0], c.y)

    cdef void jump(self, Chain *c) noexcept nogil:
        normal_step(c, 1.0, &self.jump_factor[0, 0], &self.v[0])

    cdef void draw_independently(self, Chain *c) noexcept nogil:
        cdef int k = 0
        cdef double z, chi_squared = 0
        cdef double scale, u = random_standard_uniform(c.rng), total = self.weights[0]
        while u >= total and k < self.n - 1:
            k += 1
            total += self.weights[k]
        if k == 0:
            for _ in range(FK_DEGREES):
                normals(c.rng, 1, &z)
                chi_squared += z * z
            scale = sqrt(FK_DEGREES / chi_squared)
        else:
            scale = FK_TAIL_SCALE if random_standard_uniform(c.rng) < FK_TAIL else 1.0
        normals(c.rng, c.d, &self.v[0])
        self.put(c, &self.means[k, 0], scale, &self.factors[k, 0, 0])
        if not self.in_window(c.y):
            c.log_q = -INFINITY
            return
        if isnan(self.log_q_x):
            self.log_q_x = self.q.log_density(self.into_window(c.x)) + self.log_images(c.x)
        self.log_q_y = self.q.log_density(c.y)
        self.to_image(c)
        self.log_q_y += self.log_images(c.y)
        c.log_q = self.log_q_x - self.log_q_y

    cdef void hop(self, Chain *c) noexcept nogil:
        cdef Py_ssize_t i
        cdef int a = 1, b
        cdef const double *x = self.into_window(c.x)
        cdef double u = random_standard_uniform(c.rng), log_s = self.log_modes(x)
        cdef double total = exp(self.q.q[1] - log_s)
        while u >= total and a < self.n - 1:
            a += 1
            total += exp(self.q.q[a] - log_s)
        b = 1 + integer(c.rng, self.n - 2)
        b += b >= a
        for i in range(c.d):
            self.v[i] = x[i] - self.means[a, i]
        solve_L(c.d, &self.factors[a, 0, 0], &self.v[0])
        self.put(c, &self.means[b, 0], 1.0, &self.factors[b, 0, 0])
        if not self.in_window(c.y):
            c.log_q = -INFINITY
            return
        c.log_q = log(self.weights[b] / self.weights[a]) + log_s - self.log_modes(c.y)
        self.to_image(c)
        c.log_q += self.log_images(c.x) - self.log_images(c.y)

    cdef double log_modes(self, const double *x) noexcept nogil:
        """Return log((2 pi)^(d/2) s(x)); the logs of its terms replace the squares."""
        cdef Py_ssize_t k
        self.q.squares(x)
        for k in range(1, self.n):
            self.q.q[k] = self.q.c[k] - 0.5 * self.q.q[k]
        return log_sum(self.n - 1, &self.q.q[1])

    # ---- coordinates that repeat ----

    cdef const double *into_window(self, const double *x) noexcept nogil:
        """Return the image of x in the window."""
        cdef Py_ssize_t i, j
        cdef const double *p
        cdef double t
        if self.periods.shape[0] == 0:
            return x
        copy(self.d, x, &self.seen_from_window[0])
        for j in range(self.periods.shape[0]):
            p = &self.periods[j, 0]
            i = <Py_ssize_t>p[INDEX]
            t = x[i] - p[START]
            t -= p[PERIOD] * floor(t / p[PERIOD])
            if t > p[WIDTH]:                # reflected
                t = p[PERIOD] - t
            self.seen_from_window[i] = p[START] + t
        return &self.seen_from_window[0]

    cdef bint in_window(self, const double *y) noexcept nogil:
        cdef Py_ssize_t i, j
        for j in range(self.periods.shape[0]):
            i = <Py_ssize_t>self.periods[j, INDEX]
            if not 0 <= y[i] - self.periods[j, START] <= self.periods[j, WIDTH]:
                return False
        return True

    cdef void to_image(self, Chain *c) noexcept nogil:
        """Move y, which is in the window, to one of its images."""
        cdef Py_ssize_t i, j
        for j in range(self.periods.shape[0]):
            i = <Py_ssize_t>self.periods[j, INDEX]
            c.y[i] = image(c.rng, &self.periods[j, 0], c.y[i])

    cdef double log_images(self, const double *x) noexcept nogil:
        """Return log g(x), up to a constant."""
        cdef Py_ssize_t j
        cdef double total = 0
        for j in range(self.periods.shape[0]):
            total -= 0.5 * ((x[<Py_ssize_t>self.periods[j, INDEX]] - self.periods[j, MEAN])
                            / self.periods[j, SD])**2
        return total

    cdef int consider(self, Chain *c) except -1 nogil:
        if self.move != INNER:
            return DECIDE
        self.inner.t = self.inner_t - 1
        return self.inner.consider(c)

    # ---- adapt and freeze ----

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        if self.move == INNER:
            self.inner.t = self.inner_t - 1
            self.inner.adapt(c, gain)
        else:
            self.n_proposed[self.move - 1] += 1
            self.n_accepted[self.move - 1] += c.accepted
        if self.history.shape[0]:
            self.remember(c.y if c.accepted else c.x)
        self.seen += 1
        if (self.t + 1 == self.end_of_adaptation and self.seen >= self.fitted + SOON
                or self.seen >= FIRST_FIT and self.seen & (self.seen - 1) == 0):
            self.learn(c)
        return 0

    cdef int learn(self, Chain *c) except -1 nogil:
        cdef double u
        cdef int64_t near = max(1, self.n - 1)
        self.fitted = self.seen
        if self.learns_probabilities:
            self.learn_probabilities()
        if self.history.shape[0]:
            u = random_standard_uniform(c.rng)
            with gil:
                uninterrupted(self.fit, u, near)
        return 0

    cdef void learn_probabilities(self) noexcept nogil:
        cdef int k
        cdef double most = 0, squares = 0, tried = 0
        cdef double[3] a
        for k in range(3):
            a[k] = 0
            if self.n_proposed[k] > 0:
                a[k] = (self.n_accepted[k] + 1) / (self.n_proposed[k] + 4)
            most, squares, tried = max(most, a[k]), squares + a[k]**2, tried + self.n_proposed[k]
        if tried < FEW_MOVES:
            return
        for k in range(3):
            if self.used[k]:
                self.probabilities[k] = min(MOST_PROBABILITIES[k], max(
                    LEAST_PROBABILITY, min(MOST_PROBABILITY, 2 * most) * a[k]**2 / squares))
            self.n_proposed[k] *= 0.5
            self.n_accepted[k] *= 0.5

    cdef void remember(self, const double *x) noexcept nogil:
        """Store every `stride`-th state; if the history is full, keep every second of them."""
        if self.seen % self.stride == 0:
            if self.kept == self.history.shape[0]:
                self.stride *= 2
                if self.tempered is not None:
                    keep_every_second(self.kept, self.d, 0, &self.warmer[0, 0])
                self.kept = keep_every_second(self.kept, self.d, 0, &self.history[0, 0])
            copy(self.d, self.into_window(x), &self.history[self.kept, 0])
            if self.tempered is not None:
                if self.tempered.begun:
                    x = self.tempered.state_at(1)
                copy(self.d, self.into_window(x), &self.warmer[self.kept, 0])
            self.kept += 1

    def fit(self, u, near):
        """Fit q to the history without its first quarter, which may depend on x0."""
        kept = slice(self.kept // 4, self.kept)
        states = np.asarray(self.history)[kept]
        if self.tempered is not None:
            states = np.concatenate([states, np.asarray(self.warmer)[kept][::WARM]])
        found = self.estimate(states, int(u * 2**53), near)
        if found is not None:
            self.set_mixture(*found)

    cdef int freeze(self, Chain *c) except -1 nogil:
        self.look_back(c)
        self.inner.t = self.inner_t
        self.inner.freeze(c)
        return 0

    cdef void take(self, Kernel other) noexcept nogil:
        self.copy_shared_numbers(other)
        self.log_q_x = self.log_q_y = NAN
        self.inner.take((<ModeJumping>other).inner)

    cdef void record(self, Chain *c, double *row) noexcept nogil:
        cdef Py_ssize_t i
        cdef int64_t accepted = c.accepted
        row[0] = self.move
        self.inner.t = self.inner_t
        if self.move == INNER:
            self.inner.record(c, row + 1)
            return
        c.accepted = self.accepted      # of the last inner step, whose statistics are repeated
        self.inner.record(c, row + 1)
        c.accepted = accepted
        for i in range(self.counts.shape[0]):
            row[1 + self.counts[i]] = 0


cdef double image(bitgen_t *rng, const double *p, double t) noexcept nogil:
    """Draw one of the images of a coordinate t in its window, with a row of periods."""
    cdef double z = t, weight, total = 0, u = random_standard_uniform(rng)
    cdef int64_t n = <int64_t>ceil(FAR * p[SD] / p[PERIOD])
    cdef int which, passed
    for passed in range(2):                 # the first adds up the weights
        for which in range(1 + (p[PERIOD] > p[WIDTH])):
            z = t if which == 0 else 2 * p[START] - t
            z += p[PERIOD] * (floor((p[MEAN] - z) / p[PERIOD] + 0.5) - n)
            for _ in range(2 * n + 1):
                weight = exp(-0.5 * ((z - p[MEAN]) / p[SD])**2)
                if passed == 0:
                    total += weight
                elif u < weight:
                    return z
                else:
                    u -= weight
                z += p[PERIOD]
        u *= total
    return z
