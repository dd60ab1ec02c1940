"""Figures and tables of some coordinates, of which others are fixed by a transform or stuck."""

import numpy as np
import pytest
from test_plots import titles, with_draws

import fastkam as fk
from fastkam import report

pytest.importorskip("matplotlib")


def with_fixed_and_stuck(d=12):
    """Draws (3, 100, d): 0.1 and 1 in some coordinates, and in the last another in each chain."""
    x = np.random.default_rng(1).standard_normal((3, 100, d))
    x[:, :, ::2] = np.where(np.arange(0, d, 2) % 4, 0.1, 1.0)
    x[:, :, -1] = np.arange(3.0)[:, None]
    return x


def test_fixed_coordinates_are_chosen_last_and_stuck_ones_first():
    result = with_draws(with_fixed_and_stuck())
    assert titles(fk.plots.plot_rank(result, most=1)) == ["x[11]"]
    assert titles(fk.plots.plot_rank(result, most=6)) == [f"x[{i}]" for i in range(1, 12, 2)]
    assert titles(fk.plots.plot_rank(result, most=7)) == ["x[0]", *(
        f"x[{i}]" for i in range(1, 12, 2))]


def test_fixed_coordinates_are_last_in_the_table_of_a_report(monkeypatch):
    monkeypatch.setattr(report, "MOST_ROWS", 6)
    rows = report.table_of(fk.diagnostics.summary(with_fixed_and_stuck()))
    assert [f"<th>x[{i}]</th>" in rows for i in range(12)] == [False, True] * 6


def test_draws_that_are_not_finite_are_still_chosen_first():
    x = with_fixed_and_stuck()
    x[0, 5, 3] = np.nan
    assert titles(fk.plots.plot_rank(with_draws(x), most=1)) == ["x[3]"]
