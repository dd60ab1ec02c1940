"""The kernel of a sampler written in Python: declarations for steps with several evaluations."""
from libc.stdint cimport int64_t

from fastkam._core.engine.kernel cimport Chain, Kernel
from fastkam._core.samplers.python_fields cimport PythonFields

cdef class PythonKernel(Kernel):
    cdef readonly object own
    cdef dict space                 # the attributes of own
    cdef PythonFields fields
    cdef object proposes
    cdef object corrects
    cdef object steps
    cdef object adapts
    cdef object freezes
    cdef object takes
    cdef object bits                # numpy's bit generator of the chain
    cdef object rng                 # a Generator on it
    cdef int interrupts             # number deferred in this call
    cdef object error               # to be raised at the next call, if this one cannot raise
    cdef object x                   # of this step
    cdef object y
    # ---- the start of the step and the data it has received, for a replay ----
    cdef bint stale                 # the step is to be replayed first
    cdef list begun                 # the fields at its start
    cdef list streams               # the state of the bit generator at its start, and at each send
    cdef double[::1] origin         # log density at x, x, the gradient there
    cdef double[:, ::1] kept        # the points evaluated, as in step.pxd
    cdef Py_ssize_t n_kept
    cdef double E                   # of the first decision
    cdef double logp_seen           # at y, for log_q
    cdef bint seen
    cdef int64_t step_t
    cdef bint step_adapts
    cdef object where(self, name)
    cdef int take_over(self, PythonKernel other) except -1
    cdef int write_statistics(self, double *row) except -1
    cdef int forgive(self) except -1
    cdef void end_call(self) noexcept
    cdef object stream(self)
    cdef int set_stream(self, state) except -1
    cdef list copied_fields(self)
    cdef int begin(self, Chain *c) except -1
    cdef int set_out(self, Chain *c) except -1
    cdef int write(self, found, double *y) except -1
    cdef object as_points(self, method, verb, found, int ndim)
    cdef int open(self, Chain *c, double *y) except -1
    cdef int ask(self, Chain *c) except -1
    cdef int go_on(self, Chain *c) except -1
    cdef int look(self, Chain *c) except -1
    cdef int catch_up(self, Chain *c) except -1
    cdef int settle(self, Chain *c) except -1
    cdef int replay(self, Chain *c) except -1
    cdef int learn(self, Chain *c, double gain) except -1
    cdef int end_adaptation(self) except -1
