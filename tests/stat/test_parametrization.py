"""Posteriors that are known do not depend on the coordinates in which they are sampled.

Exact draws of a conjugate posterior, mapped to z, are moved by a random walk on the density of z;
their distribution must stay the same. The false-alarm rate of each test is 1e-4 (Bonferroni over
features); the seeds are fixed, so that a run either always passes or always fails.
"""

import numpy as np
import pytest
from runs import sample
from scipy import stats
from twins.density import TWINS, density_twins

import fastkam as fk
from fastkam.testing import compare, replicate

FALSE_ALARM = 1e-4
SEEDS = range(3)
N = 20_000


def rate(x):
    return 7 * np.log(x[0]) - 3 * x[0]


def counts(x):
    return np.array([3, 1, 2]) @ np.log(x)


# the problem, and exact draws (n, n_x) of its posterior from a generator
POSTERIORS = {
    "log": (fk.Problem(rate, {"r": stats.gamma(2)}),
            lambda n, rng: rng.gamma(9, 1 / 4, (n, 1))),
    "log, moved": (fk.Problem(lambda x: -2 * x[0], {"r": stats.expon(-1.5, 2)}),
                   lambda n, rng: -1.5 + rng.exponential(1 / 2.5, (n, 1))),
    "upper": (fk.Problem(lambda x: rate(-x) + np.log(-x[0]) + x[0], bounds={"x": (None, 0)}),
              lambda n, rng: -rng.gamma(9, 1 / 4, (n, 1))),
    "interval": (fk.Problem(lambda x: 3 * np.log(x[0]) + 2 * np.log1p(-x[0]),
                            {"p": stats.beta(1.5, 2.5)}),
                 lambda n, rng: rng.beta(4.5, 4.5, (n, 1))),
    "interval, flat": (fk.Problem(lambda x: np.log(x[0] + 1) + np.log(3 - x[0]),
                                  bounds=[(-1, 3)]),
                       lambda n, rng: -1 + 4 * rng.beta(2, 2, (n, 1))),
    "hard bounds": (fk.Problem(lambda x: 3 * np.log(x[0]) + 2 * np.log1p(-x[0]),
                               {"p": stats.beta(1.5, 2.5)}, transforms=False),
                    lambda n, rng: rng.beta(4.5, 4.5, (n, 1))),
    "simplex": (fk.Problem(counts, {"w": stats.dirichlet([1.5, 2, 0.8])}),
                lambda n, rng: rng.dirichlet([4.5, 3, 2.8], n)),
    "ordered": (fk.Problem(lambda x: -0.5 * x @ x, {"c": (stats.norm(), 3)},
                           transforms={"c": "ordered"}),
                lambda n, rng: np.sort(rng.normal(scale=np.sqrt(0.5), size=(n, 3)), axis=1)),
    "ordered, positive": (fk.Problem(lambda x: -x.sum(), {"c": (stats.expon(), 3)},
                                     transforms={"c": "ordered"}),
                          lambda n, rng: np.sort(rng.exponential(0.5, (n, 3)), axis=1)),
    "correlation": (fk.Problem(lambda x: 2 * np.log(x[[0, 4, 8]]).sum(), {"L": fk.LKJ(3, 2.0)}),
                    lambda n, rng: fk.LKJ(3, 3.0).rvs(n, rng).reshape(n, 9)),
    "scipy's": (fk.Problem(lambda x: -0.5 * x[0] ** 2, {"x": stats.maxwell()}),
                lambda n, rng: stats.maxwell(scale=np.sqrt(0.5)).rvs((n, 1), random_state=rng)),
}


def moved(name, target=None, seed=0):
    problem, exact = POSTERIORS[name]
    z = problem.unconstrain(exact(N, np.random.default_rng(100 + seed)))
    after = replicate("rwm", target or problem.target(), z, 4, seed=seed)
    return compare(z, after, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", POSTERIORS)
def test_the_posterior_stays(name, seed):
    found = moved(name, seed=seed)
    assert found.p_value > FALSE_ALARM, found
    assert found.moved > 0.2


@pytest.fixture(scope="module")
def twin_class(tmp_path_factory):
    return density_twins(tmp_path_factory)


@pytest.mark.parametrize("name", TWINS)
def test_planted_mistakes_are_detected(name, twin_class):
    twin = TWINS[name]
    problem, _ = POSTERIORS[twin.spoils]
    target = twin_class(name)(
        problem.inner(gradient=False), problem.coordinates.rows, problem.factors)
    found = moved(twin.spoils, target)
    assert found.p_value < FALSE_ALARM, found


@pytest.mark.parametrize("name", [name for name in POSTERIORS if name != "upper"])
def test_chains_have_the_posterior(name):
    """Means and squares of the parameters from the default sampler: within 5 standard errors."""
    problem, exact = POSTERIORS[name]
    x0 = problem.constrain(problem.unconstrain(exact(4, np.random.default_rng(1))))
    result = sample(problem, x0, draws=10_000, seed=11, progress=False)
    known = exact(400_000, np.random.default_rng(2))
    for power in (1, 2):
        found = fk.diagnostics.summary(result.draws**power, result.state.layout.labels)
        error = np.hypot(np.nan_to_num(found["mcse_mean"]), (known**power).std(axis=0) / 600)
        off = np.abs(found["mean"] - (known**power).mean(axis=0))
        assert (off <= 5 * error + 1e-12).all(), (off / error)
