"""Rows of the traces of many chains, held back for some steps.

A step adds one row to each trace, and the rows of a chain are contiguous: writing a few bytes to
thousands of places would take longer than the step. Therefore the rows of several steps are held
in the order in which they are made, all chains one after another, and written together.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from numpy cimport PyArray_DATA, import_array

from fastkam._core.engine.chain cimport ChainState, Trace
from fastkam._core.engine.kernel cimport Lanes

from fastkam._core.engine.state import zeros

import numpy as np

import_array()

cdef extern from "together.h" nogil:
    void deal_rows "fk_deal_rows" (
        Py_ssize_t n, Py_ssize_t rows, Py_ssize_t d, Py_ssize_t stride, const double *source,
        double **to)
    void deal_bytes "fk_deal_bytes" (
        Py_ssize_t n, Py_ssize_t rows, Py_ssize_t stride, const signed char *source,
        signed char **to)

cdef enum:
    MOST_HELD = 64          # rows of the trace
    LEAST_HELD = 8          # a cache line
    HELD_NUMBERS = 65536    # of all chains' states, if that allows more than LEAST_HELD rows


cdef class HeldRows:
    """Held rows of K chains that step side by side and record the same rows.

    Parameters
    ----------
    chains : list of ChainState
        They must live as long as this object.
    """

    def __cinit__(self, list chains):
        cdef ChainState s = chains[0]
        cdef Py_ssize_t k
        self.K, self.d, self.arrays = len(chains), s.c.d, {}
        self.chains = <void **>room_in(self.arrays, "chains", self.K, np.intp)
        for k in range(self.K):
            self.chains[k] = <void *>chains[k]
        self.room = min(MOST_HELD, max(LEAST_HELD, HELD_NUMBERS // (self.K * self.d)))
        self.stride, self.stride_x = odd_lines(self.K), odd_lines(self.K * self.d)
        self.rows_x = <double *>room_in(self.arrays, "rows_x", self.room * self.stride_x)
        self.rows_logp = <double *>room_in(self.arrays, "rows_logp", self.room * self.stride)
        self.rows_log_ratio = <double *>room_in(
            self.arrays, "rows_log_ratio", self.room * self.stride)
        self.rows_accepted = <signed char *>room_in(
            self.arrays, "rows_accepted", self.room * self.stride, np.int8)
        self.to_x = <double **>room_in(self.arrays, "to_x", self.K, np.intp)
        self.to_logp = <double **>room_in(self.arrays, "to_logp", self.K, np.intp)
        self.to_log_ratio = <double **>room_in(self.arrays, "to_log_ratio", self.K, np.intp)
        self.to_accepted = <signed char **>room_in(self.arrays, "to_accepted", self.K, np.intp)

    cdef void begin(self) noexcept nogil:
        """Begin at the current row of the traces, which is the same for all chains."""
        cdef const Trace *trace
        cdef Py_ssize_t k
        self.held, self.trace = 0, (<ChainState>self.chains[0]).trace
        for k in range(self.K):
            trace = &(<ChainState>self.chains[k]).trace
            self.to_x[k] = trace.x + trace.count * self.d
            if trace.logp != NULL:
                self.to_logp[k] = trace.logp + trace.count
                self.to_log_ratio[k] = trace.log_ratio + trace.count
                self.to_accepted[k] = trace.accepted + trace.count

    cdef bint is_like_the_first(self, const Trace *trace) noexcept nogil:
        """Return whether a chain records the same rows as the first one."""
        cdef const Trace *first = &(<ChainState>self.chains[0]).trace
        return (trace.count == first.count and trace.capacity == first.capacity
                and trace.thin == first.thin and trace.n_extra == first.n_extra
                and trace.scales == first.scales
                and (trace.logp == NULL) == (first.logp == NULL))

    cdef bint is_full(self) noexcept nogil:
        """Return whether the traces are full; those of no capacity never are."""
        return self.trace.count >= self.trace.capacity > 0

    cdef bint wants(self, int64_t t) noexcept nogil:
        """Return whether the state after t steps becomes a row."""
        return self.trace.count < self.trace.capacity and (
            self.trace.thin <= 1 or t % self.trace.thin == 0)

    cdef void hold(self, const Lanes *g) noexcept nogil:
        """Hold a row of each chain; write all held rows when there is no more room."""
        cdef Py_ssize_t k, i
        cdef double *x = self.rows_x + self.held * self.stride_x
        cdef Py_ssize_t row = self.held * self.stride
        memcpy(x, g.x, self.K * self.d * sizeof(double))
        if self.trace.scales != NULL:
            for k in range(self.K):
                for i in range(self.d):
                    x[k * self.d + i] *= self.trace.scales[i]
        if self.trace.logp != NULL:
            memcpy(self.rows_logp + row, g.logp_x, self.K * sizeof(double))
            memcpy(self.rows_log_ratio + row, g.log_ratio, self.K * sizeof(double))
            memcpy(self.rows_accepted + row, g.accepted, self.K)
        self.trace.count += 1
        self.held += 1
        if self.held == self.room:
            self.flush()

    cdef void flush(self) noexcept nogil:
        """Write the held rows to the traces."""
        deal_rows(self.K, self.held, self.d, self.stride_x, self.rows_x, self.to_x)
        if self.trace.logp != NULL:
            deal_rows(self.K, self.held, 1, self.stride, self.rows_logp, self.to_logp)
            deal_rows(self.K, self.held, 1, self.stride, self.rows_log_ratio, self.to_log_ratio)
            deal_bytes(self.K, self.held, self.stride, self.rows_accepted, self.to_accepted)
        self.held = 0

    cdef void end(self) noexcept nogil:
        """Write the held rows, and set the number of rows of each chain."""
        cdef Py_ssize_t k
        if self.held:
            self.flush()
        for k in range(self.K):
            (<ChainState>self.chains[k]).trace.count = self.trace.count


cdef void *room_in(dict arrays, name, Py_ssize_t n, dtype=float) except NULL:
    """Return the address of n zeros, which `arrays` keeps under that name."""
    array = arrays[name] = zeros(n, dtype)
    return PyArray_DATA(array)


cdef inline Py_ssize_t odd_lines(Py_ssize_t n) noexcept nogil:
    """Round n up to an odd number of cache lines, so that columns do not share a cache set."""
    return ((n + 7) // 8 | 1) * 8
