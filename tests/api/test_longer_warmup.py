"""A named sampler warms up for longer where 1000 steps are too few for what it learns."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from densities import interrupted_at

import fastkam as fk
from fastkam.run import drive, longer_warmup

D = 20
PRECISION = np.linalg.inv(0.9 ** np.abs(np.arange(D)[:, None] - np.arange(D)))


def correlated(x):
    return -0.5 * float(x @ PRECISION @ x)


def normal(x):
    return -0.5 * float(x @ x)


def quietly(f, x0, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        return fk.sample(f, x0, progress=False, **{"seed": 1, "sampler": "am"} | options)


@pytest.fixture(scope="module")
def whole():
    return quietly(correlated, np.zeros(D))


def longer(result):
    return [line for line in result.search if line.startswith("warm-up of")]


def test_draws_after_a_longer_warm_up_are_right(whole):
    assert longer(whole)[0].startswith("warm-up of 4000 steps instead of 1000")
    assert whole.tune > 1000
    assert not whole.warnings
    np.testing.assert_allclose(whole.draws.std(axis=(0, 1)), 1, rtol=0.12)
    assert whole.evaluations <= drive.BUDGET


def test_with_1000_steps_they_are_not():
    """Draws by the gain of few dimensions are too narrow, too."""
    faster = fk.schedules.Finite(gain=fk.schedules.Power(k=0.7))
    for schedule in ("finite", faster):
        result = quietly(correlated, np.zeros(D), tune=1000, schedule=schedule)
        assert not longer(result)
        assert "r_hat" in [one.kind for one in result.warnings]
    assert result.draws.std() < 0.8


def test_evaluations_of_every_warm_up_are_counted():
    calls = [0]

    def counted(x):
        calls[0] += 1
        return correlated(x)

    result = quietly(counted, np.zeros(D))
    assert 0 <= calls[0] - result.evaluations <= 10


def test_the_draws_are_those_of_a_run_with_other_random_numbers(whole):
    """Not the same as at the beginning, on which the points depend where it goes on."""
    children = whole.state.seed.n_children_spawned
    assert children == 4 * len(longer(whole))


@pytest.mark.parametrize("sampler", ["kam", "ram"])
def test_correlations_near_1(sampler):
    precision = np.linalg.inv(0.999 ** np.abs(np.arange(5)[:, None] - np.arange(5)))
    result = quietly(lambda x: -0.5 * float(x @ precision @ x), np.zeros(5), sampler=sampler)
    np.testing.assert_allclose(result.draws.std(axis=(0, 1)), 1, rtol=0.12)


@pytest.mark.parametrize("options", [
    {}, {"tune": 1000}, {"draws": 500}, {"stop": fk.stop.ESS(100)}, {"sampler": "auto"},
    {"sampler": "rwm"}, {"budget": 5000}])
def test_where_it_is_not_needed_or_not_wanted(options):
    """A normal density; or an argument that says how long the run is to be."""
    f, x0 = (normal, np.zeros(2)) if options == {} else (correlated, np.zeros(D))
    assert not longer(quietly(f, x0, **options))


@pytest.mark.parametrize(("sampler", "needed"), [("am", True), ("barker", True), ("rwm", False)])
def test_chains_that_disagree_need_it_if_they_learn_more_than_a_scale(sampler, needed, monkeypatch):
    monkeypatch.setattr(longer_warmup, "unsettled", lambda state: [])
    state = quietly(lambda x: (normal(x), -x), np.zeros(2), sampler=sampler).state
    found = [SimpleNamespace(kind="r_hat", status="wrong")]
    longer = longer_warmup.with_longer_warmup(SimpleNamespace(state=state), 100, found)
    assert (longer is not None) is needed


@pytest.mark.parametrize("name", ["run", "run.zarr"])
def test_draws_in_a_store_are_the_same(whole, name, tmp_path):
    if name.endswith("zarr"):
        pytest.importorskip("zarr")
    stored = quietly(correlated, np.zeros(D), store=tmp_path / name)
    assert longer(stored) == longer(whole)
    for one in (stored, fk.load(tmp_path / name)):
        np.testing.assert_array_equal(one.draws, whole.draws)
        np.testing.assert_array_equal(one.warmup.draws, whole.warmup.draws)


@pytest.mark.parametrize("share", [0.01, 0.03, 0.2])
def test_an_interrupted_run_in_a_store_goes_on_to_the_same_bits(whole, share, tmp_path):
    until = interrupted_at(correlated, 500 + int(share * whole.evaluations))
    quietly(until, np.zeros(D), store=tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        result = fk.resume(tmp_path / "run", target=correlated, progress=False)
    np.testing.assert_array_equal(result.draws, whole.draws)


@pytest.mark.parametrize("share", [0.002, 0.01, 0.03, 0.2, 0.9])
def test_an_interrupted_run_goes_on_to_the_same_bits(whole, share, tmp_path):
    """Also where it was interrupted in one of the warm-ups, and through a file."""
    until = interrupted_at(correlated, 500 + int(share * whole.evaluations))
    part = quietly(until, np.zeros(D))
    assert part.status == "interrupted"
    assert part.evaluations < whole.evaluations
    part.save(tmp_path / "part.fk")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        result = fk.resume(tmp_path / "part.fk", target=correlated, progress=False)
    assert result.tune == whole.tune
    assert longer(result) == longer(whole)
    np.testing.assert_array_equal(result.draws, whole.draws)


def test_in_processes(whole):
    result = quietly(correlated, np.zeros(D), executor=2)
    np.testing.assert_array_equal(result.draws, whole.draws)


@pytest.mark.parametrize("sampler", ["nuts", "hmc"])
def test_steps_of_hamiltonian_samplers(sampler):
    result = quietly(lambda x: (normal(x), -x), np.zeros(3), sampler=sampler)
    assert result.tune == 400
    assert not result.warnings
