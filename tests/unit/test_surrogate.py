"""The parts of a learned surrogate: its density, its fit, and its estimate of the support."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import solve_triangular
from scipy.stats import binom

from fastkam._core.surrogate.learned import MOST_DIMENSIONS, LearnedDensity
from fastkam.surrogate import regression
from fastkam.surrogate.checking import at_least
from fastkam.surrogate.climbs import climb, near
from fastkam.surrogate.density import Support
from fastkam.surrogate.design import higher_than_expected, rises
from fastkam.surrogate.drawing import Drawing
from fastkam.surrogate.learning import efficiency


def terms(rng, d=3, n=21, K=2, out=0):
    """Return arguments of `LearnedDensity.set_up`."""
    B = rng.standard_normal((d, d))
    W = np.array([np.tril(rng.standard_normal((d, d))) + 2 * np.eye(d) for _ in range(K)])
    return {
        "low": np.full(d, -np.inf), "high": np.full(d, np.inf), "c": rng.standard_normal(d),
        "T": rng.standard_normal((d, d)), "b0": 0.7, "b": rng.standard_normal(d),
        "B": -B @ B.T, "U": rng.standard_normal((n, d)), "a": rng.standard_normal(n),
        "out": rng.standard_normal((out, d)) + 5, "power": 6.0, "w": rng.standard_normal(K),
        "m": rng.standard_normal((K, d)), "W": W.reshape(K, d, d)}


def expected(x, f):
    """log g and the log of the Student part at x (d,), by the formulas of learned.pyx."""
    if not ((f["low"] < x) & (x < f["high"])).all():
        g = -np.inf
    else:
        u = f["T"] @ (x - f["c"])
        r2 = ((u - f["U"]) ** 2).sum(axis=1)
        t = np.sqrt(5 * r2)
        g = f["b0"] + f["b"] @ u + u @ f["B"] @ u + f["a"] @ ((1 + t + t * t / 3) * np.exp(-t))
        if len(f["out"]):
            out = ((u - f["out"]) ** 2).sum(axis=1).min()
            g -= np.log1p((r2.min() / out) ** (f["power"] / 2))
    u = f["T"] @ (x - f["c"])
    d = len(x)
    squares = [((W @ (u - m)) ** 2).sum() for W, m in zip(f["W"], f["m"], strict=True)]
    parts = [w - 0.5 * (3 + d) * np.log1p(q / 3) for w, q in zip(f["w"], squares, strict=True)]
    return g, np.logaddexp.reduce(parts) if parts else -np.inf


@pytest.mark.parametrize(("d", "n", "K", "out"), [
    (1, 1, 0, 0), (1, 8, 1, 1), (2, 9, 3, 0), (3, 21, 2, 5), (7, 64, 1, 17), (10, 130, 2, 0)])
def test_density_is_that_of_the_formula(d, n, K, out):
    rng = np.random.default_rng([d, n])
    f = terms(rng, d, n, K, out)
    f["low"][0] = f["c"][0] - 0.5
    density = LearnedDensity()
    density.set_up(**f)
    X = f["c"] + rng.standard_normal((40, d))
    want = np.array([expected(x, f) for x in X])
    np.testing.assert_allclose(density.parts(X), want, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(density.logp(X), np.logaddexp(*want.T), rtol=1e-11, atol=1e-11)
    assert np.isneginf(want[:, 0]).any()
    density = LearnedDensity()
    density.set_up(**f, flat=-1.5, flatter=0.5)
    np.testing.assert_allclose(
        density.logp(X), np.logaddexp(np.logaddexp(*want.T), 0.5 * want[:, 0] - 1.5), rtol=1e-11,
        atol=1e-11)
    again = pickle.loads(pickle.dumps(density))
    np.testing.assert_array_equal(again.logp(X), density.logp(X))


def test_density_at_distant_points_is_not_nan():
    density = LearnedDensity()
    density.set_up(**terms(np.random.default_rng(1)))
    for far in (1e20, 1e160, 1e300):
        assert not np.isnan(density.logp(np.full(3, far)))


def test_too_many_dimensions_are_refused():
    with pytest.raises(ValueError, match=f"at most {MOST_DIMENSIONS} coordinates, not 65"):
        LearnedDensity().set_up(**terms(np.random.default_rng(1), d=65))


# ---- the fit ----


def test_gradient_of_the_marginal_likelihood():
    rng = np.random.default_rng(2)
    z = rng.standard_normal((30, 3))
    residual = np.sin(2 * z[:, 0]) + 0.1 * rng.standard_normal(30)
    prior = regression.prior_of(residual, np.zeros(30), 3)
    args = z, residual, rng.random(30), prior
    theta = np.array([0.3, 0.5, 0.2, -0.4, -3.0])
    _, gradient = regression.negative_log_posterior(theta, *args)
    for k, step in enumerate(1e-5 * np.eye(5)):
        ends = [regression.negative_log_posterior(theta + s * step, *args)[0] for s in (1, -1)]
        assert gradient[k] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-5)


def test_a_quadratic_is_learned_exactly():
    rng = np.random.default_rng(3)
    L = np.array([[1.0, 0, 0], [0.5, 0.2, 0], [-3, 1, 4]])
    X = 5 + rng.standard_normal((40, 3)) @ L.T
    z = solve_triangular(L, (X - 5).T, lower=True)
    y = 12.0 - 0.5 * (z * z).sum(axis=0)
    process = regression.fit(X, y, np.full(3, 5.0), L)
    new = 5 + rng.standard_normal((100, 3)) @ L.T
    z = solve_triangular(L, (new - 5).T, lower=True)
    np.testing.assert_allclose(
        process.log_density(new), 12.0 - 0.5 * (z * z).sum(axis=0), atol=0.05)
    assert (np.linalg.eigvalsh(process.B) < 0).all()


def test_points_far_below_do_not_spoil_the_fit():
    rng = np.random.default_rng(4)
    X = np.vstack([rng.standard_normal((60, 2)), 1e3 * rng.standard_normal((20, 2))])
    y = -0.5 * (X * X).sum(axis=1) - 0.1 * np.minimum(X[:, 0], 50) ** 4
    process = regression.fit(X, y, np.zeros(2), np.eye(2))
    new = 0.8 * rng.standard_normal((100, 2))
    error = process.log_density(new) + 0.5 * (new * new).sum(axis=1) + 0.1 * new[:, 0] ** 4
    assert np.quantile(np.abs(error), 0.95) < 0.2
    assert (process.log_density(X[60:]) < -20).all()


def bent(X):
    """A log density whose first two coordinates are a banana."""
    return -0.5 * (X[:, 0] ** 2 / 4 + (X[:, 1] - X[:, 0] ** 2 / 4) ** 2
                   + (X[:, 2:] ** 2).sum(axis=1))


def test_standard_deviation_in_the_tails_is_about_the_error():
    """In the arms of a banana, beyond two standard deviations; it was a quarter of the error."""
    ratios = []
    for seed in range(6):
        X = np.random.default_rng(seed).standard_normal((2400, 4))
        X[:, 0] *= 2
        X[:, 1] += X[:, 0] ** 2 / 4
        called, new = X[:400], X[400:][np.abs(X[400:, 0]) > 4]
        process = regression.fit(
            called, bent(called), called.mean(axis=0), np.linalg.cholesky(np.cov(called.T)))
        error = bent(new) - process.log_density(new)
        ratios.append(np.sqrt(np.mean((error / process.sd(new)) ** 2)))
    assert np.median(ratios) < 3


def test_hyperparameters_use_each_of_few_points_once(monkeypatch):
    X = np.random.default_rng(7).standard_normal((60, 3))
    usual = regression.fit(X, bent(X), np.zeros(3), np.eye(3))
    monkeypatch.setattr(regression, "MOST_FOR_HYPERPARAMETERS", len(X))
    np.testing.assert_array_equal(
        usual.theta, regression.fit(X, bent(X), np.zeros(3), np.eye(3)).theta)


def test_standard_deviation_is_that_of_the_covariance():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 2))
    process = regression.fit(X, -0.5 * (X**4).sum(axis=1), np.zeros(2), np.eye(2))
    new = 2 * rng.standard_normal((9, 2))
    np.testing.assert_allclose(
        process.sd(new) ** 2, np.diag(process.covariance(new)), atol=1e-8)


def test_standard_deviation_includes_that_of_the_mean():
    """As of a process whose covariance includes that of a quadratic with normal coefficients."""
    rng = np.random.default_rng(6)
    X, new = rng.standard_normal((40, 2)), 4 * rng.standard_normal((9, 2))
    process = regression.fit(X, -0.5 * (X**4).sum(axis=1), np.zeros(2), np.eye(2))
    prior = np.diag(1 / regression.precision_of(2))

    def covariance(z, q):
        lengths, s2 = process.lengths, np.exp(2 * process.theta[-2])
        K = s2 * regression.matern(regression.squares(z / lengths, q / lengths))
        return K + regression.features(z) @ prior @ regression.features(q).T

    F = regression.features(process.z)
    C = process.cholesky @ process.cholesky.T + F @ prior @ F.T  # with the noise of the values
    across = covariance(new, process.z)
    whole = covariance(new, new) - across @ np.linalg.solve(C, across.T)
    np.testing.assert_allclose(process.covariance(new), whole, rtol=1e-4, atol=1e-4)
    assert (process.sd(6 * np.eye(2)) > 2 * process.sd(np.eye(2))).all()


# ---- the support ----


def test_walls_are_where_points_without_a_density_show_them():
    X = np.array([[0.5, 0.5], [0.1, 2.0], [-0.2, 1.0], [-3, 0.7], [0.3, -0.1], [9.0, 9], [0.3, 1]])
    y = np.array([0.0, -1, -np.inf, -np.inf, -np.inf, -np.inf, -np.inf])
    support = Support.of(X, y)
    np.testing.assert_array_equal(support.low, [-0.2, -0.1])
    np.testing.assert_array_equal(support.high, [np.inf, np.inf])  # (9, 9) is outside in both
    np.testing.assert_array_equal(support.outside, [[9, 9], [0.3, 1]])


def test_no_wall_where_every_point_has_a_density():
    support = Support.of(np.eye(3), np.zeros(3))
    assert np.isneginf(support.low).all()
    assert np.isposinf(support.high).all()
    assert support.outside.shape == (0, 3)


@pytest.mark.parametrize(("value", "found"), [(-1.6, True), (-2.0, False)])
def test_a_value_that_is_higher_than_expected(value, found):
    """Four standard deviations out a normal density falls by 8; 40 % of it, less 3, is expected."""
    X, y = np.array([[0.0, 0.0], [4.0, 0.0]]), np.array([0.0, value])
    calls = SimpleNamespace(finite=lambda: (X, y))
    point = higher_than_expected(X, y, calls, np.zeros(2), np.eye(2))
    assert np.array_equal(point, X[1]) if found else point is None


class Called:
    """A density that keeps its calls, as `Calls` does."""

    def __init__(self, f, *points):
        self.f, self.X, self.y = f, np.zeros((0, 2)), np.zeros(0)
        self(np.array(points, float))

    def __call__(self, X):
        y = np.array([self.f(x) for x in X])
        self.X, self.y = np.vstack([self.X, X]), np.concatenate([self.y, y])
        return y

    def finite(self):
        return self.X, self.y

    all = finite


def two(x):
    """The log density of two modes, 8 apart."""
    return float(np.logaddexp(-0.5 * x @ x, -0.5 * (x - [8, 0]) @ (x - [8, 0])))


@pytest.mark.parametrize(("f", "rising"), [
    (lambda x: -np.sqrt(1 + x @ x), True), (two, False),
    (lambda x: -np.sqrt(1 + x @ x) if x[0] < 3 else np.nan, False)])
def test_a_density_rises_all_the_way_to_its_mode(f, rising):
    calls = Called(f, [0, 0], [6, 0])
    assert rises(calls, np.array([6.0, 0.0])) is rising
    assert len(calls.y) == 5


def test_a_climb_ends_near_a_mode_that_is_known():
    known = near(np.zeros(2), np.eye(2))
    made = []
    for ends in ({}, {"is_known": known}):
        calls = Called(two, [3.9, 0])
        climb(calls, np.array([3.9, 0.0]), np.ones(2), **ends)
        made.append(len(calls.y))
    assert made[1] < 0.7 * made[0]
    assert known(calls.X[calls.y.argmax()])


# ---- how good it is ----


def test_efficiency():
    assert efficiency(np.zeros(10)) == pytest.approx(1)
    assert efficiency(np.array([0.0, -np.inf, -np.inf, -np.inf])) == pytest.approx(0.25)
    assert efficiency(np.full(3, -np.inf)) == 0
    shares = np.array([0.9, 0.1])
    assert efficiency(np.log([1.0, 2.0]), shares) == pytest.approx(1.1**2 / (0.9 + 0.4))


class Disappointed(Drawing):
    """Draws that take 400 calls each time, before their weights turn out to be bad."""

    def begin(self, learned):
        self.learned = learned
        self.weighting = SimpleNamespace()

    def tried(self):
        self.calls.n += 400
        return False

    def complete(self):
        """Nothing."""


def test_a_surrogate_is_learned_again_after_many_draws():
    """As long as calls are left for learning and for draws after it."""
    made = []
    watch = SimpleNamespace(drawn=0, requested=0)
    calls = SimpleNamespace(n=500, budget=2000, left=1500, evaluator=SimpleNamespace(watch=watch))

    def until_good(most):
        made.append((calls.n, most))
        calls.n = most

    rounds = SimpleNamespace(batch=30, final=SimpleNamespace, until_good=until_good,
                             begin_again=lambda states: None, ends=SimpleNamespace(unknown=0),
                             center=np.zeros(50))
    done = SimpleNamespace(calls=calls, lines=[])
    Disappointed(done, None, 4, 100, None, None, "PCG64", None, None).carry_out(rounds, 2000)
    assert made == [(900, 1080), (1480, 1550)]
    assert len(done.lines) == 2


def test_the_probability_of_as_many_successes():
    for n in range(21):
        for p in (0.0, 1e-3, 0.2, 1.0):
            np.testing.assert_allclose(at_least(n, 20, p), binom.sf(n - 1, 20, p), rtol=1e-12)
