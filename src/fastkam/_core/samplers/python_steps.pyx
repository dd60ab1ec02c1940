"""A sampler written in Python whose step makes several evaluations: a generator.

It yields the points to be evaluated, receives them with their log densities, and returns a
`Proposal` or a `Decision`. A generator cannot be stored: when a run is resumed, the step is
replayed with the points that it had received and its random numbers (python_kernel.pyx).
"""
cimport cython

from libc.math cimport INFINITY, isfinite

from fastkam._core.engine.kernel cimport AGAIN, DECIDE, DECIDED, Chain
from fastkam._core.engine.step cimport KEPT, keep_point, recall_point
from fastkam._core.linalg.dense cimport copy
from fastkam._core.samplers.python_kernel cimport PythonKernel
from fastkam._core.samplers.python_points cimport Decision, Point, Proposal, read_only

from types import GeneratorType

import numpy as np


@cython.final
cdef class StepKernel(PythonKernel):
    """The chain of a `PythonSampler` that defines step."""
    SEVERAL = True
    cdef object running             # the generator of a step
    cdef object queue               # (m, d) the points that it has yielded
    cdef Py_ssize_t given           # number of these that were evaluated
    cdef bint single                # whether it yielded one point, not a list
    cdef bint finished
    cdef object verdict             # its return value
    cdef list received              # the points that it has received

    def restored(self):
        self.running = None

    cdef int open(self, Chain *c, double *y) except -1:
        """Begin the step: run it to its first yield."""
        self.set_out(c)
        self.received = []
        self.running = self.steps(self.x, self.rng)
        if type(self.running) is not GeneratorType:
            raise TypeError(f"{self.where('step')} must be a generator, which yields the "
                            f"points to be evaluated, not return {self.running!r:.200}")
        self.go_to_yield(None)
        return 0

    cdef int go_to_yield(self, answer) except -1:
        """Continue the step to its next yield or its end."""
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
        """Return the number of points to evaluate next.

        It is 1 in a tempered chain, where the parts of the density are stored for one point.
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
        """Store the points that were evaluated; continue the step once it has all of them."""
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
        """Continue the step with the points that it has requested; return consider's result."""
        self.streams.append(self.stream())
        self.space["E"] = c.E
        if not self.finished:
            self.go_to_yield(self.points(c, self.n_kept - len(self.queue), len(self.queue)))
        if not self.finished:
            c.E = self.fields.number("E", "be", self.space["E"])
            return AGAIN
        self.check_verdict(c)
        c.E = self.fields.number("E", "be", self.space["E"])
        return self.conclude(c)

    cdef int keep(self, Chain *c, int row) except -1:
        """Store a point that was evaluated."""
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
        """Return n stored points in the form that the step receives."""
        cdef Py_ssize_t i
        cdef const double *at
        cdef Point point
        if first < 0 or first + n > self.n_kept:    # wrong file, or step not repeatable
            raise ValueError(f"{self.where('step')} must yield the same points when it is replayed")
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
        """Raise an error if `step` has returned something invalid."""
        cdef double alpha
        verdict = self.verdict
        if isinstance(verdict, Proposal):
            self.check_point(c, (<Proposal>verdict).point)
            if (<Proposal>verdict).point.logp > -INFINITY:
                self.fields.log_ratio("step", "return a log_q that is", (<Proposal>verdict).log_q)
            else:
                self.fields.number("step", "return a log_q that is", (<Proposal>verdict).log_q)
        elif isinstance(verdict, Decision):
            alpha = self.fields.number("step", "return an alpha that is", (<Decision>verdict).alpha)
            if not 0 <= alpha <= 1:
                raise ValueError(f"{self.where('step')} must return an alpha from 0 to 1, not "
                                 f"{alpha}")
            if (<Decision>verdict).point is not None:
                self.check_point(c, (<Decision>verdict).point)
                if (<Decision>verdict).accepted:
                    self.check_density((<Decision>verdict).point)
            elif (<Decision>verdict).accepted:
                raise ValueError(f"{self.where('step')} must return the point that is accepted, "
                                 "not None")
            if c.parts != NULL and (<Decision>verdict).x is not None:
                raise TypeError(f"{self.where('step')} must not move the chain by itself (x) where "
                                "its density is tempered")
            if (<Decision>verdict).x is not None:
                self.check_density((<Decision>verdict).x)
        else:
            raise TypeError(f"{self.where('step')} must return a Proposal or a Decision, not "
                            f"{verdict!r:.200}")
        return 0

    cdef int check_density(self, Point point) except -1:
        """Refuse a point to which the chain must not move."""
        if not isfinite(point.logp) or point.place < 0 and not np.isfinite(point.x).all():
            raise ValueError(f"{self.where('step')} must move the chain to a finite point with a "
                             f"finite log density, not to {point}")
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
        """Carry out what the step has returned."""
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
        """Write a point that the sampler has computed itself."""
        cdef const double[::1] values = np.array(self.as_points("step", "return", point.x, 1))
        logp[0] = point.logp
        copy(self.d, &values[0], x)
        if grad != NULL:
            values = np.array(self.as_points("step", "return", point.grad, 1))
            copy(self.d, &values[0], grad)
        return 0

    cdef int settle(self, Chain *c) except -1:
        """Set x and y to their values at the end of the step, for adapt."""
        verdict, self.y = self.verdict, self.x
        if isinstance(verdict, Decision) and (<Decision>verdict).x is not None:
            self.x = self.y = read_only(c.d, c.x)
            self.space["logp_x"] = c.logp_x
        if (<Point>verdict.point) is not None:
            self.y = read_only(c.d, c.y)
        return 0

    cdef int catch_up(self, Chain *c) except -1:
        """Replay the step yield by yield."""
        cdef Py_ssize_t i, n, first = 0
        self.space["E"] = self.E
        for i in range(1, len(self.streams)):
            self.bits.state = self.streams[i]
            if not self.finished:
                n = len(self.queue)
                self.go_to_yield(self.points(c, first, n))
                first += n
        self.given = self.n_kept - first
        return 0
