"""A figure that is redrawn while a run goes on."""

import os
import time

import numpy as np
import pytest

import fastkam as fk
from fastkam.plots import LiveFigure

pytest.importorskip("matplotlib")


def slow_normal(x):
    time.sleep(2e-5)
    return -0.5 * float(x @ x)


def test_a_live_figure_follows_the_run(tmp_path, monkeypatch):
    """The figure is drawn during the run, from the last draws, and at its end."""
    path, pictures = tmp_path / "run.png", []
    live = LiveFigure(path, draws=50, seconds=1e-6, var_names=["theta", "no such"])
    monkeypatch.setattr(live, "cost", 0)
    drawn = live.figure

    def kept(seen, x):
        figure = drawn(seen, x)
        first = figure.axes[0].lines[0]
        np.testing.assert_array_equal(first.get_ydata(), seen.last_draws(50)[0, :, 1])
        assert first.get_xdata()[-1] == min(seen.draws) - 1
        titles = [axes.get_title(loc="left") for axes in figure.axes[:4:2]]
        assert titles == ["theta[0]", "theta[1]"]
        assert "['no such'], which are no parameters" in figure.get_suptitle()
        pictures.append(min(seen.draws))
        return figure

    monkeypatch.setattr(live, "figure", kept)
    options = {"sampler": "ram", "draws": 3000, "tune": 50, "search": False, "seed": 1, "chains": 2,
               "names": ["mu", "theta"], "shapes": {"theta": 2}, "diagnose": False}
    result = fk.sample(slow_normal, np.zeros(3), progress=live, **options)
    assert len(pictures) >= 2
    assert pictures[0] < pictures[-1] == 3000
    assert path.read_bytes()[:4] == b"\x89PNG"
    assert [one.name for one in tmp_path.iterdir()] == ["run.png"]
    plain = fk.sample(slow_normal, np.zeros(3), progress=False, **options)
    np.testing.assert_array_equal(result.draws, plain.draws)


def test_names_are_no_mathematics(tmp_path):
    live = LiveFigure(tmp_path / "run.png", seconds=1e-6, var_names=["$a\\x", "$b\\x", "$c"])
    fk.sample(lambda x: -0.5 * x @ x, np.zeros(2), progress=live, names=["$a\\x", "c$"], draws=50,
              tune=0, sampler="rwm", search=False, diagnose=False)
    live.show(live.last)  # no run takes an error for a notebook that is gone
    assert live.path.stat().st_size > 1000


@pytest.mark.parametrize(("given", "says"), [
    ({}, "path must be given outside of a notebook"),
    ({"path": "a.txt"}, "path must end with .png"), ({"path": "nowhere/a.png"}, "path must be"),
    ({"path": "a.png", "draws": 1}, "draws"), ({"path": "a.png", "seconds": 0}, "seconds"),
    ({"path": "a.png", "var_names": [1]}, "var_names"),
    ({"path": "a.png", "var_names": 3}, "var_names must be names, not 3"),
])
def test_live_figures_that_are_refused(given, says):
    with pytest.raises((TypeError, ValueError), match=says):
        LiveFigure(**given)


@pytest.mark.parametrize(("draws", "chains", "known"), [
    (300, 4, (True, True)), (300, 1, (True, False)), (3, 2, (False, False))])
def test_a_short_run_has_its_last_r_hat_and_ess(tmp_path, monkeypatch, draws, chains, known):
    live, figures = LiveFigure(tmp_path / "run.png"), []
    drawn = live.figure
    monkeypatch.setattr(live, "figure", lambda *seen: figures.append(drawn(*seen)) or figures[-1])
    result = fk.sample(lambda x: -0.5 * x @ x, np.zeros(2), sampler="ram", draws=draws, tune=20,
                       search=False, seed=1, chains=chains, diagnose=False, progress=live)
    table, panels = result.summary(), figures[-1].axes[-2:]
    values = [panel.lines[0].get_ydata() for panel in panels]
    assert [bool(np.isfinite(some).any()) for some in values] == list(known)
    assert [[text.get_text() for text in panel.texts] for panel in panels] == [
        [] if one else ["not known"] for one in known]
    for one, some, right in zip(known, values, (table["ess_bulk"].min(), table["r_hat"].max()),
                                strict=True):
        assert not one or some[-1] == pytest.approx(right, rel=1e-12)


def test_a_second_run_begins_a_new_figure(tmp_path):
    """The course of R-hat and ESS is its own, and so is the output in a notebook."""
    live, pasts, output = LiveFigure(tmp_path / "run.png"), [], object()
    live.handle = output
    for seed in range(2):
        fk.sample(slow_normal, np.zeros(2), sampler="ram", draws=1000, tune=50, seed=seed, chains=2,
                  progress=live, diagnose=False)
        pasts.append(list(live.past))
        assert (live.handle is output) == (seed == 0)
    assert pasts[1]
    assert not set(pasts[0]) & set(pasts[1])


def test_a_run_without_draws_has_a_figure_of_its_own(tmp_path):
    def interrupted(x):
        if live.last is not None:
            raise KeyboardInterrupt
        return slow_normal(x)

    live = LiveFigure(tmp_path / "run.png", seconds=1e-6)
    with pytest.warns(fk.SamplingWarning, match="interrupted"):
        result = fk.sample(interrupted, np.zeros(2), sampler="ram", draws=10, tune=10**6, seed=1,
                           search=False, chains=2, progress=live, diagnose=False)
    assert result.draws.shape[1] == 0
    assert live.ended


def test_a_path_through_a_link_leads_to_the_same_folder_as_for_the_system(tmp_path):
    (tmp_path / "other" / "folder").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "other" / "folder")
    path = tmp_path / "link" / ".."
    fk.sample(lambda x: -0.5 * float(x @ x), np.zeros(2), sampler="ram", draws=50, tune=5, seed=1,
              search=False, chains=2, diagnose=False, progress=LiveFigure(path / "run.png"),
              evaluations=path / "calls.fk", checkpoint=path / "check.fk")
    assert {one.name for one in tmp_path.iterdir()} == {"other", "link"}
    assert {one.name for one in (tmp_path / "other").iterdir()} == {
        "folder", "run.png", "calls.fk", "check.fk"}


def test_a_link_to_a_figure_stays_a_link(tmp_path):
    (tmp_path / "run.png").symlink_to(tmp_path / "picture")
    fk.sample(lambda x: -0.5 * float(x @ x), np.zeros(2), sampler="ram", draws=50, tune=5, seed=1,
              search=False, chains=2, diagnose=False, progress=LiveFigure(tmp_path / "run.png"))
    assert (tmp_path / "run.png").is_symlink()
    assert (tmp_path / "picture").read_bytes()[:4] == b"\x89PNG"


def test_a_function_that_changes_the_current_folder(tmp_path, monkeypatch):
    def density(x):
        os.chdir(elsewhere)
        return -0.5 * float(x @ x)

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    fk.sample(density, np.zeros(2), sampler="ram", draws=50, tune=0, seed=1, chains=2,
              progress=LiveFigure("run.png"), diagnose=False)
    assert (tmp_path / "run.png").exists()
    assert not any(elsewhere.iterdir())
