"""The message about the first call of a function that takes its parameters by name."""

import numpy as np
import pytest

import fastkam as fk

X0 = {"a": 0.0, "b": np.zeros(3)}
NAMES = r"the function was called by name, with a \(a number\), b of shape \(3,\)"


def looks_up(a, b):
    return {}["other"]


def indexes(a, b):
    return b["first"]


def has_no_attribute(a, b):
    return a.nothing


@pytest.mark.parametrize("function", [looks_up, indexes, has_no_attribute])
@pytest.mark.parametrize("options", [
    {}, {"search": False, "sampler": "ram"}, {"evaluations": "calls.fk"},
    {"bounds": {"a": (-1, 1)}}])
def test_the_names_are_listed(function, options, tmp_path):
    if "evaluations" in options:
        options = {"evaluations": tmp_path / "calls.fk"}
    with pytest.raises(fk.SamplingError, match=NAMES) as caught:
        fk.sample(function, X0, seed=1, progress=False, **options)
    assert "an array of shape" not in str(caught.value)


def test_many_points_at_once():
    with pytest.raises(fk.SamplingError, match=f"{NAMES}, each with an axis of points before"):
        fk.sample(looks_up, X0, seed=1, progress=False, vectorized=True)


def test_a_function_of_an_array():
    with pytest.raises(fk.SamplingError, match=r"with an array of shape \(2,\), one point"):
        fk.sample(lambda x: x[7], np.zeros(2), seed=1, progress=False)
