"""Diagnostics against known values: AR(1) theory, exact normal cases, tiny cases by hand.

Each statistical check states its false-alarm rate; seeds are fixed.
"""

import numpy as np
import pytest
from scipy.stats import chi2, norm

from fastkam import diagnostics as dg


def ar1(phi, shape, seed):
    """A stationary AR(1) of unit variance along the last axis."""
    from scipy.signal import lfilter

    noise = np.random.default_rng(seed).standard_normal(shape)
    noise[..., 1:] *= np.sqrt(1 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise)


# ---- convergence ----


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_effective_sizes_of_an_ar1(phi):
    """n (1 - phi) / (1 + phi); the estimators' sd is below 5 % here, the band 25 %: under 1e-6."""
    n = 20_000
    draws = ar1(phi, (4, n), seed=1)[..., None]
    truth = 4 * n * (1 - phi) / (1 + phi)
    assert dg.ess_bulk(draws)[0] == pytest.approx(truth, rel=0.25)
    assert dg.ess_geyer(draws).sum() == pytest.approx(truth, rel=0.25)
    assert dg.mcse_mean(draws)[0] == pytest.approx(1 / np.sqrt(truth), rel=0.25)
    assert dg.r_hat(draws)[0] == pytest.approx(1, abs=0.01)


def test_mcse_of_the_sd():
    """The error for n independent normals is sd / sqrt(2 n), within 10 %: many standard errors."""
    draws = 3 * np.random.default_rng(5).standard_normal((4, 5000, 1))
    assert dg.mcse_sd(draws)[0] == pytest.approx(3 / np.sqrt(2 * 20_000), rel=0.1)


def test_chains_that_disagree_are_detected():
    """The planted fault: one chain shifted by two sd; or of three times the scale."""
    draws = np.random.default_rng(2).standard_normal((4, 1000, 3))
    draws[0, :, 1] += 2
    draws[0, :, 2] *= 3
    r_hat = dg.r_hat(draws)
    assert r_hat[0] < 1.01
    assert r_hat[1] > 1.2
    assert r_hat[2] > 1.05
    assert dg.ess_bulk(draws)[1] < 50


@pytest.mark.parametrize("shape", [(0,), (0, 0), (3, 0), (2, 0, 3), (2, 5, 0), (0, 0, 0)])
@pytest.mark.parametrize("statistic", [dg.ess_geyer, dg.ess_range, dg.esjd])
def test_nothing_to_measure(statistic, shape):
    with pytest.raises(ValueError, match="must"):
        statistic(np.zeros(shape))


@pytest.mark.parametrize("shape", [(0, 5, 3), (2, 0, 3), (2, 5, 0)])
def test_mode_occupancy_refuses_no_draws(shape):
    with pytest.raises(ValueError, match="draws must"):
        dg.mode_occupancy(np.zeros(shape), lambda x: np.zeros(len(x), int), [1.0])


def test_units_do_not_matter():
    draws = ar1(0.5, (4, 400), seed=4)[..., None]
    for scale, shift in ((1e-200, 0.0), (1e-17, 0.0), (1e150, 0.0), (1e-3, 1e3)):
        other = draws * scale + shift
        np.testing.assert_allclose(dg.ess_bulk(other), dg.ess_bulk(draws), rtol=1e-6)
        np.testing.assert_allclose(dg.r_hat(other), dg.r_hat(draws), rtol=1e-6)
        if scale > 1e-150:
            np.testing.assert_allclose(dg.mcse_mean(other), dg.mcse_mean(draws) * scale, rtol=1e-6)


def test_stuck_chains():
    draws = np.zeros((4, 100, 2))
    draws[:, :, 1] = np.arange(4)[:, None]  # each at its own place
    np.testing.assert_array_equal(dg.r_hat(draws), [np.nan, np.inf])
    assert np.isnan(dg.ess_bulk(draws)[0])
    assert dg.ess_bulk(draws)[1] < 10
    assert np.isnan(dg.ess_geyer(draws)).all()


@pytest.mark.parametrize("values", [1, 2, 3])
def test_few_draws_of_few_values_give_no_warning_and_no_negative_statistic(values):
    """Warnings are errors here; a statistic may be NaN, never negative."""
    rng = np.random.default_rng(values)
    for _ in range(100):
        chains, draws = rng.integers(1, 5), rng.integers(1, 10)
        x = rng.integers(values, size=(chains, draws, 1)).astype(float)
        for function in (dg.ess_bulk, dg.ess_tail, dg.r_hat, dg.mcse_mean, dg.mcse_sd):
            assert not function(x)[0] < 0
        assert str(dg.summary(x))


def test_a_move_at_the_middle_draw_only_counts_as_no_movement():
    x = np.zeros((1, 5, 1))
    x[0, 2] = 1
    assert np.isnan(dg.ess_bulk(x)[0])
    moved_between_halves = np.array([[0.0, 0, 5, 1, 1], [2, 2, 5, 3, 3]])[..., None]
    assert dg.r_hat(moved_between_halves)[0] == np.inf


def test_draws_that_are_not_finite_are_unknown():
    draws = np.random.default_rng(0).standard_normal((2, 50, 2))
    draws[0, 3, 0] = np.inf
    assert np.isnan(dg.ess_bulk(draws)).tolist() == [True, False]
    assert np.isnan(dg.ess_geyer(draws)).tolist() == [[True, False], [False, False]]


# ---- Geyer's estimator ----


def plain_geyer(x):
    """The definition, by loops."""
    n = len(x)
    x = x - x.mean()
    rho = [(x[: n - k] @ x[k:]) / (x @ x) for k in range(n)]
    least, total = np.inf, 0.0
    for j in range(n // 2):
        least = min(least, rho[2 * j] + rho[2 * j + 1])
        if least <= 0:
            break
        total += least
    return n / max(1.0, -1.0 + 2.0 * total)


@pytest.mark.parametrize(("phi", "n"), [(0.9, 200), (0.3, 201), (-0.7, 100), (0.0, 2), (0.99, 37)])
def test_geyer_equals_its_definition(phi, n):
    x = ar1(phi, (n,), seed=n)
    np.testing.assert_allclose(dg.ess_geyer(x[:, None])[0], plain_geyer(x), rtol=1e-9)


def test_geyer_is_at_most_the_number_of_draws():
    assert dg.ess_geyer(ar1(-0.5, (5000,), seed=0)[:, None])[0] == 5000


def test_range_over_coordinates():
    x = np.stack([ar1(phi, (4000,), seed=9) for phi in (0.9, 0.0, 0.5)], axis=-1)
    ess = dg.ess_geyer(x)
    assert dg.ess_range(x) == (ess.min(), np.median(ess), ess.max())
    assert ess.argmin() == 0
    assert dg.ess_range(np.stack([x, x]))[1].shape == (2,)


# ---- jumps, means, quantiles ----


def test_esjd_by_hand():
    draws = np.array([[[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]], [[1.0, 0.0], [1.0, 1.0], [1.0, 3.0]]])
    np.testing.assert_allclose(dg.esjd(draws), [12.5, 2.5])
    with pytest.raises(ValueError, match="draws must hold at least 2 draws, not 1"):
        dg.esjd(draws[:, :1])


def test_mean_error_by_hand():
    draws = np.array([[[1.0, 0.0], [5.0, 8.0]]])
    np.testing.assert_allclose(dg.mean_error(draws, [0.0, 0.0]), [5.0])
    with pytest.raises(ValueError, match=r"mean must have shape \(2,\), not \(3,\)"):
        dg.mean_error(draws, [0.0, 0.0, 0.0])


def test_quantile_deviation_by_hand():
    q = [chi2.ppf(p, 3) for p in (0.05, 0.15, 0.25, 0.35)]
    deviation = dg.quantile_deviation(q, 3, levels=[0.1, 0.3, 0.9])
    np.testing.assert_allclose(deviation, [0.15, 0.45, 0.1])
    with pytest.raises(ValueError, match=r"levels must be numbers in \(0, 1\)"):
        dg.quantile_deviation(q, 3, levels=[0.0, 0.5])


def test_quantile_deviation_of_exact_draws():
    """sd at most 0.5 / sqrt(40 000) = 0.0025; six of them: 2e-8. A wrong df is seen."""
    z = np.random.default_rng(8).standard_normal((2, 40_000, 5))
    q = np.square(z).sum(axis=-1)
    assert dg.quantile_deviation(q, 5).shape == (2, 9)
    assert dg.quantile_deviation(q, 5).max() < 0.015
    assert dg.quantile_deviation(q, 4).max() > 0.1


# ---- modes ----


def left_or_right(x):
    return (x[:, 0] > 0).astype(int)


def test_mode_occupancy_by_hand():
    draws = np.array([[-1.0, 1.0, 1.0, -1.0], [-1.0, -1.0, -1.0, -1.0]])[..., None]
    modes = dg.mode_occupancy(draws, left_or_right, [0.25, 0.75])
    np.testing.assert_allclose(modes.fraction, [[0.5, 0.5], [1.0, 0.0]])
    np.testing.assert_allclose(modes.distance, [0.25, 0.75])
    np.testing.assert_array_equal(modes.switches, [2, 0])


def test_mode_occupancy_refuses_nonsense():
    draws = np.zeros((1, 4, 1))
    with pytest.raises(ValueError, match="weights must be probabilities that sum to 1"):
        dg.mode_occupancy(draws, left_or_right, [0.5, 0.6])
    with pytest.raises(TypeError, match="mode_of must return 4 integers, not float64"):
        dg.mode_occupancy(draws, lambda x: x[:, 0], [0.5, 0.5])
    with pytest.raises(ValueError, match="mode_of must return indices from 0 to 1, not 5"):
        dg.mode_occupancy(draws, lambda x: np.full(len(x), 5), [0.5, 0.5])
    with pytest.raises(ValueError, match="mode_of must return indices from 0 to 1, not -1"):
        dg.mode_occupancy(draws, lambda x: np.arange(len(x)) % 3 - 1, [0.5, 0.5])


# ---- maximum mean discrepancy ----


def plain_mmd2(x, y, k):
    """The definition, by loops."""
    n, m = len(x), len(y)
    xx = sum(k(x[i], x[j]) for i in range(n) for j in range(n) if i != j)
    yy = sum(k(y[i], y[j]) for i in range(m) for j in range(m) if i != j)
    xy = sum(k(a, b) for a in x for b in y)
    return xx / (n * (n - 1)) + yy / (m * (m - 1)) - 2 * xy / (n * m)


def test_mmd2_equals_its_definition():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((7, 3)), rng.standard_normal((5, 3)) + 1
    for degree, offset in ((3, 1.0), (2, 0.2), (1, 0.0)):
        expected = plain_mmd2(x, y, lambda a, b, d=degree, c=offset: (c + a @ b) ** d)
        assert dg.mmd2(x, y, degree=degree, offset=offset) == pytest.approx(expected)


def test_mmd2_in_blocks_is_the_same(monkeypatch):
    from fastkam.diagnostics import distances

    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((101, 2)), rng.standard_normal((57, 2))
    whole = dg.mmd2(x, y)
    monkeypatch.setattr(distances, "BLOCK", 100)
    assert dg.mmd2(x, y) == pytest.approx(whole, rel=1e-9)


def test_mmd2_is_unbiased_and_sees_a_shift():
    """Mean over 200 pairs within 4 standard errors of 0 (6e-5); linear kernel: |shift|^2."""
    rng = np.random.default_rng(7)
    values = [dg.mmd2(*rng.standard_normal((2, 50, 2))) for _ in range(200)]
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(200)
    x, y = rng.standard_normal((2, 4000, 2))
    assert dg.mmd2(x, y + np.array([3.0, 4.0]), degree=1) == pytest.approx(25, rel=0.05)
    with pytest.raises(ValueError, match="y must have 2 columns as x has, not 1"):
        dg.mmd2(x, y[:, :1])
    with pytest.raises(ValueError, match=r"x must have shape \(n, d\) with n at least 2"):
        dg.mmd2(x[:1], y)


# ---- Kullback-Leibler ----


def two_modes(x):
    """1/2 N((-8, 0), I/2) + 1/2 N((8, 0), 2 I), its log density up to a constant."""
    left = -np.square(x - [-8, 0]).sum(axis=1) + np.log(2.0)
    right = -np.square(x - [8, 0]).sum(axis=1) / 4 - np.log(2.0)
    return np.logaddexp(left, right)


def exact(n, seed, share=0.5):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 2))
    left = rng.random(n) < share
    return np.where(left[:, None], z * np.sqrt(0.5) - [8, 0], z * np.sqrt(2) + [8, 0])


BOX = [[-17.0, 17.0], [-12.0, 12.0]]


def test_kl_of_two_histograms_by_hand():
    """Two bins of mass 1/2 each; three draws in one, one in the other, one more of the target."""
    draws = [[0.1], [0.2], [0.3], [0.9]]
    kl = dg.symmetric_kl(draws, lambda x: np.zeros(len(x)), [[0, 1]], 2)
    q = np.array([3.5, 1.5]) / 5
    assert kl == pytest.approx(((0.5 - q) * np.log(0.5 / q)).sum())


def test_kl_of_exact_draws_is_small_and_falls():
    values = [dg.symmetric_kl(exact(n, seed=1), two_modes, BOX, 60) for n in (2_000, 200_000)]
    assert values[1] < values[0] / 10
    assert values[1] < 0.01


def test_a_missed_mode_counts():
    missing = exact(50_000, seed=1, share=1.0)
    honest = dg.symmetric_kl(missing, two_modes, BOX, 60)
    assert honest > 0.5 * np.log(50_000)  # half of the mass, bins without draws
    longer = dg.symmetric_kl(exact(200_000, seed=1, share=1.0), two_modes, BOX, 60)
    assert longer > honest  # a longer run that misses it is no better


def test_the_wrong_share_of_modes_is_measured():
    """Shares .6 and .4 for halves: .1 log(.6/.5) + .1 log(.5/.4) above what exact draws give."""
    wrong, right = (
        dg.symmetric_kl(exact(200_000, seed=2, share=share), two_modes, BOX, 60)
        for share in (0.6, 0.5)
    )
    assert wrong - right == pytest.approx(0.1 * np.log(1.5), rel=0.1)


def test_draws_outside_the_box_count():
    inside = exact(20_000, seed=3)
    outside = inside.copy()
    outside[:2000] = [100.0, 100.0]
    kl = [dg.symmetric_kl(x, two_modes, BOX, 60) for x in (inside, outside)]
    assert kl[1] > kl[0] + 1


def test_a_draw_of_density_zero_is_infinitely_wrong():
    def uniform(x):
        return np.where(x[:, 0] < 0.5, 0.0, -np.inf)

    assert dg.symmetric_kl([[0.1], [0.9]], uniform, [[0, 1]], 10) == np.inf
    assert np.isfinite(dg.symmetric_kl([[0.1], [0.2]], uniform, [[0, 1]], 10))


def test_bin_integrals_correct_coarse_bins():
    """Bins as wide as two sd: centers alone misjudge the masses; 16 points a bin do not."""
    draws = np.random.default_rng(0).standard_normal((400_000, 1))
    kl = [
        dg.symmetric_kl(draws, lambda x: -0.5 * x[:, 0] ** 2, [[-9, 9]], 9, refine=refine)
        for refine in (1, 16)
    ]
    assert kl[0] > 0.01
    assert kl[1] < 1e-3


def test_marginals():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((100_000, 3)) * [1, 1, 2]

    def unit(t):
        return -0.5 * t**2

    kl = dg.marginal_symmetric_kl(draws, unit, [-8, 8], 60)
    assert kl.shape == (3,)
    assert kl[:2].max() < 5e-3
    # KL(N(0,1), N(0,4)) + KL(N(0,4), N(0,1)) = 1/2 (4 + 1/4) - 1
    assert kl[2] == pytest.approx(1.125, rel=0.05)
    own = [unit, unit, lambda t: norm.logpdf(t, scale=2)]
    assert dg.marginal_symmetric_kl(draws, own, [[-8, 8]] * 3, 60).max() < 5e-3
    with pytest.raises(ValueError, match="logps must be one function, or 3, not 2"):
        dg.marginal_symmetric_kl(draws, own[:2], [-8, 8])


def test_kl_refuses_nonsense():
    x = np.zeros((5, 2))
    with pytest.raises(ValueError, match=r"bounds must be 2 pairs of numbers"):
        dg.symmetric_kl(x, two_modes, [[0, 1]])
    with pytest.raises(ValueError, match="each low end below the high one"):
        dg.symmetric_kl(x, two_modes, [[0, 1], [1, 1]])
    with pytest.raises(TypeError, match=r"logp must return shape \(100,\), not \(100, 2\)"):
        dg.symmetric_kl(x, lambda x: x, [[0, 1], [0, 1]], 10)
    with pytest.raises(ValueError, match="use fewer bins, or marginal_symmetric_kl"):
        dg.symmetric_kl(np.zeros((5, 8)), two_modes, [[0, 1]] * 8)
    with pytest.raises(ValueError, match="logp must be a number or -inf on the grid"):
        dg.symmetric_kl(x, lambda x: np.full(len(x), np.nan), BOX)
