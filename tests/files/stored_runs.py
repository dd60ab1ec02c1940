"""Runs whose draws go to a store, and their comparison, for the tests of stores."""

from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
from runs_in_files import CASES, DRAWS, SEED, TUNE, target_of

import fastkam as fk

OPTIONS = {"sampler": "ram", "search": False, "tune": TUNE, "draws": DRAWS, "chains": 2,
           "seed": SEED, "progress": False, "diagnose": False, "check_gradient": False,
           "threads": 1}  # a trial of threads would count as calls, on a slow machine
KINDS = ["run", pytest.param("run.zarr", marks=pytest.mark.skipif(
    find_spec("zarr") is None, reason="zarr is optional"))]
SAMPLE = partial(fk.sample, progress=False, diagnose=False, sampler="ram", search=False)


def normal(x):
    return -0.5 * float(x @ x)


def with_extras(x):
    return -0.5 * float(x @ x), {"twice": 2 * x, "left": bool(x[0] < 0)}


def same_extras(one, other):
    assert one.extras.keys() == other.extras.keys()
    for name, values in one.extras.items():
        np.testing.assert_array_equal(np.asarray(values), np.asarray(other.extras[name]))


def run(case, stopped_at=None, **more):
    """The result of a case, complete or stopped at one evaluation."""
    start = None if case == "problem" else np.ones(2)
    try:
        return fk.sample(target_of(case, stopped_at), start, **OPTIONS | CASES[case] | more)
    except fk.SamplingError as error:
        return error.result
