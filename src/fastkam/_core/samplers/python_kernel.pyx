"""A sampler written in Python, as a kernel: the compiled side of `fastkam.PythonSampler`.

The methods of the user's class are called with the GIL held, on a copy of the sampler that belongs
to one chain and has the fields as attributes.

A run may stop at any evaluation, and neither a generator nor the attributes that `propose` leaves
for `adapt` can be stored. So of a step that is under way it is stored how it began, and what it has
received since: the fields, the point and the state of the bit generator at the start, the states of
the bit generator each time that the generator went on, and the points evaluated. When the run goes
on, the step is replayed to where it was. A call that was cut short by KeyboardInterrupt is undone
in the same way and made again, and the interrupt is raised when it has returned.
"""
cimport cython
from cpython.exc cimport PyErr_SetInterrupt
from libc.math cimport INFINITY, NAN, isnan
from libc.stdint cimport INT64_MAX, int64_t
from libc.string cimport memcpy
from numpy cimport (
    NPY_ARRAY_WRITEABLE, NPY_DOUBLE, NPY_KEEPORDER, PyArray_CheckExact, PyArray_CLEARFLAGS,
    PyArray_DATA, PyArray_ISCARRAY_RO, PyArray_NDIM, PyArray_NewCopy, PyArray_SimpleNew,
    PyArray_SIZE, PyArray_TYPE, import_array, ndarray, npy_intp,
)

from fastkam._core.engine.kernel cimport AGAIN, DECIDE, DECIDED, Chain, Kernel
from fastkam._core.linalg.dense cimport copy
from fastkam._core.engine.step cimport KEPT, keep_point, point_size, recall_point

import json
from types import GeneratorType

import numpy as np

import_array()

cdef enum:
    REAL
    INTEGER
    ARRAY


cdef class Point:
    """A point with the log density there, and its gradient where the class has GRADIENT.

    Where the point has no density, `logp` is -inf and `grad` is void.
    """
    cdef readonly object x
    cdef readonly double logp
    cdef readonly object grad
    cdef Py_ssize_t place           # among the points that the step has received; -1 for others

    def __init__(self, x, double logp, grad=None):
        self.x, self.logp, self.grad, self.place = x, logp, grad, -1

    def __repr__(self):
        return f"Point(x={self.x!r}, logp={self.logp!r})"


cdef class Proposal:
    """What `step` returns to have the engine decide about a point: with log q(x|y) - log q(y|x)."""
    cdef readonly Point point
    cdef readonly object log_q

    def __init__(self, Point point not None, log_q=0.0):
        self.point, self.log_q = point, log_q

    def __repr__(self):
        return f"Proposal({self.point!r}, log_q={self.log_q!r})"


cdef class Decision:
    """What `step` returns where it has decided itself.

    `point` is where the chain goes if `accepted`, `alpha` the acceptance probability. A sampler
    that has exchanged the state of the chain before its move says by `x` at which point it began.
    """
    cdef readonly Point point
    cdef readonly object alpha
    cdef readonly bint accepted
    cdef readonly Point x

    def __init__(self, Point point=None, *, alpha, accepted, Point x=None):
        self.point, self.alpha, self.accepted, self.x = point, alpha, accepted, x

    def __repr__(self):
        return f"Decision({self.point!r}, alpha={self.alpha!r}, accepted={self.accepted!r})"


cdef object read_only(Py_ssize_t n, const double *values):
    """Return a read-only copy (n,)."""
    cdef npy_intp size = n
    cdef ndarray array = PyArray_SimpleNew(1, &size, NPY_DOUBLE)
    memcpy(PyArray_DATA(array), values, n * sizeof(double))
    PyArray_CLEARFLAGS(array, NPY_ARRAY_WRITEABLE)
    return array


cdef object encoded(list streams):
    """Return states of a bit generator as an array of bytes."""
    if not streams:
        return np.zeros(0, np.uint8)
    text = json.dumps(streams, default=lambda a: {"array": a.tolist(), "dtype": str(a.dtype)})
    return np.frombuffer(text.encode(), np.uint8).copy()


cdef list decoded(streams):
    """Return the states that `encoded` has stored."""
    def array(found):
        return np.array(found["array"], found["dtype"]) if "array" in found else found

    return json.loads(bytes(streams), object_hook=array) if len(streams) else []


@cython.final
cdef class PythonKernel(Kernel):
    """The chain of a `PythonSampler`.

    Parameters
    ----------
    own : object
        A copy of the sampler, whose attributes are those of the chain.
    x0 : ndarray, shape (d,)
    fields : dict of Field
    propose, log_q, step, adapt, freeze, take : callable or None
        The methods that its class defines.
    """
    cdef readonly object own
    cdef dict space                 # its attributes
    cdef dict fields
    cdef list names
    cdef list shared
    cdef list stats
    cdef list kinds                 # of each field: REAL, INTEGER, ARRAY
    cdef list shapes
    cdef object proposes
    cdef object corrects
    cdef object steps
    cdef object adapts
    cdef object freezes
    cdef object takes
    cdef object bits                # numpy's bit generator of the chain
    cdef object rng                 # a Generator on it
    cdef int interrupts             # held back in this call
    cdef object error               # raised where none can be: it is raised at the next call
    cdef object x                   # of this step
    cdef object y
    cdef object running             # the generator of a step
    cdef object queue               # (m, d) the points that it has yielded
    cdef bint single                # whether that was one point, not a list
    cdef bint finished
    cdef object verdict             # what it has returned
    cdef list received              # the points that it has received
    # ---- how the step began and what it has received, for a replay ----
    cdef bint stale                 # the step is to be replayed first
    cdef list begun                 # the fields at its start
    cdef list streams               # the state of the bit generator at its start, and at each send
    cdef double[::1] origin         # log density at x, x, the gradient there
    cdef double[:, ::1] kept        # the points evaluated, as in step.pxd
    cdef Py_ssize_t n_kept
    cdef Py_ssize_t given           # of them, those of the queue
    cdef double E                   # of the first decision
    cdef double logp_seen           # at y, for log_q
    cdef bint seen
    cdef int64_t step_t
    cdef bint step_adapts

    def __init__(self, own, x0, fields, *, gradient, width, propose, log_q, step, adapt, freeze,
                 take):
        self.d = len(x0)
        self.own, self.space, self.fields = own, own.__dict__, fields
        self.gradient, self.several, self.width = gradient, step is not None, width
        self.proposes, self.corrects, self.steps = propose, log_q, step
        self.adapts, self.freezes, self.takes = adapt, freeze, take
        self.names = list(fields)
        self.shared = [name for name, field in fields.items() if field.shared]
        self.stats = [name for name, field in fields.items() if field.stat]
        self.streams, self.received = [], []
        self.origin = np.zeros(1 + 2 * self.d)
        self.kept = np.zeros((1, point_size(self.d)))
        self.space.update(d=self.d, t=0, adapting=False, end_of_adaptation=INFINITY, keep=True)
        start = np.array(x0, dtype=float)
        start.flags.writeable = False
        own.start(start)
        self.look_at_fields()
        self.begun = self.fields_now()

    # ---- fields ----

    cdef object where(self, name):
        return f"{type(self.own).__name__}.{name}"

    cdef int look_at_fields(self) except -1:
        """Note the kind and the shape of each field as `start` has set it."""
        self.kinds, self.shapes = [], []
        for name, field in self.fields.items():
            if not hasattr(self.own, name):
                raise AttributeError(f"{self.where('start')} must set self.{name}, which FIELDS "
                                     "names")
            value = getattr(self.own, name)
            number = np.ndim(value) == 0
            if field.stat and not number:
                raise TypeError(f"{self.where(name)} is recorded as the statistic {field.stat!r}: "
                                f"it must be a number, not an array of shape {np.shape(value)}")
            self.kinds.append(ARRAY if not number else REAL if field.dtype == "f8" else INTEGER)
            self.shapes.append(np.shape(value))
            self.space[name] = self.as_stored(len(self.kinds) - 1, value)

    cdef object as_stored(self, Py_ssize_t i, value):
        """Return the i-th field's value in the form in which it is stored; arrays are copied."""
        cdef int kind = self.kinds[i]
        if kind == REAL and type(value) is float:
            return value
        try:
            if kind == REAL:
                return float(value)
            if kind == INTEGER:
                if int(value) != value:
                    raise ValueError
                return int(value)
            dtype = self.fields[self.names[i]].dtype
            if not isinstance(value, np.ndarray) or value.dtype != dtype:
                value = np.asarray(value).astype(dtype, casting="same_kind")
        except (TypeError, ValueError):
            form = ("a number", "an integer", "a real array")[kind]
            raise TypeError(f"{self.where(self.names[i])} must be {form}, as its row of FIELDS "
                            f"says, not {value!r:.200}") from None
        if value.shape != self.shapes[i]:
            raise ValueError(f"{self.where(self.names[i])} must keep the shape {self.shapes[i]} "
                             f"that start has given it, not {value.shape}")
        return PyArray_NewCopy(value, NPY_KEEPORDER)

    cdef list fields_now(self):
        """Return copies of all fields."""
        cdef Py_ssize_t i
        values = []
        for i in range(len(self.names)):
            if self.names[i] not in self.space:
                raise AttributeError(f"{self.where(self.names[i])} has been deleted")
            values.append(self.as_stored(i, self.space[self.names[i]]))
        return values

    cdef int set_fields(self, list values) except -1:
        for i, name in enumerate(self.names):
            self.space[name] = self.as_stored(i, values[i])

    def views(self):
        return {name: np.asarray(self.space[name]) for name in self.names}

    def numbers(self):
        return {name: view for name, view in self.views().items() if not view.shape}

    def stat_names(self):
        return [self.fields[name].stat for name in self.stats]

    def learnt(self):
        return {name: np.asarray(self.space[name]) for name in self.names
                if self.fields[name].learnt}

    def state(self):
        try:
            now = self.fields_now()
        except (AttributeError, TypeError, ValueError):     # the next step says so
            now = self.begun
        state = {}
        for i, name in enumerate(self.names):
            dtype = self.fields[name].dtype
            state[name] = np.array(now[i], dtype)
            state[f"step.{name}"] = np.array(self.begun[i], dtype)
        return state | {
            "step.origin": np.array(self.origin),
            "step.points": np.array(self.kept[:self.n_kept]),
            "step.streams": encoded(self.streams),
            "step.numbers": np.array([self.E, self.seen, self.logp_seen, self.step_t,
                                      self.step_adapts]),
        }

    def restore(self, state):
        self.set_fields([state[name] for name in self.names])
        self.begun = [self.as_stored(i, state[f"step.{name}"])
                      for i, name in enumerate(self.names)]
        self.origin = np.array(state["step.origin"])
        self.n_kept = len(state["step.points"])
        self.kept = np.array(state["step.points"]) if self.n_kept else np.zeros(
            (1, point_size(self.d)))
        self.streams = decoded(state["step.streams"])
        self.E, seen, self.logp_seen, t, adapts = state["step.numbers"]
        self.seen, self.step_t, self.step_adapts = bool(seen), int(t), bool(adapts)
        self.running = None
        self.stale = len(self.streams) > 0

    def join(self, first, int sharers):
        self.sharers = sharers

    cdef void take(self, Kernel other) noexcept nogil:
        with gil:
            try:
                self.take_over((<PythonKernel>other))
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
        for name in self.shared:
            self.space[name] = other.space[name]

    cdef void record(self, Chain *c, double *row) noexcept nogil:
        with gil:
            try:
                self.write_statistics(row)
            except BaseException as error:
                self.error = self.error or error

    cdef int write_statistics(self, double *row) except -1:
        cdef Py_ssize_t i
        for i in range(len(self.stats)):
            row[i] = NAN
            value = self.space[self.stats[i]]
            try:
                row[i] = value
            except TypeError:
                raise TypeError(f"{self.where(self.stats[i])} must be a number, not "
                                f"{value!r:.200}") from None

    # ---- interrupts ----

    cdef int forgive(self) except -1:
        """Let what KeyboardInterrupt has cut short be made again, and raise it afterwards.

        Not a third time, for a call that does not return; the first may come from the call before.
        """
        if self.interrupts == 2:
            self.interrupts = 0
            raise KeyboardInterrupt
        self.interrupts += 1
        return 0

    cdef void end_call(self) noexcept:
        if self.interrupts:
            self.interrupts = 0
            PyErr_SetInterrupt()

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
                return self.fields_now()
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
            answer = self.go_on(c) if self.several else self.correct(c)
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
        self.n_kept = self.given = 0
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
                self.set_fields(self.begun)
                if not isinstance(error, KeyboardInterrupt):
                    self.streams = []
                    raise
                self.forgive()
        if self.several:
            self.ask(c)
        else:
            c.wanted[0] = True
        self.end_call()
        return 0

    cdef int open(self, Chain *c, double *y) except -1:
        """Call propose or step, from the start of the step on; a proposal goes to y, if wanted."""
        cdef dict space = self.space
        self.x = read_only(c.d, &self.origin[1])
        space["t"], space["adapting"], space["keep"] = self.step_t, self.step_adapts, True
        space["logp_x"] = self.origin[0]
        if c.grad_x != NULL:
            space["grad_x"] = read_only(c.d, &self.origin[1 + c.d])
        if not self.several:
            found = self.proposes(self.x, self.rng)
            if y != NULL:
                self.write(found, y)
            return 0
        self.received = []
        self.running = self.steps(self.x, self.rng)
        if type(self.running) is not GeneratorType:
            raise TypeError(f"{self.where('step')} must be a generator, which yields the points to "
                            f"be evaluated, not return {self.running!r:.200}")
        self.go_to_yield(None)
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
        """Return `found` as an array (d,), or where `ndim` is 2 also (m, d)."""
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

    cdef double number(self, method, verb, value) except? -1.0:
        try:
            if np.ndim(value) == 0:
                return float(value)
        except (TypeError, ValueError):
            pass
        raise TypeError(f"{self.where(method)} must {verb} a number, not {value!r:.200}")

    # ---- a sampler of one evaluation ----

    cdef int correct(self, Chain *c) except -1:
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
            c.log_q = self.number("log_q", "return", self.corrects(self.x, self.y))
        return 0

    # ---- a sampler of several ----

    cdef int go_to_yield(self, answer) except -1:
        """Go on with the step to its next point, or its end."""
        self.queue, self.given = None, 0
        try:
            found = self.running.send(answer)
        except StopIteration as stop:
            self.verdict, self.finished = stop.value, True
            return 0
        self.verdict, self.finished = None, False
        points = self.as_points("step", "yield", found, 2)
        self.single = points.ndim == 1
        self.queue = points.reshape(-1, self.d)
        return 0

    cdef int asked(self, Chain *c) except -1:
        """Return how many points are evaluated next.

        One at a time in a tempered chain, where the parts of the density are those of one point.
        """
        if self.finished:
            return 0
        return min(1 if c.parts != NULL else self.width, len(self.queue) - self.given)

    cdef int ask(self, Chain *c) except -1:
        """Fill the rows of y that are to be evaluated."""
        cdef int row, n = self.asked(c)
        cdef const double[:, ::1] queue
        for row in range(self.width):
            c.wanted[row] = row < n
        if n:
            queue = self.queue
            for row in range(n):
                copy(c.d, &queue[self.given + row, 0], c.y + row * c.d)
        return 0

    cdef int go_on(self, Chain *c) except -1:
        """Keep the points that were evaluated; let the step go on when it has all it asked for."""
        cdef int row, n, answer, sent = len(self.streams)
        while self.stale or self.n_kept + self.width > self.kept.shape[0]:
            try:
                if self.stale:
                    self.replay(c)
                else:
                    self.kept = np.vstack([self.kept, np.zeros_like(self.kept)])
            except KeyboardInterrupt:
                self.forgive()
        n = self.asked(c)
        for row in range(n):
            self.keep(c, row)
        self.given += n
        if sent == 1:
            self.E = c.E
        while True:
            try:
                if self.stale:
                    self.replay(c)
                answer = AGAIN
                if self.finished or self.given == len(self.queue):
                    answer = self.send(c)
                break
            except BaseException as error:
                if len(self.streams) > sent:
                    self.set_stream(self.streams.pop())
                self.stale = True
                if not isinstance(error, KeyboardInterrupt):
                    self.n_kept -= n
                    raise
                try:
                    self.forgive()
                except KeyboardInterrupt:
                    self.n_kept -= n
                    raise
        if answer == AGAIN:
            self.ask(c)
        self.end_call()
        return answer

    cdef int send(self, Chain *c) except -1:
        """Let the step go on with the points that it has asked for; what consider returns."""
        self.streams.append(self.stream())
        self.space["E"] = c.E
        if not self.finished:
            self.go_to_yield(self.points(c, self.n_kept - len(self.queue), len(self.queue)))
        if not self.finished:
            c.E = self.number("E", "be", self.space["E"])
            return AGAIN
        self.check_verdict(c)
        c.E = self.number("E", "be", self.space["E"])
        return self.conclude(c)

    cdef int keep(self, Chain *c, int row) except -1:
        """Keep a point that was evaluated."""
        cdef double *point = &self.kept[self.n_kept, 0]
        if row == 0:
            keep_point(c, 0, point)
        else:
            point[0] = c.logps[row]
            copy(c.d, c.y + row * c.d, point + KEPT)
            if c.grad_x != NULL:
                copy(c.d, c.grad_y + row * c.d, point + KEPT + c.d)
        self.n_kept += 1
        return 0

    cdef object points(self, Chain *c, Py_ssize_t first, Py_ssize_t n):
        """Return n kept points, as the step receives them."""
        cdef Py_ssize_t i
        cdef const double *at
        cdef Point point
        found = []
        for i in range(first, first + n):
            at = &self.kept[i, 0]
            point = Point.__new__(Point)
            point.x, point.logp, point.place = read_only(c.d, at + KEPT), at[0], i
            if c.grad_x != NULL:
                point.grad = read_only(c.d, at + KEPT + c.d)
            found.append(point)
        self.received += found
        return found[0] if self.single else found

    cdef int check_verdict(self, Chain *c) except -1:
        """Refuse what `step` must not return."""
        cdef double alpha
        verdict = self.verdict
        if isinstance(verdict, Proposal):
            self.check_point(c, (<Proposal>verdict).point)
            self.number("step", "return a log_q that is", (<Proposal>verdict).log_q)
        elif isinstance(verdict, Decision):
            alpha = self.number("step", "return an alpha that is", (<Decision>verdict).alpha)
            if not 0 <= alpha <= 1:
                raise ValueError(f"{self.where('step')} must return an alpha from 0 to 1, not "
                                 f"{alpha}")
            if (<Decision>verdict).point is not None:
                self.check_point(c, (<Decision>verdict).point)
            elif (<Decision>verdict).accepted:
                raise ValueError(f"{self.where('step')} must return the point that is accepted, "
                                 "not None")
            if c.parts != NULL and (<Decision>verdict).x is not None:
                raise TypeError(f"{self.where('step')} must not move the chain by itself (x) where "
                                "its density is tempered")
        else:
            raise TypeError(f"{self.where('step')} must return a Proposal or a Decision, not "
                            f"{verdict!r:.200}")
        return 0

    cdef int check_point(self, Chain *c, Point point) except -1:
        if point.place < 0:
            if c.parts != NULL:
                raise TypeError(f"{self.where('step')} must propose a point that it has yielded "
                                "where its density is tempered")
            self.as_points("step", "propose", point.x, 1)
        elif point.place >= len(self.received) or self.received[point.place] is not point:
            raise ValueError(f"{self.where('step')} must propose a point of this step, not {point}")
        return 0

    cdef int conclude(self, Chain *c) except -1:
        """Do what the step has returned."""
        cdef Point point, x
        verdict, c.keep = self.verdict, bool(self.space["keep"])
        if isinstance(verdict, Proposal):
            self.set_y(c, (<Proposal>verdict).point)
            c.log_q = (<Proposal>verdict).log_q
            return DECIDE
        x, point = (<Decision>verdict).x, (<Decision>verdict).point
        if x is not None:
            self.put(x, c.x, &c.logp_x, c.grad_x)
        if point is not None:
            self.set_y(c, point)
        c.alpha, c.accepted = (<Decision>verdict).alpha, (<Decision>verdict).accepted
        self.settle(c)
        return DECIDED

    cdef int set_y(self, Chain *c, Point point) except -1:
        if point.place >= 0:
            recall_point(c, &self.kept[point.place, 0])
        else:
            self.put(point, c.y, &c.logp_y, c.grad_y)
        self.settle(c)
        return 0

    cdef int put(self, Point point, double *x, double *logp, double *grad) except -1:
        """Write a point that the sampler has made itself."""
        cdef const double[::1] values = np.array(self.as_points("step", "return", point.x, 1))
        logp[0] = point.logp
        copy(self.d, &values[0], x)
        if grad != NULL:
            values = np.array(self.as_points("step", "return", point.grad, 1))
            copy(self.d, &values[0], grad)
        return 0

    cdef int settle(self, Chain *c) except -1:
        """x and y of the step's end, for adapt."""
        verdict, self.y = self.verdict, self.x
        if isinstance(verdict, Decision) and (<Decision>verdict).x is not None:
            self.x = self.y = read_only(c.d, c.x)
            self.space["logp_x"] = c.logp_x
        if (<Point>verdict.point) is not None:
            self.y = read_only(c.d, c.y)
        return 0

    # ---- replay ----

    cdef int replay(self, Chain *c) except -1:
        """Make the step again up to where it was, with the random numbers and points it had."""
        cdef Py_ssize_t i, n, first = 0
        now = self.stream()
        try:
            self.set_fields(self.begun)
            self.bits.state = self.streams[0]
            self.open(c, NULL)
            if not self.several:
                if self.seen:
                    self.look(c)
            else:
                self.space["E"] = self.E
                for i in range(1, len(self.streams)):
                    self.bits.state = self.streams[i]
                    if not self.finished:
                        n = len(self.queue)
                        self.go_to_yield(self.points(c, first, n))
                        first += n
                self.given = self.n_kept - first
        finally:
            self.set_stream(now)
        self.stale = False
        return 0

    # ---- adaptation ----

    cdef int learn(self, Chain *c, double gain) except -1:
        stream = self.stream()
        # what other chains have learnt in this step is no part of its replay
        entry = self.copied_fields() if self.sharers > 1 else None
        while True:
            try:
                if self.stale:
                    self.replay(c)
                    if self.several:
                        self.settle(c)
                    if entry is not None:
                        self.set_fields(entry)
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
                self.set_fields(entry)
                if not isinstance(error, KeyboardInterrupt):
                    raise
                self.forgive()
        self.end_call()
        return 0
