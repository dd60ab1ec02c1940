"""Runs of the engine alone: from the points that are given, in units of x, by RAM unless told."""

from functools import partial

import fastkam as fk

sample = partial(fk.sample, sampler="ram", search=False)
