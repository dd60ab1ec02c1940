"""Prefetches of the data of a step into the cache, a few chains ahead.

Thousands of chains exceed the cache, and the data for a step of one are in a dozen places. The
address of a line is often read from another line, which must have been fetched before; therefore
there are stages, a few chains apart. Only the running time depends on these prefetches.
"""

from fastkam._core.engine.chain cimport ChainState, Trace
from fastkam._core.engine.kernel cimport Chain

cdef extern from *:
    """
    static inline void fk_fetch_lines(const void *from, int n)
    {
        for (int i = 0; i < n; i++) __builtin_prefetch((const char *)from + 64 * i, 1);
    }
    """
    void fetch_lines "fk_fetch_lines" (const void *begin, int n) nogil

cdef enum:
    AHEAD = 3                               # chains between one stage and the next
    CHAIN_LINES = 7                         # cache lines of a chain
    KERNEL_LINES = 3                        # and of its kernel


cdef inline void fetch_step(void **pointers, int k, int K) noexcept nogil:
    """Fetch what the chains after chain k need to finish a step and propose the next."""
    cdef const Chain *c
    if k + 4 * AHEAD < K:
        fetch_lines(&(<ChainState>pointers[k + 4 * AHEAD]).c, CHAIN_LINES)
    if k + 3 * AHEAD < K:
        c = &(<ChainState>pointers[k + 3 * AHEAD]).c
        fetch_lines(c.rng, 1)
        fetch_lines(<void *>(<ChainState>pointers[k + 3 * AHEAD]).kernel, 1)
        fetch_lines(&(<ChainState>pointers[k + 3 * AHEAD]).kernel.d, KERNEL_LINES)
        fetch_row(&(<ChainState>pointers[k + 3 * AHEAD]).trace, c.d)
    if k + 2 * AHEAD < K:
        fetch_lines((<ChainState>pointers[k + 2 * AHEAD]).c.rng.state, 1)
    # most numpy generators keep their numbers behind a pointer, which comes first in their state;
    # if it is something else, there is nothing at that address, and nothing is fetched
    if k + AHEAD < K:
        fetch_lines((<void **>(<ChainState>pointers[k + AHEAD]).c.rng.state)[0], 1)


cdef inline void fetch_decision(void **pointers, int k, int K) noexcept nogil:
    """Fetch what the chains after chain k need to consider a density."""
    if k + 2 * AHEAD < K:
        fetch_lines(&(<ChainState>pointers[k + 2 * AHEAD]).c, CHAIN_LINES)
    if k + AHEAD < K:
        fetch_lines(<void *>(<ChainState>pointers[k + AHEAD]).kernel, 1)


cdef inline void fetch_row(const Trace *trace, Py_ssize_t d) noexcept nogil:
    """Fetch the next row of a trace."""
    if trace.count >= trace.capacity:
        return
    fetch_lines(trace.x + trace.count * d, 1)
    if trace.logp != NULL:
        fetch_lines(trace.logp + trace.count, 1)
        fetch_lines(trace.log_ratio + trace.count, 1)
        fetch_lines(trace.accepted + trace.count, 1)
