"""Figures of periodic coordinates: the ends of the period are one place."""

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam.plots import pair

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def result():
    """Draws of an angle with its mode at the ends of the period, and of a number."""
    problem = fk.Problem(
        lambda angle, b: 3 * np.cos(angle - np.pi) - 0.5 * (b - np.sin(angle)) ** 2,
        bounds={"angle": (-np.pi, np.pi), "b": (-np.inf, np.inf)},
        transforms={"angle": "periodic"}, derived=lambda angle, b: {"shifted": angle + 7})
    return sample(problem, {"angle": 3.0, "b": 0.0}, sampler="ram", draws=1000, tune=300, seed=1,
                  diagnose=False, progress=False)


def contours(axes):
    """The points of the contours, (n, 2)."""
    return np.concatenate([path.vertices for path in axes.collections[0].get_paths()])


@pytest.mark.parametrize("names", [None, ["b", "angle"]])
def test_contours_go_on_at_the_other_end(result, names):
    figure = fk.plots.plot_pair(result, names)
    k = 0 if names is None else 1
    points = contours(figure.axes[2])[:, k]
    assert points.min() < -np.pi
    assert points.max() > np.pi
    assert figure.axes[3 * k].get_xlim() == pytest.approx((-np.pi, np.pi))


def test_histograms_cover_the_period(result):
    trace = fk.plots.plot_trace(result, bins=10)
    assert trace.axes[0].get_ylim() == pytest.approx((-np.pi, np.pi))
    heights = trace.axes[1].patches[0].get_xy()[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((-np.pi, np.pi))
    shifted = fk.plots.plot_trace(result, ["shifted"])  # an extra has no period
    assert shifted.axes[0].get_ylim()[0] < 4


def test_equal_scales_and_truths_of_circles(result):
    figure = fk.plots.plot_pair(result, equal=True, truths={"angle": 3.1})
    width, height = (np.ptp(lim) for lim in (figure.axes[2].get_xlim(), figure.axes[2].get_ylim()))
    assert width == pytest.approx(height)
    figure.savefig("/dev/null", format="png")


def test_levels_do_not_depend_on_the_place_of_the_ends(monkeypatch):
    """Turned by half of the period, draws have the same contours."""
    rng, levels = np.random.default_rng(1), []
    monkeypatch.setattr(pair, "lines", lambda axes, places, density, found: levels.append(found))
    x = np.stack([rng.vonmises(0, 3, (4, 2000)), rng.standard_normal((4, 2000))], axis=2)
    turned = np.stack([np.mod(x[..., 0] + 2 * np.pi, 2 * np.pi) - np.pi, x[..., 1]], axis=2)
    limits = np.array([[-np.pi, np.pi], [-5, 5]])
    for some, wraps in ((x, (True, False)), (turned, (True, False)), (turned, (False, False))):
        pair.density_of_draws(None, some, limits, wraps)
    assert levels[1] == pytest.approx(levels[0], rel=0.05)
    assert levels[2] != pytest.approx(levels[0], rel=0.05)
