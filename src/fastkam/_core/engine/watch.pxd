"""The time that a chunk of steps may take: it ends early if the density has become slower."""
from libc.stdint cimport int64_t
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

cdef struct Watch:
    double end              # seconds of the clock
    int64_t every           # steps between two looks at the clock
    int64_t left            # steps until the next
    bint over


cdef inline double now() noexcept nogil:
    """Return the seconds of the monotonic clock."""
    cdef timespec time
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec + 1e-9 * time.tv_nsec


cdef inline void begin_watch(Watch *w, int64_t steps, double seconds) noexcept nogil:
    """Begin a chunk of steps; some 500 looks at the clock are made if it takes as planned."""
    w.every = w.left = steps // 512 + 1
    w.end, w.over = now() + seconds, False


cdef inline bint is_over(Watch *w) noexcept nogil:
    """Count a step; return whether the time is over."""
    w.left -= 1
    if w.left > 0:
        return False
    w.left = w.every
    w.over = now() > w.end
    return w.over
