"""Factors, updates of factors and normal densities against dense NumPy."""

import numpy as np
import pytest

import fastkam as fk
from fastkam._core.linalg import dense as compiled

SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 33, 64, 128]


def problem(d, seed=0):
    """(factor, vector) of moderate condition."""
    rng = np.random.default_rng([d, seed])
    A = rng.standard_normal((d, 2 * d + 2))
    scales = np.exp(rng.uniform(-1, 1, d))
    cov = scales[:, None] * (A @ A.T) / (2 * d) * scales
    return np.linalg.cholesky(cov), rng.standard_normal(d)


@pytest.mark.parametrize("d", SIZES)
def test_factorize(d):
    L, _ = problem(d)
    A = np.asfortranarray(L @ L.T)
    A[np.triu_indices(d, 1)] = np.nan       # is not read
    assert compiled.factorize(A.T[None], 0, 1) == -1
    np.testing.assert_allclose(np.tril(A), L, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-145, 1e145, 1e160, 1e300])
def test_factorize_at_extreme_scales(d, scale):
    """Products of two pivots may over- or underflow."""
    L, _ = problem(d)
    A = np.asfortranarray(scale * (L @ L.T))
    assert compiled.factorize(A.T[None], 0, 1) == -1
    np.testing.assert_allclose(np.tril(A) / np.sqrt(scale), L, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("exponent", [8, 12, 15])
def test_factorize_ill_conditioned(d, exponent):
    """L L' is A up to the rounding of A, whatever its condition."""
    rng = np.random.default_rng([d, exponent])
    U = np.linalg.qr(rng.standard_normal((d, d)))[0]
    A = np.asfortranarray(U * np.logspace(0, -exponent, d) @ U.T)
    A += np.diag(np.full(d, 4 * d * np.finfo(float).eps))
    exact = A.copy()
    assert compiled.factorize(A.T[None], 0, 1) == -1
    L = np.tril(A)
    assert np.abs(L @ L.T - exact).max() < 4 * (d + 2) * np.finfo(float).eps * np.abs(exact).max()


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 4, 8])
def test_factorize_refuses(bad, place):
    A = np.asfortranarray(np.eye(9))
    A[place, place] = bad
    assert compiled.factorize(A.T[None], 0, 1) == 0


def products(d):
    """[(a product, the same by NumPy)] of vectors that begin anywhere."""
    rng, found = np.random.default_rng(d), []
    for triangular in (True, False):
        M = np.asfortranarray(rng.standard_normal((d, d)))
        square = np.tril(M) if triangular else M.copy()
        if triangular:
            M[np.triu_indices(d, 1)] = np.nan       # is not read
        for shift in range(3):
            z, y = rng.standard_normal((2, d + 3))[:, shift:shift + d].copy()
            expected = y + 0.7 * square @ z
            compiled.add_product(y, 0.7, M, z, triangular)
            u = np.full(d + 3, np.nan)[shift:shift + d]
            compiled.transposed_product(u, 0.7, M, z, triangular)
            found += [(y, expected), (u, 0.7 * square.T @ z)]
    return found


@pytest.mark.parametrize("d", [*range(1, 20), 31, 33, 64, 100])
def test_products(d):
    for found, expected in products(d):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * d)


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize(("a", "s"), [(1.0, 1.0), (0.9, 0.1), (1.0, 0.0), (3.0, 1e-8), (0.1, 1e4)])
def test_update(d, a, s):
    L, v = problem(d)
    updated = fk.linalg.cholupdate(L, v, a, s)
    expected = np.linalg.cholesky(a * L @ L.T + s * np.outer(v, v))
    np.testing.assert_allclose(updated, expected, rtol=1e-9, atol=1e-11 * np.sqrt(a + s))
    assert (updated[np.triu_indices(d, 1)] == 0).all()


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("share", [0.1, 0.9, 0.999])
def test_downdate(d, share):
    """A downdate by nearly all that can be taken away undoes the update."""
    L, v = problem(d)
    larger = np.linalg.cholesky(L @ L.T * (1 - share) + np.outer(v, v))
    back = fk.linalg.cholupdate(larger, v, s=-1.0)
    np.testing.assert_allclose(back @ back.T, (1 - share) * L @ L.T, rtol=1e-7,
                               atol=1e-9 * (1 + v @ v))


def test_many_updates_do_not_drift():
    L, _ = problem(6)
    rng, factor, A = np.random.default_rng(1), L, L @ L.T
    for _ in range(3000):
        v = rng.standard_normal(6)
        factor = fk.linalg.cholupdate(factor, v, 0.99, 0.01)
        A = 0.99 * A + 0.01 * np.outer(v, v)
    np.testing.assert_allclose(factor @ factor.T, A, rtol=1e-12, atol=1e-13)


def test_downdate_too_far():
    L, v = problem(4)
    out = L.copy()
    limit = 1 / np.square(np.linalg.solve(L, v)).sum()
    with pytest.raises(ValueError, match="not positive definite"):
        fk.linalg.cholupdate(L, v, s=-1.0001 * limit, out=out)
    np.testing.assert_array_equal(out, L)
    fk.linalg.cholupdate(L, v, s=-0.9999 * limit)


@pytest.mark.parametrize("order", ["C", "F"])
def test_update_in_place(order):
    L, v = problem(5)
    expected = fk.linalg.cholupdate(L, v)
    out = np.array(L, order=order)
    assert fk.linalg.cholupdate(out, v, out=out) is out
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(v, problem(5)[1])     # the vector is not destroyed


@pytest.mark.parametrize("d", SIZES)
def test_log_density(d):
    L, mean = problem(d)
    x = np.random.default_rng(2).standard_normal((20, d))
    cov = L @ L.T
    D = x - mean
    expected = -0.5 * (np.einsum("ij,ij->i", D, np.linalg.solve(cov, D.T).T)
                       + np.linalg.slogdet(2 * np.pi * cov)[1])
    for options in ({"cov": cov}, {"factor": L}, {"factor": L + np.triu(np.full((d, d), 9.0), 1)}):
        values = fk.linalg.mvn_logpdf(x, mean, **options)
        np.testing.assert_allclose(values, expected, rtol=1e-11)
        assert fk.linalg.mvn_logpdf(x[3], mean, **options) == values[3]
    assert fk.linalg.mvn_logpdf(x[:0], mean, cov).shape == (0,)


@pytest.mark.parametrize("scales", [
    [1e-160, 1e-160, 1e160, 1e160], [1e150] * 9, [1e-150] * 9, [1e-30] * 20, [1e-38, 1e38] * 8,
], ids=str)
def test_log_determinant_of_extreme_scales(scales):
    """No product of pivots overflows, or loses digits as a subnormal number."""
    d = len(scales)
    value = fk.linalg.mvn_logpdf(np.zeros(d), np.zeros(d), factor=np.diag(scales))
    expected = -0.5 * d * np.log(2 * np.pi) - np.log(scales).sum()
    np.testing.assert_allclose(value, expected, rtol=1e-13)


def test_log_density_of_infinity():
    """No matter which coordinate: in the solution 0 meets infinity."""
    for x in ([np.inf, 0.0], [0.0, np.inf], [-np.inf, np.inf]):
        assert fk.linalg.mvn_logpdf(x, [0.0, 0.0], np.eye(2)) == -np.inf
    values = fk.linalg.mvn_logpdf([[np.inf, 0.0]] * 9 + [[np.inf, np.nan]], [0.0, 0.0], np.eye(2))
    np.testing.assert_array_equal(values, [-np.inf] * 9 + [np.nan])


def test_log_density_of_nan():
    values = fk.linalg.mvn_logpdf([[0.0, np.nan], [0.0, 0.0]], [0.0, 0.0], np.eye(2))
    assert np.isnan(values[0])
    assert np.isfinite(values[1])


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: fk.linalg.mvn_logpdf([0.0], [0.0]), TypeError, "cov and factor"),
    (lambda: fk.linalg.mvn_logpdf([0.0], [0.0], [[1.0]], factor=[[1.0]]), TypeError, "cov and fac"),
    (lambda: fk.linalg.mvn_logpdf([0.0], [], [[1.0]]), ValueError, "mean"),
    (lambda: fk.linalg.mvn_logpdf([0.0], [np.inf], [[1.0]]), ValueError, "mean.*inf"),
    (lambda: fk.linalg.mvn_logpdf([0.0, 1.0], [0.0], [[1.0]]), ValueError, r"x .*\(2,\)"),
    (lambda: fk.linalg.mvn_logpdf("x", [0.0], [[1.0]]), TypeError, "x .*'x'"),
    (lambda: fk.linalg.mvn_logpdf([0.0], [0.0], [[-1.0]]), ValueError, "cov.*-1"),
    (lambda: fk.linalg.mvn_logpdf([0.0], [0.0], [1.0]), ValueError, r"cov.*\(1,\)"),
    (lambda: fk.linalg.mvn_logpdf([0.0, 0.0], [0.0, 0.0], [[1, 0.5], [0, 1]]), ValueError, "symm"),
    (lambda: fk.linalg.mvn_logpdf([0.0], [0.0], factor=[[0.0]]), ValueError, "factor.*0.0"),
    (lambda: fk.linalg.cholupdate([[1.0]], []), ValueError, "v must"),
    (lambda: fk.linalg.cholupdate([[1.0]], [1.0, 2.0]), ValueError, r"L .*\(1, 1\)"),
    (lambda: fk.linalg.cholupdate([[-2.0]], [1.0]), ValueError, "L .*-2"),
    (lambda: fk.linalg.cholupdate([[1.0]], [1.0], a=0), ValueError, "a must.*0"),
    (lambda: fk.linalg.cholupdate([[1.0]], [1.0], s=np.nan), ValueError, "s must.*nan"),
    (lambda: fk.linalg.cholupdate([[1.0]], [1.0], out=[[1.0]]), TypeError, "out"),
    (lambda: fk.linalg.cholupdate([[1.0]], [1.0], out=np.ones((1, 1), int)), TypeError, "out"),
])
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()
