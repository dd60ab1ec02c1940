"""Result.adaptation: what a sampler has learned by each snapshot, however a run is continued."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from runs import sample

import fastkam as fk

TARGET = fk.targets.banana(b=0.03, V=100.0, d=3)
OPTIONS = {"draws": 50, "tune": 1003, "chains": 2, "seed": 1}


def sampler_of(name):
    return fk.samplers.SAMPLERS[name](**({"cycle": 100} if name == "ckam" else {}))


@pytest.mark.parametrize("name", fk.samplers.SAMPLERS)
def test_the_last_snapshot_is_that_of_the_frozen_kernel(name):
    result = sample(TARGET, np.zeros(3), sampler=sampler_of(name), **OPTIONS)
    learned = result.adaptation
    assert learned.pop("step")[-1] == 1003
    for field, values in learned.items():
        assert values.shape[:2] == (2, 50)
        assert np.isfinite(values).all()
        if name != "ckam":  # whose step size begins again in each cycle
            ends = [state[f"kernel.{field}"] for state in result.states]
            np.testing.assert_array_equal(values[:, -1], ends)


def test_interruption_file_threads_and_executor_change_nothing(tmp_path):
    whole = sample(TARGET, np.zeros(3), sampler="gam", **OPTIONS).adaptation
    calls = 0

    def fails_once(x):
        nonlocal calls
        calls += 1
        if calls == 900:
            raise RuntimeError
        return TARGET.logp(x)

    with pytest.raises(fk.SamplingError) as caught:
        sample(fails_once, np.zeros(3), sampler="gam", **OPTIONS)
    assert np.isnan(caught.value.result.adaptation["log_scale"]).any()
    caught.value.result.save(tmp_path / "part.fk")
    resumed = fk.load(tmp_path / "part.fk").resume(target=TARGET)
    with ThreadPoolExecutor(2) as executor:
        through = sample(TARGET, np.zeros(3), sampler="gam", executor=executor, **OPTIONS)
    threaded = sample(TARGET, np.zeros(3), sampler="gam", threads=2, **OPTIONS)
    for result in (resumed, through, threaded):
        for field, values in result.adaptation.items():
            np.testing.assert_array_equal(values, whole[field])


def test_the_number_of_snapshots_is_limited_in_many_dimensions():
    result = sample(fk.targets.neal_gaussian(200), np.zeros(200), sampler="ram", **OPTIONS)
    assert 2 <= len(result.adaptation["step"]) < 50


@pytest.mark.parametrize(("share", "sd"), [(False, 0.001), (True, 0.01)])
@pytest.mark.parametrize("start", [0.0, 1.0])
def test_the_first_scale_of_ram_may_be_far_too_wide(start, share, sd):
    target = fk.targets.Gaussian(np.zeros(6), np.full(6, sd**2))
    result = sample(target, np.full(6, start), tune=1000, draws=1000, chains=2, seed=2,
                    share=share)
    np.testing.assert_allclose(result.acceptance, 0.234, atol=0.1)
    assert np.abs(result.draws.mean((0, 1))).max() < sd


def test_the_steps_are_those_of_the_file(tmp_path, monkeypatch):
    """Another version of fastkam may take more or fewer snapshots."""
    result = sample(TARGET, np.zeros(3), **OPTIONS)
    result.save(tmp_path / "run.fk")
    monkeypatch.setattr("fastkam.run.state.MOST_SNAPSHOTS", 7)
    for other in (fk.load(tmp_path / "run.fk"), result.resume(5),
                  fk.resume(tmp_path / "run.fk", 5, target=TARGET)):
        for name, values in result.adaptation.items():
            np.testing.assert_array_equal(other.adaptation[name], values)
    assert len(sample(TARGET, np.zeros(3), **OPTIONS).adaptation["step"]) == 7
