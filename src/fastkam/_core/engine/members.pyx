"""Chains whose points are evaluated together, and their starting points.

The small arrays of the chains of a group are rows of common arrays here, so that one call of the
density gets the points of all chains.
"""
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport isfinite
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from fastkam._core.density.target cimport Target
from fastkam._core.engine.chain cimport ChainState
from fastkam._core.engine.chain_step cimport GOOD, freeze, judge, tally
from fastkam._core.engine.evaluation cimport Evaluation
from fastkam._core.engine.held cimport room_in
from fastkam._core.engine.kernel cimport AGAIN, HELD, SAME, Chain, Kernel
from fastkam._core.engine.rng cimport normals
from fastkam._core.engine.sums cimport Power
from fastkam._core.linalg.dense cimport copy

from fastkam._core.engine.fault import Fault

import numpy as np

N_SEARCH = 100                              # points tried where x0 has no finite density
N_SAME = 1000                               # estimates there before these
NO_STEPS = np.zeros(0, np.int64)


def check_fit(Kernel kernel, Target target):
    """Refuse a kernel that needs what the target does not have."""
    if kernel.gradient and not target.has_gradient:
        raise TypeError(f"{type(kernel).__name__} needs the gradient, and {target!r} has none")
    if kernel.d != <Py_ssize_t>target.c.dim:
        raise TypeError(f"{type(kernel).__name__} has {kernel.d} dimensions, and {target!r} has "
                        f"{target.c.dim}")


def check_alike(Kernel kernel, Kernel first):
    """Refuse kernels of one group that differ in the number of points or in gradients."""
    if (kernel.width, kernel.gradient) != (first.width, first.gradient):
        raise TypeError("all kernels of a group must evaluate equally many points a step, with or "
                        f"without gradients: {type(kernel).__name__} has width {kernel.width} and "
                        f"gradient {bool(kernel.gradient)}, {type(first).__name__} has "
                        f"{first.width} and {bool(first.gradient)}")


cdef class Members:
    """K chains of one target and one schedule: see Group.

    Parameters
    ----------
    target, chains, schedule, share, snapshot_steps
        As for a Group.
    """

    def __cinit__(self, Target target, list chains, schedule, *, bint share=False,
                  const int64_t[:] snapshot_steps=NO_STEPS):
        cdef ChainState s
        cdef int i
        self.target = target
        self.chains = chains
        self.snapshot_steps = snapshot_steps
        self.K = len(chains)
        self.shares = share and self.K > 1
        c, k, offset, cap, self.schedule.start, stop, self.schedule.rarity = schedule
        self.schedule.gain = Power(c, k, offset, cap)
        self.schedule.stop = INT64_MAX if stop is None else stop
        self.width = chains[0].kernel.width
        self.noisy = target.is_estimate
        for s in chains:
            check_fit(s.kernel, target)
            check_alike(s.kernel, chains[0].kernel)
        self.evaluation = Evaluation(target, self.K * self.width, chains[0].kernel.gradient)
        self.arrays = {}
        if self.K > 1:
            n, d = self.K * self.width, chains[0].kernel.d
            self.xs = <double *>room_in(self.arrays, "xs", self.K * d)
            self.grad_xs = <double *>room_in(self.arrays, "grad_xs", self.K * d)
            self.wanteds = <signed char *>room_in(self.arrays, "wanteds", n, np.int8)
            self.statuses = <signed char *>room_in(self.arrays, "statuses", n, np.int8)
        self.common = (self.arrays, self.evaluation.arrays)
        self.alone = self.K * self.width == 1 and not (target.batched or self.noisy)
        self.pointers = <void **>calloc(self.K, sizeof(void *))
        if self.pointers == NULL:
            raise MemoryError
        for i in range(self.K):
            s = chains[i]
            self.pointers[i] = <void *>s
            s.c.target = &target.c
            s.source = target
            s.c.surrogate = NULL if target.surrogate is None else &target.surrogate.c
            s.refresh = target.refresh
            if s.c.n_aux != target.n_aux:
                raise ValueError(f"the chain has room for {s.c.n_aux} numbers of noise, and "
                                 f"{target!r} takes {target.n_aux}")
            self.place_together(i)
            s.kernel.plan(self.schedule.stop)
            s.kernel.connect(&s.c)
            if self.shares:
                s.kernel.join(chains[0].kernel, self.K)
                s.turn = i

    cdef int place_together(self, Py_ssize_t i) except -1:
        """Move the small arrays of chain i into those of the group, which use fewer cache lines.

        Proposals are contiguous for a call of the density at all of them; a single chain keeps its
        other arrays.
        """
        cdef ChainState s = self.chains[i]
        cdef Py_ssize_t d = s.c.d, row = i * self.width
        cdef double *points = self.evaluation.points + row * d
        cdef double *gradients = self.evaluation.gradients + row * d
        if self.K == 1:
            return s.move_to(NULL, NULL, points, gradients, NULL, NULL, self.common)
        return s.move_to(self.xs + i * d, self.grad_xs + i * d, points, gradients,
                         self.wanteds + row, self.statuses + row, self.common)

    def __dealloc__(self):
        free(self.pointers)

    def start(self):
        """Evaluate the starting points; search around those without a finite density.

        The k-th try adds N(0, s^2) to each coordinate; s grows from 0.01 (1 + |x0|) to 10 times
        (1 + |x0|) by the last try. Raises Fault if none of 100 tries has a finite density. An
        estimate may be 0 by its noise alone: 1000 more at the point itself come first. After a
        Fault the chains are as before, so that the search can be repeated point by point.
        """
        cdef ChainState s
        x = np.array([s.position for s in self.chains])
        logps = [s.c.logp_x for s in self.chains]
        generators = {}
        try:
            self.search(x, generators)
        except BaseException:
            for k, s in enumerate(self.chains):
                s.reals(s.c.x, (s.c.d,))[:] = x[k]
                s.c.logp_x = logps[k]
                if k in generators:
                    s.bit_generator.state = generators[k]
            raise
        for s in self.chains:
            freeze(s, &self.schedule)

    def search(self, origins, generators):
        """Search around the points (K, d); save the states of the generators used, {k: state}."""
        cdef ChainState s
        cdef int fault
        cdef Py_ssize_t d = origins.shape[1], same = N_SAME if self.noisy else 0
        for attempt in range(same + N_SEARCH + 1):
            todo = False
            for k, s in enumerate(self.chains):
                if not isfinite(s.c.logp_x):
                    todo = True
                    if (attempt or self.noisy) and k not in generators:
                        generators[k] = s.bit_generator.state
                    if attempt > same:
                        normals(s.c.rng, s.c.d, s.c.y)
                        share = (attempt - same) / N_SEARCH
                        width = 0.01 * 1000**share * (1 + np.abs(origins[k]))
                        y = s.reals(s.c.y, (d,))
                        y[:] = origins[k] + width * y
                    else:
                        copy(d, s.c.x, s.c.y)
                    s.answer = AGAIN
                    if self.noisy:
                        normals(s.c.rng, s.c.n_aux, s.c.v)
                        s.c.noise[0] = SAME
                    memset(s.c.wanted, 0, self.width)
                    s.c.wanted[0] = 1
            if not todo:
                return
            PyErr_CheckSignals()    # a hundred evaluations may take long
            if self.target.needs_gil:
                fault = self.evaluate()
            else:
                with nogil:
                    fault = self.evaluate()
            if fault:
                raise self.error()
            for s in self.chains:
                if not isfinite(s.c.logp_x) and s.status[0] == GOOD:
                    s.c.logp_x = s.c.logps[0]
                    copy(d, s.c.y, s.c.x)
                    copy(s.c.n_aux, s.c.v, s.c.u)
                    if s.kernel.gradient:
                        copy(d, s.c.grad_y, s.c.grad_x)
        for k, s in enumerate(self.chains):
            if not isfinite(s.c.logp_x):
                raise Fault(k, origins[k], 0)

    # ---- the density at pending points ----

    def error(self):
        """Return the Fault that has stopped the run."""
        cdef Py_ssize_t d = self.target.c.dim, row = self.failed * self.width + self.failed_row
        x = self.evaluation.arrays["points"][row * d:(row + 1) * d].copy()
        cdef int code = (<ChainState>self.pointers[self.failed]).c.code
        return Fault(self.failed, x, code, self.target.fault(code, x))

    cdef int evaluate(self) noexcept nogil:
        """Evaluate log pi at the pending points; return 1 if the run must stop."""
        self.evaluation.at(self.gather())
        return self.judge_all()

    cdef int judge_all(self) noexcept nogil:
        """Judge and count the points just evaluated; return 1 if the run must stop."""
        cdef int k, row, i
        for k in range(self.K):
            if (<ChainState>self.pointers[k]).answer != AGAIN:
                continue
            for row in range(self.width):
                if not (<ChainState>self.pointers[k]).c.wanted[row]:
                    continue
                i = k * self.width + row
                if judge(<ChainState>self.pointers[k], row, self.evaluation.codes[i],
                         self.evaluation.values[i]):
                    self.failed, self.failed_row = k, row
                    return 1
            if self.width > 1:
                (<ChainState>self.pointers[k]).c.logp_y = (<ChainState>self.pointers[k]).c.logps[0]
        for k in range(self.K):
            tally(<ChainState>self.pointers[k])
        return 0

    cdef int gather(self) noexcept nogil:
        """List the points to be evaluated, and their noise; return their number."""
        cdef const Chain *c
        cdef int k, row, i, m = 0
        for k in range(self.K):
            if (<ChainState>self.pointers[k]).answer != AGAIN:
                continue
            c = &(<ChainState>self.pointers[k]).c
            for row in range(self.width):
                if c.wanted[row]:
                    i = k * self.width + row
                    self.evaluation.waiting[m] = i
                    if self.noisy:
                        self.evaluation.noises[i] = (
                            c.u if c.noise[row] == HELD else c.v) + row * c.n_aux
                    m += 1
        return m
