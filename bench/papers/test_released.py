"""What runs as released differs from fastkam's samplers in what it says, and in nothing else."""

import numpy as np

import fastkam as fk
from bench.papers.titsias2019 import released as titsias2019

COVARIANCE = [[2.0, 0.7], [0.7, 0.5]]


def run(sampler, **options):
    target = fk.targets.Gaussian([0.0, 1.0], COVARIANCE)
    return fk.sample(target, np.ones(2), sampler=sampler, chains=2, seed=3, progress=False,
                     **{"tune": 400, "draws": 300} | options)


def assert_close(one, other):
    np.testing.assert_allclose(one.draws, other.draws, rtol=1e-6, atol=1e-6)


class WithTheMaskOfThePaper(titsias2019.AdaptiveMetropolis):
    def change(self, v, w):
        return self.L @ np.tril(np.outer(w, w) - np.eye(self.d))


def test_the_cholesky_factor():
    schedule = fk.schedules.Finite(gain=titsias2019.AdaptiveMetropolis().default_gain(2))
    paper = fk.CholeskyAdaptiveMetropolis(cov=1.0, delta=0.1 / np.sqrt(2), scale_gain=0.01,
                                          mean_gain=0.01)
    expected = run(paper, schedule=schedule)
    assert_close(run(WithTheMaskOfThePaper()), expected)
    assert not np.allclose(run(titsias2019.AdaptiveMetropolis()).draws, expected.draws)
