"""emcee's EnsembleSampler with fastkam's samplers, and lmfit through it."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import fastkam as fk

emcee = pytest.importorskip("emcee")
hosts = pytest.importorskip("fastkam.hosts.emcee")

P = np.linalg.inv([[1.0, 0.8], [0.8, 2.0]])


def log_prob(x):
    return -0.5 * x @ P @ x


def run(steps, *, seed=1, walkers=16, f=log_prob, start=None, **options):
    np.random.seed(seed)
    sampler = hosts.EnsembleSampler(walkers, 2, f, **options)
    start = np.random.normal(size=(walkers, 2)) if start is None else start
    sampler.run_mcmc(start, steps)
    return sampler


def test_emcees_first_example():
    """https://emcee.readthedocs.io, Basic Usage."""
    def log_prob(x, ivar):
        return -0.5 * np.sum(ivar * x**2)

    np.random.seed(42)
    ndim, nwalkers = 5, 100
    ivar = 1.0 / np.random.rand(ndim)
    p0 = np.random.randn(nwalkers, ndim)
    sampler = hosts.EnsembleSampler(nwalkers, ndim, log_prob, args=[ivar])
    state = sampler.run_mcmc(p0, 100)
    sampler.reset()
    sampler.run_mcmc(state, 2000)
    samples = sampler.get_chain(flat=True)
    assert samples.shape == (200_000, 5)
    np.testing.assert_allclose(samples.var(axis=0), 1 / ivar, rtol=0.1)
    assert (sampler.get_autocorr_time(quiet=True) < 30).all()
    assert 0.2 < sampler.acceptance_fraction.mean() < 0.5


def test_the_suite_of_emcee_passes_but_for_long_doubles():
    script = Path(__file__).with_name("emcee_suite.py")
    out = subprocess.run([sys.executable, script, "-q", "-p", "no:warnings"], capture_output=True,
                         text=True).stdout
    failed = [line for line in out.splitlines() if line.startswith("FAILED")]
    assert all("test_longdouble_actually_needed" in line for line in failed), out
    assert int(out.strip().splitlines()[-1].split(" passed")[0].split()[-1]) > 90, out


@pytest.mark.parametrize("sampler", ["am", "ram", "dram"])
def test_the_distribution_is_the_targets(sampler):
    """Means of 12 independent ensembles: t statistics of mean and variance, at 1e-4 each."""
    def move():
        return hosts.AdaptiveMove(sampler)
    found = [run(800, seed=seed, walkers=8, moves=move()).get_chain(discard=200, flat=True)
             for seed in range(12)]
    means = np.array([[some[:, 0].mean(), some[:, 0].var(), (some[:, 0] * some[:, 1]).mean()]
                      for some in found])
    p = stats.ttest_1samp(means, [0.0, 1.0, 0.8]).pvalue
    assert (p > 1e-4).all(), p


@pytest.mark.parametrize("sampler", [
    name for name, kind in sorted(fk.samplers.SAMPLERS.items()) if not kind().needs_gradient])
def test_every_sampler_without_gradients_moves_the_walkers(sampler):
    chain = run(50, walkers=8, moves=hosts.AdaptiveMove(sampler, share=False)).get_chain()
    assert (np.diff(chain, axis=0) != 0).any(axis=2).mean() > 0.05


def test_a_move_that_forgets_the_density_is_caught():
    """The planted fault of the test above: each chain receives twice the log density."""
    found = [run(800, seed=seed, walkers=8, f=lambda x: 2 * log_prob(x))
             .get_chain(discard=200, flat=True) for seed in range(12)]
    assert stats.ttest_1samp([some[:, 0].var() for some in found], 1.0).pvalue < 1e-4


def test_states_are_what_the_function_returned():
    sampler = run(50, f=lambda x: (log_prob(x), 3 * x[0], x[1]), blobs_dtype=[("a", float),
                                                                              ("b", float)])
    chain, logp, blobs = sampler.get_chain(), sampler.get_log_prob(), sampler.get_blobs()
    np.testing.assert_array_equal(logp, [[log_prob(x) for x in row] for row in chain])
    np.testing.assert_array_equal(blobs["a"], 3 * chain[..., 0])
    np.testing.assert_array_equal(blobs["b"], chain[..., 1])
    moved = (np.diff(chain, axis=0) != 0).any(axis=2).mean()
    assert abs(sampler.acceptance_fraction.mean() - moved) < 0.05


@pytest.mark.parametrize("sampler", ["pt", "scout", fk.ModeJumping(sampler="pt")])
def test_a_swap_to_a_point_of_an_earlier_step_has_its_blobs(sampler):
    sampler = run(60, walkers=6, f=lambda x: (log_prob(x), 3 * x[0]),
                  moves=hosts.AdaptiveMove(sampler, share=False))
    np.testing.assert_array_equal(sampler.get_blobs(), 3 * sampler.get_chain()[..., 0])


def test_iterating_is_running():
    a = run(30).get_chain()
    np.random.seed(1)
    sampler = hosts.EnsembleSampler(16, 2, log_prob)
    b = np.array([state.coords.copy() for state in
                  sampler.sample(np.random.normal(size=(16, 2)), iterations=30)])
    np.testing.assert_array_equal(a, b)
    assert sampler.iteration == 30


def test_pools_and_vectors_change_nothing():
    a = run(30).get_chain()
    with ThreadPoolExecutor(2) as pool:
        np.testing.assert_array_equal(a, run(30, pool=pool).get_chain())
    def together(X):
        return [log_prob(x) for x in X]
    np.testing.assert_array_equal(a, run(30, f=together, vectorize=True).get_chain())


def test_a_pickled_sampler_goes_on_as_it_was():
    sampler = run(40)
    copy = pickle.loads(pickle.dumps(sampler))
    for one in (sampler, copy):
        one.run_mcmc(None, 20)
    np.testing.assert_array_equal(sampler.get_chain(), copy.get_chain())


def test_names_and_mixtures_of_moves():
    sampler = run(300, f=lambda p: log_prob(np.array([p["a"], p["b"]])), parameter_names=["a", "b"],
                  moves=[(hosts.AdaptiveMove(), 0.7), (emcee.moves.StretchMove(), 0.3)])
    chain = sampler.get_chain()
    right = [[log_prob(x) for x in row] for row in chain]
    np.testing.assert_allclose(sampler.get_log_prob(), right, rtol=1e-12)
    assert abs(chain[100:].var(axis=(0, 1))[0] - 1) < 0.3


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_adaptation_far_away_is_forgotten(seed):
    """Walkers that start 100 standard deviations away in one direction alone."""
    np.random.seed(seed)
    sampler = hosts.EnsembleSampler(
        16, 3, lambda x: -0.5 * (x[0] ** 2 + x[1] ** 2 + 1e4 * x[2] ** 2))
    sampler.run_mcmc(np.random.normal(size=(16, 3)), 2000)
    chain = sampler.get_chain(discard=1000)
    assert 0.2 < (np.diff(chain, axis=0) != 0).any(axis=2).mean() < 0.5


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_units_do_not_matter(scale):
    unit = np.array([scale, 1.0])
    start = np.random.default_rng(3).normal(size=(16, 2))
    a = run(60, start=start).get_chain()
    b = run(60, start=start * unit, f=lambda x: log_prob(x / unit)).get_chain()
    np.testing.assert_allclose(a, b / unit, rtol=1e-6, atol=1e-9)


def test_walkers_where_the_density_is_zero_find_a_start():
    start = np.random.default_rng(3).normal(size=(16, 2))
    start[0] = -50
    sampler = run(100, start=start, f=lambda x: log_prob(x) if x[0] > -10 else -np.inf)
    assert np.isfinite(sampler.get_log_prob()).all()


def test_errors():
    with pytest.raises(ValueError, match="without gradients"):
        hosts.AdaptiveMove("nuts")
    with pytest.raises(ValueError, match="no warm-up"):
        hosts.AdaptiveMove("am", schedule="finite")
    with pytest.raises(ValueError, match="such as 'perpetual', not 'diminishing'"):
        hosts.AdaptiveMove("kpca", schedule="diminishing")
    with pytest.raises(ValueError, match="sampler must not be 'auto'"):
        hosts.AdaptiveMove("auto")
    with pytest.raises(ValueError, match="share must be False for ParallelTempering"):
        hosts.AdaptiveMove("pt")

    def faulty(x):
        if x[0] > 1:
            raise ZeroDivisionError("of the user")
        return log_prob(x)
    with pytest.raises(ZeroDivisionError, match="of the user"):
        run(200, f=faulty, start=np.random.default_rng(3).uniform(-1, 0, (16, 2)))


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_lmfit():
    """Its documentation's first example of emcee: two exponentials."""
    lmfit = pytest.importorskip("lmfit")
    x = np.linspace(1, 10, 250)
    y = 3.0 * np.exp(-x / 2) - 5.0 * np.exp(-(x - 0.1) / 10.0) + 0.1 * (
        np.random.default_rng(0).normal(size=x.size))
    p = lmfit.Parameters()
    p.add_many(("a1", 4.0), ("a2", 4.0), ("t1", 3.0), ("t2", 3.0, True))

    def residual(p):
        v = p.valuesdict()
        return v["a1"] * np.exp(-x / v["t1"]) + v["a2"] * np.exp(-(x - 0.1) / v["t2"]) - y

    best = lmfit.minimize(residual, p, method="nelder", nan_policy="omit")
    best.params.add("__lnsigma", value=np.log(0.1), min=np.log(0.001), max=np.log(2))
    with hosts.replacing():
        fit = lmfit.minimize(residual, method="emcee", nan_policy="omit", burn=500, steps=2000,
                             nwalkers=40, params=best.params, is_weighted=False, progress=False)
    assert emcee.EnsembleSampler is not hosts.EnsembleSampler
    assert fit.chain.shape == (1500, 40, 5)
    for name, right, error in [("a1", 3.0, 0.4), ("a2", -5.0, 0.4), ("t1", 2.0, 0.5),
                               ("t2", 10.0, 1.0)]:
        assert abs(fit.params[name].value - right) < error
    assert abs(np.exp(fit.params["__lnsigma"].value) - 0.1) < 0.02
