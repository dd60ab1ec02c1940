"""Functions that fail while a surrogate is learned, or at draws of it: no call is lost."""

import time
import warnings

import numpy as np
import pytest
import scipy.stats
from simulators import After

import fastkam as fk
from fastkam import beginning

# ---- what comes between a learned surrogate and the draws ----


class Rugged(After):
    """A density of which no surrogate pays; calls beyond some fail."""

    def __init__(self, after=10**9, error=None):
        super().__init__(after, error)

    def __call__(self, x):
        return super().__call__(x) + 4 * float(np.sin(40 * x).sum())


LEARN = {"surrogate": "learn", "seed": 1, "progress": False, "draws": 50}


@pytest.fixture(scope="module")
def learned():
    """The number of calls of learning a surrogate of `Rugged` that does not pay; it may take 400.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beginning, "BUDGET_OF_LEARNING", 400)
        with pytest.warns(fk.SamplingWarning, match="the run continues without one"):
            calls = len(fk.sample(Rugged(), np.zeros(3), **LEARN).state.calls)
        yield calls


def test_a_warning_that_is_an_error_keeps_the_calls(learned, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(fk.SamplingWarning, match="the run continues without one") as info:
            fk.sample(Rugged(), np.zeros(3), **LEARN)
    result = info.value.result
    assert result.status == "failed"
    assert len(result.state.calls) == result.evaluations == learned
    for row in result.state.calls:
        assert row[-1] == Rugged()(row[:-1])
    assert result.rejected["nan"].tolist() == [0] * 4  # no chain has begun
    assert result.offending["nan"].shape == (0, 3)
    result.save(tmp_path / "run.fk")
    np.testing.assert_array_equal(fk.load(tmp_path / "run.fk").state.calls, result.state.calls)


@pytest.mark.parametrize("error", [NameError, KeyboardInterrupt])
def test_what_ends_the_search_after_learning_keeps_the_calls(error, learned):
    def run():
        return fk.sample(Rugged(learned + 30, error), np.zeros(3), **LEARN)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        if error is KeyboardInterrupt:
            result = run()
            assert result.status == "interrupted"
        else:
            with pytest.raises(fk.SamplingError, match="in the search for a start") as info:
                run()
            result = info.value.result
            assert f"{learned} evaluations" in "".join(info.value.__notes__)
    assert len(result.state.calls) == learned
    assert result.draws.shape[:2] == (4, 0)


def test_other_errors_in_learning_keep_the_calls():
    """Errors of the progress function, and of derived quantities, computed at the end."""
    def fails(progress):
        if progress.searched > 40:
            raise OSError("the screen is gone")

    def slow(x):
        time.sleep(2e-3)
        return -0.5 * float(x @ x)

    with pytest.raises(fk.SamplingError, match="OSError: the screen is gone") as info:
        fk.sample(slow, np.ones(2), **LEARN | {"progress": fails, "budget": 300})
    assert len(info.value.result.state.calls) > 40

    def derived(a):
        if abs(a) > 0.5:
            raise ZeroDivisionError
        return {"twice": 2 * a}

    with pytest.raises(fk.SamplingError, match="ZeroDivisionError") as info:
        fk.sample(lambda a: -0.5 * a**2, prior={"a": scipy.stats.norm(0, 1)}, derived=derived,
                  x0={"a": 0.1}, **LEARN | {"budget": 300})
    result = info.value.result
    assert len(result.state.calls) == result.evaluations > 100
    assert result.draws.shape[1] > 20


# ---- NaN at weighted draws ----


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_nan_at_weighted_draws_is_found(vectorized, kept, tmp_path):
    """They have the weight 0, as if the density were 0 there; chains say so, too."""
    def hole(x):
        value = -0.5 * (x * x).sum(axis=-1)
        return np.where((np.abs(x[..., 0]) < 0.4) & (x[..., 1] > 0), np.nan, value)[()]

    options = {"evaluations": tmp_path / "calls.fk"} if kept else {}
    with pytest.warns(fk.SamplingWarning, match="The density was NaN at"):
        result = fk.sample(hole, np.ones(2), vectorized=vectorized, surrogate="learn",
                           budget=400, seed=4, progress=False, **options)
    at_nan = np.isnan(hole(result.draws))
    new = np.ones(at_nan.shape, bool)
    new[:, 1:] = (result.draws[:, 1:] != result.draws[:, :-1]).any(axis=2)
    np.testing.assert_array_equal(result.rejected["nan"], (at_nan & new).sum(axis=1))
    assert (result.weights[at_nan] == 0).all()
    assert not result.rejected["outside"].any()
    assert np.isnan(hole(result.offending["nan"])).all()
    assert len(result.offending["nan"]) > 2
    assert "rejected" in [one.kind for one in result.warnings]


def test_a_density_of_zero_at_weighted_draws_is_no_fault():
    def half(x):
        return -0.5 * float(x @ x) if x[0] > 0 else -np.inf

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        result = fk.sample(half, np.ones(2), surrogate="learn", budget=400, seed=1, progress=False)
    np.testing.assert_array_equal(
        result.rejected["outside"] > 0, ((result.weights == 0).sum(axis=1) > 0))
    assert not result.rejected["nan"].any()
    assert "rejected" not in [one.kind for one in result.warnings]
