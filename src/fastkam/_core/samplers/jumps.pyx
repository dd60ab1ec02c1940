"""Mode jumping: any sampler and, now and then, a move between separated modes.

With probability 1 - p a step of the other sampler; with probability p one of these, at equal
chances:

    jump           y ~ N(x, cov)
    independent    y ~ q = sum_k>=0 w_k N(m_k, C_k),   ratio  q(x) / q(y)
    hop            a ~ w_a N(x; m_a, C_a) / s(x),   s = sum_k>0 w_k N(m_k, C_k),
                   b uniform among the others,
                   y = m_b + L_b L_a^-1 (x - m_a),   ratio  w_b s(x) / (w_a s(y)),   C = L L'

Component 0 is wide, so that q is not too small anywhere near the modes, which are 1, 2, ... The
way back of a hop chooses b at y, then a, so that the ratio is r_b(y) |L_b| / (r_a(x) |L_a|), with r
the chances of the first choice; N(y; m_b, C_b) |L_b| = N(x; m_a, C_a) |L_a| leaves what stands
above. The kind of a move does not depend on x: each leaves pi invariant, and so does their mixture.

q is given, or fitted to the states of warm-up: after 256, 512, 1024, ... of them and at the end. A
fit draws one uniform variate, the seed of its restarts. As long as there is no q, or a single mode,
the other sampler makes the step.

Tjelmeland, H. and Hegstad, B. K. (2001). Mode jumping proposals in MCMC. Scandinavian Journal of
Statistics 28, 205-223: hops, with b chosen at y by its own proposal. Guan, Y., Fleissner, R.,
Joyce, P. and Krone, S. M. (2006). Markov chain Monte Carlo in small worlds. Statistics and
Computing 16, 193-202: jumps. Giordani, P. and Kohn, R. (2010). Adaptive independent
Metropolis-Hastings by fast estimation of mixtures of normals. Journal of Computational and
Graphical Statistics 19, 243-259.
"""
from libc.math cimport INFINITY, ceil, exp, log
from libc.stdint cimport INT64_MAX, int64_t

from fastkam._core.kernel cimport DECIDE, Chain, Kernel
from fastkam._core.linalg cimport add_Lz, copy, log_det_L, solve_L, square
from fastkam._core.rng cimport integer, normals, random_standard_uniform

from fastkam._core.kernel import zeros

import numpy as np

cdef enum:
    FIRST_FIT = 256

KINDS = {"jump": JUMP, "independent": INDEPENDENT, "hop": HOP}


cdef class ModeJumping(Kernel):
    FIELDS = {
        "move": ((), "the last step's: 0 the sampler's, 1 jump, 2 independent, 3 hop", "i8"),
        "t": ((), "steps of the sampler within", "i8"),
        "accepted": ((), "whether the last of them was accepted, x being there still", "i8"),
        "n": ((), "components of q; 0 if there is none", "i8"),
        "weights": (("components",), "their weights, the wide one's first"),
        "means": (("components", "d"), "their means"),
        "factors": (("components", "d", "d"), "factors of their covariances, each transposed"),
        "history": (("states", "d"), "states of warm-up at equal distances in time"),
        "seen": ((), "states of warm-up so far", "i8"),
        "kept": ((), "how many of them are in the history", "i8"),
        "stride": ((), "their distance in time", "i8"),
    }
    LEARNT = ("weights", "means")
    SHARED = ("n", "weights", "means", "factors", "history", "seen", "kept", "stride")
    STATS = {"move": "0: the sampler's own, 1: jump, 2: independent, 3: hop"}

    def __init__(self, Kernel inner, *, double chance, moves, jump_factor, mixture, components,
                 states, estimate):
        self.inner = inner
        self.allocate(d=inner.d, components=components, states=states)
        self.width, self.gradient, self.considers = inner.width, inner.gradient, inner.considers
        self.chance, self.stride = chance, 1
        self.kinds = np.array([KINDS[kind] for kind in moves], np.intc)
        self.jump_factor = np.ascontiguousarray(jump_factor.T)
        self.estimate = estimate
        self.constants, self.terms = zeros(components), zeros(components)
        self.v = zeros(self.d)
        if mixture is not None:
            self.set_mixture(*mixture)

    def parts(self):
        return {"inner": self.inner}

    def restore(self, state):
        super().restore(state)
        self.compute_constants()

    def join(self, ModeJumping first, int sharers):
        super().join(first, sharers)
        self.constants = first.constants

    def set_mixture(self, weights, means, factors):
        """q, of components (K,), (K, d), (K, d, d), the wide one first."""
        self.n = n = len(weights)
        for field, values in (("weights", weights), ("means", means),
                              ("factors", factors.transpose(0, 2, 1))):
            np.asarray(getattr(self, field))[:n] = values
        self.compute_constants()

    def compute_constants(self):
        """log w_k - log |L_k|"""
        for k in range(self.n):
            self.constants[k] = log(self.weights[k]) - log_det_L(self.d, &self.factors[k, 0, 0])

    # ---- the sampler within, which counts its own steps ----

    cdef void enter(self, Chain *c, int64_t t) noexcept nogil:
        self.outer_t, self.outer_end = c.t, c.end_of_adaptation
        c.t = t
        if c.end_of_adaptation != INT64_MAX:
            c.end_of_adaptation = <int64_t>ceil((1 - self.chance) * c.end_of_adaptation)

    cdef void leave(self, Chain *c) noexcept nogil:
        c.t, c.end_of_adaptation = self.outer_t, self.outer_end

    cdef void look_back(self, Chain *c) noexcept nogil:
        """Tell it of a move that it has not made; keep its own last decision."""
        if self.move == INNER:
            self.accepted = c.accepted
        elif c.accepted:
            self.displaced()

    cdef void displaced(self) noexcept nogil:
        self.accepted = False
        self.inner.displaced()

    # ---- propose and consider ----

    cdef int propose(self, Chain *c) except -1 nogil:
        cdef int row
        self.look_back(c)
        self.move = self.choose(random_standard_uniform(c.rng))
        c.log_q = 0
        if self.move == INNER:
            self.enter(c, self.t)
            c.accepted = self.accepted
            self.inner.propose(c)
            self.leave(c)
            self.t += 1
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
        cdef int kind, kinds = self.kinds.shape[0]
        if u >= self.chance:
            return INNER
        kind = self.kinds[min(<int>(kinds * (u / self.chance)), kinds - 1)]
        if kind == INDEPENDENT and self.n == 0 or kind == HOP and self.n < 3:
            return INNER
        return kind

    cdef void put(self, Chain *c, const double *centre, const double *L,
                  const double *z) noexcept nogil:
        """y = centre + L z"""
        copy(c.d, centre, c.y)
        add_Lz(c.d, 1.0, L, z, c.y)

    cdef void jump(self, Chain *c) noexcept nogil:
        normals(c.rng, c.d, &self.v[0])
        self.put(c, c.x, &self.jump_factor[0, 0], &self.v[0])

    cdef void draw_independently(self, Chain *c) noexcept nogil:
        cdef int k = 0
        cdef double u = random_standard_uniform(c.rng), total = self.weights[0]
        while u >= total and k < self.n - 1:
            k += 1
            total += self.weights[k]
        normals(c.rng, c.d, &self.v[0])
        self.put(c, &self.means[k, 0], &self.factors[k, 0, 0], &self.v[0])
        c.log_q = self.log_density(c.x, 0) - self.log_density(c.y, 0)

    cdef void hop(self, Chain *c) noexcept nogil:
        cdef Py_ssize_t i
        cdef int a = 1, b
        cdef double u = random_standard_uniform(c.rng), log_s = self.log_density(c.x, 1)
        cdef double total = exp(self.terms[1] - log_s)
        while u >= total and a < self.n - 1:
            a += 1
            total += exp(self.terms[a] - log_s)
        b = 1 + integer(c.rng, self.n - 2)
        b += b >= a
        for i in range(c.d):
            self.v[i] = c.x[i] - self.means[a, i]
        solve_L(c.d, &self.factors[a, 0, 0], &self.v[0])
        self.put(c, &self.means[b, 0], &self.factors[b, 0, 0], &self.v[0])
        c.log_q = log(self.weights[b] / self.weights[a]) + log_s - self.log_density(c.y, 1)

    cdef double log_density(self, const double *x, int first) noexcept nogil:
        """log((2 pi)^(d/2) sum_k>=first w_k N(x; m_k, C_k)), the logs of its terms in `terms`."""
        cdef Py_ssize_t i
        cdef int k
        cdef double high = -INFINITY, total = 0
        for k in range(first, self.n):
            for i in range(self.d):
                self.v[i] = x[i] - self.means[k, i]
            solve_L(self.d, &self.factors[k, 0, 0], &self.v[0])
            self.terms[k] = self.constants[k] - 0.5 * square(self.d, &self.v[0])
            high = max(high, self.terms[k])
        for k in range(first, self.n):
            total += exp(self.terms[k] - high)
        return high + log(total)

    cdef int consider(self, Chain *c) except -1 nogil:
        cdef int answer
        if self.move != INNER:
            return DECIDE
        self.enter(c, self.t - 1)
        answer = self.inner.consider(c)
        self.leave(c)
        return answer

    # ---- adapt and freeze ----

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        cdef double u
        if self.move == INNER:
            self.enter(c, self.t - 1)
            self.inner.adapt(c, gain)
            self.leave(c)
        if self.history.shape[0] == 0:
            return 0
        self.remember(c.y if c.accepted else c.x)
        if c.t + 1 == c.end_of_adaptation or (
                self.seen >= FIRST_FIT and self.seen & (self.seen - 1) == 0):
            u = random_standard_uniform(c.rng)
            with gil:
                self.fit(u)
        return 0

    cdef void remember(self, const double *x) noexcept nogil:
        """Keep every `stride`-th state; where the history is full, every second of those."""
        cdef int64_t i
        if self.seen % self.stride == 0:
            if self.kept == self.history.shape[0]:
                self.kept //= 2
                self.stride *= 2
                for i in range(self.kept):
                    copy(self.d, &self.history[2 * i, 0], &self.history[i, 0])
            copy(self.d, x, &self.history[self.kept, 0])
            self.kept += 1
        self.seen += 1

    def fit(self, u):
        """Fit q to the history but for its first quarter, in which the chain comes from x0."""
        found = self.estimate(np.asarray(self.history)[self.kept // 4:self.kept], int(u * 2**53))
        if found is not None:
            self.set_mixture(*found)

    cdef int freeze(self, Chain *c) except -1 nogil:
        self.look_back(c)
        self.enter(c, self.t)
        self.inner.freeze(c)
        self.leave(c)
        return 0

    cdef void take(self, Kernel other) noexcept nogil:
        self.n = (<ModeJumping>other).n
        self.seen = (<ModeJumping>other).seen
        self.kept = (<ModeJumping>other).kept
        self.stride = (<ModeJumping>other).stride
        self.inner.take((<ModeJumping>other).inner)

    cdef void record(self, Chain *c, double *row) noexcept nogil:
        row[0] = self.move
        self.enter(c, self.t)
        self.inner.record(c, row + 1)
        self.leave(c)
