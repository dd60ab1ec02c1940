"""Tails of positive coordinates, which are sampled by their logarithms."""

from dataclasses import replace

import numpy as np
import pytest
from learning import QUIET
from scipy import stats

import fastkam as fk
from fastkam.diagnostics.faults import heavy_tails
from fastkam.search.evaluator import Evaluator
from fastkam.search.tails import logarithmic_tails

pytestmark = pytest.mark.filterwarnings("ignore::fastkam.errors.SamplingWarning")


def tails_of(result):
    """The coordinates that findings on tails name, and the text of these findings."""
    found = [one for one in result.warnings if one.kind in ("tails", "improper")]
    return ([name for one in found for name in one.coordinates],
            " ".join(one.text for one in found))


def test_tails_of_z_are_those_of_x_where_it_is_z():
    """But a density of z that has no integral has none of x either."""
    coordinates = fk.Problem(lambda a, k: 0.0, bounds={"k": (0, None)},
                             prior={"a": None, "k": None}).coordinates
    none = np.zeros((0, 2))
    of_z = np.array([[0, 3.0], [1, 3.0]])
    assert coordinates.tails(of_z, none).tolist() == [[0, 3.0]]
    assert coordinates.tails(of_z, np.array([[1, 2.0]])).tolist() == [[0, 3.0], [1, 2.0]]
    assert coordinates.tails(np.array([[1, -0.5]]), none).tolist() == [[1, -0.5]]
    assert coordinates.tails(none, none).shape == (0, 2)


# densities of z = log x: the term z is the Jacobian
@pytest.mark.parametrize(("f", "d", "sides", "expected"), [
    (lambda z: z[0] - np.log1p(np.exp(2 * z[0])), 1, [1], {0: 1.0}),           # half a Cauchy
    (lambda z: -3 * z[0] - 2 * np.exp(-z[0]), 1, [1], {0: 3.0}),               # inverse gamma
    (lambda z: 3 * z[0] - 2 * np.exp(z[0]), 1, [-1], {0: 3.0}),                # high - exp(-z)
    (lambda z: -2.5 * z[1] - np.exp(-z[1]) - 0.5 * z[0] ** 2, 2, [0, 1], {1: 2.5}),
    # x[0] as wide as x[1] is large: integrated over it, the index is smaller by one
    (lambda z: -2.5 * z[1] - np.exp(-z[1]) - 0.5 * (z[0] / np.exp(z[1])) ** 2, 2, [0, 1],
     {1: 1.5}),
    (lambda z: -np.exp(-z[0]), 1, [1], {0: 0.0}),                              # no integral
    (lambda z: -6 * z[0] - 2 * np.exp(-z[0]), 1, [1], {}),                     # an index above 4
    (lambda z: z[0] - 0.5 * np.exp(2 * z[0]), 1, [1], {}),                     # half a normal
    (lambda z: 2 * z[0] - np.exp(z[0]), 1, [1], {}),                           # gamma
    (lambda z: -0.5 * (z[0] / 2) ** 2, 1, [1], {}),                            # log-normal
    (lambda z: -3 * z[0] - 2 * np.exp(-z[0]), 1, [0], {}),                     # z itself
])
def test_indices(f, d, sides, expected):
    evaluate = Evaluator(fk.as_target(lambda z: float(f(z)), d), np.random.default_rng(1))
    found = logarithmic_tails(evaluate, np.full(d, 0.3), np.ones(d), np.array(sides))
    assert found[:, 0].tolist() == list(expected)
    np.testing.assert_allclose(found[:, 1], list(expected.values()), atol=0.01)


def test_a_light_tail_takes_one_evaluation_and_the_center_another():
    calls = []

    def f(z):
        calls.append(float(z[0]))
        return -50 * float(z[0]) ** 2

    evaluate = Evaluator(fk.as_target(f, 1), np.random.default_rng(1))
    logarithmic_tails(evaluate, np.zeros(1), np.ones(1), np.ones(1, int))
    assert calls == pytest.approx([0.0, np.log(10)])


@pytest.mark.parametrize(("prior", "power"), [
    (stats.invgamma(3, scale=2), "-3"), (stats.halfcauchy(scale=3), "-1"),
    (stats.invgamma(1.5), "-1.5"),
    (stats.halfnorm(scale=2), ""), (stats.expon(scale=2), ""), (stats.gamma(0.5), ""),
    (stats.lognorm(1.0), ""),
])
@pytest.mark.parametrize("how", ["default", "learned", "verdict"])
def test_priors_that_data_do_not_limit(prior, power, how):
    """The likelihood does not depend on s, after parameters that have more x than z."""
    def loglike(p, s, m):
        return float(3 * np.log(p[0]) - 0.5 * m**2)

    options = {"default": {}, "learned": {"surrogate": "learn", "budget": 1500, **QUIET},
               "verdict": {"sampler": "ram", "draws": 5000, "search": False, "diagnose": False}}
    known = {"p": stats.dirichlet([1.0, 1.0]), "s": prior, "m": stats.norm(0, 2)}
    result = fk.sample(loglike, prior=known, seed=1, **options[how])
    if how == "verdict":
        result.verdict(1000)
    names, text = tails_of(result)
    assert names == (["s"] if power else [])
    assert how == "verdict" or not power or f"R^{power}." in text


def test_a_scale_that_the_data_determine_has_no_heavy_tail():
    y = np.random.default_rng(1).normal(2.0, 3.0, 20)
    result = fk.sample(lambda m, s: stats.norm.logpdf(y, m, s).sum(), seed=1,
                       prior={"m": stats.norm(0, 10), "s": stats.halfcauchy(scale=5)})
    assert tails_of(result) == ([], "")


def test_a_positive_parameter_without_a_prior_that_data_do_not_limit():
    """The likelihood levels off, so that the posterior has no integral."""
    def logp(a, k):
        return -0.5 * (a - 1.0) ** 2 - np.log(k) - 1 / max(k, 1e-300)

    result = fk.sample(logp, {"a": 0.0, "k": 1.0}, bounds={"k": (0, None)}, seed=1)
    assert result.verdict().status == "wrong"
    assert tails_of(result)[0] == ["k"]


@pytest.mark.parametrize(("prior", "shape"), [
    (stats.gamma, 0.01), (stats.gamma, 0.05), (stats.invgamma, 0.004)])
@pytest.mark.parametrize("seed", range(3))
def test_a_prior_of_small_shape_is_proper(tmp_path, prior, shape, seed):
    """0.1 % of the draws of gamma(0.01), and 7 % of those of invgamma(0.004), have extreme sizes.

    The first rises, as s^0.01, over many powers of 10, within the mass.
    """
    result = fk.sample(lambda s: 0.0, prior={"s": prior(shape)}, seed=seed)
    assert "improper" not in {one.kind for one in result.warnings}
    assert result.verdict(400).status != "wrong"
    result.save(tmp_path / "run.fk")
    assert fk.load(tmp_path / "run.fk").verdict().status != "wrong"


@pytest.mark.parametrize(("prior", "power"), [
    (stats.gamma(0.01), -0.012), (stats.gamma(0.01), -0.02), (stats.invgamma(0.01), 0.02)])
@pytest.mark.parametrize("options", [{}, {"sampler": "ram", "search": False, "draws": 1000}])
def test_a_likelihood_that_outweighs_a_proper_prior_is_found(prior, power, options):
    for seed in range(2):
        result = fk.sample(lambda s: power * np.log(s), prior={"s": prior}, seed=seed, **options)
        assert "improper" in {one.kind for one in result.warnings}


def test_a_prior_beside_a_parameter_without_one_may_not_suffice():
    """The integral over t is s^-0.5, which the prior of s does not outweigh."""
    def loglike(s, t):
        with np.errstate(over="ignore"):
            return -0.5 * s * t**2

    result = fk.sample(loglike, {"s": 1.0, "t": 0.0}, seed=1,
                       prior={"s": stats.gamma(0.01), "t": None})
    assert result.verdict().status == "wrong"
    assert not len(result.state.proper)


def test_tails_begin_beyond_the_mass():
    """A density that rises over 40 units of z, and then falls off."""
    evaluate = Evaluator(fk.as_target(lambda z: 0.05 * z[0] - np.exp(z[0]), 1),
                         np.random.default_rng(1))
    center, sides = np.full(1, -30.0), np.ones(1, int)
    assert len(logarithmic_tails(evaluate, center, np.full(1, 20.0), sides)) == 0
    assert len(logarithmic_tails(evaluate, center, np.ones(1), sides)) == 1
    assert len(logarithmic_tails(evaluate, center, np.ones(1), sides, np.full(1, 32.0))) == 0


def test_an_index_that_priors_contradict_is_no_tail():
    result = fk.sample(lambda s: 0.0, prior={"s": stats.gamma(3)}, seed=1, draws=100, tune=100)
    tails = np.array([[0, -0.5]])
    assert heavy_tails(replace(result.state, tails=tails)) == [(-0.5, 0)]
    assert heavy_tails(replace(result.state, tails=tails, proper=np.array([0]))) == []
    small = replace(result.state, tails=np.array([[0, 0.004]]))
    assert heavy_tails(small) == [(0.0, 0)]
    assert heavy_tails(replace(small, proper=np.array([0]))) == [(0.004, 0)]
