"""Decompositions and products of small matrices: right, and the same bits on every processor."""

import hashlib

import numpy as np
import pytest
from levels import digest_at, every_level

from fastkam._core.linalg.decomposition import (
    cholesky,
    eigen,
    inverse,
    orthonormal,
    product,
    singular,
)
from fastkam._core.numerics import elementary

SIZES = [*range(1, 36), 63, 64, 65, 100, 129]


def matrices(d):
    """Square matrices (d, d) of every kind of spectrum."""
    rng = np.random.default_rng(d)
    A = rng.standard_normal((d, d))
    Q = np.linalg.qr(A)[0]
    return {
        "full": A, "of rank one": A[:, :1] * A[0], "zero": np.zeros((d, d)), "diagonal": np.eye(d),
        "graded": 10.0 ** -np.arange(d)[:, None] * A, "graded upwards": A * 10.0 ** np.arange(d),
        "with a double value": (Q * np.where(np.arange(d) < d // 2, 1.0, 3.0)) @ Q.T,
        "bidiagonal with zeros": np.diag(np.arange(d) % 3.0) + np.diag(np.ones(d - 1), 1),
        "tiny": 1e-200 * A, "huge": 1e200 * A,
    }


@pytest.mark.parametrize("d", SIZES)
def test_singular(d):
    for kind, A in matrices(d).items():
        size = np.abs(A).max() or 1.0
        values, V = singular(A)
        tolerance = 1e-14 * (d + 10)
        np.testing.assert_allclose(V.T @ V, np.eye(d), atol=tolerance, err_msg=kind)
        expected = np.linalg.svd(A / size, compute_uv=False)
        largest = expected[0] or 1.0
        np.testing.assert_allclose(values / size / largest, expected / largest, atol=tolerance,
                                   err_msg=kind)
        B = A / size / largest
        np.testing.assert_allclose((V * (values / size / largest) ** 2) @ V.T, B.T @ B,
                                   atol=tolerance, err_msg=kind)


@pytest.mark.parametrize("d", SIZES)
def test_eigen(d):
    for kind, A in matrices(d).items():
        size = np.abs(A).max() or 1.0
        S = A / size + (A / size).T
        S = S / (np.abs(np.linalg.eigvalsh(S)).max() or 1.0)
        values, V = eigen(S * size)
        tolerance = 1e-14 * (d + 10)
        np.testing.assert_allclose(V.T @ V, np.eye(d), atol=tolerance, err_msg=kind)
        np.testing.assert_allclose(values / size, np.linalg.eigvalsh(S)[::-1], atol=tolerance,
                                   err_msg=kind)
        np.testing.assert_allclose((V * (values / size)) @ V.T, S, atol=tolerance, err_msg=kind)


@pytest.mark.parametrize(
    ("m", "n"), [(1, 1), (5, 1), (8, 8), (9, 5), (40, 33), (100, 64), (300, 7)])
def test_orthonormal(m, n):
    rng = np.random.default_rng(m)
    A = rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-200, 200, n)
    A[:, n // 2] = A[:, 0]          # of rank n - 1
    Q = orthonormal(A)
    np.testing.assert_allclose(Q.T @ Q, np.eye(n), atol=1e-13)
    A = A / np.abs(A).max(axis=0)
    np.testing.assert_allclose(Q @ (Q.T @ A), A, atol=1e-13)


@pytest.mark.parametrize("d", SIZES)
def test_cholesky_and_inverse(d):
    A = np.random.default_rng(d).standard_normal((3, d, 2 * d))
    covs = A @ A.transpose(0, 2, 1)
    L = cholesky(covs)
    np.testing.assert_allclose(L, np.linalg.cholesky(covs), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(L, np.tril(L))
    np.testing.assert_array_equal(cholesky(covs[1]), L[1])
    np.testing.assert_allclose(inverse(L[0]) @ L[0], np.eye(d), atol=1e-10)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (4, 32, 2), (33, 65, 17), (2, 0, 3),
                                   (2, 3, 0), (0, 2, 2)])
def test_product(shape):
    m, n, k = shape
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((2 * m, 3 * k)), rng.standard_normal((n, k))
    for a in (A[::2, ::3], A[:m, :k], np.asfortranarray(A[:m, :k])):
        np.testing.assert_allclose(product(a, B.T), a @ B.T, atol=1e-13)
    stack = rng.standard_normal((4, m, k))
    np.testing.assert_allclose(product(stack, np.stack([B.T] * 4)), stack @ B.T, atol=1e-13)
    with pytest.raises(ValueError, match="do not fit"):
        product(np.ones((2, 3)), np.ones((2, 3)))


@pytest.mark.parametrize("function", [cholesky, eigen, singular, orthonormal])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("d", [1, 2, 9, 40])
def test_matrices_that_are_not_finite(function, bad, d):
    A = np.eye(d)
    A[d // 2, d // 2] = bad
    with pytest.raises(np.linalg.LinAlgError):
        function(A)


def test_not_positive_definite():
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        cholesky(np.array([np.eye(2), [[1.0, 2.0], [2.0, 1.0]]]))


def test_matrices_of_no_dimension():
    assert eigen(np.zeros((0, 0)))[1].shape == (0, 0)
    assert orthonormal(np.zeros((3, 0))).shape == (3, 0)
    assert cholesky(np.zeros((2, 0, 0))).shape == (2, 0, 0)


def test_elementary():
    x = np.asfortranarray(np.random.default_rng(1).standard_normal((3, 4)))
    np.testing.assert_allclose(elementary.exp(x), np.exp(x), rtol=1e-15)
    np.testing.assert_allclose(elementary.log(np.exp(x)), x, rtol=1e-12)
    assert elementary.exp(0.0) == 1.0
    np.testing.assert_array_equal(elementary.log(np.array([0.0, -1.0, np.inf])),
                                  [-np.inf, np.nan, np.inf])


def digest():
    bits = hashlib.sha256()
    for d in SIZES:
        # exact, in whatever order they are computed
        A = np.random.default_rng(d).integers(-99, 100, (d, d)).astype(float)
        for S in (A, A[:, :1] * A[0], np.diag(A[0]) + np.diag(np.ones(d - 1), 1)):
            for part in (*singular(S), *eigen(S + S.T), orthonormal(S), product(S, A),
                         cholesky(product(S, S.T) + np.eye(d) * 10000)):
                bits.update(np.ascontiguousarray(part).tobytes())
    return bits.hexdigest()


@every_level
def test_the_same_bits_on_every_level(level):
    assert digest_at(level, __name__) == digest()
