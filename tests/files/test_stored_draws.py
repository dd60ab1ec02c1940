"""Reading runs in stores: parts of draws, summaries, stop rules, and files made from them."""

import pickle
import shutil

import numpy as np
import pytest
from runs_in_files import target_of
from same import assert_same
from stored_runs import SAMPLE, normal, run, same_extras

import fastkam as fk
from fastkam.run.lazy import StoredArray

pytestmark = pytest.mark.usefixtures("small_windows")


# ---- reading ----


def test_parts_of_stored_draws(place):
    """Every index that NumPy takes gives what it gives there."""
    options = {"draws": 50, "tune": 5, "chains": 3, "seed": 2}
    whole = SAMPLE(normal, np.ones(2), **options).draws
    draws = SAMPLE(normal, np.ones(2), store=place, **options).draws
    assert isinstance(draws, StoredArray)
    assert (draws.shape, draws.ndim, draws.dtype, len(draws), draws.size, draws.nbytes) == (
        whole.shape, 3, whole.dtype, 3, whole.size, whole.nbytes)
    mask = np.arange(50) % 7 == 0
    keys = [0, -1, (1, 2), (1, -3, 1), (slice(None), 5), (..., 0), (..., slice(0, 1)),
            (slice(None), slice(40, 10, -3)), (slice(None), [3, -1, 3]), (slice(None), mask),
            (2, mask, 0), (slice(1, None), slice(None, None, 10), [1, 0]), [2, 0], slice(0, 0),
            (slice(None), slice(30, 20)), (None, 0), np.int64(1), (1, ..., 1), (...,),
            (slice(None), [0, 1], [0, 1]), (0, [1, 2], 1)]
    for key in keys:
        np.testing.assert_array_equal(draws[key], whole[key], err_msg=str(key))
    for key in (3, (0, 50), (0, 0, 2), (0, 0, 0, 0), (slice(None), [50]), (0, mask[:5]),
                (0, [0.5])):
        with pytest.raises(IndexError):
            draws[key]
    np.testing.assert_array_equal(list(draws), whole)
    np.testing.assert_allclose(np.mean(draws, axis=(0, 1)), whole.mean(axis=(0, 1)))
    np.testing.assert_array_equal(np.asarray(draws, np.float32), whole.astype(np.float32))
    with pytest.raises(AttributeError, match=r"write np.asarray\(...\).reshape to read all"):
        draws.reshape(-1, 2)
    with pytest.raises(ValueError, match="must be copied"):
        np.asarray(draws, copy=False)


def test_a_stored_run_is_looked_at(place):
    """Summary, warnings, statistics, and a result that travels."""
    options = {"sampler": "nuts", "draws": 300, "tune": 200, "chains": 4, "seed": 2}
    target = fk.targets.banana(d=2)
    whole = SAMPLE(target, np.zeros(2), **options)
    other = SAMPLE(target, np.zeros(2), store=place, **options)
    assert str(other.summary()) == str(whole.summary())
    assert other.warnings == whole.warnings
    for name, values in whole.stats.items():
        np.testing.assert_array_equal(other.stats[name], values)
        assert other.stats[name].dtype == values.dtype
    assert other.trace.n_diverging == whole.trace.n_diverging
    traveled = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(traveled.draws, whole.draws)
    np.testing.assert_array_equal(other.to_datatree()["posterior"]["x"], whole["x"])


def test_a_long_run_is_summarized_from_some_of_its_draws(tmp_path, monkeypatch):
    monkeypatch.setattr("fastkam.run.lazy.MOST_DRAWS", 4000)
    monkeypatch.setattr("fastkam.run.lazy.FEWEST_ROWS", 100)
    result = SAMPLE(normal, np.ones(2), draws=8000, tune=100, chains=2, seed=1,
                    store=tmp_path / "run")
    table = result.summary()
    assert "Of every 4th draw of each chain" in str(table)
    np.testing.assert_array_equal(
        table["mean"], fk.diagnostics.summary(np.asarray(result.draws)[:, ::4])["mean"])


@pytest.mark.parametrize("rule", [fk.stop.ESS(200), fk.stop.Rhat(1.05), fk.stop.Evaluations(900)])
def test_stop_rules(place, rule):
    options = {"draws": 3000, "tune": 100, "chains": 2, "seed": 1, "stop": rule}
    whole = SAMPLE(normal, np.ones(2), **options)
    assert whole.status == "stopped"
    assert_same(SAMPLE(normal, np.ones(2), store=place, **options), whole)


def test_saved_without_its_store(place, tmp_path):
    whole = run("extras")
    part = run("extras", whole.evaluations // 2, store=place)
    part.save(tmp_path / "run.fk")
    shutil.rmtree(place)
    other = fk.resume(tmp_path / "run.fk", target=target_of("extras"), progress=False,
                      diagnose=False)
    assert_same(other, whole)
    same_extras(other, whole)


def test_arithmetic_reads_stored_draws(tmp_path):
    options = {"sampler": "ram", "seed": 1, "draws": 50, "tune": 50, "diagnose": False}
    stored, kept = (fk.sample(lambda a: -0.5 * a * a, {"a": 0.0}, store=store, **options)["a"]
                    for store in (tmp_path / "store", None))
    for f in (lambda a: a + 1, lambda a: 2 / a, lambda a: -a, lambda a: a > 0, lambda a: a == a,
              np.exp, lambda a: a - a):
        np.testing.assert_array_equal(f(stored), f(kept))
