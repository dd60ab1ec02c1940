"""Many densities, covariances and look-ups in one call: values, broadcasting, out=, threads=."""

import hashlib

import numpy as np
import pytest
from levels import digest_at, every_level
from scipy.stats import multivariate_normal
from test_linalg import products

import fastkam as fk
from fastkam.kernels import Gaussian, proposal_covariance

RNG = np.random.default_rng(5)


def covariances(*shape):
    A = RNG.standard_normal((*shape, 2 * shape[-1]))
    return A @ A.swapaxes(-1, -2) / shape[-1]


@pytest.mark.parametrize("d", [1, 2, 5, 8, 19, 70])
def test_densities_of_many_points(d):
    cov, mean, x = covariances(d), RNG.standard_normal(d), RNG.standard_normal((45, d))
    found = fk.linalg.mvn_logpdf(x, mean, cov)
    np.testing.assert_allclose(found, multivariate_normal(mean, cov).logpdf(x), rtol=1e-9)
    for i in (0, 9, 44):    # alone or among seven others: the same bits
        assert fk.linalg.mvn_logpdf(x[i], mean, cov) == found[i]


@pytest.mark.parametrize(("points", "means", "covs"), [
    ((7, 1), (1, 4), ()), ((), (), (6,)), ((3, 1), (), (5,)), ((1,), (3,), (2, 1)),
    ((0,), (), (1,)),
])
def test_densities_are_broadcast(points, means, covs):
    d = 3
    x, mean = RNG.standard_normal((*points, d)), RNG.standard_normal((*means, d))
    cov = covariances(*covs, d)
    shape = np.broadcast_shapes(points, means, covs)
    expected = np.empty(shape)
    for i in np.ndindex(shape):
        expected[i] = fk.linalg.mvn_logpdf(
            np.broadcast_to(x, (*shape, d))[i], np.broadcast_to(mean, (*shape, d))[i],
            np.broadcast_to(cov, (*shape, d, d))[i])
    out = np.empty(shape)
    assert fk.linalg.mvn_logpdf(x, mean, cov, out=out, threads=3) is out
    np.testing.assert_array_equal(out, expected)
    factor = np.linalg.cholesky(cov)
    np.testing.assert_allclose(fk.linalg.mvn_logpdf(x, mean, factor=factor), expected, rtol=1e-12)


def test_covariances_at_many_points():
    y, z = RNG.standard_normal((20, 4)), RNG.standard_normal((30, 4))
    out = np.empty((20, 4, 4))
    assert proposal_covariance(y, z, Gaussian(1.5), out=out, threads=2) is out
    for i in range(20):
        np.testing.assert_array_equal(out[i], proposal_covariance(y[i], z, Gaussian(1.5)))
    by_chain = proposal_covariance(y.reshape(4, 5, 4), z, Gaussian(1.5))
    np.testing.assert_array_equal(by_chain, out.reshape(4, 5, 4, 4))


@pytest.mark.parametrize("d", [2, 20])
def test_look_ups_in_threads(d):
    points, x = RNG.standard_normal((300, d)), RNG.standard_normal((5000, d))
    bank = fk.CholeskyBank(points, np.broadcast_to(np.eye(d), (300, d, d)))
    out = np.empty(5000, np.int64)
    assert bank.lookup(x, out=out, threads=4) is out
    np.testing.assert_array_equal(out, bank.lookup(x))


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: fk.linalg.mvn_logpdf([0.0], [0.0], [[1.0]], threads=0), ValueError, "threads .*0"),
    (lambda: fk.linalg.mvn_logpdf(np.zeros((2, 1)), np.zeros((3, 1)), [[1.0]]), ValueError,
     r"broadcast.*\(2,\), \(3,\), \(\)"),
    (lambda: fk.linalg.mvn_logpdf([0.0], [0.0], [[[1.0]], [[-3.0]]]), ValueError, r"cov\[1\].*-3"),
    (lambda: fk.linalg.mvn_logpdf([0.0], [0.0], factor=[[[1.0]], [[-3.0]]]), ValueError,
     r"factor\[1\].*-3"),
    (lambda: fk.linalg.mvn_logpdf([0.0], [0.0], [[1.0]], out=np.empty(1)), TypeError, "out must"),
    (lambda: fk.linalg.mvn_logpdf(np.zeros(2), np.zeros(2), [np.eye(2), [[1, 2.0], [0, 1]]]),
     ValueError, r"cov\[1\] must be symmetric, not 2.0 at index \(0, 1\)"),
    (lambda: proposal_covariance([[np.nan]], [[1.0]], Gaussian(1.0)), ValueError, "y .*nan"),
    (lambda: proposal_covariance([1.0], [[1.0]], Gaussian(1.0), out=[0.0]), TypeError, "out must"),
    (lambda: fk.CholeskyBank([[0.0]], [[[1.0]]]).lookup([0.0], threads=-1), ValueError, "threads"),
])
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


def digest():
    """A hash of the bits of factors, solutions, updates, densities and products."""
    bits = hashlib.sha256()
    for d in (*range(1, 20), 31, 32, 33, 64, 65, 66, 100, 129, 160):
        rng = np.random.default_rng(d)
        A = rng.integers(-9, 10, (d, 2 * d)).astype(float)
        cov = A @ A.T + np.eye(d)       # exact, in whatever order BLAS adds
        x, v = rng.integers(-9, 10, (9, d)).astype(float), rng.integers(-3, 4, d).astype(float)
        L = fk.linalg.cholesky("cov", cov, d)
        bits.update(L.tobytes())
        bits.update(fk.linalg.mvn_logpdf(x, v, cov).tobytes())
        for s in (0.7, -0.4 / (1 + v @ v)):
            bits.update(fk.linalg.cholupdate(L, v, s=s).tobytes())
        for found, _ in products(d):
            bits.update(found.tobytes())
    return bits.hexdigest()


@every_level
def test_the_same_bits_on_every_level(level):
    assert digest_at(level, __name__) == digest()
