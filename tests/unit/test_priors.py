"""Priors: compiled log densities beside scipy's, gradients, draws, and what is refused."""

import pickle

import numpy as np
import pytest
from scipy import stats

import fastkam as fk

COMPILED = {
    "norm": stats.norm(1, 2), "halfnorm": stats.halfnorm(1, 2), "uniform": stats.uniform(-1, 3),
    "truncnorm": stats.truncnorm(-1, 2, 1, 3), "truncnorm in a tail": stats.truncnorm(5, 9),
    "truncnorm, half": stats.truncnorm(-np.inf, 0.5), "expon": stats.expon(1, 2),
    "gamma": stats.gamma(2.5, 1, 3), "gamma, pole": stats.gamma(0.3), "gamma of 1": stats.gamma(1),
    "chi2": stats.chi2(3), "erlang": stats.erlang(3), "invgamma": stats.invgamma(2, 1, 3),
    "beta": stats.beta(2, 3.5, -1, 3), "beta, poles": stats.beta(0.3, 0.4, 1, 2),
    "beta of 1": stats.beta(1, 1), "cauchy": stats.cauchy(1, 2),
    "halfcauchy": stats.halfcauchy(1, 2), "t": stats.t(3, 1, 2), "t, normal": stats.t(np.inf, 1, 2),
    "t, near normal": stats.t(1e8), "lognorm": stats.lognorm(0.5, 1, 2),
    "laplace": stats.laplace(1, 2), "logistic": stats.logistic(1, 2),
    "loguniform": stats.loguniform(0.1, 10), "loguniform, moved": stats.loguniform(0.1, 10, 1, 2),
    "reciprocal": stats.reciprocal(1, 3),
    "weibull_min": stats.weibull_min(1.5, 1, 2), "weibull_min, pole": stats.weibull_min(0.5),
    "pareto": stats.pareto(2, 1, 3), "rayleigh": stats.rayleigh(1, 2),
    "gumbel_r": stats.gumbel_r(1, 2), "gumbel_l": stats.gumbel_l(1, 2),
    "vonmises": stats.vonmises(2.0, 1.0)}
SCIPY = {
    "skewnorm": stats.skewnorm(3, 1, 2), "genextreme": stats.genextreme(0.2, 1, 2),
    "exponnorm": stats.exponnorm(1.5), "triang": stats.triang(0.3, -1, 4),
    "nakagami": stats.nakagami(2.0)}
if hasattr(stats, "Normal"):
    COMPILED["Normal"] = stats.Normal(mu=1.0, sigma=2.0)
    COMPILED["Uniform"] = stats.Uniform(a=-1.0, b=2.0)
    SCIPY["make_distribution"] = stats.make_distribution(stats.gamma)(a=2.5)
    SCIPY["truncate"] = stats.truncate(stats.Normal(), lb=-0.5, ub=np.inf)
MULTIVARIATE = {
    "multivariate_normal": stats.multivariate_normal([1, 2, 3], [[2, 1, 0], [1, 2, 0], [0, 0, 1]]),
    "multivariate_t": stats.multivariate_t([1, 2], [[2, 1], [1, 3]], df=4),
    "matrix_normal": stats.matrix_normal(np.ones((2, 2)), [[2, 1], [1, 2]], [[1, 0], [0, 3]])}


QUICK = {"draws": 10, "tune": 50, "sampler": "am", "search": False, "diagnose": False, "seed": 1,
         "progress": False}


def flat(x):
    return 0.0


def flat_with_gradient(x):
    return 0.0, np.zeros(len(x))


def problem(distribution, **options):
    return fk.Problem(flat_with_gradient, prior={"k": distribution}, **options)


def grid(distribution):
    rng = np.random.default_rng(3)
    low, high = distribution.support()
    edges = [edge for edge in (float(low), float(high)) if np.isfinite(edge)]
    # nearer to an end that is not 0, scipy's own standardized variable has lost the digits
    near = [edge + s * d for edge in edges for s in (-1, 1)
            for d in (1e-3, 1e-12 if edge == 0 else 1e-2)]
    return np.concatenate([5 * rng.normal(size=200), rng.uniform(-2, 5, 300), np.arange(-3, 6),
                           [1e-300, 1e3, -1e3], edges, near])


@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_log_density_is_that_of_scipy(name):
    """Points are outside the support and on its edges, too; scipy's may underflow."""
    distribution = COMPILED[name]
    made = problem(distribution)
    assert not fk.Problem(fk.targets.Gaussian([0.0], 1.0), prior={"k": distribution}
                          ).target().needs_gil
    x = grid(distribution)
    if name == "vonmises":
        x = x[np.abs(x - 1) < np.pi]
    with np.errstate(all="ignore"):
        expected = distribution.logpdf(x)
    found = made.log_prior(x[:, None])
    same = np.isclose(found, expected, rtol=1e-12, atol=1e-12) | (found == expected)
    same |= (expected == -np.inf) & (found < -700)
    if name.startswith("loguniform, moved"):  # scipy rounds the ends of its support otherwise
        same |= np.isin(x, distribution.support())
    assert same.all(), list(zip(x[~same], found[~same], expected[~same], strict=True))


@pytest.mark.parametrize("name", COMPILED | SCIPY)
def test_gradients_in_both_spaces(name):
    """The gradients are of the log prior with the Jacobian, and without it at hard bounds."""
    rng = np.random.default_rng(4)
    for transforms in (None, False):
        made = problem((COMPILED | SCIPY)[name], transforms=transforms)
        for z in made.sample_prior(20, rng):
            value, gradient = made.logp_grad(z)
            h = 1e-5 * min(1 + abs(z[0]), 1e3 * edge_distance(made, z))
            difference = (made.log_prior_z(z + h) - made.log_prior_z(z - h)) / (2 * h)
            assert value == made.logp(z) == made.log_prior_z(z)
            np.testing.assert_allclose(gradient[0], difference, rtol=2e-4, atol=2e-5)


def edge_distance(made, z):
    low, high = (getattr(made.priors["k"], end)[0] for end in ("low", "high"))
    x = made.constrain(z)[0]
    return min(x - low, high - x, 1.0)


@pytest.mark.parametrize("name", COMPILED | SCIPY)
def test_the_prior_in_z_is_a_density(name):
    """Its integral, by quadrature, is 1, so that the Jacobian and all constants are there."""
    made = problem((COMPILED | SCIPY)[name])
    if made.coordinates.rows[0][0] == "periodic":
        low, high = made.coordinates.rows[0][5:7]
        z = np.linspace(low - 12 * (high - low), high + 12 * (high - low), 400_001)
    else:
        z = np.sinh(np.linspace(-8, 8, 400_001))
    density = np.exp(made.log_prior_z(z[:, None]))
    exact = 1.0
    if name in ("cauchy", "t"):  # the grid ends where mass is left
        exact = np.diff(COMPILED[name].cdf(z[[0, -1]]))[0]
    assert abs(np.trapezoid(density, z) - exact) < 1e-5


@pytest.mark.parametrize("name", COMPILED | SCIPY)
def test_draws_from_the_prior(name):
    """Kolmogorov-Smirnov at a false-alarm rate of 1e-4 for all 40, by the seed."""
    distribution = (COMPILED | SCIPY)[name]
    made = problem(distribution)
    z = made.sample_prior(4000, 5)
    x = made.constrain(z)[:, 0]
    assert np.isfinite(made.log_prior_z(z)).all()
    assert stats.kstest(x, distribution.cdf).pvalue > 1e-4 / 40
    np.testing.assert_array_equal(z, made.sample_prior(4000, 5))


@pytest.mark.parametrize("name", ["beta, poles", "gamma, pole"])
def test_tails_beyond_the_rounding_of_x_are_exact(name):
    """log x is taken from z: at z = 60, 1 - x is below the rounding error of x."""
    made = problem(COMPILED[name])
    for z in (60.0, -60.0, 300.0, -300.0, -690.0):
        a = {"beta, poles": (0.3 if z < 0 else 0.4), "gamma, pole": 0.3}[name]
        if name == "gamma, pole" and z > 0:
            continue
        slope = made.logp_grad([z])[1][0]
        np.testing.assert_allclose(slope, -np.sign(z) * a, rtol=1e-9)


@pytest.mark.parametrize("name", MULTIVARIATE)
def test_multivariate(name):
    distribution = MULTIVARIATE[name]
    made = problem((distribution, 2))
    x = np.random.default_rng(6).normal(size=(10, made.n_x)) * 2
    shape = made.shapes["k"]
    expected = sum(np.array([distribution.logpdf(one) for one in x.reshape(10, *shape)[:, i]])
                   for i in range(2))
    np.testing.assert_allclose(made.log_prior(x), expected, rtol=1e-12)
    for z in x:
        _, gradient = made.logp_grad(z)
        steps = 1e-5 * np.eye(len(z))
        differences = [(made.log_prior_z(z + s) - made.log_prior_z(z - s)) / 2e-5 for s in steps]
        np.testing.assert_allclose(gradient, differences, rtol=1e-4, atol=1e-6)
    draws = made.sample_prior(2000, 7).reshape(2000, 2, -1)
    loc = distribution.rvs(size=2000, random_state=8).reshape(2000, -1)
    for j in range(loc.shape[1]):
        assert stats.ks_2samp(draws[:, 1, j], loc[:, j]).pvalue > 1e-5


@pytest.mark.skipif(not hasattr(stats, "matrix_t"), reason="scipy before 1.17 has none")
@pytest.mark.parametrize("shape", [(2, 3), (1, 2)])
def test_matrix_t(shape):
    """The density and the draws are scipy's."""
    distribution = stats.matrix_t(
        np.ones(shape), np.eye(shape[0]), 2 * np.eye(shape[1]), df=5)
    made = problem(distribution)
    assert made.shapes == {"k": shape}
    z = made.sample_prior(2000, 7)
    np.testing.assert_allclose(
        made.log_prior(z[:5]), [distribution.logpdf(one.reshape(shape)) for one in z[:5]])
    same = distribution.rvs(size=2000, random_state=8).reshape(2000, -1)
    assert stats.ks_2samp(z[:, 0], same[:, 0]).pvalue > 1e-4
    assert fk.sample(distribution, **QUICK).draws.shape == (4, 10, z.shape[1])


@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1e9])
def test_differences_have_steps_of_the_scale_of_the_prior(scale):
    """The slopes are those of the exact log density, near the middle, far out and far from 0."""
    made = problem(stats.gennorm(1.3, scale=scale))
    for y in (1.0, -7.0, 300.0):
        slope = made.logp_grad([y * scale])[1] * scale
        np.testing.assert_allclose(slope, -np.sign(y) * 1.3 * abs(y) ** 0.3, rtol=1e-8)
    moved = problem(stats.gennorm(1.3, loc=1e6 * scale, scale=scale))
    np.testing.assert_allclose(moved.logp_grad([(1e6 + 1) * scale])[1] * scale, -1.3, rtol=1e-6)
    matrix = problem(stats.matrix_normal(np.zeros((2, 2)), scale**2 * np.eye(2)))
    x = np.array([1.0, -2.0, 0.5, 3.0])
    if scale > 1e-100:  # scipy's own factor of the covariance vanishes
        np.testing.assert_allclose(matrix.logp_grad(x * scale)[1] * scale, -x, rtol=1e-6)


def test_a_density_and_draws_suffice_for_differences():
    """An object of a user without quantiles: its scale is taken to be 1."""
    class Own:
        def logpdf(self, x):
            return -np.abs(x) ** 1.5

        def support(self):
            return -np.inf, np.inf

    np.testing.assert_allclose(problem(Own()).logp_grad([4.0])[1], -3.0, rtol=1e-8)


@pytest.mark.parametrize("distribution", [stats.rdist(0.9), stats.gamma(0.3), stats.dgamma(0.5)])
def test_a_point_at_a_pole_has_probability_zero(distribution):
    """There the log prior is infinite, and the target is -inf, so that no chain can be there."""
    made = problem(distribution, transforms=False)
    pole = [1.0 if made.priors["k"].high[0] == 1 else 0.0]
    assert made.log_prior(pole) == np.inf
    assert made.logp(pole) == made.logp_grad(pole)[0] == made.log_prior_z(pole) == -np.inf


def test_a_pole_beyond_the_rounding_of_x_ends_no_run():
    result = fk.sample(flat, prior={"k": stats.rdist(0.9)}, **QUICK | {"draws": 5000, "chains": 2})
    assert abs(result["k"].std() - stats.rdist(0.9).std()) < 0.1


def test_draws_that_overflow_are_no_warning():
    draws = fk.Problem(lambda v: 0.0, prior={"v": stats.invgamma(0.001, scale=0.001)}).sample_prior(
        1000, np.random.default_rng(1))
    assert len(draws) == 1000


def test_a_loguniform_prior_over_hundreds_of_decades():
    """Its constant, and the points, whose shares of the interval are below the smallest numbers."""
    distribution = stats.loguniform(1e-200, 1e150)
    made = problem(distribution)
    x = np.array([[2e-200], [1e-180], [1e-100], [1.0], [1e149]])
    expected = -np.log(x[:, 0]) - np.log(350 * np.log(10))
    np.testing.assert_allclose(made.log_prior(x), expected, rtol=1e-12)
    z = made.unconstrain(x)
    np.testing.assert_allclose(made.constrain(z), x, rtol=1e-10)
    slopes = [made.logp_grad(one)[1][0] for one in z]
    np.testing.assert_allclose(slopes, [0.5, 0, 0, 0, -0.1], atol=1e-9)


def test_dirichlet():
    alpha = np.array([0.5, 1.0, 3.0])
    made = problem(stats.dirichlet(alpha))
    assert (made.dim, made.n_x) == (2, 3)
    x = stats.dirichlet(alpha).rvs(50, random_state=1)
    np.testing.assert_allclose(made.log_prior(x), stats.dirichlet(alpha).logpdf(x.T), rtol=1e-11)
    assert made.log_prior([0.5, 0.6, 0.1]) == made.log_prior([1.5, -0.6, 0.1]) == -np.inf
    draws = made.constrain(made.sample_prior(4000, 2))
    assert stats.kstest(draws[:, 2], stats.beta(3, 1.5).cdf).pvalue > 1e-4
    with pytest.raises(ValueError, match=r"transforms\['k'\] must be 'simplex'.*add up to 1"):
        problem(stats.dirichlet(alpha), transforms=False)


def test_lkj():
    """For n = 2 the correlation has 2 Beta(eta, eta) - 1; constants, gradients and draws for 4."""
    two = problem(fk.LKJ(2, 3.0))
    r = two.constrain(two.sample_prior(4000, 1))[:, 2]
    assert stats.kstest((r + 1) / 2, stats.beta(3, 3).cdf).pvalue > 1e-4
    z = np.linspace(-12, 12, 20_001)
    assert abs(np.trapezoid(np.exp(two.log_prior_z(z[:, None])), z) - 1) < 1e-8
    made = problem(fk.LKJ(4, 1.5))
    L = fk.LKJ(4, 1.5).rvs(5, random_state=2)
    np.testing.assert_allclose(made.log_prior(L.reshape(5, 16)), fk.LKJ(4, 1.5).logpdf(L))
    for z in made.unconstrain(L.reshape(5, 16)):
        steps = 1e-5 * np.eye(6)
        differences = [(made.log_prior_z(z + s) - made.log_prior_z(z - s)) / 2e-5 for s in steps]
        np.testing.assert_allclose(made.logp_grad(z)[1], differences, rtol=1e-5, atol=1e-6)


def test_lkj_has_one_transform():
    with pytest.raises(ValueError, match=r"must be 'cholesky_corr', not 'identity'.*Cholesky"):
        problem(fk.LKJ(3), transforms=False)


def test_lkj_is_a_density():
    """Importance sampling of 3 partial correlations gives 1 within 5 standard errors."""
    made = problem(fk.LKJ(3, 2.0))
    rng = np.random.default_rng(3)
    z = rng.logistic(scale=0.35, size=(200_000, 3))
    weights = np.exp(made.log_prior_z(z) - stats.logistic(scale=0.35).logpdf(z).sum(axis=1))
    assert abs(weights.mean() - 1) < 5 * weights.std() / np.sqrt(len(z)) < 0.02


def test_ordered_elements_have_n_factorial_times_the_density():
    made = problem((stats.expon(), 3), transforms={"k": "ordered"})
    rng = np.random.default_rng(3)
    z = made.sample_prior(50_000, rng)
    x = made.constrain(z)
    assert (np.diff(x, axis=1) > 0).all()
    assert made.log_prior([3.0, 2.0, 1.0]) == -np.inf
    np.testing.assert_allclose(made.log_prior([1.0, 2.0, 3.0]), np.log(6) - 6)
    # a normal that fits the draws, and their density as the weight: its mean is 1
    guess = stats.multivariate_t(z.mean(axis=0), 2 * np.cov(z.T), df=8)
    points = guess.rvs(200_000, random_state=rng)
    weights = np.exp(made.log_prior_z(points) - guess.logpdf(points))
    assert abs(weights.mean() - 1) < 5 * weights.std() / np.sqrt(len(points)) < 0.05


def test_shapes():
    made = fk.Problem(flat, prior={
        "a": stats.norm([0, 1, 2], 1), "b": (stats.norm(0, 1), (2, 2)), "c": stats.gamma(2),
        "d": (stats.norm([0, 1], 1), (3, 2)), "e": (stats.dirichlet([1, 1, 1]), 2),
        "f": (None, 2), "g": None})
    assert made.shapes == {"a": (3,), "b": (2, 2), "c": (), "d": (3, 2), "e": (2, 3), "f": (2,),
                           "g": ()}
    assert (made.n_x, made.dim) == (23, 21)
    assert pickle.loads(pickle.dumps(made.target())).dim == 21


def test_a_histogram_is_a_distribution():
    """A scipy.stats.rv_histogram has no parameters, so that it need not be called."""
    histogram = stats.rv_histogram(np.histogram([1.0, 2.0, 2.5, 4.0], bins=3))
    one, other = problem(histogram), problem(histogram())
    for z in ([-1.0], [0.3]):
        assert one.logp(np.array(z)) == other.logp(np.array(z))


class OnlyLogarithm(stats.rv_continuous):
    """An exponential distribution."""

    def _logpdf(self, x, rate):
        return np.log(rate) - rate * x


def test_a_distribution_that_defines_only_its_log_density():
    """Scipy itself cannot draw from it."""
    made = problem(OnlyLogarithm(a=0, shapes="rate")(rate=2.0))
    assert made.log_prior(np.array([[1.5]])) == np.log(2) - 3
    draws = pickle.loads(pickle.dumps(made)).sample_prior(500, 3)
    assert stats.kstest(np.exp(draws[:, 0]), stats.expon(scale=0.5).cdf).pvalue > 1e-4


@pytest.mark.parametrize(("d", "lead", "shape"), [(1, None, ()), (1, 2, (2,)), (2, 3, (3, 2))])
def test_kernel_densities(d, lead, shape):
    """Such as those of the draws of an earlier run."""
    rng = np.random.default_rng(4)
    kernel = stats.gaussian_kde(rng.standard_normal((d, 40)) ** 3, weights=np.arange(1.0, 41.0))
    made = problem(kernel if lead is None else (kernel, lead))
    assert made.shapes["k"] == shape
    x = rng.standard_normal((10, made.n_x))
    np.testing.assert_allclose(
        made.log_prior(x), kernel.logpdf(x.reshape(-1, d).T).reshape(10, -1).sum(axis=1))
    for z in x:
        steps = 1e-5 * np.eye(len(z))
        differences = [(made.log_prior_z(z + s) - made.log_prior_z(z - s)) / 2e-5 for s in steps]
        np.testing.assert_allclose(made.logp_grad(z)[1], differences, rtol=1e-4, atol=1e-6)
    draws = made.sample_prior(2000, 7).reshape(2000, -1, d)
    for one, other in zip(draws[:, -1].T, kernel.resample(2000, 8), strict=True):
        assert stats.ks_2samp(one, other).pvalue > 1e-5


@pytest.mark.parametrize(("value", "says"), [
    (stats.poisson(3), "'k'.*must be continuous.*discrete"),
    (stats.multinomial(3, [0.2, 0.8]), "'k'.*must be continuous"),
    (stats.norm, r"'k'.*with its parameters, such as scipy.stats.norm\(0, 1\)"),
    (stats.multivariate_normal, "'k'.*with its parameters"),
    (stats.norm(0, -1), "'k'.*not valid.*nan"),
    (stats.norm(0, np.inf), "'k'.*a finite loc and scale, not 0 and inf"),
    (stats.skewnorm(3, -np.inf), "'k'.*a finite loc and scale, not -inf and 1"),
    (stats.norm(0, [1, np.inf]), "'k'.*a finite loc and scale"),
    (stats.gamma(np.inf), "'k'.*no finite log density"),
    (stats.multivariate_normal([0, np.inf]), "'k'.*draws that are not finite"),
    (3.0, "'k'.*not 3.0"), ((stats.norm(), 2, 3), "'k'.*pair"),
    ((stats.norm(), -1), "'k'.*at least 1, not -1"), ((stats.norm(), 1.5), "'k'.*integer"),
    ((stats.norm([0, 1, 2], 1), 2), r"'k'.*shape \(3,\).*\(2,\)"),
    ((0, None), r"'k'.*bounds=\{'k': \(0, None\)\} and prior=\{'k': None\}$"),
    ([0.5, 2], r"'k'.*bounds=\{'k': \(0.5, 2\)\}.*scipy.stats.uniform\(0.5, 1.5\)"),
    (lambda mu: stats.norm(mu, 1), "'k'.*depends on other.*None as the prior of 'k'"),
    (stats.wishart(3, np.eye(2)), "'k'.*positive definite"),
    (stats.multivariate_normal([0, 0], [[1, 1], [1, 1]], allow_singular=True), "'k'.*singular")])
def test_bad_arguments_are_refused(value, says):
    with pytest.raises((TypeError, ValueError), match=says):
        fk.Problem(flat, prior={"k": value})


@pytest.mark.skipif(not hasattr(stats, "Binomial"), reason="scipy before 1.17")
def test_new_discrete_distributions_are_refused():
    with pytest.raises(TypeError, match="must be continuous"):
        fk.Problem(flat, prior={"k": stats.Binomial(n=3, p=0.5)})
    with pytest.raises(TypeError, match="with its parameters"):
        fk.Problem(flat, prior={"k": stats.Normal})


@pytest.mark.parametrize("prior", [
    stats.vonmises(2, scale=2), stats.vonmises(2, loc=3), stats.wrapcauchy(0.5, loc=1),
    stats.wrapcauchy(0.5, loc=-np.pi, scale=0.5)])
def test_draws_from_circular_priors_with_loc_and_scale(prior):
    problem = fk.Problem(lambda a: 0.0, prior={"a": prior})
    x = problem.constrain(problem.sample_prior(4000, 1))[:, 0]
    assert stats.kstest(x, prior.cdf).pvalue > 1e-3


@pytest.mark.parametrize("shape", [(3, 1), (1, 3), (1, 1), (2, 2)])
def test_a_matrix_normal_prior_keeps_its_shape(shape):
    problem = fk.Problem(lambda b: 0.0 * b.sum(), prior={"b": stats.matrix_normal(np.zeros(shape))})
    assert problem.shapes == {"b": shape}
    z = problem.sample_prior(2, 1)
    assert problem.logp(z[0]) == pytest.approx(stats.norm.logpdf(z[0]).sum())


def test_sample_prior_by_its_moments():
    """Means of several parameters are within 5 standard errors."""
    problem = fk.Problem(flat, {"mu": stats.norm(0, 10), "sigma": stats.halfnorm(scale=2),
                               "w": stats.dirichlet([2.0, 3.0, 4.0])})
    x = problem.constrain(problem.sample_prior(20_000, 1))
    exact = [0, 2 * np.sqrt(2 / np.pi), 2 / 9, 3 / 9, 4 / 9]
    assert (np.abs(x.mean(axis=0) - exact) < 5 * x.std(axis=0) / np.sqrt(len(x))).all()
    np.testing.assert_allclose(
        problem.log_prior_z(problem.unconstrain(x)),
        problem.log_prior(x) + problem.coordinates.log_jacobian(problem.unconstrain(x)), rtol=1e-9)
