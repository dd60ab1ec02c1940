"""The nearest of many points: the memory of nearest.h, and its interface for Python."""
from fastkam._core.engine.state import zeros

import numpy as np


cdef bint prefers_tree(Py_ssize_t s, Py_ssize_t d):
    """Return whether the tree is faster, as measured by bench/perf/test_nearest.py."""
    return d < 5 or d < 16 and s >> d >= 40


cdef class NearestIndex:
    """
    Parameters
    ----------
    points : (s, d) array, finite, contiguous; stored without a copy.
    is_tree : bool, optional
        The form; by default the faster one for s and d.
    """

    def __init__(self, const double[:, ::1] points, is_tree=None):
        cdef Py_ssize_t s = points.shape[0], d = points.shape[1], leaves = fk_sixteenths(s)
        self.points = points
        self.c.d, self.c.points = d, &points[0, 0]
        self.c.is_tree = prefers_tree(s, d) if is_tree is None else is_tree
        if self.c.is_tree:
            self.leaves, self.boxes = zeros((leaves, d, FK_WAYS)), zeros(
                (fk_count_nodes(s), d, 2, FK_WAYS))
            self.order = np.zeros(s, np.int64)
            self.c.leaves, self.c.boxes = &self.leaves[0, 0, 0], &self.boxes[0, 0, 0, 0]
            self.c.order = &self.order[0]
        else:
            self.filter = zeros((fk_in_groups(s) // FK_GROUP, (d + 1) // 2, FK_GROUP, 2), np.int16)
            self.work, self.center = zeros(fk_in_groups(s) + (d + 1) // 2, np.float32), zeros(d)
            self.c.filter, self.c.center = &self.filter[0, 0, 0, 0], &self.center[0]
        self.build(s)

    cdef void build(self, Py_ssize_t n) noexcept nogil:
        """Build the index of the first n points from their current values."""
        if self.c.is_tree:
            fk_nearest_build_tree(&self.c, n)
        else:
            fk_nearest_build_filter(&self.c, n)

    cdef int64_t find(self, const double *x) noexcept nogil:
        return fk_nearest_find(&self.c, x, NULL if self.c.is_tree else &self.work[0])

    @property
    def is_tree(self):
        return bool(self.c.is_tree)

    def find_all(self, const double[:, ::1] x, int64_t[::1] out):
        """Fill `out` (n,) with the indices of the points nearest to each of `x` (n, d).

        It has its own work memory, so that several threads may call it.
        """
        cdef Py_ssize_t i
        cdef float[::1] work = zeros(0 if self.c.is_tree else self.work.shape[0], np.float32)
        with nogil:
            for i in range(x.shape[0]):
                out[i] = fk_nearest_find(&self.c, &x[i, 0],
                                         NULL if self.c.is_tree else &work[0])
