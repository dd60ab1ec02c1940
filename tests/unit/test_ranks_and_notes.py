"""Ranks of draws that are few, equal or not finite, and the notes on these below figures."""

import numpy as np
import pytest
from test_plots import saved, with_draws
from test_plots_of_odd_draws import texts

import fastkam as fk

pytest.importorskip("matplotlib")


def bars_of(axes):
    """The heights (chains, bins) of the bars in units of the expected number."""
    return [2 * (patch.get_data().values - patch.get_data().baseline) for patch in axes.patches]


def notes_of(figure):
    return [text.get_text() for text in figure.texts]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_only_finite_draws_have_ranks(value, tmp_path):
    """A fifth of the draws of one chain is not finite, and the others agree."""
    x = np.random.default_rng(1).standard_normal((2, 1000, 1))
    x[0, ::5] = value
    figure = fk.plots.plot_rank(with_draws(x))
    np.testing.assert_allclose(bars_of(figure.axes[0]), 1.0, atol=0.45)
    assert notes_of(figure) == ["200 of 2000 draws not finite"]
    saved(figure, tmp_path)


def test_ranks_of_a_chain_without_finite_draws(tmp_path):
    x = np.random.default_rng(1).standard_normal((3, 100, 1))
    x[1] = np.nan
    figure = fk.plots.plot_rank(with_draws(x))
    heights = bars_of(figure.axes[0])
    assert not np.any(heights[1])
    assert all(np.any(heights[k]) for k in (0, 2))
    saved(figure, tmp_path)


@pytest.mark.parametrize("chains", [1, 2, 9])
def test_ranks_say_that_a_coordinate_never_moves(chains):
    x = np.random.default_rng(1).standard_normal((chains, 50, 2))
    x[:, :, 0] = 3.0
    for figure, places in ((fk.plots.plot_rank(with_draws(x)), (0, 1)),
                           (fk.plots.plot_trace(with_draws(x)), (2, 5))):
        fixed, moving = (figure.axes[i] for i in places)
        assert (texts(fixed), texts(moving)) == (["never moves"], [])
        assert not [*fixed.patches, *fixed.images]


def test_chains_stuck_at_different_values_have_bars():
    x = np.repeat(np.arange(4.0), 50).reshape(4, 50, 1)
    (axes,) = fk.plots.plot_rank(with_draws(x)).axes
    assert (texts(axes), len(axes.patches)) == ([], 4)


@pytest.mark.parametrize(("chains", "few", "enough"), [(1, 19, 20), (2, 9, 10), (9, 9, 10)])
def test_few_draws_have_no_bars(chains, few, enough):
    x = np.random.default_rng(1).standard_normal((chains, enough, 1))
    (axes,) = fk.plots.plot_rank(with_draws(x[:, :few])).axes
    assert texts(axes) == ["too few draws"]
    assert not [*axes.patches, *axes.images]
    (axes,) = fk.plots.plot_rank(with_draws(x)).axes
    assert texts(axes) == []
    assert [*axes.patches, *axes.images]


@pytest.mark.parametrize("name", ["plot_trace", "plot_rank", "plot_pair", "plot_2d"])
def test_a_note_counts_the_draws_that_are_not_finite(name, tmp_path):
    x = np.random.default_rng(1).standard_normal((2, 50, 2))
    assert notes_of(getattr(fk.plots, name)(with_draws(x))) == []
    x[0, 3, 0], x[0, 3, 1], x[1, 4, 1], x[1, 7, 0] = np.nan, np.inf, -np.inf, np.nan
    figure = getattr(fk.plots, name)(with_draws(x))
    assert notes_of(figure) == ["3 of 100 draws not finite"]
    saved(figure, tmp_path)


@pytest.mark.parametrize("draws", [1, 2, 3])
def test_numbers_of_draws_are_integers(draws, tmp_path):
    x = np.random.default_rng(1).standard_normal((4, draws, 2))
    figure = fk.plots.plot_trace(with_draws(x))
    saved(figure, tmp_path)
    axes = figure.axes[3]
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
    assert ticks == [round(tick) for tick in ticks]
    assert ticks
