"""Figures: what they hold, that they can be saved, and that they touch no global state."""

import dataclasses
import sys

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam.run.trace import Trace

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def result():
    return sample(lambda x: -0.5 * x @ x, np.zeros(3), draws=300, tune=200, chains=2, seed=1,
                  names=["a", "b"], shapes={"b": 2}, progress=False)


def test_trace(result, tmp_path):
    figure = fk.plots.plot_trace(result)
    assert [axes.get_ylabel() for axes in figure.axes[::2]] == ["a", "b[0]", "b[1]"]
    lines = figure.axes[0].lines
    assert len(lines) == 2
    np.testing.assert_array_equal(lines[1].get_ydata(), result.draws[1, :, 0])
    assert len(fk.plots.plot_trace(result, most=1).axes) == 2
    figure.savefig(tmp_path / "trace.png")
    assert (tmp_path / "trace.png").stat().st_size > 1000


def test_two_coordinates_over_the_density(result, tmp_path):
    figure = fk.plots.plot_2d(result, (0, 2), logp=lambda x: -0.5 * np.square(x).sum(axis=1),
                              bounds=[[-4, 4], [-5, 5]])
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("a", "b[1]")
    assert axes.get_xlim() == (-4, 4)
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), result.draws[0, :, 0])
    (contours,) = axes.collections
    # the density of a plane normal is 1 - mass where it is that much of its maximum
    np.testing.assert_allclose(contours.levels, [0.01, 0.1, 0.5], rtol=0.15)
    figure.savefig(tmp_path / "pair.pdf")


def test_bounds_hold_all_draws_by_default(result):
    axes = fk.plots.plot_2d(result).axes[0]
    assert axes.get_xlim()[0] < result.draws[..., 0].min()
    assert axes.get_ylim()[1] > result.draws[..., 1].max()


def test_no_global_state(result):
    fk.plots.plot_trace(result)
    import matplotlib.pyplot as plt

    assert plt.get_fignums() == []


def test_a_coordinate_that_never_moves_can_be_drawn():
    stuck = sample(lambda x: -0.5 * x[0] ** 2 if x[1] == 3 else -np.inf, [0.0, 3.0], draws=20,
                   tune=0, chains=1, seed=1, progress=False)
    fk.plots.plot_trace(stuck)
    fk.plots.plot_2d(stuck)


def test_bad_arguments(result):
    with pytest.raises(ValueError, match="pair must name coordinates below 3, not 3"):
        fk.plots.plot_2d(result, (0, 3))
    with pytest.raises(ValueError, match="most must be at least 1, not 0"):
        fk.plots.plot_trace(result, most=0)
    empty = fk.Result(dataclasses.replace(result.state, trace=Trace(2, 0, 3)))
    with pytest.raises(ValueError, match="no draws to plot"):
        fk.plots.plot_trace(empty)


def test_advice_without_matplotlib(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install fastkam\[plot\]"):
        fk.plots.plot_trace(result)
