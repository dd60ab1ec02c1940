"""The search before a run, and what "auto" makes of it."""

import logging
import warnings

import densities
import numpy as np
import pytest
from densities import D
from runs import sample as plain
from scipy import stats

import fastkam as fk
from fastkam.search.evaluator import Evaluator
from fastkam.search.scales import find_scales
from fastkam.search.tails import tail_indices


def jump(at):
    """A standard normal log density in each coordinate that falls by 3 at a value of the first."""
    return lambda x: -0.5 * float(x @ x) - 3 * (x[0] > at)


def normal(scales, mean=0.0):
    """The log density of a normal distribution with these standard deviations."""
    return lambda x: -0.5 * float((((x - mean) / scales) ** 2).sum())


def scales_of(f, x0):
    """(scales, flat, number of evaluations) of a function at x0."""
    x0 = np.asarray(x0, float)
    evaluate = Evaluator(fk.as_target(f, len(x0)), np.random.default_rng(1))
    found = find_scales(evaluate, x0, f(x0))
    return *found, evaluate.n


# ---- scales ----


@pytest.mark.parametrize("at", [0.0, 1.0, -2.5, 1e-5])
def test_scales_at_a_jump(at):
    """The side without the jump says how wide the density is."""
    scales, _, n = scales_of(jump(at), [at, 0.5])
    assert 0.1 < scales[0] < 6
    assert n < 250
    result = plain(jump(at), [at, 0.5], sampler="ram", draws=2000, tune=1000, search=True, seed=1)
    share = np.exp(-3) * stats.norm.sf(at)
    share /= share + stats.norm.cdf(at)
    assert abs((result.draws[..., 0] > at).mean() - share) < 0.02 + 0.1 * share


@pytest.mark.parametrize("power", range(-150, 151, 50))
def test_scales_of_any_magnitude(power):
    sd = 10.0**power * np.array([1.0, 3.0, 0.2])
    for x0 in (np.zeros(3), 2 * sd, -0.3 * sd):
        scales, flat, n = scales_of(normal(sd), x0)
        assert not flat.any()
        ratio = scales / sd
        assert ratio.min() > 0.15
        assert ratio.max() < 2.1
        assert n < 3 * 2 * 80


def test_scales_change_with_the_units():
    sd, x0, units = np.array([1.0, 2.0, 0.1]), np.array([0.7, -2.0, 0.3]), [1e-6, 1e6, 3.0]
    one, *_ = scales_of(normal(sd), x0)
    other, *_ = scales_of(normal(sd * units), x0 * units)
    np.testing.assert_allclose(other, one * units, rtol=1e-9)


def test_a_bound_next_to_the_start_does_not_set_the_scale():
    def f(x):
        return -float(x.sum()) if (x >= 0).all() else -np.inf

    scales, *_ = scales_of(f, [1e-9, 2.0])
    assert scales.min() > 0.5
    assert scales.max() < 2.5


def test_bounds_on_both_sides_set_the_scale():
    scales, *_ = scales_of(lambda x: 0.0 if abs(x[0]) < 1e-3 else -np.inf, [2e-4])
    assert 7e-4 < scales[0] < 1.3e-3


def test_a_coordinate_without_influence_is_reported():
    scales, flat, n = scales_of(lambda x: -0.5 * x[0] ** 2, [0.0, 5.0])
    assert flat.tolist() == [False, True]
    assert scales[1] == pytest.approx(0.05)
    assert n < 100


def test_a_step_lost_to_rounding():
    scales, *_ = scales_of(normal(1e-3, mean=1e16), [1e16])  # its neighbors are 2 away
    assert np.isfinite(scales).all()
    assert (scales > 0).all()


# ---- starts ----


def test_chains_are_dispersed_around_one_point():
    result = fk.sample(normal([1.0, 1e4]), [0.0, 0.0], sampler="am", draws=10, tune=10, seed=1)
    starts = result.state.x0
    assert len(np.unique(starts[:, 0])) == 4
    assert (np.abs(starts) < [6, 6e4]).all()
    np.testing.assert_allclose(result.scales, 2**0.5 * np.array([1.0, 1e4]), rtol=0.5)
    assert result.search[0].startswith("scales ")


def test_a_far_start_is_moved_to_the_mode():
    result = fk.sample(normal(1.0), [300.0, -200.0], sampler="am", draws=10, tune=0, seed=1)
    assert (np.abs(result.state.x0) < 12).all()
    assert "log density up by" in result.search[1]


def test_chains_with_points_of_their_own_start_there():
    x0 = np.arange(8.0).reshape(4, 2)
    result = fk.sample(normal(1.0), x0, sampler="am", draws=10, tune=10, seed=1)
    np.testing.assert_array_equal(result.state.x0, x0)
    assert (result.scales != 1).all()


def test_without_a_search():
    result = fk.sample(normal(3.0), [1.0, 2.0], sampler="am", search=False, draws=10, tune=0)
    np.testing.assert_array_equal(result.state.x0, [[1.0, 2.0]] * 4)
    np.testing.assert_array_equal(result.scales, [1, 1])
    assert result.search == []
    auto = fk.sample(normal(3.0), [1.0, 2.0], search=False, draws=10, tune=10)
    assert type(auto.sampler) is fk.ModeJumping
    np.testing.assert_array_equal(auto.scales, [1, 1])


def test_given_lengths_are_in_the_users_units():
    given = fk.sample(normal(3.0), np.zeros(2), sampler=fk.RandomWalk(proposal_cov=4.0), draws=10)
    np.testing.assert_array_equal(given.scales, [1, 1])
    np.testing.assert_allclose(
        fk.sample(normal(3.0), np.zeros(2), sampler="rwm", draws=10).scales, 3 * 2**0.5)


@pytest.mark.parametrize("name", sorted(fk.samplers.SAMPLERS))
def test_every_sampler_says_which_parameters_are_lengths(name):
    cls = fk.samplers.SAMPLERS[name]
    assert isinstance(vars(cls)["LENGTHS"], tuple)
    assert cls().relative


def test_points_of_a_scaled_run_are_the_users():
    """Draws, warm-up, states that were refused, and the point of a fault."""
    calls = []

    def f(x):
        calls.append(x.copy())
        return -0.5e-6 * float(x @ x) if x[0] < 500 else -np.inf

    result = fk.sample(f, [0.0, 0.0], sampler="ram", draws=200, tune=200, seed=1, chains=1)
    seen = {x.tobytes() for x in calls}
    assert (result.scales > 100).all()
    assert all(x.tobytes() in seen for x in result.draws.reshape(-1, 2))
    assert all(x.tobytes() in seen for x in result.warmup.draws.reshape(-1, 2))
    assert (result.offending["outside"][:, 0] >= 500).all()


def test_a_scaled_run_resumes_from_a_file(tmp_path):
    f, options = normal([1e-4, 1e5]), {"sampler": "ram", "tune": 50, "seed": 2}
    whole = fk.sample(f, [0.0, 0.0], draws=80, **options)
    part = fk.sample(f, [0.0, 0.0], draws=30, **options)
    part.save(tmp_path / "run.fk")
    again = fk.resume(tmp_path / "run.fk", 50, target=f)
    np.testing.assert_array_equal(again.draws, whole.draws)
    assert again.search == whole.search


def test_the_search_is_the_same_for_every_form_of_the_density():
    options = {"draws": 20, "tune": 20, "seed": 3, "chains": 3}
    one = fk.sample(densities.python, np.ones(D), **options)
    other = fk.sample(densities.vectorized, np.ones(D), vectorized=True, **options)
    np.testing.assert_array_equal(one.draws, other.draws)
    assert one.search == other.search
    assert not np.array_equal(
        one.draws, fk.sample(densities.python, np.ones(D), **options | {"seed": 4}).draws)


# ---- a search that fails ----


def test_a_density_that_raises_in_the_search():
    def f(x):
        raise KeyError("no such thing")

    with pytest.raises(fk.SamplingError, match=r"KeyError: .*search for a start") as caught:
        fk.sample(f, [0.0], sampler="am")
    assert caught.value.result is None
    assert isinstance(caught.value.__cause__, KeyError)
    np.testing.assert_array_equal(caught.value.x, [0.0])


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_search_skips_points_at_which_the_function_fails(vectorized):
    def f(x):
        if x.max() > 60:
            raise ArithmeticError("no convergence")
        return -0.5 * (x**2).sum(axis=-1)

    result = fk.sample(f, [0.0, 0.0], draws=20, tune=20, seed=1, vectorized=vectorized)
    assert result.search[-2].startswith("passed over ")
    assert "ArithmeticError: no convergence" in result.search[-2]
    assert result.draws.max() < 8


def test_a_search_skips_points_of_infinite_density():
    def f(x):
        return np.inf if x[0] > 60 else -0.5 * float(x @ x)

    result = fk.sample(f, [0.0, 0.0], sampler="am", draws=20, tune=20, seed=1)
    assert (np.abs(result.state.x0) < 8).all()


def test_warnings_of_overflow_are_not_shown_in_a_search():
    fk.sample(lambda x: float(-np.exp(x[0]) + x[0]), [0.0], draws=20, tune=20, seed=1)


def test_a_density_that_is_zero_everywhere_is_an_error():
    with pytest.raises(fk.SamplingError, match="no finite log density at the start"):
        fk.sample(lambda x: -np.inf, [0.0, 0.0])


def test_an_interrupted_search_raises_keyboard_interrupt():
    def f(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fk.sample(f, [0.0])


# ---- auto ----


@pytest.mark.parametrize(("target", "vectorized", "expected"), [
    (densities.python, False, fk.RandomWalk), (densities.python_pair, False, fk.MALA),
    (densities.vectorized, True, fk.RandomWalk), (densities.vectorized_pair, True, fk.MALA),
])
def test_auto(target, vectorized, expected, caplog):
    with caplog.at_level(logging.INFO, logger="fastkam"):
        result = fk.sample(target, np.ones(D), draws=20, tune=20, seed=3, vectorized=vectorized)
    assert type(result.sampler) is fk.ModeJumping
    assert type(result.sampler.sampler) is expected
    reason = "a gradient" if expected is fk.MALA else "no gradient"
    assert f"because the density has {reason}" in caplog.text
    assert result.search[-1] in caplog.text


def test_auto_in_many_dimensions_with_a_gradient():
    choice = fk.choose_sampler(lambda x: (-0.25 * float((x**4).sum()), -x**3), np.ones(40), seed=1)
    assert type(choice.sampler) is fk.NUTS
    assert choice.tune == 400


X = np.random.default_rng(3).standard_normal((120, 20))
Y = X[:, 0] + np.random.default_rng(4).standard_normal(120)
PRECISION = X.T @ X + np.eye(20) / 9
POSTERIOR = np.linalg.inv(PRECISION)


def regression(b):
    """A linear regression with the prior N(0, 9), and its gradient."""
    residual = Y - b @ X.T
    return (-0.5 * (residual**2).sum(-1) - (b * b).sum(-1) / 18, residual @ X - b / 9)


def of_likelihood(b):
    residual = Y - X @ b
    return -0.5 * float(residual @ residual), X.T @ residual


@pytest.mark.parametrize("options", [
    {"target": regression, "x0": np.zeros(20)},
    {"target": regression, "x0": np.full(20, 500.0), "vectorized": True},
    {"target": fk.targets.Gaussian(POSTERIOR @ X.T @ Y, POSTERIOR), "x0": np.zeros(20)},
    {"target": of_likelihood, "prior": {"b": (stats.norm(0, 3), 20)}},
], ids=["function", "far away, vectorized", "compiled", "with a prior"])
def test_a_density_with_a_gradient_that_is_nearly_normal(options):
    """Far fewer evaluations than NUTS takes to learn its shape."""
    result = fk.sample(**options, seed=1)
    assert type(result.sampler) is fk.ModeJumping
    assert type(result.sampler.sampler) is fk.MALA
    assert result.evaluations < 12_000
    table = result.summary()
    sd = np.sqrt(POSTERIOR.diagonal())
    np.testing.assert_allclose(table["mean"], POSTERIOR @ X.T @ Y, atol=0.12 * sd.max())
    np.testing.assert_allclose(table["sd"], sd, rtol=0.12)
    spread = result.state.x0.std(axis=0) / sd
    assert 0.4 < spread.mean() < 1.3  # chains start at draws


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")
def test_a_normal_approximation_within_a_small_budget():
    """There is nothing left for further modes."""
    result = fk.sample(regression, np.zeros(20), budget=2500, seed=1)
    assert type(result.sampler) is fk.ModeJumping
    assert result.draws.shape[1] > 50


def test_modes_of_many_dimensions_with_a_gradient():
    """The normal approximation is that of one of them."""
    other = np.r_[8.0, np.zeros(19)]

    def f(x):
        logs = -0.5 * np.array([x @ x, (x - other) @ (x - other)])
        w = np.exp(logs - logs.max())
        return float(logs.max() + np.log(w.sum())), (w[1] * other) / w.sum() - x

    result = fk.sample(f, np.zeros(20), seed=1)
    assert "a normal density fits one of several modes" in "".join(result.search)
    assert 0.4 < (result.draws[..., 0] > 4).mean() < 0.6


def test_gradients_of_a_search_are_kept_in_the_file_of_calls(tmp_path):
    """So that the same call makes none again."""
    calls = []

    def f(b):
        calls.append(1)
        return regression(b)

    options = {"evaluations": tmp_path / "calls.fk", "draws": 50, "tune": 50, "seed": 1}
    first = fk.sample(f, np.zeros(20), **options)
    made = len(calls)
    again = fk.sample(f, np.zeros(20), **options)
    np.testing.assert_array_equal(first.draws, again.draws)
    assert len(calls) - made < made / 10  # which compare the function with the file


def test_auto_of_several_modes():
    def f(x):
        return float(np.logaddexp(-0.5 * (x + 9) @ (x + 9), -0.5 * (x - 9) @ (x - 9)))

    choice = fk.choose_sampler(f, [-9.0, -9.0], seed=1)
    assert "components" in choice.reason
    assert type(choice.sampler.sampler) is fk.RandomWalk
    means = choice.sampler.means
    assert means[:, 0].min() < -5
    assert means[:, 0].max() > 5


def test_auto_keeps_given_arguments():
    options = {"draws": 30, "seed": 1}
    assert fk.sample(normal(1.0), [0.0], **options, tune=70).tune == 70
    assert fk.sample(normal(1.0), [0.0], **options, thin=7).thin == 7
    assert plain(normal(1.0), [0.0], **options).thin == 1


def test_the_kept_draws_of_a_thinned_run_are_every_kth_step():
    """The first steps are kept in full until it is known how many are too many."""
    def f(x):
        return -5 * (x[1] - x[0] * x[0]) ** 2 - 0.05 * (1 - x[0]) ** 2

    options = {"draws": 400, "seed": 1, "chains": 2, "diagnose": False}
    chosen = fk.sample(f, np.zeros(2), **options)
    given = fk.sample(f, np.zeros(2), **options, thin=chosen.thin)
    assert chosen.thin > 1
    np.testing.assert_array_equal(chosen.draws, given.draws)
    for name, values in chosen.stats.items():
        np.testing.assert_array_equal(values, given.stats[name])


@pytest.mark.parametrize(("d", "most"), [(50, 30_000), (100, 60_000)])
def test_a_normal_density_of_many_dimensions(d, most):
    """Random walks alone take some 400 000 evaluations in 50; in 100, 700 000 are too few."""
    sd = np.geomspace(0.01, 100, d)
    calls = []

    def f(x):
        calls.append(1)
        z = x / sd
        return -0.5 * float(z @ z)

    table = fk.sample(f, sd, seed=1, progress=False).summary()
    assert len(calls) < most
    assert (np.abs(table["mean"]) < 5 * table["mcse_mean"]).all()
    assert (np.abs(table["sd"] - sd) < 5 * table["mcse_sd"]).all()


# ---- tails ----


@pytest.mark.parametrize(("f", "d", "expected"), [
    (lambda x: -np.log1p(x @ x), 1, {0: 1.0}),
    (lambda x: -0.9 * np.log1p(x @ x), 1, {0: 0.8}),
    (lambda x: -3 * np.log1p(x @ x / 3), 3, {0: 3.0, 1: 3.0, 2: 3.0}),      # round contours
    (lambda x: -1.5 * np.log1p(x * x / 2).sum(), 3, {0: 2.0, 1: 2.0, 2: 2.0}),     # a product
    (lambda x: -2 * np.log1p(x[0] ** 2 / 3) - 0.5 * x[1] ** 2, 2, {0: 3.0}),
    # one tail alone
    (lambda x: -0.5 * x[0] ** 2 if x[0] > 0 else -2 * np.log1p(x[0] ** 2), 1, {0: 3.0}),
    (lambda x: -4 * np.log(x[0]) - 1 / x[0] if x[0] > 0 else -np.inf, 1, {0: 3.0}),
    (lambda x: -0.5 * x @ x, 3, {}), (lambda x: -np.abs(x).sum(), 2, {}),
    (lambda x: -np.sqrt(1 + x @ x), 2, {}), (lambda x: -(np.log1p(x @ x) ** 2), 1, {}),
    (lambda x: 0.0 if np.abs(x).max() < 1 else -np.inf, 2, {}),
])
def test_tail_indices(f, d, expected):
    for scale in (1e-5, 1.0, 1e7):
        evaluate = Evaluator(fk.as_target(lambda x, s=scale: float(f(x / s)), d),
                             np.random.default_rng(1))
        found, powers = tail_indices(evaluate, np.full(d, 0.3 * scale), np.full(d, scale))
        assert found[:, 0].tolist() == list(expected)
        np.testing.assert_allclose(found[:, 1], list(expected.values()), rtol=1e-3)
        # the others are as wide as the distance for round contours alone
        wide = d - 1 if len(expected) == d == 3 and f(np.ones(3)) != 3 * f(np.eye(3)[0]) else 0
        np.testing.assert_allclose(powers, found[:, 1] + 1 + wide, rtol=1e-3)


def test_the_tails_are_in_the_file(tmp_path):
    with pytest.warns(fk.SamplingWarning, match="R\\^-3. The standard deviation converges slowly"):
        result = fk.sample(lambda x: -2 * np.log1p(x[0] ** 2 / 3), [0.0], seed=1)
    result.save(tmp_path / "run.fk")
    again = fk.load(tmp_path / "run.fk")
    np.testing.assert_array_equal(again.state.tails, result.state.tails)
    assert [one.kind for one in again.warnings] == [one.kind for one in result.warnings]


@pytest.mark.parametrize("f", [
    lambda x: 0.5 * float(x @ x), lambda x: float(x[0]) - 0.5 * float(x[1] ** 2)])
def test_a_log_density_without_a_maximum(f):
    """A wrong sign, or no prior: it ends with an error, or says that it is no density."""
    with pytest.warns(fk.SamplingWarning) if f([1.0, 0.0] * np.ones(2)) > 0.7 else (
            pytest.raises(fk.SamplingError, match=r"inf|overflow")):
        result = fk.sample(f, [0.0, 0.0], seed=1)
        assert result.warnings[0].kind == "improper"


def test_a_start_hundred_thousand_standard_deviations_away():
    """The walkers have far to go, and the density does not rise for ever."""
    def f(x):
        return -0.5 * float(np.sum(((x - 1e8) / 1e3) ** 2))

    for seed in range(3):
        result = fk.sample(f, [0.0, 0.0], seed=seed)
        assert np.abs(result.draws.mean(axis=(0, 1)) - 1e8).max() < 200
        assert np.abs(result.draws.std(axis=(0, 1)) / 1e3 - 1).max() < 0.1


def test_programming_errors_end_a_search():
    def f(x):
        return -0.5 * float(x @ x) if x[0] < 5 else undefined  # noqa: F821

    with pytest.raises(fk.SamplingError, match="NameError") as seen:
        fk.sample(f, [0.0], seed=1)
    assert isinstance(seen.value.__cause__, NameError)


# ---- a density in place of its logarithm ----

DATA = np.linspace(-1.0, 3.0, 12)


def kinds_found(f, x0=None, **options):
    """The kinds of the findings of a default run of f."""
    with pytest.warns(fk.SamplingWarning), np.errstate(over="ignore"):
        result = fk.sample(f, x0, seed=1, **options)
    return [one.kind for one in result.warnings]


@pytest.mark.parametrize(("f", "options"), [
    (lambda a, b: np.exp(-0.5 * ((a - 1) ** 2 + b**2) / 0.01),
     {"prior": {"a": stats.norm(0, 3), "b": stats.norm(0, 3)}}),
    (lambda x: float(np.exp(-0.5 * np.sum((x - 0.3) ** 2) / 0.001)),
     {"x0": [0.5, 0.5], "bounds": [(0.0, 1.0), (0.0, 1.0)]}),
    (lambda m, s: float(np.prod(stats.norm.pdf(DATA, m, s))),
     {"prior": {"m": stats.norm(0, 5), "s": stats.halfnorm(scale=3)}}),
    (lambda x: float(np.exp(-0.5 * x @ x)), {"x0": [0.0, 0.0]}),
    (lambda x: float(np.exp(-0.5 * x @ x)), {"x0": [3.0, 3.0]}),
    (lambda x: 0.063 * float(np.exp(-0.5e4 * x @ x)), {"x0": [0.01, 0.01, 0.01]}),
])
def test_a_likelihood_in_place_of_its_logarithm_is_found(f, options):
    assert "not_a_logarithm" in kinds_found(f, **options)


@pytest.mark.parametrize("f", [
    lambda m, s: float(np.sum(stats.norm.logpdf(DATA, m, s))), lambda m, s: 0.01 * m,
    lambda m, s: 3.0 - m * m, lambda m, s: 0.0])
def test_a_log_likelihood_is_not_taken_for_a_likelihood(f):
    """The same holds for one that is nearly constant, or positive in places."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        result = fk.sample(f, seed=1, prior={"m": stats.norm(0, 5), "s": stats.halfnorm(scale=3)})
    assert not result.state.is_density
