"""The climb from starts that are far from the mass."""

import numpy as np
import pytest

from fastkam.search.ascent import along, ascended, found_at


class Counted:
    """A log density of points (n, d), which counts them."""

    def __init__(self, f):
        self.f, self.n = f, 0

    def __call__(self, X):
        self.n += len(X)
        with np.errstate(all="ignore"):
            return np.array([float(self.f(x)) for x in X])


def climbed_from(f, x0):
    """The place where the climb ends, where it begins, and its evaluations."""
    f = Counted(f)
    x0 = np.array(x0, float)
    begin = found_at(f, x0, f(x0[None])[0])
    f.n = 0
    with np.errstate(all="ignore"):
        return ascended(f, begin), begin, f.n


@pytest.mark.parametrize("away", [1e3, 1e5, 1e7])
def test_far_from_a_normal_density(away):
    """Units differ by 10^6, and the coordinates are correlated."""
    sd = np.array([1e-3, 1.0, 1e3])
    P = np.linalg.inv(0.95 * np.ones((3, 3)) + 0.05 * np.eye(3))

    def f(x):
        u = x / sd
        return -0.5 * u @ P @ u

    place, _, n = climbed_from(f, away * sd)
    assert np.abs(place.x / sd).max() < 20
    assert n < 1200


def test_a_regression_from_a_start_without_thought():
    """Raw predictors, and a standard deviation that is far too small: log density -1e12."""
    rng = np.random.default_rng(1)
    height = rng.normal(170, 10, 500)
    pay = 100 * height + rng.normal(0, 2000, 500)

    def f(x):
        r = pay - x[0] - x[1] * height
        return -0.5 * (r @ r) * np.exp(-2 * x[2]) - 500 * x[2]

    place, begin, n = climbed_from(f, [0.1, 1.5, -1.0])
    best = -250 - 500 * np.log(2000)
    assert begin.logp < -1e10
    assert place.logp > best - 50
    assert n < 1000


def test_near_the_mass_only_a_look_is_made():
    place, begin, n = climbed_from(lambda x: -0.5 * x @ x, [3.0, -2.0, 5.0])
    assert place is begin
    assert n == 6


def schools(x):
    """A mean, the log of a spread and eight effects: without end where these equal their mean."""
    mean, log_sd, effects = x[0], x[1], x[2:10]
    r = (effects - mean) * np.exp(-log_sd)
    data = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]) - effects
    return -0.5 * r @ r - 7 * log_sd - 0.5 * (data / 12) @ (data / 12) - (mean / 10) ** 2 / 2


def test_the_neck_of_a_funnel_is_not_climbed():
    place, begin, _ = climbed_from(schools, np.zeros(10))
    assert place is begin


def test_newtons_method_does_not_lead_into_the_neck():
    """Two further coordinates are far off at the start, so that it is used."""
    def f(x):
        return schools(x) - 0.5 * (x[10] ** 2 - 1.9 * x[10] * x[11] + x[11] ** 2)

    place, _, _ = climbed_from(f, [*np.zeros(10), 500.0, 300.0])
    assert np.abs(place.x[10:]).max() < 50
    assert abs(place.x[1]) < 1e-6


def test_correlated_predictors_from_a_start_where_the_deviation_hardly_curves():
    """There a step of slope / curvature is far too long, and so is each of its parts."""
    rng = np.random.default_rng(4)
    X = 10 * (rng.normal(size=(100, 1)) + 0.3 * rng.normal(size=(100, 5)))
    y = X @ np.ones(5) + rng.normal(size=100)

    def f(x):
        r = y - X @ x[:5]
        return -0.5 * (r @ r) * np.exp(-2 * x[5]) - 100 * x[5]

    squares = np.linalg.lstsq(X, y, rcond=None)[1][0]
    place, _, n = climbed_from(f, rng.uniform(-2, 2, 6))
    assert place.logp > -50 - 50 * np.log(squares / 100) - 60
    assert n < 600


@pytest.mark.parametrize("peak", [150.0, 200.0, 300.0, 500.0, 700.0, 1100.0])
def test_a_step_along_a_line_is_near_the_best(peak):
    f = Counted(lambda x: -((x[0] - peak) ** 2))
    t, value = along(f, np.zeros(1), 0, 100.0, -(peak**2))
    assert abs(t - peak) <= peak / 3
    assert value == f(np.array([[t]]))[0]


@pytest.mark.parametrize("f", [lambda x: 3 * x[0], lambda x: x[0] ** 3])
def test_a_slope_without_an_end_is_not_climbed(f):
    place, begin, n = climbed_from(f, [1.0])
    assert place is begin
    assert n < 200


def test_a_wall_on_the_way():
    """The density is 0 for x < 0, and the mass is next to the wall."""
    place, _, _ = climbed_from(lambda x: -1e6 * x[0] if x[0] > 0 else -np.inf, [50.0])
    assert 0 < place.x[0] < 1e-3


def test_a_bend():
    """A banana, 300 standard deviations long, from a point far off its arms."""
    def f(x):
        return -0.5 * (x[0] / 300) ** 2 - 50 * (x[1] - x[0] ** 2 / 1000) ** 2

    place, _, n = climbed_from(f, [900.0, -500.0])
    assert place.logp > -10
    assert n < 1000
