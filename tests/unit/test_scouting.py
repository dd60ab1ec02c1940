"""Searches beyond draws: modes count by their mass, and not by their height."""

import contextlib

import numpy as np
import pytest
from scipy import stats

from fastkam.diagnostics.normal_modes import approximation, log_mass
from fastkam.diagnostics.scouting import Budget, Scouting, Spent
from fastkam.evidence.proposals import fit
from fastkam.search.scales import find_scales

D, SD = 8, 2.0
PLACE = np.r_[0.0, np.full(D - 1, 30.0)]
WIDTH = 0.3


def funnel(x):
    """x_0 ~ N(0, SD^2), the others N(0, exp x_0): the mode, 7 SD below, has a mass of e^-25."""
    v, others = x[..., 0], x[..., 1:]
    return (-0.5 * (v / SD) ** 2 - 0.5 * np.exp(-v) * (others**2).sum(axis=-1)
            - 0.5 * (D - 1) * v)


def slope(x):
    v, others = x[0], x[1:]
    return float(funnel(x)), np.r_[-v / SD**2 + 0.5 * np.exp(-v) * (others @ others) - (D - 1) / 2,
                                   -np.exp(-v) * others]


def with_a_narrow_mode(mass):
    """The funnel, and a normal distribution with this part of its mass."""
    high = np.log(mass * SD) - D * np.log(WIDTH)
    return lambda x: np.logaddexp(
        funnel(x), high - 0.5 * (((x - PLACE) / WIDTH) ** 2).sum(axis=-1))


def draws(rng):
    v = SD * rng.standard_normal((4, 1000, 1))
    return np.concatenate([v, np.exp(v / 2) * rng.standard_normal((4, 1000, D - 1))], axis=2)


def searches(logp, seed, gradient=None, evaluations=1000):
    rng = np.random.default_rng(seed)
    z = draws(rng)
    return Scouting(z, logp(z), fit(z, rng), Budget(logp, evaluations), rng, gradient)


def test_the_mode_of_a_funnel_has_no_mass():
    """Nearly all searches with a gradient find it."""
    for seed in range(20):
        with np.errstate(all="ignore"), contextlib.suppress(Spent):
            assert not len(searches(funnel, seed, slope).place(1000))


@pytest.mark.parametrize(("mass", "counts"), [(0.3, True), (0.01, True), (1e-5, False)])
def test_a_mode_counts_by_its_mass(mass, counts):
    logp = with_a_narrow_mode(mass)
    for seed in range(5):
        some = searches(funnel, seed, evaluations=3000)
        some.budget.density = logp
        end, value = some.uphill(PLACE + 0.3 * np.random.default_rng(seed).standard_normal(D))
        np.testing.assert_allclose(end, PLACE, atol=0.01)
        some.level = value      # of any height
        assert some.is_new(end, value) == counts
        left = some.budget.left
        assert some.is_new(end + 0.001, value) == counts    # known from before
        assert counts or some.budget.left == left - 3


def test_a_mode_counts_if_its_mass_is_unknown():
    logp = with_a_narrow_mode(1e-5)
    some = searches(funnel, 1)
    some.budget = Budget(logp, 20)
    some.level = value = float(logp(PLACE))
    assert some.is_new(PLACE, value)


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("d", [1, 2, 10])
def test_the_mass_of_a_normal_mode(d, gradient):
    """Also if its coordinates are correlated, and in units that differ."""
    rng = np.random.default_rng(d)
    cov = stats.wishart(d + 2, np.eye(d)).rvs(random_state=rng).reshape(d, d)
    units = 10.0 ** rng.integers(-6, 7, d)
    normal = stats.multivariate_normal(np.zeros(d), cov)
    z = rng.standard_normal((2, 200, d))

    def slopes(x):
        return 0.0, -np.linalg.solve(cov, x / units) / units

    some = Scouting(z, -0.5 * (z**2).sum(axis=2), fit(z, rng),
                    Budget(lambda x: np.reshape(normal.logpdf(x / units), -1) + 3.0, 1000), rng,
                    slopes if gradient else None)
    scales = units * np.sqrt(2 / np.diag(np.linalg.inv(cov)))
    value = float(normal.logpdf(np.zeros(d))) + 3.0
    found = log_mass(value, approximation(some.budget, some.gradient, np.zeros(d), value, scales))
    assert found == pytest.approx(3.0 + np.log(units).sum(), abs=1e-6)


def test_a_neck_that_becomes_higher_without_an_end_has_no_mass():
    """x_0 has the density exp(x_0) far below 0, as the logarithm of a scale has."""
    def log_scale(x):
        v = x[..., 0]
        return v - 2 * np.log1p(np.exp(v)) - 0.5 * np.exp(-2 * v) * (x[..., 1:] ** 2).sum(
            axis=-1) - (D - 1) * v

    rng = np.random.default_rng(1)
    v = rng.logistic(size=(4, 1000, 1))
    z = np.concatenate([v, np.exp(v) * rng.standard_normal((4, 1000, D - 1))], axis=2)
    some = Scouting(z, log_scale(z), fit(z, rng), Budget(log_scale, 10**5), rng)
    masses = []
    for depth in (0.0, -12.0, -20.0):
        neck = np.r_[depth, np.zeros(D - 1)]
        value = float(log_scale(neck))
        scales, _ = find_scales(some.budget, neck, value)
        masses.append(log_mass(value, approximation(some.budget, None, neck, value, scales)))
        assert not some.counts(neck, value)
    assert masses[0] > some.least_log_z + np.log(0.01)   # the draws have it
    assert max(masses[1:]) < some.least_log_z + np.log(1e-3)


def spike(x):
    """The log of a scale, logistic, and a location that is known the better, the smaller it is.

    The density at the location 0 is constant far below 0, and v < depth has the mass e^depth.
    """
    v, location = x[..., 0], x[..., 1]
    return -2 * np.logaddexp(0, v) - 0.5 * (location * np.exp(np.minimum(-v, 300))) ** 2


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("depth", [-3.0, -5.0, -9.0])
def test_the_mass_where_the_density_is_nearly_flat(depth, gradient):
    """A normal density with the curvature along the scale has 1.8 exp(-depth / 2) times as much."""
    def slopes(x):
        v, location = x
        squares = (location * np.exp(-v)) ** 2
        return 0.0, np.array([-2 / (1 + np.exp(-v)) + squares, -location * np.exp(-2 * v)])

    rng = np.random.default_rng(1)
    z = rng.standard_normal((2, 200, 2))
    some = Scouting(z, spike(z), fit(z, rng), Budget(spike, 1000), rng,
                    slopes if gradient else None)
    place = np.array([depth, 0.0])
    value = float(spike(place))
    scales, _ = find_scales(some.budget, place, value)
    found = log_mass(value, approximation(some.budget, some.gradient, place, value, scales))
    assert 0 < found - depth - 0.5 * np.log(2 * np.pi) < 3.5


@pytest.mark.parametrize("seen", [True, False])
def test_a_mode_that_draws_have_visited_does_not_count(seen):
    """About 10 of 4000 draws of a spike are below -6. If none is below -1, it counts."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        v = rng.logistic(size=(4, 1000, 1))
        z = np.concatenate([v, np.exp(v) * rng.standard_normal(v.shape)], axis=2)
        if not seen:
            z = z[z[..., 0] > -1.0][:2800].reshape(4, 700, 2)
        some = Scouting(z, spike(z), fit(z, rng), Budget(spike, 1000), rng)
        place = np.array([-6.0, 0.0])
        assert some.counts(place, float(spike(place))) != seen


def ring(x):
    return -0.5 * ((np.hypot(x[..., 0], x[..., 1]) - 1) / 0.003) ** 2


def crescent(x):
    """Constant on a part of a ring."""
    r = np.hypot(x[..., 0], x[..., 1])
    return np.where((r > 0.9) & (r < 1) & (x[..., 0] > -0.5), 0.0, -np.inf)


def islands(x):
    """Constant on squares, which have 0.7 and 0.3 of the mass."""
    large, small = (((x > low) & (x < low + 1)).all(axis=-1) for low in (0, 100))
    with np.errstate(divide="ignore"):
        return np.log(0.7 * large + 0.3 * small)


def on_a_ring(rng, n, most=np.pi, width=0.003):
    angle, r = rng.uniform(-most, most, n), 1 + width * rng.standard_normal(n)
    return np.column_stack([r * np.cos(angle), r * np.sin(angle)])


def on_islands(rng, n, small=0.3):
    return rng.random((n, 2)) + 100 * (rng.random((n, 1)) < small)


def on_a_crescent(rng, n, low=-0.5):
    x = rng.uniform(-1, 1, (40 * n, 2))
    return x[np.isfinite(crescent(x)) & (x[:, 0] > low)][:n]


@pytest.mark.parametrize(("logp", "draw", "part", "left_out"), [
    (ring, on_a_ring, {"most": 2.0}, lambda x: x[:, 0] < -0.8),
    (crescent, on_a_crescent, {"low": 0.5}, lambda x: x[:, 0] < 0.3),
    (islands, on_islands, {"small": 0.0}, lambda x: x[:, 0] > 99)])
@pytest.mark.parametrize("evaluations", [1000, 3])
def test_bent_modes_and_plateaus_count_only_where_draws_leave_them_out(
        logp, draw, part, left_out, evaluations):
    rng = np.random.default_rng(1)
    places = draw(rng, 60, **({"width": 0.0} if logp is ring else {}))  # modes
    for z, points, counts in (
            (draw(rng, 4000), places[:20], False),
            (draw(rng, 4000, **part), places[left_out(places)], True)):
        z = z.reshape(4, 1000, 2)
        q = fit(z, rng)
        with np.errstate(all="ignore"):
            found = [Scouting(z, logp(z), q, Budget(logp, evaluations), rng).counts(
                point, float(logp(point))) for point in points]
        assert len(found) > 5
        assert np.mean(found) > 0.8 if counts else np.mean(found) < 0.15


TURN = 2 * np.pi


def spiral(x):
    """A ridge of one turn, whose ends are beside a jump: r = 1 + t / 2 at the angle t."""
    t = np.arctan2(x[..., 1], x[..., 0]) % TURN
    return -0.5 * ((np.hypot(x[..., 0], x[..., 1]) - 1 - t / 2) / 0.08) ** 2


def on_a_spiral(t, width, rng):
    r = 1 + t / 2 + width * rng.standard_normal(len(t))
    return np.stack([r * np.cos(t), r * np.sin(t)], axis=1)


@pytest.mark.parametrize("repeated", [1, 4])
def test_the_ends_of_a_ridge_beside_a_jump_are_among_the_draws(repeated):
    near = np.r_[np.linspace(0.001, 0.05, 10), TURN - np.linspace(0.001, 0.05, 10)]
    counted = {0.0: 0, 1.0: 0}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        for least in counted:       # the second time, draws leave the first part out
            t = rng.uniform(least, TURN, 20_000)
            t = t[rng.uniform(0, 1 + TURN / 2, len(t)) < 1 + t / 2][: 4000 // repeated]
            z = np.repeat(on_a_spiral(t, 0.08, rng), repeated, axis=0).reshape(4, 1000, 2)
            q = fit(z, rng)
            for point in on_a_spiral(near[: 10 if least else 20], 0.0, rng):
                counted[least] += Scouting(z, spiral(z), q, Budget(spiral, 1000), rng).counts(
                    point, float(spiral(point)))
    assert counted[0.0] <= 2    # of 100
    assert counted[1.0] >= 45   # of 50


def test_a_point_among_draws_of_a_lower_density_is_higher_than_these():
    """A narrow mode within a wide one: the draws around it have not been in it."""
    rng = np.random.default_rng(1)
    z = rng.standard_normal((4, 1000, 2))
    some = Scouting(z, -0.5 * (z**2).sum(axis=2), fit(z, rng), Budget(ring, 0), rng)
    assert some.among(np.zeros(2), 0.5)
    assert not some.among(np.zeros(2), 2.0)
    assert some.among(np.array([2.0, 0.0]), -1.5)
    assert not some.among(np.array([2.0, 0.0]), -0.3)


def test_a_point_at_which_a_chain_stayed_is_not_among_the_draws():
    rng = np.random.default_rng(1)
    z = rng.standard_normal((4, 1000, 2))
    z[0, :60] = 8.0
    some = Scouting(z, -0.5 * (z**2).sum(axis=2), fit(z, rng), Budget(ring, 0), rng)
    assert some.among(np.array([0.5, 0.5]))
    assert not some.among(np.array([8.0, 8.0]))


@pytest.mark.parametrize(
    ("stayed", "least", "otherwise"), [(3, 20, 3), (14, 17, 3), (60, 20, 6)])
def test_a_mode_in_which_a_chain_was_once_is_found(stayed, least, otherwise, monkeypatch):
    """Half of the mass is in a narrow mode, in which a chain has stayed at one point.

    The look finds it from there in nearly all runs, also if the fitted mixture has a component for
    these draws, unless that component holds many others. From elsewhere it finds the mode in 1 of
    10, or in half of the runs if many draws are there.
    """
    place = np.full(5, 8 / np.sqrt(5))

    def logp(x):
        narrow = -0.5 * (((x - place) / 0.35) ** 2).sum(axis=-1) - 5 * np.log(0.35)
        return np.logaddexp(-0.5 * (x**2).sum(axis=-1), narrow)

    def found(seed):
        rng = np.random.default_rng(seed)
        z = rng.standard_normal((4, 1000, 5))
        z[0, 100 : 100 + stayed] = place + 0.17 * rng.standard_normal(5)
        some = Scouting(z, logp(z), fit(z, rng), Budget(logp, 630), rng)
        with np.errstate(all="ignore"), contextlib.suppress(Spent):
            return [row[:5] for row in some.place(630)]
        return []

    places = [row for seed in range(20) for row in found(seed)]
    assert len(places) >= least
    np.testing.assert_allclose(places, [place] * len(places), atol=0.01)
    monkeypatch.setattr(Scouting, "apart", lambda some: np.empty((0, 5)))
    assert sum(len(found(seed)) for seed in range(10)) <= otherwise


@pytest.mark.parametrize(("share", "seen", "repeated", "counts"), [
    (0.003, 0, 1, True), (0.003, 1, 1, False), (0.01, 2, 1, True), (0.01, 2, 2, False),
    (0.03, 4, 1, True), (0.03, 4, 2, True), (0.03, 20, 1, False)])
def test_a_mode_in_which_chance_leaves_few_draws_does_not_count(share, seen, repeated, counts):
    """In the middle of the mode 3, 10 or 30 of 2000 draws are expected; a repeated draw is one."""
    def logp(x):
        far = stats.multivariate_normal([9.0, 0.0]).logpdf(x)
        return np.logaddexp(stats.multivariate_normal([0.0, 0.0]).logpdf(x), np.log(share) + far)

    place = np.array([9.0, 0.0])
    for seed in range(5):
        rng = np.random.default_rng(seed)
        z = rng.standard_normal((4, 500, 2))
        z[0, :seen] = place + 0.1 * rng.standard_normal((seen, 2))
        z = np.repeat(z[:, : 500 // repeated], repeated, axis=1)
        z[0, seen : seen * repeated] = 0.0
        some = Scouting(z, logp(z), fit(z, rng), Budget(logp, 1000), rng)
        assert some.counts(place, float(logp(place))) == counts


@pytest.mark.parametrize("away", [6.0, 30.0])
def test_a_point_of_large_weight_in_the_tails_is_no_mass(away, monkeypatch):
    """One point of g has all of the weight: further points around it have next to none."""
    first = Scouting.wide

    def lucky(some, n, *around):
        x, log_g = first(some, n, *around)
        if around:
            return x, log_g
        x[0] = some.center + some.L @ np.full(2, away / np.sqrt(2))
        return x, np.where(np.arange(n) == 0, -0.5 * away**2 - 8.0, log_g)

    monkeypatch.setattr(Scouting, "wide", lucky)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        z = rng.standard_normal((4, 500, 2))
        logp = lambda x: -0.5 * (x**2).sum(axis=-1)     # noqa: E731
        some = Scouting(z, logp(z), fit(z, rng), Budget(logp, 1000), rng)
        with contextlib.suppress(Spent):
            assert not len(some.place(1000))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_mass_around_a_place_is_estimated(d):
    """A mode of 3/7 of the draws' mass and six times their width, 60 standard deviations away.

    A part of it, a tenth at most, is not beyond all draws: the wide component of q reaches it.
    Without points around the place the error would be 5 to 30 times as large.
    """
    place = np.zeros(d)
    place[0] = 60.0

    def logp(x):
        squares = ((x - place) ** 2).sum(axis=-1) / 36
        return np.logaddexp(np.log(0.7) - 0.5 * (x**2).sum(axis=-1),
                            np.log(0.3) - 0.5 * squares - d * np.log(6))

    rng = np.random.default_rng(d)
    z = rng.standard_normal((4, 500, d))
    some = Scouting(z, logp(z), fit(z, rng), Budget(logp, 10**6), rng)
    found = [some.mass_beyond(250, place) for _ in range(400)]
    error = np.std(found) / 20
    assert error < 0.01
    assert 0.9 * 3 / 7 - 4 * error < np.mean(found) < 3 / 7 + 4 * error


@pytest.mark.parametrize(("d", "width"), [(2, 5.0), (5, 20.0), (10, 20.0)])
def test_mass_beyond_all_draws_is_estimated(d, width):
    """Three parts in ten are a wide distribution, without a mode of its own."""
    def logp(x):
        squares = (x**2).sum(axis=-1)
        return np.logaddexp(np.log(0.7) - 0.5 * squares,
                            np.log(0.3) - 0.5 * squares / width**2 - d * np.log(width))

    for seed in range(10):
        rng = np.random.default_rng(seed)
        z = rng.standard_normal((4, 500, d))
        some = Scouting(z, logp(z), fit(z, rng), Budget(logp, 1000), rng)
        place = some.place(1000)
        assert len(place) == 1
        assert 0.05 < place[0, -1] < 4      # of the draws' mass; 3 / 7 less what is among them
        assert (place[0, :-2] ** 2).sum() > 9
