"""Objects whose state is declared once, in the table FIELDS of their class.

FIELDS maps names to rows of `fields.Field`. Arrays are attributes of that name, typed and public;
numbers are public attributes of type double or int64_t. Allocation, checkpoints, sharing among
chains, recorded statistics and the documentation are all made from this table.
"""
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t
from numpy cimport (
    NPY_DOUBLE, NPY_INT64, PyArray_DATA, PyArray_SimpleNewFromData, import_array,
)

from fastkam._core.engine.ranges import BadField, check_state

from contextlib import contextmanager
from math import prod
import threading

import numpy as np

import_array()

LINE = 64       # bytes of a cache line
NO_NUMBERS = np.zeros(0, np.intp)
# two values that no byte, count or pointer of an object has by chance
MARKS = {"f8": (-1.2345678901234567e-211, 7.654321e+187),
         "i8": (-0x123456789ABCDEF, 0x7EDCBA987654321)}


def zeros(shape, dtype=float, order="C"):
    """Return zeros that begin at a cache line and share none, so that threads do not wait.

    A vector of the processor is as long as a line: where columns begin at one, a load takes one
    line, not parts of two.
    """
    # lengths may be small integers of numpy's, whose products overflow
    n = prod(map(int, np.atleast_1d(shape))) * np.dtype(dtype).itemsize
    memory = np.zeros(n + 4 * LINE, np.uint8)
    cdef size_t address = <size_t>PyArray_DATA(memory)
    begin = LINE + -address % <size_t>LINE
    return memory[begin:begin + n].view(dtype).reshape(shape, order=order)


ROOM = threading.local()        # .bytes that may yet be allocated in this thread, where it is set


@contextmanager
def room_for(n):
    """Let the fields that are allocated meanwhile take n bytes at most, by BadField."""
    ROOM.bytes = n
    try:
        yield
    finally:
        del ROOM.bytes


cdef int take_room(dict table, sizes) except -1:
    """Refuse the arrays of a table before they are made, where there is no room for them."""
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
    """The same for an integer."""
    return PyArray_SimpleNewFromData(0, NULL, NPY_INT64, number)


cdef Py_ssize_t offset_of(State instance, str name, str dtype) except -1:
    """Return the offset of a number within the object, in bytes.

    Cython has no offsetof for the attributes of a class; but only one word of the object takes
    every value that the attribute is set to.
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


OFFSETS = {}    # {class: {name: offset}}


def offsets(State instance):
    """Return the offsets of all numbers of the table, {name: offset}."""
    cls = type(instance)
    if cls not in OFFSETS:
        OFFSETS[cls] = {name: offset_of(instance, name, field.dtype)
                        for name, field in cls.FIELDS.items() if not field.shape}
    return OFFSETS[cls]


cdef class State:
    """An object that keeps the fields of its table, and perhaps parts that keep others.

    SKIPS says that it is a kernel that decides after each step whether it is a draw.
    """
    FIELDS = {}
    SKIPS = False

    def __cinit__(self, *args, **options):
        self.shared_numbers = self.recorded_numbers = NO_NUMBERS
        self.sizes = {}

    def allocate(self, **sizes):
        """Make every array, zero, and find the numbers.

        `sizes` are those that shapes and ranges name.
        """
        self.sizes = sizes
        take_room(self.FIELDS, sizes)
        for name, field in self.FIELDS.items():
            if field.shape:
                order = "F" if field.shape[0] == "d" and len(field.shape) == 2 else "C"
                shape = [sizes[size] for size in field.shape]
                setattr(self, name, zeros(shape, field.dtype, order))
        at = offsets(self)
        rows = [(name, self.FIELDS[name]) for name in at]
        self.shared_numbers = np.array([at[name] for name, field in rows if field.shared], np.intp)
        self.recorded_numbers = np.array([at[name] if field.dtype == "f8" else ~at[name]
                                          for name, field in rows if field.stat], np.intp)

    @classmethod
    def statistics(cls):
        """Return {name: meaning} of what is recorded with each draw."""
        return {field.stat: field.meaning for field in cls.FIELDS.values() if field.stat}

    def stat_names(self):
        """Return the names of what `record` writes, in its order."""
        return list(self.statistics())

    def parts(self):
        """Return the objects within this one that have tables of their own, {name: object}."""
        return {}

    def views(self):
        """Return every array and number of the table, {name: array that shares its memory}."""
        views = {name: np.asarray(getattr(self, name))
                 for name, field in self.FIELDS.items() if field.shape}
        return views | self.numbers()

    def numbers(self):
        """Return every number of the table as an array of shape () that shares its memory."""
        cdef char *start = <char *><PyObject *>self
        cdef Py_ssize_t place
        views = {}
        for name, place in offsets(self).items():
            views[name] = (real_view(<double *>(start + place)) if self.FIELDS[name].dtype == "f8"
                           else integer_view(<int64_t *>(start + place)))
        return views

    def state(self):
        """Return a copy of every field, {name: array}; of a part's as "part.name"."""
        state = {name: view.copy() for name, view in self.views().items()}
        for name, part in self.parts().items():
            state |= {f"{name}.{field}": value for field, value in part.state().items()}
        return state

    def table(self):
        """Return the rows of all fields that `views` has, {name: Field}."""
        return self.FIELDS

    def check(self, state, step):
        """Raise BadField unless `restore` can take `state`: the right fields, all in their ranges.

        A state from a file passes here before anything of it is restored. `step` (ranges.Step) is
        where the chain stands.
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
        """Raise BadField where fields that are in their ranges do not fit each other."""

    def restore(self, state):
        """Set every field from what `state` has returned, and `check` would pass."""
        for name, part in self.parts().items():
            start = f"{name}."
            part.restore({field.removeprefix(start): value for field, value in state.items()
                          if field.startswith(start)})
        for name, view in self.views().items():
            view[...] = state[name]

    def learnt(self):
        """Return the fields whose course through warm-up is kept, {name: array}."""
        names = [name for name, field in self.FIELDS.items() if field.learnt]
        if not names:
            return {}
        views = self.views()
        return {name: views[name] for name in names}

    cdef void copy_shared_numbers(self, State other) noexcept nogil:
        """Take over the shared numbers of another object of the same class."""
        cdef char *mine = <char *><PyObject *>self
        cdef const char *theirs = <const char *><PyObject *>other
        cdef Py_ssize_t i, place
        for i in range(self.shared_numbers.shape[0]):
            place = self.shared_numbers[i]
            (<int64_t *>(mine + place))[0] = (<const int64_t *>(theirs + place))[0]

    cdef void record_numbers(self, double *row) noexcept nogil:
        """Write the recorded numbers, in the order of the table."""
        cdef const char *start = <const char *><PyObject *>self
        cdef Py_ssize_t i, place
        for i in range(self.recorded_numbers.shape[0]):
            place = self.recorded_numbers[i]
            row[i] = ((<const double *>(start + place))[0] if place >= 0
                      else <double>(<const int64_t *>(start + ~place))[0])
