"""Every public function of arrays takes all usual forms of arrays, and refuses others alike."""

import numpy as np
import pytest

import fastkam as fk
from fastkam.kernels import Gaussian, proposal_covariance

RNG = np.random.default_rng(8)
A = RNG.standard_normal((5, 3, 6)).astype(np.float32)
COVS = A @ A.swapaxes(1, 2)
FACTORS = np.linalg.cholesky(COVS)
X, Z = RNG.standard_normal((2, 5, 3)).astype(np.float32)
BANK = fk.CholeskyBank(Z, FACTORS)

# the function, its arrays in single precision, the shape and the type of the result
FUNCTIONS = {
    "density": (fk.linalg.mvn_logpdf, [X, Z, COVS], (5,), float),
    "density of factors": (lambda x, mean, L, **options: fk.linalg.mvn_logpdf(
        x, mean, factor=L, **options), [X, Z, FACTORS], (5,), float),
    "update": (fk.linalg.cholupdate, [FACTORS, X], (5, 3, 3), float),
    "covariance": (lambda y, z, **options: proposal_covariance(y, z, Gaussian(1.5), **options),
                   [X, Z], (5, 3, 3), float),
    "look-up": (BANK.lookup, [X], (5,), np.int64),
    "look-up in a metric": (fk.CholeskyBank(Z, FACTORS, metric=COVS[0].astype(float)).lookup, [X],
                            (5,), np.int64),
}

every_function = pytest.mark.parametrize(
    ("function", "given", "shape", "dtype"), FUNCTIONS.values(), ids=FUNCTIONS)


def read_only(array):
    array = array.astype(float)
    array.flags.writeable = False
    return array


@every_function
@pytest.mark.parametrize("form", [
    lambda array: array,
    lambda array: array.astype(">f8"),
    lambda array: array.astype(object),
    lambda array: np.asfortranarray(array, float),
    lambda array: array.astype(float).swapaxes(-1, -2).copy().swapaxes(-1, -2),
    lambda array: np.repeat(array.astype(float), 2, axis=0)[::2],
    lambda array: array.astype(float)[::-1].copy()[::-1],
    read_only, np.ndarray.tolist,
], ids=["single", "big-endian", "object", "Fortran", "columns", "strided", "reversed", "read-only",
        "lists"])
def test_forms(function, given, shape, dtype, form):
    expected = function(*(array.astype(float) for array in given))
    found = function(*map(form, given))
    assert found.shape == shape
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)


@every_function
def test_threads(function, given, shape, dtype):
    expected = function(*given)
    for threads in (2, np.int64(3), 100):
        np.testing.assert_array_equal(function(*given, threads=threads), expected)
    for threads, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), ("2", TypeError)):
        with pytest.raises(error, match=f"threads must be .*, not {threads!r}"):
            function(*given, threads=threads)


@every_function
def test_bad_values_of_out_are_refused(function, given, shape, dtype):
    fixed = np.zeros(shape, dtype)
    fixed.flags.writeable = False
    for out, words in (
        (np.zeros(shape, np.float32), f"not an array of float32, shape {shape}"),
        (np.zeros((1, *shape), dtype), f"not an array of {np.dtype(dtype)}, shape {(1, *shape)}"),
        (np.zeros((*shape, 2), dtype)[..., 0], "not contiguous"),
        (fixed, "read-only"),
        (fixed.tolist(), r"not \["),
    ):
        with pytest.raises(TypeError, match="out must be a writable, contiguous ") as raised:
            function(*given, out=out)
        assert words.replace("\\", "") in str(raised.value)


@every_function
@pytest.mark.parametrize("threads", [1, 3])
def test_out_that_overlaps(function, given, shape, dtype, threads):
    """The result is that without `out`, whichever argument `out` overlaps."""
    expected = function(*given)
    for k, array in enumerate(given):
        for shift in (0, 1, 4):
            memory = np.zeros(shift + max(array.size, expected.size))
            over = memory[shift:shift + array.size].reshape(array.shape)
            over[...] = array
            out = memory[:expected.size].view(dtype).reshape(shape)
            function(*given[:k], over, *given[k + 1:], out=out, threads=threads)
            np.testing.assert_array_equal(out, expected)


@every_function
def test_arguments_that_are_not_arrays_of_numbers_are_refused(function, given, shape, dtype):
    for k in range(len(given)):
        for value in (None, "text", [[1.0], [1.0, 2.0]], given[k] + 0j, given[k].astype("U")):
            with pytest.raises(TypeError, match=r"an array of numbers, not |cov and factor"):
                function(*given[:k], value, *given[k + 1:])


@every_function
def test_shapes_that_are_refused(function, given, shape, dtype):
    for k in range(len(given)):
        for value in (1.0, np.zeros((5, 0)), np.ones((5, 4))):
            with pytest.raises(ValueError, match="must have shape "):
                function(*given[:k], value, *given[k + 1:])


@pytest.mark.parametrize("call", [
    lambda x: BANK.lookup(x),
    lambda x: proposal_covariance(x, Z, Gaussian(1.5)),
    lambda x: proposal_covariance(Z, x, Gaussian(1.5)),
    lambda x: fk.linalg.mvn_logpdf(Z, x, COVS),
    lambda x: fk.linalg.cholupdate(FACTORS, x),
])
def test_numbers_that_are_refused(call):
    for bad in (np.nan, np.inf):
        x = X.copy()
        x[3, 1] = bad
        with pytest.raises(ValueError, match=rf"must be finite, not {bad} at index \(3, 1\)"):
            call(x)


def test_matrices_that_are_refused():
    for bad in (np.nan, np.inf):
        for name, given in (("cov", COVS), ("factor", FACTORS)):
            matrices = given.copy()
            matrices[2, 1, 1] = bad
            with pytest.raises(ValueError, match=rf"{name}\[2\] must be finite, not {bad}"):
                fk.linalg.mvn_logpdf(X, Z, **{name: matrices})
    nested = np.stack([COVS[:4], -COVS[:4]])
    with pytest.raises(ValueError, match=r"cov\[1, 0\] must be positive definite"):
        fk.linalg.mvn_logpdf(X[:4], Z[:4], nested)


def test_elements_above_the_diagonal_are_not_read():
    upper = np.triu_indices(3, 1)
    factors = FACTORS.astype(float)
    factors[:, *upper] = np.nan
    np.testing.assert_array_equal(fk.linalg.mvn_logpdf(X, Z, factor=factors),
                                  fk.linalg.mvn_logpdf(X, Z, factor=FACTORS))
    np.testing.assert_array_equal(fk.CholeskyBank(Z, factors).factors, np.tril(FACTORS))


def test_empty():
    none = np.empty((0, 3))
    assert fk.linalg.mvn_logpdf(none, Z[0], COVS[0]).shape == (0,)
    assert fk.linalg.mvn_logpdf(Z[0], Z[0], COVS[:0], threads=2).shape == (0,)
    assert fk.linalg.mvn_logpdf(Z[0], Z[0], factor=COVS[:0]).shape == (0,)
    assert proposal_covariance(none, Z, Gaussian(1.5)).shape == (0, 3, 3)
    np.testing.assert_array_equal(
        proposal_covariance(X[0], none, Gaussian(1.5), noise=2.0), 4 * np.eye(3))
    assert BANK.lookup(none, threads=2).shape == (0,)


def test_one_point_gives_a_number():
    assert isinstance(fk.linalg.mvn_logpdf(X[0], Z[0], COVS[0]), float)
    assert isinstance(BANK.lookup(X[0]), int)
    out = np.empty((), np.int64)
    assert BANK.lookup(X[0], out=out) is out
    assert out == BANK.lookup(X[0])


def test_numbers_as_arrays_without_dimensions():
    zero_d = fk.linalg.cholupdate(np.eye(2), [1.0, 0.0], np.array(2.0), np.float32(3))
    np.testing.assert_array_equal(zero_d, fk.linalg.cholupdate(np.eye(2), [1.0, 0.0], 2.0, 3.0))
    R = proposal_covariance(X, Z, Gaussian(1.5), step_size=np.array(0.5), noise=np.array(1))
    np.testing.assert_array_equal(
        R, proposal_covariance(X, Z, Gaussian(1.5), step_size=0.5, noise=1.0))


@pytest.mark.parametrize("bad", [
    np.array([1.0, 2.0j]), [1.0, 2.0j], ["1", "2"], np.array([b"1", b"2"]),
    np.ma.array([1.0, 2.0], mask=[False, True]), np.array([1, 2], "m8[s]")], ids=str)
def test_a_density_is_not_evaluated_at_what_is_no_point(bad):
    """Imaginary parts and masks used to be dropped, and texts to be read."""
    target = fk.Target.from_python(lambda x: -0.5 * float(x @ x), 2, hvp=lambda x, v: -v)
    estimator = fk.Target.from_estimator(lambda x, u: -0.5 * float(x @ x), 2, 2)
    for name, call in [
            ("x", target.logp), ("x", target.logp_grad),
            ("x", lambda x: target.hvp(x, [0.0, 0.0])), ("x", lambda v: target.hvp([0.0, 0.0], v)),
            ("x", lambda x: estimator.estimate(x, [0.0, 0.0])),
            ("u", lambda u: estimator.estimate([0.0, 0.0], u))]:
        with pytest.raises(TypeError, match=f"{name} must be an array (of numbers|without masked)"):
            call(bad)
