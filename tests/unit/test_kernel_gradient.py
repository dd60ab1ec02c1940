"""The fused kernel pass against matrices built in full, and the Matern table against SciPy."""

import hashlib

import numpy as np
import pytest
from levels import at_level, digest_at, every_level
from runs import sample
from scipy.special import gamma, kve

import fastkam as fk
from fastkam.kernels import Gaussian, Linear, Matern, proposal_covariance
from reference.kernels import gradient

KERNELS = [Linear(), Gaussian(1.7), Gaussian(0.3), Matern(1.0, 1.01), Matern(2.0, 1.5),
           Matern(0.5, 2.5), Matern(3.0, 4.0), Matern(1.0, 10.0), Matern(2.0, 23.7),
           Matern(1.0, 50.0)]
COUNTS = [0, 1, 7, 8, 9, 50, 1000, 1030]     # the last: a few points beyond whole chunks


def points(d, n, seed=0):
    """(y, z): some of z stand at y itself, and some far away."""
    rng = np.random.default_rng([d, n, seed])
    y = rng.standard_normal(d)
    z = y + rng.standard_normal((n, d)) / np.sqrt(d)
    z[3::11] = y
    z[5::13] += 1e3
    return y, z


def dense(kernel, y, z):
    """M H M' with H built."""
    n = len(z)
    M = 2 * gradient(kernel, getattr(kernel, "length", None), y, z).T
    return M @ (np.eye(n) - 1 / n) @ M.T


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_covariance(kernel, n):
    for d in (*range(1, 18), 24, 31, 32, 33) if n < 1000 else (1, 2, 3, 8, 13, 33):
        y, z = points(d, n)
        found = proposal_covariance(y, z, kernel, step_size=0.7, noise=0.3)
        spread = 0.7**2 * dense(kernel, y, z) if n else np.zeros((d, d))
        scale = 1 + np.abs(spread).max()
        np.testing.assert_allclose(found, 0.09 * np.eye(d) + spread, atol=2e-12 * scale, rtol=0)
        np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("kernel", KERNELS[1:], ids=str)
def test_moments(kernel):
    y, z = points(5, 100)
    M = 2 * gradient(kernel, kernel.length, y, z)
    Q, s = kernel.compiled().moments(y, z)
    np.testing.assert_allclose(Q, M.T @ M, rtol=1e-11, atol=1e-12 * np.abs(M).max() ** 2)
    np.testing.assert_allclose(s, M.sum(axis=0), atol=1e-11 * np.abs(M).max())


@pytest.mark.parametrize("kernel", KERNELS[1:], ids=str)
def test_gradient_by_differences(kernel):
    """One point z: s is 2 grad_y k(y, z), with k from the kernel's own matrix."""
    y, z = np.array([0.3, -0.2, 0.5]), np.array([0.7, 0.1, 0.1])
    h, slope = 1e-5, []
    for step in h * np.eye(3):
        K = kernel.matrix(np.array([y + step, y - step, z]), kernel.length)
        slope.append((K[0, 2] - K[1, 2]) / (2 * h))
    np.testing.assert_allclose(kernel.compiled().moments(y, [z])[1], 2 * np.array(slope), rtol=1e-7)


def matern_weight(v, u):
    """c_v u^m K_m(u), m = v - 1, with its series where K_m overflows."""
    m = v - 1
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        value = 2 ** (1 - v) / gamma(v) * (u**m * kve(m, u)) * np.exp(-u)
    series = 0.5 / m * (1 - u**2 / (4 * (m - 1))) if m > 1 else value
    return np.where(np.isfinite(value) & (value > 0), value, series)


@pytest.mark.parametrize("v", [1.01, 1.2, 1.5, 1.99, 2.0, 2.01, 2.5, 3.0, 4.0, 7.3, 10.0, 10.01,
                               20.0, 33.3, 50.0])
def test_matern_table(v):
    """Relative error 2e-13 from u = 1e-9 to 700, besides that of exp(-u) for a rounded u."""
    rng = np.random.default_rng(1)
    cells = (2.0 ** np.arange(-24, 10)[:, None] * (1 + np.arange(8) / 8)).ravel()
    u = np.concatenate([np.geomspace(1e-9, 700, 2000), rng.uniform(0, 60, 1000), cells,
                        np.nextafter(cells, 0)])
    u = np.unique(u[(u >= 1e-9) & (u <= 700)])
    length = np.sqrt(2 * v)     # so that u is the distance
    function = Matern(length, v).compiled()
    found = np.array([function.moments([0.0], [[r]])[1][0] / r for r in u]) / 2
    # the weight is 2 (2 v / l^2) c_v u^m K_m(u), and 2 v / l^2 = 1
    np.testing.assert_array_less(np.abs(found / matern_weight(v, u) - 1), 2e-13 + 4e-16 * u)


def test_another_scaling_of_the_argument_gives_another_weight():
    """The order falls by one, the argument stays: with its own argument the weight is another."""
    r, v, length = 2.0, 4.0, 2.0
    found = Matern(length, v).compiled().moments([0.0], [[r]])[1][0] / r / 2
    own = (2 * v / length**2) * matern_weight(v, np.sqrt(2 * (v - 1)) * r / length)
    right = (2 * v / length**2) * matern_weight(v, np.sqrt(2 * v) * r / length)
    assert abs(found / right - 1) < 1e-13
    assert abs(found / own - 1) > 0.05


def digest():
    """A hash of the bits of many passes."""
    bits = hashlib.sha256()
    for kernel in KERNELS:
        function = kernel.compiled()
        for d in (1, 2, 3, 5, 8, 16, 33):
            for n in (0, 1, 7, 8, 9, 50, 300):
                for part in function.moments(*points(d, n)):
                    bits.update(np.ascontiguousarray(part).tobytes())
    return bits.hexdigest()


@every_level
def test_the_same_bits_on_every_level(level):
    assert digest_at(level, __name__) == digest()


def test_unknown_level():
    run = at_level("avx1024", "import fastkam.kernels as k; k.Gaussian(1.0).compiled()")
    assert run.returncode
    assert "FASTKAM_LEVEL='avx1024'" in run.stderr


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("coordinate", [1e160, -1e308, np.inf, -np.inf, np.nan, -np.nan])
def test_extreme_points(kernel, coordinate):
    """Nothing crashes; where the distance overflows, the weight of a decaying kernel is 0."""
    y, z = points(3, 20)
    y[1] = coordinate
    Q, s = kernel.compiled().moments(y, z)
    if np.isfinite(coordinate) and not isinstance(kernel, Linear):
        assert (Q == 0).all()
        assert (s == 0).all()
    z[4, 0] = coordinate
    kernel.compiled().moments(np.zeros(3), z)


@pytest.mark.parametrize("kernel", KERNELS[:6], ids=str)
@pytest.mark.parametrize("step_size", [1e200, 1e-300])
def test_a_covariance_that_overflows_is_a_rejection(kernel, step_size):
    sampler = fk.KernelAdaptiveMetropolis(kernel=kernel, subsample=10, step_size=step_size)
    result = sample(lambda x: -0.5 * x @ x, [0.1, 0.2], sampler=sampler, tune=300, draws=50,
                    chains=1, seed=1, progress=False, diagnose=False)
    assert np.isfinite(result.draws).all()
    assert np.isfinite(result.states[0]["kernel.log_nu"])


def test_median_length_is_refused():
    with pytest.raises(ValueError, match="median"):
        proposal_covariance([0.0], [[1.0]], Gaussian("median"))
