"""Runs of the engine alone: from the given points, in units of x, by RAM unless specified."""

from functools import partial

import fastkam as fk

sample = partial(fk.sample, sampler="ram", search=False)
