"""fastkam in PyMC: in the place of pm.sample, and as a step method."""

import warnings

import numpy as np
import pytest

pm = pytest.importorskip("pymc")
host = pytest.importorskip("fastkam.hosts.pymc")
step = pytest.importorskip("fastkam.hosts.pymc_step")

pytestmark = pytest.mark.filterwarnings("ignore")  # of PyMC and ArviZ, which are not ours


@pytest.fixture(scope="module")
def model():
    """The first example of PyMC's documentation: a linear regression."""
    rng = np.random.default_rng(8927)
    X1, X2 = rng.normal(size=100), rng.normal(size=100) * 0.2
    Y = 1 + 1 * X1 + 2.5 * X2 + rng.normal(size=100)
    with pm.Model(coords={"slope": ["a", "b"], "row": np.arange(100)}) as model:
        X = pm.Data("X", np.array([X1, X2]), dims=("slope", "row"))
        alpha = pm.Normal("alpha", mu=0, sigma=10)
        beta = pm.Normal("beta", mu=0, sigma=10, dims="slope")
        sigma = pm.HalfNormal("sigma", sigma=1)
        mu = pm.Deterministic("mu", alpha + beta[0] * X[0] + beta[1] * X[1], dims="row")
        pm.Normal("Y_obs", mu=mu, sigma=sigma, observed=Y, dims="row")
    return model


@pytest.fixture(scope="module")
def theirs(model):
    with model, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pm.sample(1000, tune=1000, chains=2, cores=1, random_seed=1, progressbar=False,
                         idata_kwargs={"log_likelihood": True})


def same(ours, theirs, error=5.0):
    """Means agree to `error` standard errors, with at least 100 independent draws each."""
    import arviz as az

    for name in ("alpha", "beta", "sigma"):
        a, b = ours.posterior[name], theirs.posterior[name]
        ess = np.asarray(az.ess(ours, var_names=name)[name])
        assert (ess > 100).all()
        scale = np.asarray(b.std(("chain", "draw"))) * np.sqrt(1 / ess + 1 / 500)
        away = np.asarray(a.mean(("chain", "draw")) - b.mean(("chain", "draw")))
        assert (np.abs(away) < error * scale).all(), name


def test_sample_returns_what_pymc_returns(model, theirs):
    with model:
        ours = host.sample(1000, chains=2, random_seed=1, progressbar=False,
                           idata_kwargs={"log_likelihood": True})
        assert type(ours) is type(theirs)
        assert set(ours.groups()) == set(theirs.groups())
        for group in ("posterior", "log_likelihood", "observed_data", "constant_data"):
            a, b = ours[group], theirs[group]
            assert set(a.data_vars) == set(b.data_vars), group
            for name in a.data_vars:
                assert a[name].dims == b[name].dims, name
                assert a[name].shape == b[name].shape, name
    same(ours, theirs)
    np.testing.assert_array_equal(ours.observed_data["Y_obs"], theirs.observed_data["Y_obs"])
    np.testing.assert_array_equal(ours.posterior["slope"], ["a", "b"])


def test_names_and_warmup(model):
    with model:
        ours = host.sample(50, tune=50, chains=2, random_seed=1, var_names=["beta", "sigma"],
                           sampler="am", discard_tuned_samples=False, diagnose=False)
    assert set(ours.posterior.data_vars) == {"beta", "sigma"}
    assert ours.warmup_posterior.sizes["draw"] == 50
    with model, pytest.raises(ValueError, match="var_names names"):
        host.sample(var_names=["gamma"])
    with model, pytest.raises(ValueError, match="idata_kwargs"):
        host.sample(idata_kwargs={"dims": {}})


@pytest.mark.parametrize("cores", [1, 2])
def test_step_method(model, theirs, cores):
    with model:
        ours = pm.sample(4000, tune=2000, chains=2, cores=cores, random_seed=3, progressbar=False,
                         step=step.AdaptiveStep())
    same(ours, theirs)
    assert 0.1 < float(ours.sample_stats["accepted"].mean()) < 0.5


def test_without_tuning_nothing_is_learned():
    with pm.Model() as normal:
        pm.Normal("a", 0, 1)
        method = step.AdaptiveStep()
    for _ in range(2):  # PyMC resets the step method before each chain
        method.reset_tuning()
        assert method.tune
        method.stop_tuning()
        point = normal.initial_point()
        for _ in range(20):
            point, _ = method.step(point)
        assert method.chains.chains[0].n_adapted == 0


def test_the_step_goes_on_as_the_other_variables_move():
    """A mixture, whose discrete labels PyMC moves; their sum is known."""
    y = np.array([-2.1, -1.9, -2.0, 1.9, 2.2, 2.0, 2.1])
    with pm.Model() as mixture:
        mu = pm.Normal("mu", [-1, 1], 2, shape=2)
        labels = pm.Categorical("labels", [0.5, 0.5], shape=7)
        pm.Normal("y", mu[labels], 0.5, observed=y)
        ours = pm.sample(3000, tune=1000, chains=2, cores=1, random_seed=1, progressbar=False,
                         step=[step.AdaptiveStep([mu]), pm.CategoricalGibbsMetropolis([labels])])
    low, high = ours.posterior["mu"].mean(("chain", "draw")).values
    # the labels are all but certain: each mean has a normal distribution
    assert abs(low - (-1 / 4 - 6.0 / 0.25) / (1 / 4 + 3 / 0.25)) < 0.06
    assert abs(high - (1 / 4 + 8.2 / 0.25) / (1 / 4 + 4 / 0.25)) < 0.06
    sd = ours.posterior["mu"].std(("chain", "draw")).values
    np.testing.assert_allclose(sd, [(1 / 4 + 3 / 0.25) ** -0.5, (1 / 4 + 4 / 0.25) ** -0.5],
                               rtol=0.15)
    with mixture, pytest.raises(ValueError, match="vars must be continuous"):
        step.AdaptiveStep([labels])
    with mixture, pytest.raises(ValueError, match="without gradients"):
        step.AdaptiveStep([mu], sampler="nuts")
    with mixture, pytest.raises(ValueError, match="sampler must not be 'auto'"):
        step.AdaptiveStep([mu], sampler="auto")


@pytest.mark.parametrize("sampler", ["kam", "ckam", "pt"])
def test_a_step_of_any_sampler_without_gradients(sampler):
    with pm.Model():
        a = pm.Normal("a", 1, 2)
        found = pm.sample(300, tune=300, chains=1, cores=1, random_seed=1, progressbar=False,
                          step=[step.AdaptiveStep([a], sampler=sampler)])
    assert 0.5 < float(found.posterior["a"].std()) < 4


def test_posterior_predictive(model):
    """The last, as PyMC 5.28 cannot use a model with data after it."""
    with model:
        ours = host.sample(50, tune=50, chains=2, random_seed=1, diagnose=False)
        drawn = pm.sample_posterior_predictive(ours, random_seed=1, progressbar=False)
    assert drawn.posterior_predictive["Y_obs"].shape == (2, 50, 100)
