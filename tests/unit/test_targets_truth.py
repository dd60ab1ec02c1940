"""Exact draws against the claimed truth: moments, quantile regions, occupancy of modes.

A z-test looks at every coordinate with a bound of 5.5 standard errors, a false-alarm rate of 4e-8
each; the whole file makes some 4000 comparisons, so it would fail by chance about once in 6000
choices of its seeds. The tests at the end show that the faults they are for are caught.
"""

import numpy as np
import pytest
from scipy import stats

from fastkam import targets

N = 40_000
BOUND = 5.5

MEANS = np.array([[-6.0, 0, 1], [6, 2, -1], [0, 9, 0]])
FULL = np.array([[[1, 0.5, 0], [0.5, 2, 0.3], [0, 0.3, 1]], np.eye(3), 2 * np.eye(3)])
CASES = {
    **{name: t for name, t in targets.TARGETS.items() if name != "horseshoe"},  # no truth
    "gaussian_full": lambda: targets.Gaussian([1, 2, 3], FULL[0]),
    "mixture_full": lambda: targets.GaussianMixture(MEANS, FULL, weights=[1, 2, 3]),
    "mixture_diagonal": lambda: targets.GaussianMixture(MEANS, [[1, 2, 3], [1, 1, 1], [2, 1, 2]]),
    "student_full": lambda: targets.StudentT(3, 9.0, FULL[0], [1, 2, 3]),
    "lattice_even": lambda: targets.LatticeMixture(d=3, K=4, spacing=2.0, variance=1.5),
    "banana_strong": lambda: targets.banana(0.1, 100.0, 3),
    "flower_two": lambda: targets.Flower(r0=3.0, A=1.0, w=2, s2=0.2, d=2),
    "flower_cut": lambda: targets.Flower(r0=2.0, A=1.5, w=5, s2=0.5, d=3),
    "full_norm_cut": lambda: targets.FlowerFullNorm(r0=2.0, A=1.5, w=4, s2=0.5, d=4),
    "full_norm_far": lambda: targets.FlowerFullNorm(r0=2.0, A=0.5, w=2, s2=0.05, d=9),
    "funnel_mild": lambda: targets.Funnel(d=3, variance=0.25),
    "u": lambda: targets.BananaMixture([0, 2], [1, 0], [1, -2], [0.5, 0.1],
                                       [[1, 2, 3], [4, 1, 2]], weights=[1, 3]),
}


def z_scores(values, expected):
    """(mean - expected) in standard errors, a column each."""
    spread = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return (values.mean(axis=0) - expected) / spread


@pytest.fixture(params=list(CASES))
def target(request):
    return CASES[request.param]()


def heavy_tailed(t):
    """Whether the fourth moments, on which a z-test of second moments rests, are wild or absent."""
    return (isinstance(t, targets.StudentT) and t.df < 8) or (
        isinstance(t, targets.Funnel) and t.parameters["variance"] > 1)


def test_the_draws_have_the_claimed_mean(target):
    x = target.sample(N, seed=1)
    assert x.shape == (N, target.dim)
    assert target.mean.shape == (target.dim,)
    assert np.abs(z_scores(x, target.mean)).max() < BOUND


def test_the_draws_have_the_claimed_covariance(target):
    if heavy_tailed(target):
        pytest.skip("no usable fourth moments")
    centered = target.sample(N, seed=2) - target.mean
    i, j = np.tril_indices(target.dim)
    if target.dim > 40:     # all variances, and the covariances of neighbors
        i, j = i[i - j < 2][: 2 * target.dim], j[i - j < 2][: 2 * target.dim]
    assert np.abs(z_scores(centered[:, i] * centered[:, j], target.cov[i, j])).max() < BOUND


def test_the_second_moment_is_the_covariances(target):
    x = target.sample(N, seed=3)
    assert target.second_moment.shape == (target.dim,)
    if not heavy_tailed(target):
        assert np.abs(z_scores(x**2, target.second_moment)).max() < BOUND


def test_the_mean_gradient_of_the_draws_is_zero(target):
    """E grad log pi = 0: ties the draws to the density where no moment is known."""
    x = target.sample(4000, seed=4)
    grads = np.array([target.logp_grad(row)[1] for row in x])
    assert np.abs(z_scores(grads, 0.0)).max() < BOUND


def test_the_draws_satisfy_steins_identity(target):
    """E[x_j grad_j log pi] = -1 for every coordinate."""
    if heavy_tailed(target) and isinstance(target, targets.Funnel):
        pytest.skip("the funnel's first coordinate has no usable variance here")
    x = target.sample(4000, seed=5)
    grads = np.array([target.logp_grad(row)[1] for row in x])
    assert np.abs(z_scores((x - target.mean) * grads, -1.0)).max() < BOUND


def test_quantile_regions_have_their_probabilities(target):
    """Kolmogorov-Smirnov at level 1e-7 a case."""
    if not hasattr(target, "quantile_region"):
        pytest.skip("no quantile region")
    if isinstance(target, targets.Flower) and target.parameters["r0"] == 2.0:
        pytest.skip("the cut at the origin counts")
    q, df = target.quantile_region(target.sample(N, seed=6))
    assert q.shape == (N,)
    assert stats.kstest(q, stats.chi2(df).cdf).pvalue > 1e-7
    one, _ = target.quantile_region(target.sample(1, seed=6)[0])
    assert np.ndim(one) == 0


def test_modes_are_occupied_by_their_weights(target):
    if not hasattr(target, "mode_of"):
        pytest.skip("no modes")
    if getattr(target, "overlap", 0.0) > 1e-5:
        pytest.skip("the components overlap")
    x = target.sample(N, seed=7)
    k = target.mode_of(x)
    if k.ndim == 1:
        k = k[:, None]
    assert k.shape == (N, 1 if isinstance(target, targets.GaussianMixture) else target.dim)
    for column in k.T:
        hits = column[:, None] == np.arange(len(target.mode_weights))
        assert np.abs(z_scores(hits.astype(float), target.mode_weights)).max() < BOUND
    assert abs(target.mode_weights.sum() - 1) < 1e-14


def test_a_seed_fixes_the_draws(target):
    a = target.sample(5, seed=3)
    np.testing.assert_array_equal(a, target.sample(5, seed=3))
    np.testing.assert_array_equal(a, target.sample(5, seed=np.random.SeedSequence(3)))
    np.testing.assert_array_equal(a, target.sample(5, seed=np.random.default_rng(3)))
    assert target.sample(0, seed=1).shape == (0, target.dim)


# ---- published moments -------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "mean", "second"), [
    (targets.banana, np.zeros(8), [100, 19, 1, 1, 1, 1, 1, 1]),
    (lambda: targets.banana(0.1), np.zeros(8), [100, 201, 1, 1, 1, 1, 1, 1]),
    (targets.hard_banana, [0, -8], [9, 230]),
    (targets.double_banana, [0, -25], [9, 1080]),
    (targets.banana_bunch, np.zeros(3), [401, 401, 401]),
    (targets.basis_vectors, np.zeros(4), [26, 26, 26, 26]),
    (targets.two_mode, [0, 0], [65.25, 1.25]),
    (targets.mixture_32d, np.zeros(32), np.full(32, 465)),
])
def test_the_published_moments(make, mean, second):
    np.testing.assert_allclose(make().mean, mean, atol=1e-12)
    np.testing.assert_allclose(make().second_moment, second, rtol=1e-12)


def test_more_published_figures():
    five = targets.five_component().cov
    assert five[0, 0] == pytest.approx(14.1765, abs=5e-5)
    assert five[0, 1] == pytest.approx(12.5)
    assert targets.double_banana().cov[1, 1] == pytest.approx(455)
    values = np.linalg.eigvalsh(targets.gp_gaussian().cov)
    assert values[0] == pytest.approx(0.01, abs=1e-6)
    assert values[-1] == pytest.approx(12.0741, abs=5e-5)
    assert np.log(values).sum() == pytest.approx(-170.2989, abs=5e-5)
    np.testing.assert_allclose(np.sqrt(np.diag(targets.neal_gaussian().cov)),
                               np.arange(1, 101) / 100)
    assert targets.Flower().second_moment[0] == pytest.approx(78.5, abs=1e-3)
    assert targets.FlowerFullNorm().second_moment[0] == pytest.approx(75.8, abs=0.1)
    assert targets.ring().second_moment[0] == pytest.approx((3.5**2 + 3 * 0.05) / 2)


def test_moments_that_do_not_exist_are_absent():
    assert targets.StudentT(2, 2.0).cov is None
    assert targets.StudentT(2, 2.0).second_moment is None
    assert targets.StudentT(2, 1.0).mean is None
    assert not hasattr(targets.FlowerFullNorm(), "quantile_region")
    assert not hasattr(targets.double_banana(), "mode_of")


def test_overlap_tells_separate_modes():
    assert targets.two_mode().overlap < 1e-10
    assert targets.basis_vectors().overlap < 1e-9
    assert targets.five_component().overlap > 0.1


# ---- planted faults are caught -----------------------------------------------------------------


def uniform_angle(t, n):
    """The sampler that forgets that wide petals hold more: uniform angle, Gaussian radius."""
    rng = np.random.default_rng(1)
    r0, A, w, s2, d = t.parameters.values()
    phi = rng.uniform(0, 2 * np.pi, n)
    rho = r0 + A * np.cos(w * phi) + np.sqrt(s2) * rng.standard_normal(n)
    return np.c_[rho * np.cos(phi), rho * np.sin(phi), rng.standard_normal((n, d - 2))]


def test_a_flower_with_uniform_angles_is_caught():
    t = targets.Flower()
    assert np.abs(z_scores(uniform_angle(t, N) ** 2, t.second_moment)).max() > BOUND


def test_the_rounded_moment_of_the_bunch_is_caught():
    x = targets.banana_bunch().sample(4_000_000, seed=1)
    assert np.abs(z_scores(x**2, 400.0)).max() > np.abs(z_scores(x**2, 401.0)).max()


def test_swapped_weights_are_caught():
    t = targets.GaussianMixture([[-8, 0], [8, 0]], [0.5, 2.0], weights=[1, 2])
    hits = (t.mode_of(t.sample(N, seed=7)) == 0).astype(float)
    assert abs(z_scores(hits, 0.5)) > BOUND


def test_a_quantile_region_with_the_wrong_degrees_of_freedom_is_caught():
    t = targets.Flower()
    q, df = t.quantile_region(t.sample(N, seed=6))
    assert stats.kstest(q, stats.chi2(df + 1).cdf).pvalue < 1e-7
