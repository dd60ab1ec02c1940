"""Wrong arguments of figures and of the report: what the errors say."""

import inspect

import numpy as np
import pytest
from test_plots import with_draws

import fastkam as fk
from fastkam.testing.fits import Fit

pytest.importorskip("matplotlib")
FIGURES = [name for name in fk.plots.__all__ if name != "LiveFigure"]


@pytest.fixture(scope="module")
def result():
    return with_draws(np.random.default_rng(1).standard_normal((2, 30, 3)))


@pytest.fixture(scope="module")
def calibrated():
    rng = np.random.default_rng(1)
    fits = [Fit(np.zeros(1), {"mu": int(rng.integers(0, 11)), "sigma": int(rng.integers(0, 11))},
                {"mu": 0, "sigma": 0}, set(), 100.0) for _ in range(20)]
    return fk.testing.Calibration.of(fits, 10, 0.01)


@pytest.mark.parametrize("name", FIGURES)
def test_a_misspelled_argument_is_reported_with_the_nearest(result, name):
    with pytest.raises(TypeError, match=rf"^{name}\(\) has no argument 'figsiz': did you mean 'fi"):
        getattr(fk.plots, name)(result, figsiz=(3, 3))
    assert next(iter(inspect.signature(getattr(fk.plots, name)).parameters)) == "result"


def test_a_misspelled_argument_of_a_method(result, calibrated, tmp_path):
    with pytest.raises(TypeError, match=r"^report\(\) has no argument 'titles': did you mean"):
        result.report(tmp_path / "run.html", titles="A run")
    with pytest.raises(TypeError, match=r"^LiveFigure\(\) has no argument 'second': did you mean"):
        fk.plots.LiveFigure(tmp_path / "run.png", second=3)
    with pytest.raises(TypeError, match=r"^plot\(\) has no argument 'name': did you mean 'names'"):
        calibrated.plot(name="mu")


def test_ranks_of_a_single_name(calibrated):
    assert [axes.get_title().partition(",")[0] for axes in calibrated.plot(names="sigma").axes] == [
        "sigma"]
    with pytest.raises(ValueError, match=r"names has 'sigm', .*did you mean 'sigma'"):
        calibrated.plot(names="sigm")
    with pytest.raises(TypeError, match="names must be a list, not 3"):
        calibrated.plot(names=3)
    with pytest.raises(ValueError, match="names has 3, and ranks are of"):
        calibrated.plot(names=[3])


def test_too_many_arguments_by_place(result, tmp_path):
    with pytest.raises(TypeError, match=r"^report\(\) takes only path as positional arguments, not "
                                        "2: name the others, as title='A run'"):
        result.report(tmp_path / "run.html", "A run")


@pytest.mark.parametrize("name", ["plot_2d", "plot_proposals"])
@pytest.mark.parametrize(("pair", "error", "words"), [
    ("x", TypeError, r"pair must be two coordinates, by number or label, as \(0, 1\), not 'x'"),
    (3, TypeError, r"pair must be two coordinates, by number or label, as \(0, 1\), not 3"),
    ((0.5, 1), TypeError, r"pair must have numbers or labels .*, as \(0, 1\), not 0.5"),
    ((0, True), TypeError, r"pair must have numbers or labels .*, as \(0, 1\), not True"),
    ((0, 0), ValueError, r"pair must be two different coordinates, not \(0, 0\)"),
    ((1, "x[1]"), ValueError, r"pair must be two different coordinates, not \(1, 'x\[1\]'\)"),
    ((0, 1, 2), ValueError, r"pair must be two coordinates, not \(0, 1, 2\)"),
])
def test_pairs(result, name, pair, error, words):
    with pytest.raises(error, match=words):
        getattr(fk.plots, name)(result, pair)


@pytest.mark.parametrize("name", FIGURES)
def test_draws_are_no_result(result, name):
    with pytest.raises(TypeError, match=r"^result must be a Result, not an array of float64, shape "
                                        r"\(2, 30, 3\)[a-z, -]*$"):
        getattr(fk.plots, name)(result.draws)


@pytest.mark.parametrize("name", ["r_hat", "ess_bulk", "summary", "esjd", "ess_geyer"])
def test_a_result_is_no_draws(result, name):
    with pytest.raises(TypeError, match=r"must be an array, not <Result .*>: use result\.draws$"):
        getattr(fk.diagnostics, name)(result)
