"""Times of the fits of mode jumping, and the largest number of components."""

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam.samplers import modes

TARGET = fk.targets.GaussianMixture([[-3.0, 0.0], [3.0, 0.0]], covs=[0.2, 1.5])
OPTIONS = {"x0": np.zeros(2), "draws": 40, "seed": 4, "sampler": "jumps", "progress": False}


@pytest.fixture
def fits(monkeypatch):
    """Return (states, components before, components found) of each fit."""
    calls, fit = [], modes.fit

    def counted(states, seed, near, **options):
        found = fit(states, seed, near, **options)
        calls.append((len(states), near, len(found[0]) - 1))
        return found

    monkeypatch.setattr(modes, "fit", counted)
    return calls


@pytest.mark.parametrize("probability", [None, 0.97])
def test_a_warm_up_with_few_steps_of_cycles(tmp_path, probability):
    """One in which ckam has not come to its first Sampling leaves an entry in its bank."""
    sampler = fk.ModeJumping(sampler="ckam", jump_probability=probability)
    result = sample(TARGET, **OPTIONS | {"sampler": sampler, "draws": 300, "chains": 2},
                    tune=401)
    assert all(state["kernel.inner.banked"] >= 1 for state in result.states)
    result.save(tmp_path / "run.fk")
    np.testing.assert_array_equal(fk.load(tmp_path / "run.fk").draws, result.draws)


@pytest.mark.parametrize(("tune", "n"), [
    (40, 1), (256, 1), (280, 1), (288, 2), (1025, 3), (1100, 4)])
def test_the_mixture_is_fitted_at_powers_of_two_and_at_the_end(fits, tune, n):
    """The last one only where enough states have come since."""
    sample(TARGET, tune=tune, chains=1, **OPTIONS)
    assert len(fits) == n


def test_chains_that_share_fit_one_mixture(fits):
    """Fits are at 256, 512, 1024 and 1197 states of the four chains; a quarter is left out."""
    sample(TARGET, tune=300, chains=4, share=True, **OPTIONS)
    assert [n for n, _, _ in fits] == [192, 384, 768, 898]


def test_the_number_of_components_is_part_of_the_state(fits):
    result = sample(TARGET, tune=1100, chains=1, **OPTIONS)
    _, before, found = zip(*fits, strict=True)
    assert before == (1, *found[:-1])
    assert result.states[0]["kernel.n"] == found[-1] + 1


@pytest.mark.parametrize(("d", "most"), [(2, 32), (20, 17), (100, 1)])
def test_the_number_of_components_is_limited_by_the_dimension(d, most):
    """In 500 dimensions 32 components would take 66 MB."""
    kernel = fk.ModeJumping().build(np.zeros(d))
    assert np.asarray(kernel.factors).shape == (1 + most, d, d)
