"""R-hat, effective sizes and Monte Carlo errors against arviz-stats; draws that never move.

No statistical checks here: both compute the same functions of the same draws.
"""

import subprocess
import sys

import numpy as np
import pytest

import fastkam
from fastkam._core.diagnostics.convergence import COLUMNS, measure
from fastkam.diagnostics import r_hat, summary

LENGTHS = (4, 5, 6, 7, 8, 9, 11, 20, 33, 100, 257, 511, 1000, 1001, 3000, 5001)
FORMS = {
    "as they are": lambda x, rng: x,
    "ties": lambda x, rng: np.round(x),
    "few ties, far from 0": lambda x, rng: np.round(x, 1) * 1e5 + 3e6,
    "heavy tails": lambda x, rng: np.exp(3 * x),
    "chains apart": lambda x, rng: x + 3 * rng.standard_normal((len(x), 1)),
    "one scale is larger": lambda x, rng: x * np.linspace(1, 3, len(x))[:, None],
    "repeated": lambda x, rng: x[:, np.arange(x.shape[1]) // 3 * 3],
}


def series(rng, chains, n):
    """AR(1) chains of a random coefficient."""
    from scipy.signal import lfilter

    phi = rng.choice([0, -0.6, 0.5, 0.9, 0.99, 0.999])
    return lfilter([1.0], [1.0, -phi], rng.standard_normal((chains, n)), axis=1)


def by_arviz(x):
    """The columns of draws (chains, draws)."""
    from arviz_stats.base import array_stats

    squares = (x - x.mean()) ** 2
    with np.errstate(all="ignore"):
        found = {
            "mean": x.mean(), "sd": x.std(ddof=1),
            "q5": np.quantile(x, 0.05), "q95": np.quantile(x, 0.95),
            "mcse_mean": array_stats.mcse(x, method="mean"),
            # theirs takes the effective size of x, which is another where chains are antithetic
            "mcse_sd": np.sqrt(squares.var() / array_stats.ess(x, method="sd")
                               / squares.mean() / 4),
            "ess_bulk": array_stats.ess(x, method="bulk"),
            "ess_tail": array_stats.ess(x, method="tail", prob=(0.05, 0.95)),
            "r_hat": array_stats.rhat(x, method="rank") if len(x) > 1 else np.nan,
        }
    if np.isnan(found["mcse_sd"]):  # the root of a variance of 0, computed as a difference
        found["mcse_sd"] = 0.0
    if found["r_hat"] > 1e12:  # over a variance of 0, which its rounding leaves positive
        found["r_hat"] = np.inf
    return np.array([float(found[name]) for name in COLUMNS])


@pytest.mark.parametrize("form", FORMS)
def test_equal_to_arviz_stats(form):
    rng = np.random.default_rng(list(FORMS).index(form))
    for _ in range(150):
        x = FORMS[form](series(rng, rng.integers(1, 7), rng.choice(LENGTHS)), rng)
        half = x.shape[1] // 2
        if np.ptp(np.concatenate([x[:, :half], x[:, -half:]])) == 0:
            continue  # unknown to us, below
        np.testing.assert_allclose(measure(x[:, :, None])[:, 0], by_arviz(x), rtol=1e-10,
                                   atol=1e-13 * np.abs(x).max(), err_msg=f"{x.shape}")


@pytest.mark.parametrize("phi", [-0.9, -0.5, 0.0, 0.5, 0.9])
def test_errors_are_those_of_repeated_runs(phi):
    """400 runs of four AR(1) chains: mean z^2 of means and of standard deviations.

    It is within 0.74 and 1.30 but for 1e-4; the estimated errors vary by themselves, which the
    bounds allow for. Where phi < 0 the mean is known better than from independent draws, and the
    standard deviation worse. An effective size is taken to be at most log10 of the number of draws
    times that number, so that at phi = -0.9 the error of the mean is on the safe side.
    """
    from scipy.signal import lfilter

    rng = np.random.default_rng(5)
    noise = rng.standard_normal((400, 4, 1000)) * np.sqrt(1 - phi**2)
    noise[:, :, 0] /= np.sqrt(1 - phi**2)
    columns = [measure(x[:, :, None])[:, 0] for x in lfilter([1.0], [1.0, -phi], noise, axis=2)]
    found = dict(zip(COLUMNS, np.transpose(columns), strict=True))
    for value, truth, error in (("mean", 0.0, "mcse_mean"), ("sd", 1.0, "mcse_sd")):
        z = (found[value] - truth) / found[error]
        assert 0.7 < np.mean(z**2) < 1.4 or (value, phi) == ("mean", -0.9), value
        assert np.mean(z**2) < 1.4


def test_long_chains_whose_lags_need_several_windows():
    """Coefficients near 1: the window of lags is widened up to all of them."""
    from scipy.signal import lfilter

    rng = np.random.default_rng(5)
    for phi in (0.9, 0.999, 0.9999, 1.0):
        x = lfilter([1.0], [1.0, -phi], rng.standard_normal((2, 20_000)), axis=1)
        np.testing.assert_allclose(measure(x[:, :, None])[:, 0], by_arviz(x), rtol=1e-10)


def test_coordinates_and_layouts_do_not_matter():
    rng = np.random.default_rng(1)
    x = series(rng, 12, 301).reshape(4, 3, 301).transpose(0, 2, 1)
    whole = measure(np.ascontiguousarray(x))
    for i in range(3):
        np.testing.assert_array_equal(whole[:, i], measure(x[:, :, i : i + 1].copy())[:, 0])
    np.testing.assert_array_equal(whole, measure(x))
    read_only = x.copy()
    read_only.flags.writeable = False
    np.testing.assert_array_equal(whole, measure(read_only))


@pytest.mark.parametrize("scale", [1e-300, 1e-120, 1e120, 1e300])
def test_extreme_units(scale):
    """Squares of the draws overflow or vanish; the statistics do not."""
    x = series(np.random.default_rng(2), 4, 200)[:, :, None]
    x /= np.abs(x).max()
    plain, scaled = measure(x)[:, 0], measure(x * scale)[:, 0]
    plain[:6] *= scale
    np.testing.assert_allclose(scaled, plain, rtol=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_draws_that_are_not_finite(bad):
    x = np.random.default_rng(0).standard_normal((4, 50, 2))
    x[1, 7, 0] = bad
    found = measure(x)
    assert np.isnan(found[:, 0]).all()
    assert np.isfinite(found[:, 1]).all()


def test_constants():
    """One constant: its mean, and no more. Chains at places of their own: R-hat is infinite."""
    found = dict(zip(COLUMNS, measure(np.full((4, 30, 1), 2.5))[:, 0], strict=True))
    assert (found["mean"], found["sd"], found["q5"], found["q95"]) == (2.5, 0, 2.5, 2.5)
    assert np.isnan([found[name] for name in COLUMNS[4:]]).all()
    apart = np.broadcast_to(0.1 * np.arange(4.0)[:, None, None], (4, 30, 1))
    assert r_hat(apart) == np.inf
    # a chain whose halves are constants: no middle draw makes it move
    for x in ([0.3, 0.3, 9.0, 0.1, 0.1], [0.3, 0.3, 0.1, 0.1]):
        assert r_hat(np.tile(x, (2, 1))[:, :, None]) == np.inf


@pytest.mark.parametrize("shape", [(1, 0, 2), (2, 1, 1), (2, 2, 3), (3, 3, 1), (1, 3, 1)])
def test_fewer_than_four_draws(shape):
    x = np.random.default_rng(0).standard_normal(shape)
    found = measure(x)
    assert found.shape == (9, shape[2])
    assert np.isnan(found[4:]).all()
    if x.size:
        np.testing.assert_allclose(found[0], x.reshape(-1, shape[2]).mean(axis=0))


def test_negative_zero_is_zero():
    """A tie, whatever its sign."""
    x = np.where(np.arange(80).reshape(4, 20) % 3, 0.0, -0.0)
    x[:, ::5] = 1
    np.testing.assert_array_equal(measure(x[:, :, None]), measure(np.abs(x)[:, :, None]))


def test_no_other_package_is_loaded():
    """A summary is compiled here: a fresh process loads neither SciPy nor ArviZ."""
    script = """
import sys
import numpy as np
import fastkam as fk
print(fk.diagnostics.summary(np.random.default_rng(1).standard_normal((4, 100, 2))))
found = [name for name in sys.modules if name.partition(".")[0] in ("scipy", "arviz_stats")]
assert not found, found
"""
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=300)


def test_the_table_has_these_columns():
    x = series(np.random.default_rng(4), 4, 100)[:, :, None]
    table = summary(x)
    for name, column in zip(COLUMNS, measure(x), strict=True):
        np.testing.assert_array_equal(table[name], column)


@pytest.mark.parametrize("shape", [(4, 500, 2), (1, 101, 3), (3, 4, 1)])
@pytest.mark.parametrize(("without", "names"), [
    ("sizes", ("mcse_mean", "mcse_sd", "ess_bulk", "ess_tail")), ("r_hat", ("r_hat",)),
    ("mcse_sd", ("mcse_sd",))])
def test_a_part_of_the_columns_is_that_of_all(shape, without, names):
    draws = np.random.default_rng(8).standard_normal(shape)
    whole, part = measure(draws), measure(draws, **{without: False})
    left_out = [COLUMNS.index(name) for name in names]
    assert np.isnan(part[left_out]).all()
    np.testing.assert_array_equal(np.delete(part, left_out, 0), np.delete(whole, left_out, 0))


@pytest.mark.parametrize("name", ["ess_bulk", "ess_tail", "r_hat", "mcse_mean", "mcse_sd"])
def test_a_single_column_is_that_of_the_table(name):
    draws = np.random.default_rng(9).standard_normal((3, 200, 2)).cumsum(axis=1)
    found = getattr(fastkam.diagnostics, name)(draws)
    np.testing.assert_array_equal(found, measure(draws)[COLUMNS.index(name)])


# draws whose order is in few of their bits, in many, or in the lowest alone
ORDERS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "one sign": lambda rng, n: rng.random(n),
    "far from 0": lambda rng, n: 1e9 + rng.standard_normal(n),
    "two places": lambda rng, n: rng.choice([-1e9, 1e-9], n) + 1e-7 * rng.standard_normal(n),
    "mostly one place": lambda rng, n: np.where(
        np.arange(n) % 9, 1.0 + 1e-13 * rng.random(n), -1e300),
    "falling by the least step": lambda rng, n: np.where(
        np.arange(n), 1.0 - np.arange(n) * 2.0**-53, -5.0),
    "tiny": lambda rng, n: 5e-324 * rng.integers(-50, 50, n),
    "whole numbers": lambda rng, n: rng.integers(-3, 4, n).astype(float),
}


@pytest.mark.parametrize("form", ORDERS)
@pytest.mark.parametrize("n", [4, 5, 61, 4000])
def test_draws_are_sorted(form, n):
    """The quantiles, ranks and distances from the median of draws in any range of bits."""
    x = ORDERS[form](np.random.default_rng(n), 2 * n).reshape(2, n)
    found = dict(zip(COLUMNS, measure(x[:, :, None])[:, 0], strict=True))
    for name, level in (("q5", 0.05), ("q95", 0.95)):
        np.testing.assert_allclose(found[name], np.quantile(x, level), rtol=1e-12, atol=1e-320)
    # whatever depends on ranks alone is that of the ranks
    _, ranks = np.unique(x, return_inverse=True)
    by_ranks = measure(ranks.reshape(2, n, 1).astype(float))[COLUMNS.index("ess_bulk"), 0]
    np.testing.assert_allclose(found["ess_bulk"], by_ranks, rtol=1e-9)
