"""A sampler written in Python, as a kernel: the compiled side of `fastkam.PythonSampler`.

The methods of the user's class are called with the GIL held, on a copy of the sampler that belongs
to one chain and has the fields as attributes.

A run may stop at any evaluation, and neither a generator nor the attributes that `propose` leaves
for `adapt` can be stored. So for an unfinished step its start and everything received since are
stored: the fields, the point and the state of the bit generator at the start, the states of the
bit generator at each continuation, and the points evaluated. When the run is resumed, the step is
replayed from these. A call that KeyboardInterrupt has cut short is undone in the same way and
repeated, and the interrupt is raised when it has returned.
"""
from libc.math cimport INFINITY, NAN, isnan
from libc.stdint cimport INT64_MAX
from libc.string cimport memcpy
from numpy cimport (
    NPY_DOUBLE, PyArray_CheckExact, PyArray_DATA, PyArray_ISCARRAY_RO, PyArray_NDIM, PyArray_SIZE,
    PyArray_TYPE, import_array, ndarray,
)

from fastkam._core.engine.kernel cimport DECIDE, Chain, Kernel
from fastkam._core.engine.rng cimport decoded_states, encoded_states
from fastkam._core.engine.step cimport point_size
from fastkam._core.linalg.dense cimport copy
from fastkam._core.samplers.python_fields cimport PythonFields
from fastkam._core.samplers.python_points cimport read_only

from fastkam._core.engine.generators import check_generator
from fastkam._core.engine.kernel import interrupt_later
from fastkam._core.engine.ranges import BadField, check_form, check_names, check_state

import numpy as np

import_array()


cdef class PythonKernel(Kernel):
    """The chain of a `PythonSampler` that defines propose: one evaluation a step.

    Parameters
    ----------
    own : object
        A copy of the sampler, whose attributes are those of the chain.
    x0 : ndarray, shape (d,)
    fields : dict of Field
    propose, log_q, step, adapt, freeze, take : callable or None
        The methods that its class defines.
    """
    SKIPS = True

    def __init__(self, own, x0, fields, *, gradient, width, propose, log_q, step, adapt, freeze,
                 take):
        self.d, self.sizes = len(x0), {"d": len(x0)}
        self.own, self.space, self.fields = own, own.__dict__, PythonFields(own, fields)
        self.gradient, self.width = gradient, width
        self.proposes, self.corrects, self.steps = propose, log_q, step
        self.adapts, self.freezes, self.takes = adapt, freeze, take
        self.streams = []
        self.origin = np.zeros(1 + 2 * self.d)
        self.kept = np.zeros((1, point_size(self.d)))
        self.space.update(d=self.d, t=0, adapting=False, end_of_adaptation=INFINITY, keep=True)
        start = np.array(x0, dtype=float)
        start.flags.writeable = False
        own.start(start)
        self.fields.look()
        self.begun = self.fields.now()

    # ---- fields ----

    cdef object where(self, name):
        return self.fields.where(name)

    def views(self):
        return self.fields.views()

    def numbers(self):
        return {name: view for name, view in self.views().items() if not view.shape}

    def stat_names(self):
        return [self.fields.table[name].stat for name in self.fields.stats]

    def learned(self):
        return self.fields.learned()

    def state(self):
        try:
            now = self.fields.now()
        except (AttributeError, TypeError, ValueError):     # the next step raises this error
            now = self.begun
        return self.fields.stored("", now) | self.fields.stored("begun.", self.begun) | {
            "step.origin": np.array(self.origin),
            "step.points": np.array(self.kept[:self.n_kept]),
            "step.streams": encoded_states(self.streams),
            "step.numbers": np.array([self.E, self.seen, self.logp_seen, self.step_t,
                                      self.step_adapts]),
        }

    def check(self, state, step):
        own = dict(state)
        begun, under_way = ({name.removeprefix(start): own.pop(name) for name in state
                             if name.startswith(start)} for start in ("begun.", "step."))
        forms = self.fields.stored("", self.begun)
        check_state(self.fields.table, forms, self.sizes, own)
        try:
            check_state(self.fields.table, forms, self.sizes, begun)
        except BadField as error:
            raise error.within("begun") from None
        try:
            self.check_step(under_way, step)
        except BadField as error:
            raise error.within("step") from None

    def check_step(self, state, step):
        """Raise BadField if the unfinished step cannot be replayed."""
        check_names(("origin", "points", "streams", "numbers"), state)
        check_form("origin", state["origin"], (1 + 2 * self.d,), float)
        check_form("points", state["points"], (None, point_size(self.d)), float)
        check_form("streams", state["streams"], (None,), np.uint8)
        check_form("numbers", state["numbers"], (5,), float)
        _, seen, _, t, adapts = state["numbers"]
        if seen not in (0, 1) or adapts not in (0, 1) or not 0 <= t <= step.t:
            raise BadField("numbers", f"must have flags and a step made, not {state['numbers']}")
        try:
            streams = list(decoded_states(state["streams"]))
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise BadField("streams", "must be states of a bit generator") from error
        for i, stream in enumerate(streams):
            check_generator(f"streams[{i}]", step.bit_generator, stream)
        if step.under_way and not streams:
            raise BadField("streams", "must not be empty where a step is under way")

    def restore(self, state, within=""):
        state = {name.removeprefix(within): value for name, value in state.items()
                 if name.startswith(within)}
        self.fields.set(self.fields.restored("", state))
        self.begun = self.fields.restored("begun.", state)
        self.origin = np.array(state["step.origin"])
        self.n_kept = len(state["step.points"])
        self.kept = np.array(state["step.points"]) if self.n_kept else np.zeros(
            (1, point_size(self.d)))
        self.streams = decoded_states(state["step.streams"])
        self.E, seen, self.logp_seen, t, adapts = state["step.numbers"]
        self.seen, self.step_t, self.step_adapts = bool(seen), int(t), bool(adapts)
        self.stale = len(self.streams) > 0
        self.restored()

    def join(self, first, int sharers):
        self.sharers = sharers

    cdef void take(self, Kernel other) noexcept nogil:
        with gil:
            try:
                self.take_over(<PythonKernel>other)
            except BaseException as error:
                self.error = self.error or error
            self.end_call()

    cdef int take_over(self, PythonKernel other) except -1:
        while self.takes is not None:
            try:
                self.takes(other.own)
                break
            except KeyboardInterrupt:
                self.forgive()
        for name in self.fields.shared:
            self.space[name] = other.space[name]

    cdef void record(self, Chain *c, double *row) noexcept nogil:
        with gil:
            try:
                self.write_statistics(row)
            except BaseException as error:
                self.error = self.error or error

    cdef int write_statistics(self, double *row) except -1:
        cdef Py_ssize_t i
        for i in range(len(self.fields.stats)):
            row[i] = NAN
            value = self.space[self.fields.stats[i]]
            try:
                row[i] = value
            except TypeError:
                raise TypeError(f"{self.where(self.fields.stats[i])} must be a number, not "
                                f"{value!r:.200}") from None

    # ---- interrupts ----

    cdef int forgive(self) except -1:
        """Repeat a call that KeyboardInterrupt has cut short, and raise the interrupt afterwards.

        A third interrupt is not deferred, so that a call that never returns can be ended; the first
        may belong to the call before.
        """
        if self.interrupts == 2:
            self.interrupts = 0
            raise KeyboardInterrupt
        self.interrupts += 1
        return 0

    cdef void end_call(self) noexcept:
        if self.interrupts:
            self.interrupts = 0
            interrupt_later()

    cdef object stream(self):
        """Return the state of the bit generator."""
        while True:
            try:
                return self.bits.state
            except KeyboardInterrupt:
                self.forgive()

    cdef int set_stream(self, state) except -1:
        while True:
            try:
                self.bits.state = state
                return 0
            except KeyboardInterrupt:
                self.forgive()

    cdef list copied_fields(self):
        while True:
            try:
                return self.fields.now()
            except KeyboardInterrupt:
                self.forgive()

    # ---- the chain ----

    cdef void connect(self, Chain *c) noexcept:
        self.bits = <object>c.bit_generator
        self.rng = np.random.Generator(self.bits)

    cdef void plan(self, int64_t end_of_adaptation) noexcept:
        self.end_of_adaptation = end_of_adaptation
        self.space["end_of_adaptation"] = (
            end_of_adaptation if end_of_adaptation != INT64_MAX else INFINITY)

    cdef int propose(self, Chain *c) except -1 nogil:
        with gil:
            self.begin(c)
        return 0

    cdef int consider(self, Chain *c) except -1 nogil:
        cdef int answer
        with gil:
            answer = self.go_on(c)
        return answer

    cdef int adapt(self, Chain *c, double gain) except -1 nogil:
        with gil:
            if self.adapts is not None:
                self.learn(c, gain)
        return 0

    cdef int freeze(self, Chain *c) except -1 nogil:
        with gil:
            if self.freezes is not None:
                self.end_adaptation()
        return 0

    # ---- a step ----

    cdef int begin(self, Chain *c) except -1:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        self.begun = self.copied_fields()
        self.streams = [self.stream()]
        self.stale = self.seen = False
        self.n_kept = 0
        self.step_t, self.step_adapts = self.t, c.adapting
        self.origin[0] = c.logp_x
        copy(c.d, c.x, &self.origin[1])
        if c.grad_x != NULL:
            copy(c.d, c.grad_x, &self.origin[1 + c.d])
        while True:
            try:
                self.open(c, c.y)
                c.keep, c.log_q = bool(self.space["keep"]), 0
                break
            except BaseException as error:
                self.set_stream(self.streams[0])
                self.fields.set(self.begun)
                if not isinstance(error, KeyboardInterrupt):
                    self.streams = []
                    raise
                self.forgive()
        self.ask(c)
        self.end_call()
        return 0

    cdef int set_out(self, Chain *c) except -1:
        """Set the attributes for propose and step to their values at the start of the step."""
        cdef dict space = self.space
        self.x = read_only(c.d, &self.origin[1])
        space["t"], space["adapting"], space["keep"] = self.step_t, self.step_adapts, True
        space["logp_x"] = self.origin[0]
        if c.grad_x != NULL:
            space["grad_x"] = read_only(c.d, &self.origin[1 + c.d])
        return 0

    cdef int write(self, found, double *y) except -1:
        """Write the proposal to y."""
        cdef Py_ssize_t i
        cdef ndarray array
        if not (PyArray_CheckExact(found) and PyArray_ISCARRAY_RO(found)
                and PyArray_TYPE(found) == NPY_DOUBLE and PyArray_NDIM(found) == 1
                and PyArray_SIZE(found) == self.d):
            found = self.as_points("propose", "return", found, 1)
        array = found
        memcpy(y, PyArray_DATA(array), self.d * sizeof(double))
        for i in range(self.d):
            if isnan(y[i]):
                self.as_points("propose", "return", found, 1)
        return 0

    cdef object as_points(self, method, verb, found, int ndim):
        """Return `found` as an array (d,) or, if `ndim` is 2, (m, d)."""
        try:
            array = np.ascontiguousarray(found)
            real = array.dtype.kind in "fiu"
        except ValueError:
            array, real = np.zeros(0), False
        shape = np.shape(array)
        if not (real and array.size and 1 <= array.ndim <= ndim
                and shape[array.ndim - 1] == self.d):
            form = f"a real array of shape ({self.d},)" + (" or a list of these" * (ndim > 1))
            got = f"an array of shape {shape}" if real else f"{found!r:.200}"
            raise ValueError(f"{self.where(method)} must {verb} {form}, not {got}")
        if np.isnan(array).any():
            raise ValueError(f"{self.where(method)} must {verb} numbers, not {array}, at step "
                             f"{self.step_t} from x = {self.x}")
        return array.astype(float, copy=False)

    # ---- overridden for steps with several evaluations (python_steps.pyx) ----

    cdef int open(self, Chain *c, double *y) except -1:
        """Begin the step; write a proposal to y unless it is NULL."""
        self.set_out(c)
        found = self.proposes(self.x, self.rng)
        if y != NULL:
            self.write(found, y)
        return 0

    cdef int ask(self, Chain *c) except -1:
        """Mark the rows of y that are to be evaluated."""
        c.wanted[0] = True
        return 0

    cdef int go_on(self, Chain *c) except -1:
        """Complete log_q."""
        self.logp_seen = c.logp_y
        while True:
            try:
                if self.stale:
                    self.replay(c)
                self.look(c)
                break
            except BaseException as error:
                self.stale = True
                if not isinstance(error, KeyboardInterrupt):
                    raise
                self.forgive()
        self.seen = True
        self.end_call()
        return DECIDE

    cdef int look(self, Chain *c) except -1:
        self.y = read_only(c.d, c.y)
        self.space["logp_y"] = self.logp_seen
        if c.grad_x != NULL:
            self.space["grad_y"] = read_only(c.d, c.grad_y)
        if self.corrects is not None and self.logp_seen > -INFINITY:
            c.log_q = self.fields.log_ratio("log_q", "return", self.corrects(self.x, self.y))
        return 0

    cdef int catch_up(self, Chain *c) except -1:
        """Replay the rest of the step."""
        if self.seen:
            self.look(c)
        return 0

    cdef int settle(self, Chain *c) except -1:
        """Set x and y for adapt."""
        return 0

    # ---- replay ----

    cdef int replay(self, Chain *c) except -1:
        """Repeat the unfinished step with the same random numbers and points."""
        now = self.stream()
        try:
            self.fields.set(self.begun)
            self.bits.state = self.streams[0]
            self.open(c, NULL)
            self.catch_up(c)
        finally:
            self.set_stream(now)
        self.stale = False
        return 0

    # ---- adaptation ----

    cdef int learn(self, Chain *c, double gain) except -1:
        stream = self.stream()
        # a replay does not include what other chains have learned in this step
        entry = self.copied_fields() if self.sharers > 1 else None
        while True:
            try:
                if self.stale:
                    self.replay(c)
                    self.settle(c)
                    if entry is not None:
                        self.fields.set(entry)
                self.space["logp_y"] = c.logp_y
                if self.several and c.grad_x != NULL:
                    self.space["grad_y"] = read_only(c.d, c.grad_y)
                self.adapts(self.x, self.y, c.alpha, bool(c.accepted), gain, self.rng)
                break
            except BaseException as error:
                self.set_stream(stream)
                self.stale = True
                if not isinstance(error, KeyboardInterrupt):
                    raise
                self.forgive()
        self.end_call()
        return 0

    cdef int end_adaptation(self) except -1:
        entry = self.copied_fields()
        while True:
            try:
                self.space["t"], self.space["adapting"] = self.t, False
                self.freezes()
                break
            except BaseException as error:
                self.fields.set(entry)
                if not isinstance(error, KeyboardInterrupt):
                    raise
                self.forgive()
        self.end_call()
        return 0
