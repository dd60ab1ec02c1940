"""The fields of a sampler written in Python: attributes of the copy that belongs to one chain."""
from libc.math cimport INFINITY

from numpy cimport NPY_KEEPORDER, PyArray_NewCopy, import_array

import numpy as np

import_array()

cdef enum:
    REAL
    INTEGER
    ARRAY


cdef class PythonFields:
    """The fields that a table names, as attributes of an object.

    Parameters
    ----------
    own : object
        The object with these attributes.
    table : dict of Field
    """

    def __cinit__(self, own, dict table):
        self.own, self.space, self.table = own, own.__dict__, table
        self.names = list(table)
        self.shared = [name for name, field in table.items() if field.shared]
        self.stats = [name for name, field in table.items() if field.stat]

    cdef object where(self, name):
        """Return the name of an attribute or a method of the sampler, for messages."""
        return f"{type(self.own).__name__}.{name}"

    cdef double number(self, method, verb, value) except? -1.0:
        """Return the number that a method of the sampler has returned; otherwise raise an error."""
        try:
            if np.ndim(value) == 0:
                return float(value)
        except (TypeError, ValueError):
            pass
        raise TypeError(f"{self.where(method)} must {verb} a number, not {value!r:.200}")

    cdef double log_ratio(self, method, verb, value) except? -1.0:
        """Return the log ratio of proposal densities; raise an error for NaN and infinity."""
        cdef double found = self.number(method, verb, value)
        if not found < INFINITY:
            raise ValueError(f"{self.where(method)} must {verb} a number, or -inf, not {found}")
        return found

    cdef int look(self) except -1:
        """Note the kind and the shape of each field as `start` has set it."""
        self.kinds, self.shapes = [], []
        for name, field in self.table.items():
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
            dtype = self.table[self.names[i]].dtype
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

    cdef list now(self):
        """Return copies of all fields."""
        cdef Py_ssize_t i
        values = []
        for i in range(len(self.names)):
            if self.names[i] not in self.space:
                raise AttributeError(f"{self.where(self.names[i])} has been deleted")
            values.append(self.as_stored(i, self.space[self.names[i]]))
        return values

    cdef int set(self, list values) except -1:
        for i, name in enumerate(self.names):
            self.space[name] = self.as_stored(i, values[i])

    cdef dict views(self):
        """Return every field as an array."""
        return {name: np.asarray(self.space[name]) for name in self.names}

    cdef dict learned(self):
        """Return the fields that are recorded through warm-up."""
        return {name: np.asarray(self.space[name]) for name in self.names
                if self.table[name].learned}

    cdef dict stored(self, str prefix, list values):
        """Return values of all fields as arrays of their types, by prefix and name."""
        return {f"{prefix}{name}": np.array(values[i], self.table[name].dtype)
                for i, name in enumerate(self.names)}

    cdef list restored(self, str prefix, state):
        """Return the values from which `stored` has made arrays."""
        return [self.as_stored(i, state[f"{prefix}{name}"]) for i, name in enumerate(self.names)]
