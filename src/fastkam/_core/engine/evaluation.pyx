"""The density at the points of a group of chains: one by one, with helpers, or in one call."""
from libc.math cimport INFINITY
from libc.stdlib cimport calloc, free

from fastkam._core.engine.held cimport room_in
from fastkam._core.linalg.dense cimport copy
from fastkam._core.density.target cimport Target
from fastkam.target cimport fk_target

import numpy as np

cdef extern from "thread_pool.h" nogil:
    int prepare_pool "fk_prepare_pool" (Pool *pool, int helpers)
    void start_pool "fk_start_pool" (Pool *pool, int helpers)
    void run_tasks "fk_run_tasks" (
        Pool *pool, int m, void (*task)(int, void *) noexcept nogil, void *data)
    void end_pool "fk_end_pool" (Pool *pool)
    void free_pool "fk_free_pool" (Pool *pool)
    double now "fk_now" ()

N_TIMED = 8                                 # calls timed to decide whether helpers pay
cdef double SLOW = 20e-6                    # seconds per point above which helper threads pay


cdef class Evaluation:
    """Evaluation of the density at up to n points."""

    def __cinit__(self, Target target, int n, bint gradient):
        cdef Py_ssize_t d = target.c.dim
        self.target, self.n = target, n
        self.noisy, self.batched = target.is_estimate, target.batched
        self.gradient = gradient or (
            target.c.logp == NULL and target.c.batch == NULL and not self.noisy)
        self.arrays = arrays = {}
        self.points = <double *>room_in(arrays, "points", n * d)
        self.gradients = <double *>room_in(arrays, "gradients", n * d)
        self.values = <double *>room_in(arrays, "values", n)
        self.codes = <int *>room_in(arrays, "codes", n, np.intc)
        self.waiting = <int *>room_in(arrays, "waiting", n, np.intc)
        if self.noisy:
            self.noises = <const double **>room_in(arrays, "noises", n, np.intp)
        if self.batched:
            self.some_points = <double *>room_in(arrays, "some_points", n * d)
            self.some_gradients = <double *>room_in(arrays, "some_gradients", n * d)
            self.some_values = <double *>room_in(arrays, "some_values", n)
            self.some_noise = <double *>room_in(arrays, "some_noise", n * target.n_aux)
        self.untimed, self.fastest = N_TIMED, INFINITY

    def __dealloc__(self):
        if self.pool != NULL:
            free_pool(self.pool)
            free(self.pool)

    def call_helpers(self, int threads):
        """Start the helper threads of a run; the first evaluations are timed without them."""
        cdef int helpers = min(threads, self.n, FK_HELPERS + 1) - 1
        if helpers < 1 or self.target.needs_gil or self.target.serial or self.batched:
            self.untimed = 0
        elif self.untimed == 0 and self.fastest > SLOW:
            if self.pool == NULL:
                self.pool = <Pool *>calloc(1, sizeof(Pool))
            if self.pool == NULL or prepare_pool(self.pool, helpers):
                raise MemoryError
            start_pool(self.pool, helpers)

    def dismiss_helpers(self):
        if self.pool != NULL:
            end_pool(self.pool)

    def values_of(self, const double[:, ::1] X, const double[::1] noise=None):
        """Return log densities and return codes at the rows of X (m, d), with m at most n.

        For an estimated density they are the estimates with the noise (n_aux,), the same for all.
        A value is undefined if its code is not 0; points after one with a negative code may not
        have been evaluated.
        """
        cdef int j, m = X.shape[0]
        if m > self.n:
            raise ValueError(f"there is room for {self.n} points, not {m}")
        for j in range(m):
            copy(X.shape[1], &X[j, 0], self.points + j * X.shape[1])
            self.waiting[j], self.codes[j] = j, 0
            if self.noisy:
                self.noises[j] = &noise[0]
        if self.target.needs_gil:
            self.at(m)
        else:
            with nogil:
                self.at(m)
        return self.arrays["values"][:m].copy(), self.arrays["codes"][:m].copy()

    cdef void at(self, int m) noexcept nogil:
        """Evaluate points waiting[:m]; those after one with a code < 0 may be skipped."""
        cdef double begun
        if not self.untimed or m == 0:
            self.evaluate(m)
            return
        begun = now()
        self.evaluate(m)
        self.fastest = min(self.fastest, (now() - begun) / m)
        self.untimed -= 1

    cdef void evaluate(self, int m) noexcept nogil:
        cdef int j, i
        if self.batched:
            self.evaluate_batch(m)
        elif self.pool != NULL and self.pool.helpers > 0:
            run_tasks(self.pool, m, run_task, <void *>self)
        else:
            for j in range(m):
                i = self.waiting[j]
                self.codes[i] = self.evaluate_point(i)
                if self.codes[i] < 0:
                    return

    cdef int evaluate_point(self, int i) noexcept nogil:
        """Evaluate the density, or its estimate, and the gradient at point i; return the code."""
        cdef const fk_target *target = &self.target.c
        cdef const double *x = self.points + i * target.dim
        if self.noisy:
            return target.noisy(target.dim, x, target.n_aux, self.noises[i], &self.values[i],
                                target.data)
        if self.gradient:
            return target.logp_grad(target.dim, x, self.gradients + i * target.dim,
                                    &self.values[i], target.data)
        return target.logp(target.dim, x, &self.values[i], target.data)

    cdef void evaluate_batch(self, int m) noexcept nogil:
        """Evaluate points waiting[:m] in one call: values, or estimates, and gradients."""
        cdef size_t d = self.target.c.dim, k = self.target.c.n_aux
        cdef int j, i, rc
        if m == 0:
            return
        if self.noisy:
            for j in range(m):
                copy(k, self.noises[self.waiting[j]], self.some_noise + j * k)
        if m == self.n:
            rc = self.call_batch(m, self.points, self.gradients, self.values)
            for i in range(m):
                self.codes[i] = rc
            return
        for j in range(m):
            copy(d, self.points + self.waiting[j] * d, self.some_points + j * d)
        rc = self.call_batch(m, self.some_points, self.some_gradients, self.some_values)
        for j in range(m):
            i = self.waiting[j]
            copy(d, self.some_gradients + j * d, self.gradients + i * d)
            self.values[i], self.codes[i] = self.some_values[j], rc

    cdef int call_batch(self, size_t m, const double *X, double *gradients,
                        double *values) noexcept nogil:
        """Evaluate m points (m, d) in one call: values (m,), and gradients (m, d) if wanted."""
        cdef const fk_target *target = &self.target.c
        if self.noisy:
            return self.target.noisy_batch(m, target.dim, X, target.n_aux, self.some_noise,
                                           values, target.data)
        return target.batch(m, target.dim, X, gradients if self.gradient else NULL, values,
                            target.data)


cdef void run_task(int j, void *evaluation) noexcept nogil:
    """Make one evaluation, in any thread."""
    cdef int i = (<Evaluation>evaluation).waiting[j]
    (<Evaluation>evaluation).codes[i] = (<Evaluation>evaluation).evaluate_point(i)
