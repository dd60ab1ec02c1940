"""Objects whose state is declared once, in the table FIELDS of their class.

FIELDS maps names to rows of `fields.Field`. Arrays are attributes of that name, typed and public;
numbers are public attributes of type double or int64_t. Allocation, checkpoints, sharing among
chains, recorded statistics and the documentation are all made from this table.
"""
from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_STRIDES, PyBuffer_IsContiguous, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport strcmp
from numpy cimport (
    NPY_CORDER, NPY_DOUBLE, NPY_INT64, PyArray_DATA, PyArray_NewCopy,
    PyArray_SimpleNewFromData, PyArray_Transpose, import_array, ndarray, npy_intp, set_array_base,
)

from fastkam._core.engine.ranges import BadField, check_state

from contextlib import contextmanager
from math import prod
import threading

import numpy as np

import_array()

LINE = 64       # bytes of a cache line
# two values that no byte, count or pointer of an object has by chance
MARKS = {"f8": (-1.2345678901234567e-211, 7.654321e+187),
         "i8": (-0x123456789ABCDEF, 0x7EDCBA987654321)}


def zeros(shape, dtype=float, order="C"):
    """Return zeros that begin at a cache line and share none, so that threads do not interfere.

    A vector register is as long as a cache line: if a column begins at a line, each load
    reads one line, not two.
    """
    dtype = np.dtype(dtype)
    # lengths may be small numpy integers, whose products overflow
    n = prod(map(int, shape)) if isinstance(shape, (tuple, list)) else int(shape)
    memory = np.zeros(n * dtype.itemsize + 4 * LINE, np.uint8)
    cdef size_t address = <size_t>PyArray_DATA(memory)
    return np.ndarray(shape, dtype, memory, LINE + -address % <size_t>LINE, order=order)


ROOM = threading.local()        # .bytes, if set: the memory that this thread may still allocate


@contextmanager
def room_for(n):
    """Limit the fields allocated in this context to n bytes; more raise BadField."""
    ROOM.bytes = n
    try:
        yield
    finally:
        del ROOM.bytes


cdef int take_room(dict table, sizes) except -1:
    """Raise BadField before the arrays of a table are allocated, if they exceed the limit."""
    room = getattr(ROOM, "bytes", None)
    if room is None:
        return 0
    for field in table.values():
        if field.shape:
            room -= prod(sizes[size] for size in field.shape) * np.dtype(field.dtype).itemsize
    ROOM.bytes = room
    if room < 0:
        raise BadField("the state", "is too small for the fields of its sampler")
    return 0


cdef object real_view(double *number):
    """Return a number as an array of shape () that shares its memory."""
    return PyArray_SimpleNewFromData(0, NULL, NPY_DOUBLE, number)


cdef object integer_view(int64_t *number):
    """Return an integer as an array of shape () that shares its memory."""
    return PyArray_SimpleNewFromData(0, NULL, NPY_INT64, number)


cdef object array_of(memory):
    """Return np.asarray(memory), a typed memoryview, in a tenth of the time if contiguous."""
    cdef Py_buffer b
    cdef npy_intp lengths[8]
    cdef Py_ssize_t i
    cdef ndarray view = None
    PyObject_GetBuffer(memory, &b, PyBUF_STRIDES | PyBUF_FORMAT)
    try:
        if strcmp(b.format, "d") == 0 and not b.readonly and b.ndim <= 8:
            if PyBuffer_IsContiguous(&b, c"C"):
                for i in range(b.ndim):
                    lengths[i] = b.shape[i]
                view = PyArray_SimpleNewFromData(b.ndim, lengths, NPY_DOUBLE, b.buf)
                set_array_base(view, memory)
            elif PyBuffer_IsContiguous(&b, c"F"):
                for i in range(b.ndim):
                    lengths[i] = b.shape[b.ndim - 1 - i]
                view = PyArray_SimpleNewFromData(b.ndim, lengths, NPY_DOUBLE, b.buf)
                set_array_base(view, memory)
                view = PyArray_Transpose(view, NULL)
    finally:
        PyBuffer_Release(&b)
    return np.asarray(memory) if view is None else view


cdef Py_ssize_t offset_of(State instance, str name, str dtype) except -1:
    """Return the offset of a number within the object, in bytes.

    Cython has no offsetof for the attributes of a class, so each candidate word of the object is
    compared while the attribute is set to different values.
    """
    cdef const int64_t *words = <const int64_t *><PyObject *>instance
    cdef Py_ssize_t i, n = type(instance).__basicsize__ // sizeof(int64_t)
    before = getattr(instance, name)
    found = set(range(n))
    for mark in MARKS[dtype]:
        setattr(instance, name, mark)
        bits = np.array(mark, dtype).view(np.int64).item()
        found = {i for i in found if words[i] == bits}
    setattr(instance, name, before)
    if len(found) != 1:
        raise TypeError(f"{type(instance).__name__}.{name} must be a public attribute of type "
                        f"{'double' if dtype == 'f8' else 'int64_t'}")
    return found.pop() * sizeof(int64_t)


PLACES = {}     # {class: Places}


cdef class Places:
    """Offsets of the numbers of a state table within the objects of a class, in bytes."""

    def __init__(self, State instance):
        table = type(instance).FIELDS
        self.offsets = {name: offset_of(instance, name, field.dtype)
                        for name, field in table.items() if not field.shape}
        rows = [(table[name], offset) for name, offset in self.offsets.items()]
        self.shared = np.array([offset for field, offset in rows if field.shared], np.intp)
        self.recorded = np.array([offset if field.dtype == "f8" else ~offset
                                  for field, offset in rows if field.stat], np.intp)


cdef Places places_of(State instance):
    """Return the places of the class of an object."""
    cls = type(instance)
    if cls not in PLACES:
        PLACES[cls] = Places(instance)
    return PLACES[cls]


def offsets(State instance):
    """Return the offsets of all numbers of the table, {name: offset}."""
    return places_of(instance).offsets


cdef class State:
    """An object with the fields of its table, and possibly parts with tables of their own.

    A kernel with SKIPS decides after each step whether its state is a draw.
    """
    FIELDS = {}
    SKIPS = False

    def __cinit__(self, *args, **options):
        self.sizes = {}

    def allocate(self, **sizes):
        """Allocate every array, filled with zeros, and find the numbers.

        `sizes` are the sizes that shapes and ranges name.
        """
        self.sizes = sizes
        take_room(self.FIELDS, sizes)
        for name, field in self.FIELDS.items():
            if field.shape:
                order = "F" if field.shape[0] == "d" and len(field.shape) == 2 else "C"
                shape = [sizes[size] for size in field.shape]
                setattr(self, name, zeros(shape, field.dtype, order))
        self.places = places_of(self)

    @classmethod
    def statistics(cls):
        """Return {name: meaning} of the statistics recorded with each draw."""
        return {field.stat: field.meaning for field in cls.FIELDS.values() if field.stat}

    def stat_names(self):
        """Return the names of the statistics in the order in which `record` writes them."""
        return list(self.statistics())

    def parts(self):
        """Return the objects within this one that have tables of their own, {name: object}."""
        return {}

    def views(self):
        """Return every array and number of the table, {name: array that shares its memory}."""
        views = {name: array_of(getattr(self, name))
                 for name, field in self.FIELDS.items() if field.shape}
        views.update(self.numbers())
        return views

    def numbers(self):
        """Return every number of the table as an array of shape () that shares its memory."""
        cdef char *start = <char *><PyObject *>self
        cdef Py_ssize_t place
        cdef dict views = {}
        for name, place in places_of(self).offsets.items():
            views[name] = (real_view(<double *>(start + place)) if self.FIELDS[name].dtype == "f8"
                           else integer_view(<int64_t *>(start + place)))
        return views

    def state(self):
        """Return a copy of every field, {name: array}; of a part's as "part.name"."""
        cdef dict state = self.views()
        for name, view in state.items():    # no key is added or removed
            state[name] = PyArray_NewCopy(view, NPY_CORDER)
        for name, part in self.parts().items():
            state |= {f"{name}.{field}": value for field, value in part.state().items()}
        return state

    def table(self):
        """Return the rows of all fields that `views` has, {name: Field}."""
        return self.FIELDS

    def check(self, state, step):
        """Raise BadField unless `restore` can take `state`: the right fields, all in their ranges.

        A state from a file is checked here before any of it is restored. `step` (ranges.Step) is
        the step of the chain.
        """
        own = dict(state)
        for name, part in self.parts().items():
            start = f"{name}."
            theirs = [field for field in own if field.startswith(start)]
            try:
                part.check({field.removeprefix(start): own.pop(field) for field in theirs}, step)
            except BadField as error:
                raise error.within(name) from None
        check_state(self.table(), self.views(), self.sizes, own)
        self.check_relations(own, step)

    def skips(self):
        """Return whether a kernel, or one of those within it, may keep a step from being a draw."""
        return self.SKIPS or any(part.skips() for part in self.parts().values())

    def check_relations(self, state, step):
        """Raise BadField if fields within their ranges contradict each other."""

    def restore(self, state, within=""):
        """Restore every field from what `state` has returned; the caller has checked it.

        The names of the fields begin with `within`: "rung0.kernel." for a kernel of a part.
        """
        for name, part in self.parts().items():
            part.restore(state, f"{within}{name}.")
        for name, view in self.views().items():
            view[...] = state[within + name]
        self.restored()

    def restored(self):
        """Compute what follows from the fields, which have been restored."""

    def learned(self):
        """Return the fields that are recorded through warm-up, {name: array}."""
        fields = [(name, field) for name, field in self.FIELDS.items() if field.learned]
        numbers = {} if all(field.shape for _, field in fields) else self.numbers()
        return {name: array_of(getattr(self, name)) if field.shape else numbers[name]
                for name, field in fields}

    cdef void copy_shared_numbers(self, State other) noexcept nogil:
        """Copy the shared numbers of another object of the same class."""
        cdef char *mine = <char *><PyObject *>self
        cdef const char *theirs = <const char *><PyObject *>other
        cdef Py_ssize_t i, place
        if self.places is None:
            return
        for i in range(self.places.shared.shape[0]):
            place = self.places.shared[i]
            (<int64_t *>(mine + place))[0] = (<const int64_t *>(theirs + place))[0]

    cdef void record_numbers(self, double *row) noexcept nogil:
        """Write the recorded numbers, in the order of the table."""
        cdef const char *start = <const char *><PyObject *>self
        cdef Py_ssize_t i, place
        if self.places is None:
            return
        for i in range(self.places.recorded.shape[0]):
            place = self.places.recorded[i]
            row[i] = ((<const double *>(start + place))[0] if place >= 0
                      else <double>(<const int64_t *>(start + ~place))[0])
