"""The statistics from which the normalizing constant is estimated, in batches of steps.

    log Z - log Z_q = sum_r log E_r+1 exp((beta_r - beta_r+1) W)               (stepping stones)
                    = integral of E_beta W over beta                           (thermodynamic)

with W = log pi - log q at the state of each rung. If pi is 0 outside of a set, W is -infinity
there, and only the rung at beta = 0 has states outside. Then, with P the probability of the set
under q,

    log Z - log Z_q = log P + integral of E_beta W over beta > 0,

and W at beta = 0 is that of the states in the set. A batch keeps the sums of exp((beta_r-1 -
beta_r) W), of W and of W^2, and the number of states outside. When all batches are full, they are
merged in pairs into batches of twice the length.

Xie, W., Lewis, P. O., Fan, Y., Kuo, L. and Chen, M.-H. (2011). Improving marginal likelihood
estimation for Bayesian phylogenetic model selection. Systematic Biology 60, 150-160.
"""

from libc.math cimport INFINITY

from fastkam._core.samplers.replica cimport Replica
from fastkam._core.engine.state cimport State
from fastkam._core.engine.sums cimport log_add

from fastkam._core.engine.fields import Field

cdef enum:
    N_BATCHES = 64      # when they are merged 32 remain, for a standard error within some 13 %


cdef class Evidence(State):
    FIELDS = {
        "batch": Field("number of full batches", dtype="i8", least=0, below="batches"),
        "batch_length": Field("steps of a batch", dtype="i8", least=1),
        "in_batch": Field("steps in the last one", dtype="i8", least=0, most="batch_length"),
        "stones": Field("log of the sum of exp((beta_r-1 - beta_r) W)", ("batches", "rungs")),
        "sums": Field("sum of W", ("batches", "rungs")),
        "squares": Field("sum of W^2", ("batches", "rungs")),
        "outside": Field("number of states, at any rung, where W is -infinity", ("batches",)),
    }

    def __init__(self, int rungs):
        self.rungs = rungs
        self.allocate(rungs=rungs, batches=N_BATCHES)
        self.forget()

    cdef void add(self, void **replicas) noexcept nogil:
        """Add the present states."""
        cdef int r
        cdef double W, step
        cdef bint inside
        if self.in_batch == self.batch_length:
            self.batch += 1
            self.in_batch = 0
            if self.batch == N_BATCHES:
                self.halve()
        if self.in_batch == 0:
            self.outside[self.batch] = 0
        for r in range(self.rungs):
            W = (<Replica>replicas[r]).W()
            inside = W > -INFINITY      # False for NaN, too
            step = 0.0
            if not inside:
                W, step = 0.0, -INFINITY
                self.outside[self.batch] += 1
            elif r:
                step = ((<Replica>replicas[r - 1]).beta - (<Replica>replicas[r]).beta) * W
            if self.in_batch == 0:
                self.stones[self.batch, r], self.sums[self.batch, r] = step, W
                self.squares[self.batch, r] = W * W
            else:
                self.stones[self.batch, r] = log_add(self.stones[self.batch, r], step)
                self.sums[self.batch, r] += W
                self.squares[self.batch, r] += W * W
        self.in_batch += 1

    cdef void halve(self) noexcept nogil:
        """Merge batches in pairs; each then has twice the length."""
        cdef int b, r
        for b in range(N_BATCHES // 2):
            for r in range(self.rungs):
                self.stones[b, r] = log_add(self.stones[2 * b, r], self.stones[2 * b + 1, r])
                self.sums[b, r] = self.sums[2 * b, r] + self.sums[2 * b + 1, r]
                self.squares[b, r] = self.squares[2 * b, r] + self.squares[2 * b + 1, r]
            self.outside[b] = self.outside[2 * b] + self.outside[2 * b + 1]
        self.batch = N_BATCHES // 2
        self.batch_length *= 2

    cdef void forget(self) noexcept nogil:
        """Begin the first batch."""
        self.batch = self.in_batch = 0
        self.batch_length = 1
