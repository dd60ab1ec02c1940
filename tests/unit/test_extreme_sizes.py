"""Estimates and checks where numbers are of extreme sizes, or very few."""

import numpy as np
import pytest
from runs import sample

from fastkam.diagnostics.signs import Standardized, tail_shapes
from fastkam.diagnostics.tempering import standard_error
from fastkam.diagnostics.weights import error_of
from fastkam.evidence.bridge import Pairs, bridge
from fastkam.evidence.bridge import standard_error as bridge_error
from fastkam.search.images import images_of


@pytest.mark.parametrize("unit", [2.0**-600, 2.0**-200, 2.0**90, 2.0**400])
def test_errors_of_weighted_terms_have_units(unit):
    terms = np.random.default_rng(1).normal(size=(4, 200, 2)) ** 3
    np.testing.assert_array_equal(error_of(unit * terms), unit * error_of(terms))


def test_an_estimate_of_one_batch_has_no_error():
    """The others are outside of the support: leaving out that batch leaves nothing."""
    assert standard_error(np.array([1.0, 1.0, np.inf, 1.0])) == np.inf
    assert standard_error(np.ones(8)) == 0.0


def test_few_draws_of_q_give_no_evidence_without_an_error():
    result = sample(lambda x: -0.5 * float(x @ x), np.zeros(2), draws=500, tune=500, chains=4,
                    seed=1, diagnose=False)
    none = result.log_evidence(evaluations=2)
    assert np.isnan(none.value)
    assert none.notes[0] == "There are too few draws of q: allow more (evaluations=)."
    assert result.log_evidence(evaluations=4).error == np.inf


def test_the_variance_of_a_bridge_is_that_of_its_draws_of_q():
    """Not that of a population: with two draws this makes a factor of 2."""
    chain, own = np.random.default_rng(1).normal(size=(4, 500)), np.array([-0.5, 1.0])
    made = bridge(Pairs(chain, np.full(chain.shape, np.nan), own))
    terms = 1 / (1 + np.exp(made.root - own))
    np.testing.assert_allclose(made.variance, terms.var(ddof=1) / (2 * terms.mean() ** 2))


def test_a_series_without_a_standard_error_has_an_infinite_one():
    assert bridge_error(np.ones((4, 50))) == 0.0
    assert bridge_error(np.array([[1.0, 2.0], [3.0, 4.0]])) == np.inf


@pytest.mark.parametrize("power", [5, 10, 20, 50])
def test_draws_of_all_sizes_have_heavy_tails(power):
    x = np.exp(power * np.random.default_rng(2).normal(size=(4, 1000, 1)))
    shapes, _ = tail_shapes(Standardized(x))
    assert shapes[0] > 1


@pytest.mark.parametrize("height", [30.0, 60.0, 200.0, 1000.0])
def test_a_surrogate_that_leaves_out_nearly_all_is_wrong(height):
    def logp(x):
        return (height if abs(x[0]) > 2 else 0.0) - 0.5 * (x[0] / 3) ** 2

    for seed in range(3):
        result = sample(logp, [0.1], surrogate=lambda x: 0.0 if abs(x[0]) < 2 else -np.inf,
                        draws=2000, tune=1000, search=False, seed=seed, diagnose=False)
        assert "unvisited" in {one.kind for one in result.verdict().reasons}


@pytest.mark.parametrize("sampler", ["ram", "auto"])
def test_starts_behind_a_surrogate_are_not_dispersed(sampler):
    """The surrogate may be 0 where the density is not."""
    result = sample(lambda x: -0.5 * (x[0] / 3) ** 2, [0.1], sampler=sampler, draws=100, tune=100,
                    surrogate=lambda x: 0.0 if abs(x[0]) < 2 else -np.inf, seed=1, diagnose=False)
    assert (result.state.x0 == 0.1).all()


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1.0, 1e9])
@pytest.mark.parametrize("start", [[1.2, 0.5], [1.2, 0.0]])
def test_a_start_outside_of_a_small_support_is_moved_into_it(unit, start):
    def box(x):
        return 0.0 if (x > 0).all() and (x < unit).all() else -np.inf

    result = sample(box, unit * np.array(start), sampler="auto", search=True, draws=500,
                    seed=1, diagnose=False)
    np.testing.assert_allclose(result.draws.std(axis=(0, 1)), unit / np.sqrt(12), rtol=0.1)


def test_images_of_many_coordinates_are_few():
    """Only those of the 79 800 pairs in 400 dimensions are made that are tried."""
    x = np.arange(1.0, 401.0)
    images = images_of(x, np.random.default_rng(1))
    assert len(images) < 600
    exchanged = images[(np.sort(images, axis=1) == x).all(axis=1)]
    assert len(exchanged) >= 50


def test_a_small_density_has_no_other_findings_in_large_units():
    """Chains in two modes, 1e9 times as wide: they do not agree, and have not wandered off."""
    for unit in (1.0, 1e9):
        result = sample(lambda x, unit=unit: np.logaddexp(
            -0.5 * (x[0] / unit - 9) ** 2, -0.5 * (x[0] / unit + 9) ** 2),
            [[1e-4 * unit], [-1e-4 * unit]] * 2, sampler="am", search=True, draws=500, tune=500,
            seed=3, diagnose=False)
        kinds = {one.kind: one.status for one in result.warnings}
        assert kinds["r_hat"] == "wrong"
        assert "improper" not in kinds
