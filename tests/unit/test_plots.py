"""Figures: what they hold, that they can be saved at two sizes, and touch no global state."""

import dataclasses
import sys

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam.diagnostics.draws import autocorrelation
from fastkam.plots import pair, proposals, select, style
from fastkam.run.trace import Trace

pytest.importorskip("matplotlib")
GENERAL = ("plot_trace", "plot_rank", "plot_autocorr", "plot_ess", "plot_pair")


def normal(x):
    return -0.5 * x @ x


@pytest.fixture(scope="module")
def result():
    return sample(normal, np.zeros(3), draws=300, tune=200, chains=2, seed=1, sampler="ram",
                  names=["a", "b"], shapes={"b": 2}, progress=False)


@pytest.fixture(scope="module")
def tempered():
    return sample(fk.targets.two_mode(), [-8.0, 0.0], sampler="pt", draws=300, tune=200, chains=3,
                  seed=1, progress=False)


def with_draws(x):
    """A result whose draws are x (chains, draws, d)."""
    chains, draws, d = x.shape
    result = sample(normal, np.zeros(d), draws=draws, tune=0, chains=chains, seed=1, sampler="rwm",
                    progress=False)
    result.trace.x[:] = x
    return result


def saved(figure, folder):
    """Save the figure at two sizes: layout warnings are errors here."""
    width, height = figure.get_size_inches()
    for scale in (1.0, 0.6):
        figure.set_size_inches(scale * width, scale * height)
        figure.savefig(folder / "figure.png")
        assert (folder / "figure.png").stat().st_size > 1000


# ---- which coordinates and draws ----


def titles(figure):
    return [text for axes in figure.axes if (text := axes.get_title(loc="left"))]


@pytest.mark.parametrize("name", GENERAL)
def test_names_choose_parameters_and_coordinates(result, name, tmp_path):
    plot = getattr(fk.plots, name)
    if name == "plot_pair":
        labels = [axes.get_xlabel() for axes in plot(result, ["b", "a"]).axes]
        assert [label for label in labels if label] == ["b[0]", "b[1]", "a"]
        return
    assert titles(plot(result)) == ["a", "b[0]", "b[1]"]
    assert titles(plot(result, "b")) == ["b[0]", "b[1]"]
    assert titles(plot(result, ["b[1]", "a"])) == ["b[1]", "a"]
    saved(plot(result), tmp_path)


@pytest.mark.parametrize("name", GENERAL)
def test_names_choose_extras(name, tmp_path):
    def logp(x):
        return -0.5 * x @ x, {"norm": np.sqrt(x @ x), "twice": 2 * x}

    result = sample(logp, np.zeros(2), draws=100, tune=100, chains=2, seed=1, sampler="ram",
                    progress=False)
    figure = getattr(fk.plots, name)(result, ["twice[1]", "norm", "x"])
    labels = ["twice[1]", "norm", "x[0]", "x[1]"]
    if name == "plot_pair":
        assert [text for axes in figure.axes if (text := axes.get_xlabel())] == labels
    else:
        assert titles(figure) == labels
    saved(figure, tmp_path)


def test_unknown_names_are_refused_with_the_nearest(result):
    with pytest.raises(ValueError, match=r"var_names has 'aa', and there are a, b: did you"):
        fk.plots.plot_trace(result, "aa")
    with pytest.raises(ValueError, match="var_names must name a parameter"):
        fk.plots.plot_rank(result, [])
    with pytest.raises(TypeError, match="var_names must be a name or a list of names, not 3"):
        fk.plots.plot_rank(result, 3)


def test_of_many_coordinates_the_worst_are_shown_with_a_note():
    x = np.random.default_rng(1).standard_normal((2, 400, 50))
    slow = [7, 31]
    x[:, :, slow] = np.cumsum(x[:, :, slow], axis=1) / 20
    figure = fk.plots.plot_autocorr(with_draws(x), most=2)
    assert titles(figure) == ["x[7]", "x[31]"]
    assert "2 of 50 coordinates, those with the smallest" in figure.texts[0].get_text()
    of_few_draws = fk.plots.plot_trace(with_draws(x[:, :3]), most=2)
    assert "2 of 50 coordinates, the first, since" in of_few_draws.texts[0].get_text()


@pytest.mark.parametrize("shape", [(1, 30, 1), (2, 10, 2), (12, 40, 3), (3, 60, 50)])
@pytest.mark.parametrize("name", GENERAL)
def test_few_and_many(name, shape, tmp_path):
    x = np.random.default_rng(1).standard_normal(shape)
    saved(getattr(fk.plots, name)(with_draws(x)), tmp_path)


@pytest.mark.parametrize("name", GENERAL)
def test_long_chains_are_thinned(name, tmp_path):
    x = np.random.default_rng(1).standard_normal((2, 300_000, 1))
    figure = getattr(fk.plots, name)(with_draws(x))
    assert max((len(line.get_xdata()) for axes in figure.axes for line in axes.lines),
               default=0) <= select.MOST_POINTS
    saved(figure, tmp_path)
    if name in ("plot_trace", "plot_autocorr", "plot_rank"):
        assert figure.texts[0].get_text() in (
            "every 75th draw", "of the last 100000 draws", "ranks of every 3rd draw")


@pytest.mark.parametrize("name", GENERAL)
def test_draws_that_are_not_finite_or_never_move(name, tmp_path):
    x = np.random.default_rng(1).standard_normal((2, 50, 3))
    x[0, 3, 0], x[1, 4, 0], x[:, :, 1], x[:, :, 2] = np.nan, np.inf, 3.0, np.nan
    with np.errstate(all="ignore"):
        saved(getattr(fk.plots, name)(with_draws(x)), tmp_path)


def test_labels_are_no_mathematics(tmp_path):
    result = sample(normal, np.zeros(2), draws=20, tune=0, seed=1, sampler="rwm", progress=False,
                    names=["$x^", "a_{b" * 30])
    for name in GENERAL:
        saved(getattr(fk.plots, name)(result), tmp_path)
    assert len(style.plain("a" * 200)) == style.MOST_LETTERS


# ---- one by one ----


def test_trace(result):
    figure = fk.plots.plot_trace(result)
    lines = figure.axes[0].lines
    assert len(figure.axes) == 9
    assert len(lines) == 2
    np.testing.assert_array_equal(lines[1].get_ydata(), result.draws[1, :, 0])
    assert len(fk.plots.plot_trace(result, most=1).axes) == 3


def test_rank_bars_show_a_chain_that_is_higher():
    x = np.random.default_rng(1).standard_normal((2, 500, 1))
    x[1] += 1
    (axes,) = fk.plots.plot_rank(with_draws(x)).axes
    low, high = (patch.get_data() for patch in axes.patches)
    heights = [2 * (stairs.values - stairs.baseline) for stairs in (low, high)]
    # each bar in units of the expected number; both chains together have it everywhere
    np.testing.assert_allclose(heights[0] + heights[1], 2.0, atol=0.11)
    assert heights[1][0] < 0.6 < 1.4 < heights[1][-1]


def test_one_chain_is_compared_with_itself():
    x = np.random.default_rng(1).standard_normal((1, 400, 1))
    x[0, 200:] += 2
    (axes,) = fk.plots.plot_rank(with_draws(x)).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1st half", "2nd half"]
    assert axes.patches[0].get_data().values[-1] < 0.2


def test_autocorrelation_is_that_of_its_definition():
    x = np.random.default_rng(1).standard_normal(200).cumsum()
    z = x - x.mean()
    expected = [z[k:] @ z[: len(z) - k] / (z @ z) for k in range(6)]
    np.testing.assert_allclose(autocorrelation(x)[:6], expected, atol=1e-12)


def test_ess_ends_at_that_of_the_summary(result):
    axes = fk.plots.plot_ess(result, "a").axes[0]
    bulk, tail = axes.lines[:2]
    assert bulk.get_xdata()[-1] == 300
    assert bulk.get_ydata()[-1] == pytest.approx(result.summary()["ess_bulk"][0])
    assert tail.get_ydata()[-1] == pytest.approx(result.summary()["ess_tail"][0])


def test_contours_hold_their_share_of_the_draws():
    from matplotlib.path import Path

    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 4000, 2)) @ np.array([[2.0, 0.0], [1.5, 0.5]])
    axes = fk.plots.plot_pair(with_draws(x)).axes[2]
    (contours,) = axes.collections
    points = x.reshape(-1, 2)
    shares = sorted(sum(Path(part).contains_points(points).mean() for part in level)
                    for level in contours.allsegs)
    # some 1 % less or more: the density is smoothed
    np.testing.assert_allclose(shares, sorted(pair.OF_DRAWS), atol=0.04)


def test_a_few_far_draws_do_not_squash_the_others():
    x = np.random.default_rng(1).standard_normal((2, 2000, 2))
    x[0, 0] = 1e6
    figure = fk.plots.plot_pair(with_draws(x))
    assert figure.axes[2].get_xlim()[1] < 10
    assert "of 4000 draws outside the axes" in figure.texts[0].get_text()


def test_equal_scales(result):
    axes = fk.plots.plot_pair(result, equal=True).axes
    widths = {round(float(np.diff(one.get_xlim())[0]), 9) for one in axes if one.get_visible()}
    assert len(widths) == 1
    assert fk.plots.plot_2d(result, equal=True).axes[0].get_aspect() == 1.0


def test_two_coordinates_over_the_density(result, tmp_path):
    figure = fk.plots.plot_2d(result, (0, "b[1]"), logp=lambda x: -0.5 * np.square(x).sum(axis=1),
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


def test_adaptation(result, tempered, tmp_path):
    figure = fk.plots.plot_adaptation(result)
    assert titles(figure) == ["S (diagonal)"]
    first = figure.axes[0].lines[0]
    np.testing.assert_array_equal(first.get_xdata(), result.adaptation["step"])
    np.testing.assert_array_equal(first.get_ydata(), result.adaptation["S"][0, :, 0, 0])
    saved(figure, tmp_path)
    assert titles(fk.plots.plot_adaptation(tempered, "ladder"))[0].startswith("ladder")
    with pytest.raises(ValueError, match="names has 'T', and what was learned is S"):
        fk.plots.plot_adaptation(result, "T")
    with pytest.raises(ValueError, match="has no course of adaptation: RandomWalk"):
        fk.plots.plot_adaptation(with_draws(np.zeros((1, 4, 1))))


def test_shares_of_modes(tempered, tmp_path):
    figure = fk.plots.plot_modes(tempered)
    share = (tempered.draws[:, :, 0] > 0).mean()
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert texts[1] == f"mode 1: {share:.3f} (0.500)"
    saved(figure, tmp_path)
    by_centers = fk.plots.plot_modes(tempered, [[-8, 0], [8, 0]], names=["left", "right"])
    texts = [text.get_text() for text in by_centers.axes[0].get_legend().get_texts()]
    assert texts[1] == f"right: {share:.3f}"


def test_many_modes_are_taken_together(tempered):
    figure = fk.plots.plot_modes(tempered, lambda x: np.arange(len(x)) % 12)
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert len(texts) == 7
    assert texts[-1].startswith("6 others: 0.5")
    assert "12 of 12 modes visited" in figure.texts[0].get_text()


def test_modes_must_be_known(result):
    with pytest.raises(ValueError, match="modes must be given"):
        fk.plots.plot_modes(result)
    with pytest.raises(TypeError, match="modes must return 600 integers, not float64"):
        fk.plots.plot_modes(result, lambda x: x[:, 0])
    with pytest.raises(ValueError, match="weights must be one per mode, of which there are 2, n"):
        fk.plots.plot_modes(result, np.eye(3)[:2], weights=[0.5, 0.3, 0.2])
    with pytest.raises(ValueError, match="weights must be probabilities that sum to 1"):
        fk.plots.plot_modes(result, np.eye(3)[:2], weights=[0.5, 0.6])
    with pytest.raises(ValueError, match=r"modes must be a function or centers \(k, 3\)"):
        fk.plots.plot_modes(result, [[0.0, 1.0]])


def test_ladder(tempered, result, tmp_path):
    figure = fk.plots.plot_ladder(tempered)
    known = fk.tempering(tempered)
    np.testing.assert_array_equal(figure.axes[0].lines[2].get_ydata(), known.ladder[2])
    np.testing.assert_array_equal(figure.axes[1].lines[1].get_ydata(), known.swap_rates[1])
    assert [bar.get_height() for bar in figure.axes[2].patches] == known.round_trips.tolist()
    saved(figure, tmp_path)
    with pytest.raises(ValueError, match="must be of ParallelTempering or Scout"):
        fk.plots.plot_ladder(result)


# ---- proposals ----


def test_proposals_have_the_covariance_that_was_learned(tmp_path):
    """Units may differ, and points are mapped to the user's coordinates."""
    target = fk.targets.Gaussian([0.0, 0.0], np.diag([1e4, 1e-4]))
    result = sample(target, np.zeros(2), sampler="ram", draws=300, tune=500, chains=2, seed=1,
                    progress=False)
    S = result.states[0]["kernel.S"] * result.scales[:, None]
    cloud = proposals.Proposals(result, 1).at(result.draws[0, 0])
    ratio = np.linalg.solve(S, (cloud - result.draws[0, 0]).T)
    np.testing.assert_allclose(ratio @ ratio.T / len(cloud), np.eye(2), atol=0.3)
    saved(fk.plots.plot_proposals(result, equal=False), tmp_path)


def test_proposals_of_kernel_adaptive_metropolis_are_those_of_its_formula():
    result = sample(fk.targets.banana(), np.zeros(8), sampler="kam", draws=200, tune=2000, chains=1,
                    seed=1, search=False, progress=False)
    found = proposals.Proposals(result, 1)
    spreads = [found.at(result.draws[0, row])[:, :2].std(axis=0) for row in (0, 199)]
    assert np.ptp(spreads, axis=0).max() > 0


def test_gradient_samplers_and_mixtures_propose(tmp_path):
    for sampler in ("mala", fk.ModeJumping()):
        result = sample(fk.targets.two_mode(), [[-8.0, 0.0], [8.0, 0.0]], sampler=sampler,
                        draws=100, tune=300, chains=2, seed=1, search=False, progress=False)
        saved(fk.plots.plot_proposals(result, points=2), tmp_path)


def test_proposals_that_cannot_be_shown(tempered, result, tmp_path):
    with pytest.raises(ValueError, match="ParallelTempering evaluates several points a step"):
        fk.plots.plot_proposals(tempered)
    result.save(tmp_path / "run.fk")
    with pytest.raises(ValueError, match="one from a file has none"):
        fk.plots.plot_proposals(fk.load(tmp_path / "run.fk"))
    with pytest.raises(ValueError, match="points must be 1 to 50 numbers of draws below 300"):
        fk.plots.plot_proposals(result, points=[300])


def test_points_of_proposals_are_apart():
    x = np.concatenate([np.full((50, 2), -8.0), np.full((50, 2), 8.0)])
    x += np.random.default_rng(1).standard_normal(x.shape)
    rows = proposals.far_apart(x, 2)
    assert np.sign(x[rows, 0]).sum() == 0
    assert proposals.far_apart(np.zeros((5, 2)), 3) == [0]


# ---- what all take ----


def test_axes_of_ones_own(result):
    figure = style.new_figure(6, 2)
    own = figure.subplots(1, 3)
    assert fk.plots.plot_autocorr(result, ax=own) is figure
    assert titles(figure) == ["a", "b[0]", "b[1]"]
    assert not figure.texts
    single = style.new_figure(3, 3)
    assert fk.plots.plot_2d(result, ax=single.subplots()) is single
    with pytest.raises(ValueError, match=r"ax must be 9 axes for this figure \(3 rows of 3\)"):
        fk.plots.plot_trace(result, ax=own)
    with pytest.raises(TypeError, match="ax must be matplotlib Axes"):
        fk.plots.plot_2d(result, ax=3)
    with pytest.raises(ValueError, match="ax and figsize exclude each other"):
        fk.plots.plot_2d(result, ax=single.axes[0], figsize=(3, 3))


def test_size(result, tempered):
    for figure in (fk.plots.plot_trace(result, figsize=(4, 3)),
                   fk.plots.plot_ladder(tempered, figsize=(4, 3)),
                   fk.plots.plot_modes(tempered, figsize=(4, 3))):
        assert figure.get_size_inches().tolist() == [4, 3]
    with pytest.raises(TypeError, match=r"figsize must be \(width, height\) in inches, not 4"):
        fk.plots.plot_rank(result, figsize=4)


def test_neighboring_colors_differ_in_gray():
    """The luminance, by the weights of ITU-R BT.709, of linear light."""
    def luminance(color):
        parts = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722]) ** (1 / 2.2)

    values = np.array([luminance(color) for color in style.COLORS])
    assert np.abs(np.diff(values)).min() > 0.08


def test_no_global_state(result):
    fk.plots.plot_trace(result)
    import matplotlib.pyplot as plt

    assert plt.get_fignums() == []


def test_bad_arguments(result):
    with pytest.raises(ValueError, match="pair must name coordinates below 3, not 3"):
        fk.plots.plot_2d(result, (0, 3))
    with pytest.raises(ValueError, match=r"pair must name single coordinates, and 'b' has 2"):
        fk.plots.plot_2d(result, ("a", "b"))
    with pytest.raises(ValueError, match=r"'b\[2\]' is none: did you mean 'b\[1\]'\?"):
        fk.plots.plot_2d(result, ("a", "b[2]"))
    with pytest.raises(ValueError, match="most must be at least 1, not 0"):
        fk.plots.plot_trace(result, most=0)
    with pytest.raises(ValueError, match="backend must be one of"):
        fk.plots.plot_trace(result, backend="bokeh")
    empty = fk.Result(dataclasses.replace(result.state, trace=Trace(2, 0, 3)))
    with pytest.raises(ValueError, match="no draws to plot"):
        fk.plots.plot_trace(empty)
    with pytest.raises(TypeError, match="result must be a Result, not 3"):
        fk.plots.plot_pair(3)


def test_advice_without_matplotlib(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install fastkam\[plot\]"):
        fk.plots.plot_trace(result)


# ---- arviz-plots ----


@pytest.mark.filterwarnings("ignore")  # of other packages
@pytest.mark.parametrize("name", GENERAL)
def test_arviz_plots_draws(result, name, tmp_path):
    pytest.importorskip("arviz_plots")
    figure = getattr(fk.plots, name)(result, "b", backend="arviz", figsize=(7, 4))
    assert figure.get_size_inches().tolist() == [7, 4]
    texts = {text.get_text() for axes in figure.axes
             for text in (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts)}
    assert any("b[1]" in text for text in texts)
    assert not any(text.startswith("a") for text in texts)
    figure.savefig(tmp_path / "figure.png")
    with pytest.raises(ValueError, match='ax must be absent with backend="arviz"'):
        getattr(fk.plots, name)(result, backend="arviz", ax=figure.axes[0])


def test_arviz_plots_that_cannot_be_imported(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz_plots", None)
    with pytest.raises(ImportError, match=r"needs arviz_plots: pip install 'fastkam\[arviz-plots"):
        fk.plots.plot_trace(result, backend="arviz")


def test_a_notebook_shows_figures(result):
    """Without pyplot IPython asks the figure itself for its picture."""
    figure = fk.plots.plot_trace(result)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_ranks_of_equal_draws_show_how_often_each_chain_has_them():
    """One of two chains has the larger of two values in 90 % of its draws, the other in 10 %."""
    x = np.zeros((2, 1000, 1))
    x[0, 100:] = x[1, 900:] = 1.0
    axes = fk.plots.plot_rank(with_draws(x)).axes[0]
    one, other = (bars.get_data().values - k for k, bars in enumerate(axes.patches))
    assert one[0] < 0.2 < 0.8 < one[-1]
    assert other[-1] < 0.2 < 0.8 < other[0]
