"""Base classes of the references: Python samplers with a compiled one's parameters."""

from functools import cached_property
from typing import Any

import numpy as np

import fastkam as fk
from fastkam.samplers import SAMPLERS, Field, Proposal

REFERENCES = {}     # short name of the compiled sampler -> class


class Reference(fk.PythonSampler):
    """A sampler in NumPy that takes the parameters of the compiled sampler `s`.

    ``class Mine(Reference, of="name")`` is the reference of the sampler of that name.
    """

    s: Any
    lockstep = False    # whether the points evaluated are to be taken over from the compiled one

    SHARED = ()         # what chains that learn as one have in common besides fields

    def __init_subclass__(cls, *, of=None, **options):
        super().__init_subclass__(**options)
        if of is not None:
            REFERENCES[of] = cls

    def default_gain(self, d):
        return self.s.default_gain(d)

    def diminishing_gain(self, d):
        return self.s.diminishing_gain(d)

    def take(self, other):
        for name in self.SHARED:
            setattr(self, name, getattr(other, name))

    def fields(self):
        """Return the expected fields of the compiled kernel, by name."""
        return {}

    def taken(self, name, own):
        """The statistic `name` of this step; in lockstep that of the compiled sampler."""
        return own


class Composite(Reference):
    """A reference that moves others, within its own steps.

    Its statistics are those of the first, besides OWN.
    """

    OWN = {}

    @cached_property
    def moved(self):
        """The references that it is made of."""
        names = {cls: name for name, cls in SAMPLERS.items()}
        return [REFERENCES[next(names[cls] for cls in type(part).__mro__ if cls in names)](s=part)
                for part in self.s.parts()]

    @cached_property
    def recorded(self):
        return {name: field for name, field in self.moved[0].FIELDS.items() if field.stat}

    @property
    def FIELDS(self):
        return self.OWN | {name: Field(field.meaning, dtype=field.dtype, stat=field.stat)
                           for name, field in self.recorded.items()}

    @property
    def GRADIENT(self):
        return any(part.needs_gradient for part in self.moved)

    def start(self, x0):
        """Make a chain of each part."""
        self.inner = [part.build(x0).own for part in self.moved]
        for inner in self.inner:
            inner.taken = lambda name, own: self.taken(name, own)
        self.show()

    def show(self):
        """Show the statistics of the first part as one's own."""
        for name in self.recorded:
            setattr(self, name, getattr(self.inner[0], name))


def moves(own, x, rng):
    """A step of any sampler as one of several evaluations, for chains without an engine."""
    own.x_now = x
    if own.several_evaluations:
        return (yield from own.step(x, rng))
    point = yield own.propose(x, rng)
    own.logp_y, own.grad_y = point.logp, point.grad
    return Proposal(point, own.log_q(x, point.x) if point.logp > -np.inf else 0.0)


def jittered(s, rng):
    """A factor on the step size, uniform on 1 - jitter .. 1 + jitter."""
    return 1 + s.jitter * (2 * rng.random() - 1) if s.jitter > 0 else 1.0


def power(p, n):
    """The n-th term of a decaying sequence, n = 1, 2, ..."""
    return min(p.cap, p.c * (p.offset + n) ** -p.k)


def given(value, default):
    """`value`, or the default where it is None."""
    return default if value is None else value


def covariance(value, d):
    """(d, d) from a variance, variances or a matrix; 1 where there is none."""
    value = np.asarray(given(value, 1.0), dtype=float)
    return value if value.ndim == 2 else np.eye(d) * value


def is_dense(metric, preconditioner, d):
    """Whether a metric that is learned from the chain is a whole covariance."""
    if metric == "fixed":
        return np.ndim(preconditioner) == 2
    return metric == "dense" or (metric is None and d <= 50)


def log_normal(x, mean, cov):
    """log N(x; mean, cov)"""
    D = x - mean
    return -0.5 * (D @ np.linalg.solve(cov, D) + np.linalg.slogdet(2 * np.pi * cov)[1])
