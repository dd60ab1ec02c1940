"""KAM with n x n matrices, for few points: against the d x d form, and the moments of its draws."""

import hashlib

import numpy as np
import pytest
from forms import InDimensions, InPoints
from levels import digest_at, every_level
from runs import sample
from scipy.stats import norm

import fastkam as fk
from fastkam._core.engine.chain import ChainState
from fastkam._core.engine.group import Group
from fastkam._core.linalg.lanes import blocked
from fastkam.density.forms import as_target
from fastkam.kernels import Gaussian, Linear, Matern, proposal_covariance
from fastkam.linalg import mvn_logpdf

KERNELS = [Linear(), Gaussian(3.0), Gaussian(0.5), Matern(2.0, 1.5), Matern(3.0, 4.0),
           Matern(2.0, 23.7)]
SIZES = [(4, 1), (8, 3), (12, 11), (17, 8), (40, 20), (64, 50), (130, 33)]      # d, n


def compiled(cls, kernel, z, *, step_size=0.8, noise=0.3):
    """A compiled kernel whose subsample is z."""
    n, d = z.shape
    found = cls(kernel=kernel, subsample=n, history_size=max(2, 2 * n), step_size=step_size,
                gamma=noise).build(np.zeros(d))
    found.restore(found.state() | {"z": blocked(z), "n": np.array(n)})
    return found


def points(d, n, *, at=0.0, seed=0):
    """(x, y, z), round a point at distance `at` from the origin."""
    rng = np.random.default_rng([d, n, seed])
    z = rng.standard_normal((n, d)) / np.sqrt(d)
    x, y = rng.standard_normal((2, d)) / np.sqrt(d)
    return at + x, at + y, at + z


def close_pairs(z):
    """Half of the points stand 1e-7 from others."""
    half = len(z) // 2
    z[half : 2 * half] = z[:half] + 1e-7 * z[half : 2 * half]


def outliers(z):
    z[::3] *= 1e4


def log_q(x, y, z, kernel, step_size=0.8, noise=0.3):
    """Return the log density of a proposal, from public covariances and densities."""
    R_x, R_y = (proposal_covariance(at, z, kernel, step_size=step_size, noise=noise)
                for at in (x, y))
    return float(mvn_logpdf(x, y, R_y) - mvn_logpdf(y, x, R_x))


@pytest.mark.parametrize("spoil", [None, close_pairs, outliers])
@pytest.mark.parametrize("at", [0.0, 1e6])
@pytest.mark.parametrize(("d", "n"), SIZES)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_both_forms_of_the_covariance_have_the_same_ratio(kernel, d, n, at, spoil):
    x, y, z = points(d, n, at=at)
    if spoil is not None:
        z -= at
        spoil(z)
        z += at
    # the largest variance of R is 100 times the smallest; both forms lose digits beyond
    spread = proposal_covariance(np.stack([x, y]), z, kernel, step_size=1.0, noise=0.0)
    step_size = 3 / np.sqrt(1e-300 + np.linalg.eigvalsh(spread).max())
    forms = [compiled(cls, kernel, z, step_size=step_size).log_q(x, y)
             for cls in (InDimensions, InPoints)]
    assert forms[1] == pytest.approx(forms[0], rel=1e-9, abs=1e-9)
    assert forms[1] == pytest.approx(log_q(x, y, z, kernel, step_size), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kernel", [Gaussian(3.0), Matern(2.0, 1.5)], ids=str)
def test_many_states(kernel):
    """Steps, sizes and scales of nu and gamma at random."""
    rng = np.random.default_rng(3)
    for seed in range(200):
        d = int(rng.integers(1, 60))
        n = int(rng.integers(1, 60))
        x, y, z = points(d, n, seed=seed)
        y = x + 10 ** rng.uniform(-4, 1) * (y - x)
        scales = {"step_size": 10 ** rng.uniform(-2, 2), "noise": 10 ** rng.uniform(-1, 1)}
        found = compiled(InPoints, kernel, z, **scales).log_q(x, y)
        assert found == pytest.approx(log_q(x, y, z, kernel, **scales), rel=1e-9, abs=1e-9)


def proposals(sampler, state, x, n):
    """n proposals (n, d) from x, none of which is accepted."""
    looked = []

    def logp(y):
        looked.append(y.copy())
        return 0.0 if len(looked) == 1 else -np.inf

    chain = ChainState(sampler, np.random.PCG64(1), x)
    group = Group(as_target(logp, len(x)).bind(), [chain], (1.0, 0.0, 0.0, 1.0, 0, 0, 0.0))
    group.start()
    sampler.restore(state)
    group.run(n)
    return np.array(looked[1:])


def worst(draws, center, R):
    """The largest deviation of the draws' first two moments from N(center, R), as a z-score."""
    e = np.linalg.solve(np.linalg.cholesky(R), (draws - center).T)
    n, d = draws.shape
    z = np.sqrt(n) * (e @ e.T / n - np.eye(d)) / np.sqrt(1 + np.eye(d))
    return max(np.abs(z).max(), np.sqrt(n) * np.abs(e.mean(axis=1)).max())


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0), Matern(2.0, 1.5)], ids=str)
def test_draws_have_the_covariance(kernel):
    """False alarms: 1e-4. The covariance without the centering H, or without noise, is refused."""
    d, n = 9, 6
    x, _, z = points(d, n)
    z += 0.3                # so that H matters
    found = compiled(InPoints, kernel, z, step_size=1.0)
    draws = proposals(found, found.state(), x, 20_000)
    assert len(draws) == 20_000
    R = proposal_covariance(x, z, kernel, noise=0.3)
    bound = norm.isf(1e-4 / (d * (d + 3)))
    assert worst(draws, x, R) < bound
    Q, _ = kernel.compiled().moments(x, z)
    assert worst(draws, x, 0.09 * np.eye(d) + Q) > bound
    assert worst(draws, x, R + 0.01 * np.eye(d)) > bound


def digest():
    """A hash of the bits of some chains."""
    bits = hashlib.sha256()
    for kernel in (Linear(), Gaussian(), Matern("median", 1.5), Matern(2.0, 23.7)):
        for d, n in ((4, 1), (9, 8), (33, 25)):
            sampler = InPoints(kernel=kernel, subsample=n, renewal=0.1)
            result = sample(fk.targets.Gaussian(np.zeros(d), np.ones(d)), np.zeros(d),
                            sampler=sampler, tune=60, draws=60, chains=1, seed=1, progress=False)
            bits.update(result.draws.tobytes())
            bits.update(result.states[0]["kernel.log_nu"].tobytes())
    return bits.hexdigest()


@every_level
def test_the_same_bits_on_every_level(level):
    assert digest_at(level, __name__) == digest()


@pytest.mark.parametrize("step_size", [1e200, 1e-300])
def test_a_covariance_that_overflows_is_a_rejection(step_size):
    sampler = InPoints(kernel=Gaussian(1.0), subsample=4, step_size=step_size)
    result = sample(lambda x: 0.0, 0.1 * np.arange(6), sampler=sampler, tune=300, draws=50,
                    chains=1, seed=1, progress=False, diagnose=False)
    assert np.abs(result.draws).max() < 1e3
    assert np.isfinite(result.states[0]["kernel.log_nu"])


@pytest.mark.parametrize(("subsample", "d", "few"), [
    (0, 3, True), (0, 2, False), (1, 4, True), (7, 8, True), (8, 8, False), (100, 75, True),
    (200, 145, False), (200, 146, True),
])
def test_the_form_of_the_covariance_depends_on_the_parameters_only(subsample, d, few):
    assert fk.KernelAdaptiveMetropolis(subsample=subsample).few_points(d) is few
    assert fk.CyclicalKernelAdaptiveMetropolis(subsample=subsample).few_points(d) is few
