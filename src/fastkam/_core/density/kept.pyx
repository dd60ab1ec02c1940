"""Kept: the extras of the last evaluations, as rows of doubles by the bytes of the point.

A draw may be recorded long after its evaluation. If its extras are no longer stored then, they are
evaluated again. Rows enter one dict until it is full, which then takes the place of a second, older
one: the last KEPT are always stored, and at most twice as many.
"""
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t
from libc.string cimport memcpy
from numpy cimport (
    NPY_DOUBLE, NPY_INT64, PyArray_CheckExact, PyArray_DATA, PyArray_DIM, PyArray_EMPTY,
    PyArray_ISCARRAY_RO, PyArray_NDIM, PyArray_SIZE, PyArray_TYPE, import_array, npy_intp,
)

from math import prod

from fastkam._core.density.extras import fields_of, packed

import numpy as np

import_array()

KEPT = 512  # points, or fewer if their extras have more bytes than this
KEPT_BYTES = 2**24

cdef type INTEGER = np.int64, LOGICAL = np.bool_


cdef class Kept:
    """The extras of the last evaluations, by a key.

    A copy of a density has its own; the fields are also set in that of the `original`.
    """
    def __init__(self, Kept original=None):
        self.original = original
        self.new, self.old = {}, {}

    def set_fields(self, dict fields):
        """Set the fields of every point, {name: (shape, type)}."""
        self.fields = fields
        self.shapes = tuple([shape for shape, _ in fields.values()])
        self.kinds = "".join([kind[0] for _, kind in fields.values()]).encode()
        self.width = sum([prod(shape) for shape in self.shapes])
        self.most = max(8, min(KEPT, KEPT_BYTES // max(8 * self.width, 1)))

    cdef int find_fields(self, dict extras, tuple lead) except -1:
        if self.fields is None:
            self.set_fields(fields_of(extras, lead))
            if self.original is not None:
                self.original.set_fields(self.fields)
        return 0

    cpdef row_of(self, dict extras):
        """Return the extras of one point as a row; the first ones set the fields."""
        self.find_fields(extras, ())
        row = self.plain(extras)
        return packed(extras, self.fields) if row is None else row

    cpdef put(self, bytes key, dict extras):
        """Store the extras of one point."""
        self.store(key, self.row_of(extras))

    def put_rows(self, list keys, dict extras):
        """Store the extras of several points, in arrays with a row for each."""
        cdef tuple lead = (len(keys),)
        self.find_fields(extras, lead)
        self.most = max(self.most, 2 * len(keys))
        for key, row in zip(keys, packed(extras, self.fields, lead), strict=True):
            self.store(key, row)

    def get(self, key):
        """Return a stored row, which becomes the newest, or None."""
        row = self.new.get(key)
        if row is None:
            row = self.old.get(key)
            if row is not None:
                self.store(key, row)
        return row

    cdef int store(self, bytes key, row) except -1:
        if len(self.new) >= self.most:
            self.old, self.new = self.new, {}
        self.new[key] = row
        return 0

    cdef object plain(self, dict extras):
        """Return a row of numbers and arrays in the types of the fields; None for other extras."""
        cdef Py_ssize_t i, j, size, at = 0
        cdef char kind
        cdef tuple shape
        cdef npy_intp width = self.width
        if len(extras) != len(self.fields):
            return None
        row = PyArray_EMPTY(1, &width, NPY_DOUBLE, 0)
        cdef double *out = <double *>PyArray_DATA(row)
        for i, name in enumerate(self.fields):
            if name not in extras:
                return None
            value, shape, kind = extras[name], self.shapes[i], self.kinds[i]
            if kind != c"b" and PyArray_CheckExact(value):
                if (PyArray_TYPE(value) != (NPY_DOUBLE if kind == c"f" else NPY_INT64)
                        or not PyArray_ISCARRAY_RO(value)
                        or PyArray_NDIM(value) != len(shape)):
                    return None
                for j in range(len(shape)):
                    if PyArray_DIM(value, j) != <Py_ssize_t>shape[j]:
                        return None
                size = PyArray_SIZE(value)
                memcpy(out + at, PyArray_DATA(value), size * sizeof(double))
                at += size
                continue
            if len(shape) > 0:
                return None
            if kind == c"f" and isinstance(value, float):
                out[at] = value
            elif kind == c"b" and (value is True or value is False or type(value) is LOGICAL):
                (<int64_t *>out)[at] = bool(value)
            elif kind == c"i" and (type(value) is INTEGER or type(value) is int
                                   and INT64_MIN <= value <= INT64_MAX):
                (<int64_t *>out)[at] = value
            else:
                return None
            at += 1
        return row
