"""Workers whose function refers to other data than here, since they import its module."""

import importlib
import sys

import numpy as np
import pytest

import fastkam as fk

MODULE = """
import numpy as np
data, calls = np.zeros(20), 0

def logp(x):
    global calls
    calls += 1
    return -0.5 * float(((data - x[0]) ** 2).sum())
"""
OPTIONS = [{"sampler": "am", "search": False}, {"sampler": "am", "spread": "points"},
           {"sampler": "am", "search": False, "spread": "points"}, {},
           {"surrogate": "learn", "draws": 100}]


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "model_of_a_user.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    yield importlib.import_module("model_of_a_user")
    del sys.modules["model_of_a_user"]


def run(f, **options):
    return fk.sample(f, **{"x0": [0.0], "draws": 500, "seed": 1, "progress": False, "executor": 2}
                     | options)


@pytest.mark.parametrize("options", OPTIONS)
def test_data_that_were_changed_after_the_import_are_noticed(module, options):
    module.data = np.full(20, 5.0)
    with pytest.raises(fk.SamplingError, match="the workers of executor evaluate another density"):
        run(module.logp, **options)


def test_they_are_noticed_below_a_prior(module):
    from scipy import stats

    module.data = np.full(20, 5.0)
    with pytest.raises(fk.SamplingError, match="evaluate another density"):
        run(module.logp, x0=None, prior={"x": stats.norm(0, 10)}, sampler="am")


def test_a_file_of_calls_gets_none_of_theirs(module, tmp_path):
    module.data = np.full(20, 5.0)
    with pytest.raises(fk.SamplingError, match="evaluate another density"):
        run(module.logp, evaluations=tmp_path / "calls.fk")
    assert not np.isfinite(fk.Evaluations(tmp_path / "calls.fk").values).any()


@pytest.mark.parametrize("options", [{}, {"spread": "points"}])
def test_data_that_do_not_matter_may_differ(module, options):
    """The number of calls is a global of the function, and 0 in new processes: one call is made."""
    module.logp(np.zeros(1))
    result = run(module.logp, sampler="am", search=False, diagnose=False, **options)
    assert result.status == "complete"
    assert module.calls == 2
