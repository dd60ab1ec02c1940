"""True values in figures: which are drawn where, and which are refused."""

import numpy as np
import pytest
from runs import sample

import fastkam as fk

pytest.importorskip("matplotlib")


def logp(x):
    return -0.5 * x @ x, {"total": x.sum()}


@pytest.fixture(scope="module")
def result():
    return sample(logp, np.zeros(3), draws=300, tune=200, chains=2, seed=1, sampler="ram",
                  names=["a", "b"], shapes={"b": 2}, progress=False)


def dashed(axes):
    """Places of the dashed lines of a panel, (upright, level)."""
    lines = [line for line in axes.lines if line.get_linestyle() == "--"]
    upright = [line.get_xdata()[0] for line in lines if line.get_xdata()[0] == line.get_xdata()[1]]
    return upright, [line.get_ydata()[0] for line in lines
                     if line.get_ydata()[0] == line.get_ydata()[1]]


GIVEN = [{"a": 0.5, "b": [None, 1.5]}, [0.5, np.nan, 1.5], {"a": [0.5], "b[1]": 1.5, "b[0]": None}]


@pytest.mark.parametrize("truths", GIVEN)
def test_lines_are_at_the_truths(result, truths):
    panels = np.reshape(fk.plots.plot_pair(result, truths=truths).axes, (3, 3))
    known = {0: [0.5], 1: [], 2: [1.5]}
    for i in range(3):
        assert dashed(panels[i, i]) == (known[i], [])
        for j in range(i):
            assert dashed(panels[i, j]) == (known[j], known[i])
    rows = np.reshape(fk.plots.plot_trace(result, truths=truths).axes, (3, 3))
    for i in range(3):
        assert [dashed(one) for one in rows[i, :2]] == 2 * [([], known[i])]
    axes = fk.plots.plot_2d(result, (2, 0), truths=truths).axes[0]
    assert dashed(axes) == ([1.5], [0.5])


def test_truths_of_extras(result):
    figure = fk.plots.plot_trace(result, ["total", "b[1]"], truths={"total": 1.0, "a": 3.0})
    assert dashed(figure.axes[0]) == ([], [1.0])
    assert dashed(figure.axes[3]) == ([], [])
    axes = fk.plots.plot_2d(result, ("a", "total"), truths={"total": 1.0}).axes[0]
    assert dashed(axes) == ([], [1.0])


@pytest.mark.parametrize("name", ["plot_trace", "plot_pair", "plot_2d"])
def test_a_truth_beyond_the_draws_widens_the_axes_or_is_in_a_note(result, name):
    top = float(result["a"].max())
    figure = getattr(fk.plots, name)(result, truths={"a": top + 2})
    assert not figure.texts
    assert any(top + 2 in where for axes in figure.axes for where in dashed(axes))
    plain = getattr(fk.plots, name)(result)
    for away in (1e3, -1e3):
        figure = getattr(fk.plots, name)(result, truths={"a": away})
        assert figure.texts[0].get_text() == f"true a = {away:.0f} outside the axes"
    assert [axes.get_xlim() for axes in figure.axes] == [axes.get_xlim() for axes in plain.axes]
    assert not any(where for axes in figure.axes for where in dashed(axes))


def test_axes_without_a_truth_go_on_adapting(result):
    axes = fk.plots.plot_trace(result, truths={"a": 0.0}).axes[::3]
    assert [one.get_autoscaley_on() for one in axes] == [False, True, True]


def test_own_bounds_stay(result):
    axes = fk.plots.plot_2d(result, bounds=[[-1, 1], [-1, 1]], truths={"a": 1.5}).axes[0]
    assert axes.get_xlim() == (-1, 1)


@pytest.mark.parametrize(("truths", "message"), [
    ({"aa": 1.0}, "truths has 'aa', and there are a, b, total: did you mean 'a'"),
    ({3: 1.0}, "truths has 3"),
    ({"b": 1.0}, r"truths\['b'\] must have shape \(2,\), not \(\)"),
    ([1.0, 2.0], r"truths must have shape \(3,\), not \(2,\)"),
    ({"a": np.inf}, r"truths\['a'\] must be finite, or NaN where the truth is unknown, not inf"),
    ("far", "truths must be an array of numbers, not 'far'"),
])
def test_wrong_truths(result, truths, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fk.plots.plot_pair(result, truths=truths)


def test_truths_of_a_single_coordinate():
    one = sample(lambda x: -0.5 * x @ x, [0.0], draws=100, tune=100, chains=2, seed=1,
                 sampler="rwm", progress=False)
    assert dashed(fk.plots.plot_trace(one, truths=0.5).axes[0]) == ([], [0.5])


def test_arviz_draws_no_truths(result):
    with pytest.raises(ValueError, match='truths must be absent with backend="arviz"'):
        fk.plots.plot_trace(result, truths={"a": 0.0}, backend="arviz")
