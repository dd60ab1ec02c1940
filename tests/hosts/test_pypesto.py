"""The sampler of pyPESTO, on its documentation's examples."""

import numpy as np
import pytest
from scipy import stats

pypesto = pytest.importorskip("pypesto")
host = pytest.importorskip("fastkam.hosts.pypesto")
sample = pytest.importorskip("pypesto.sample")

pytestmark = pytest.mark.filterwarnings("ignore")  # of pyPESTO and its packages


def neg_log_posterior(x):
    return 0.5 * float((np.asarray(x) - [1.0, 2.0]) @ [[2.0, 0.5], [0.5, 1.0]]
                       @ (np.asarray(x) - [1.0, 2.0]))


def gradient(x):
    return np.array([[2.0, 0.5], [0.5, 1.0]]) @ (np.asarray(x) - [1.0, 2.0])


@pytest.mark.parametrize("options", [{}, {"sampler": "ram"}, {"sampler": "nuts", "chains": 2}])
def test_sample(options):
    problem = pypesto.Problem(pypesto.Objective(fun=neg_log_posterior, grad=gradient),
                              lb=[-10, -10], ub=[10, 10], x_names=["a", "b"])
    sampler = host.FastkamSampler(seed=1, **options)
    found = sample.sample(problem, 3001, sampler, x0=np.array([0.5, 0.5])).sample_result
    n = options.get("chains", 4) * -(-3001 // options.get("chains", 4))
    assert found.trace_x.shape == (1, n, 2)
    assert found.trace_neglogpost.shape == (1, n)
    np.testing.assert_allclose(found.trace_neglogpost[0, ::100],
                               [neg_log_posterior(x) for x in found.trace_x[0, ::100]])
    np.testing.assert_allclose(found.trace_x[0].mean(axis=0), [1, 2], atol=0.25)
    cov = np.linalg.inv([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(np.cov(found.trace_x[0].T), cov, atol=0.25)
    assert sampler.result.names == ["a", "b"]
    sampler.sample(400)
    assert sampler.get_samples().trace_x.shape[1] > n


def test_bounds_and_fixed_parameters():
    """Two modes, one of them outside of the bounds; a parameter that is fixed at 1."""
    def objective(x):
        return -np.logaddexp(stats.norm.logpdf(x[0], -3, 0.5), stats.norm.logpdf(x[0], 3, 0.5)) + (
            0.5 * x[1] ** 2 / x[2] ** 2)
    problem = pypesto.Problem(pypesto.Objective(fun=objective), lb=[0, -5, 0.5], ub=[10, 5, 2],
                              x_fixed_indices=[2], x_fixed_vals=[1.0])
    sampler = host.FastkamSampler(seed=1)
    found = sample.sample(problem, 4000, sampler, x0=np.array([2.5, 0.0])).sample_result.trace_x[0]
    assert found.shape == (4000, 2)
    assert abs(found[:, 0].mean() - 3) < 0.15
    assert found[:, 0].min() > 0
    assert abs(found[:, 1].std() - 1) < 0.15


def test_errors():
    with pytest.raises(ValueError, match="which pyPESTO gives"):
        host.FastkamSampler(draws=3)
    sampler = host.FastkamSampler()
    with pytest.raises(ValueError, match="beta must be 1"):
        sampler.sample(10, beta=0.5)
    with pytest.raises(ValueError, match="no samples before"):
        sampler.get_samples()
