"""Figures of few draws, of one coordinate, and of coordinates that never move."""

import numpy as np
import pytest
from runs import sample
from test_plots import saved, with_draws

import fastkam as fk
from fastkam import report
from fastkam.plots import select, style

pytest.importorskip("matplotlib")


def texts(axes):
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["plot_autocorr", "plot_ess"])
def test_an_empty_panel_says_why(name, value, tmp_path):
    x = np.random.default_rng(1).standard_normal((2, 50, 3))
    x[:, :, 1], x[:, 3, 2] = 3.0, value
    figure = getattr(fk.plots, name)(with_draws(x))
    assert [texts(axes) for axes in figure.axes] == [[], ["never moves"], ["not finite"]]
    saved(figure, tmp_path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_coordinate_without_finite_draws_is_no_good_mixing(value, tmp_path):
    x = np.random.default_rng(1).standard_normal((4, 50, 2))
    x[:, :, 0] = value
    result, none = with_draws(x), ["not finite"]
    figure = fk.plots.plot_rank(result)
    assert [texts(axes) for axes in figure.axes] == [none, []]
    assert [len(axes.patches) for axes in figure.axes] == [0, 4]
    saved(figure, tmp_path)
    figure = fk.plots.plot_trace(result)
    assert [texts(axes) for axes in figure.axes] == [none, [], none, [], [], []]
    saved(figure, tmp_path)
    figure = fk.plots.plot_pair(result)
    assert [texts(axes) for axes in figure.axes] == [none, [], none, []]
    assert [text.get_text() for text in figure.texts] == ["200 of 200 draws not finite"]
    saved(figure, tmp_path)


@pytest.mark.parametrize("visited", [0, 1])
def test_a_mode_without_draws_has_a_share_of_zero(visited, tmp_path):
    centers, share = [[-10.0, -10.0], [10.0, 10.0]], ["0.000", "0.000"]
    share[visited] = "1.000"
    x = np.random.default_rng(1).standard_normal((2, 60, 2)) + centers[visited]
    for names, shown in ((None, ["mode 0", "mode 1"]), (["left", "right"], ["left", "right"])):
        figure = fk.plots.plot_modes(with_draws(x), centers, names=names)
        legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        assert legend == [f"{name}: {value}" for name, value in zip(shown, share, strict=True)]
        saved(figure, tmp_path)
    with pytest.raises(ValueError, match="names must be 2 texts, one per mode"):
        fk.plots.plot_modes(with_draws(x), centers, names=["one"])


Z = np.random.default_rng(1).standard_normal((2, 60, 2))
ODD = {"few numbers": 1.7e9 + 1e-6 * Z, "large and even": 1e16 + 2 * np.round(Z),
       "constant": np.full_like(Z, 1e17), "largest": 1.7e308 * np.sign(Z),
       "largest constant": np.full_like(Z, 1.7e308), "smallest": 5e-324 * np.round(Z)}


@pytest.mark.parametrize("name", ["plot_trace", "plot_pair", "plot_2d"])
@pytest.mark.parametrize("odd", ODD)
def test_draws_of_few_numbers_and_the_largest_ones(odd, name, tmp_path):
    figure = getattr(fk.plots, name)(with_draws(ODD[odd]))
    figure.savefig(tmp_path / "figure.png", dpi=40)
    limits = np.array([(axes.get_xlim(), axes.get_ylim()) for axes in figure.axes])
    assert np.isfinite(np.diff(limits)).all()


def test_one_draw_is_seen(tmp_path):
    result = with_draws(np.random.default_rng(1).standard_normal((4, 1, 2)))
    figures = [fk.plots.plot_trace(result),
               fk.plots.plot_modes(result, [[-1.0, 0.0], [1.0, 0.0]])]
    for figure in figures:
        assert all(line.get_marker() == "o" for line in figure.axes[0].lines)
        assert figure.axes[0].get_xlim()[1] - figure.axes[0].get_xlim()[0] >= 1
        saved(figure, tmp_path)


def test_a_field_of_one_element_has_a_color_for_each_chain():
    result = sample(lambda x: -0.5 * x @ x, np.zeros(1), draws=10, tune=100, chains=3, seed=1,
                    sampler="ram", progress=False)
    lines = fk.plots.plot_adaptation(result).axes[0].lines
    assert [line.get_color() for line in lines] == list(style.COLORS[:3])


def test_learned_fields_are_in_the_units_of_the_sampler(tmp_path):
    result = sample(lambda x: -0.5 * x @ x, np.zeros(2), draws=10, tune=100, chains=2, seed=1,
                    sampler="ram", progress=False)
    figure = fk.plots.plot_adaptation(result)
    assert [axes.get_ylabel() for axes in figure.axes] == ["sampler's units"]
    assert "after transforms, divided by result.scales" in figure.texts[0].get_text()
    saved(figure, tmp_path)
    captions = dict(report.wanted(result))
    assert "divided by result.scales" in captions[fk.plots.plot_adaptation]


def test_ellipses_are_within_the_axes():
    """The ellipses of random-walk proposals are much wider than the draws."""
    result = sample(lambda x: -0.5 * x @ x, np.zeros(2), draws=300, tune=300, chains=2, seed=1,
                    sampler=fk.RandomWalk(proposal_cov=2.8), progress=False, search=False)
    axes = fk.plots.plot_proposals(result).axes[0]
    low, high = np.array([axes.get_xlim(), axes.get_ylim()]).T
    for ellipse in axes.patches:
        corners = ellipse.get_verts()
        corners = axes.transData.inverted().transform(corners)
        assert (corners > low).all()
        assert (corners < high).all()


@pytest.mark.parametrize("ratio", [5.0, 100.0])
def test_scales_of_proposals_are_equal_unless_a_panel_would_be_a_line(ratio, tmp_path):
    result = sample(lambda x: -0.5 * (x[0] ** 2 + (x[1] / ratio) ** 2), np.zeros(2), draws=200,
                    tune=200, chains=2, seed=1, sampler="ram", progress=False)
    figure = fk.plots.plot_proposals(result)
    assert figure.axes[0].get_aspect() == (1.0 if ratio < 10 else "auto")
    assert max(figure.get_size_inches()) < 2.5 * min(figure.get_size_inches())
    assert fk.plots.plot_proposals(result, equal=True).axes[0].get_aspect() == 1.0
    assert fk.plots.plot_proposals(result, equal=False).axes[0].get_aspect() == "auto"
    saved(figure, tmp_path)
    with pytest.raises(TypeError, match="equal must be True or False, not 1"):
        fk.plots.plot_proposals(result, equal=1)


@pytest.mark.parametrize("name", ["plot_2d", "plot_proposals"])
def test_one_coordinate_is_no_pair(name):
    result = with_draws(np.random.default_rng(1).standard_normal((2, 30, 1)))
    with pytest.raises(ValueError, match=r"result must have two coordinates, .* fk\.plots\.plot_"
                                         "trace shows one"):
        getattr(fk.plots, name)(result)


@pytest.mark.parametrize("of", ["a", "ab"])
def test_extras_in_a_figure_of_two(of, tmp_path):
    """Beside a coordinate, even if there is only one, or two of them."""
    def f(x):
        return -0.5 * float(x @ x), {"k": 2 * x[0], "v": x[0] * np.arange(3.0), "w": 1.0}

    result = sample(f, np.zeros(len(of)), names=list(of), draws=60, tune=20, seed=1,
                    sampler="rwm", search=False, progress=False, diagnose=False)
    for pair, labels in ((("k", "a"), ["k", "a"]), ((0, "v[2]"), ["a", "v[2]"]),
                         (("k", "w"), ["k", "w"])):
        figure = fk.plots.plot_2d(result, pair)
        axes = figure.axes[0]
        assert [axes.get_xlabel(), axes.get_ylabel()] == labels
        saved(figure, tmp_path)
    figure = fk.plots.plot_2d(result, ("a", "k"), logp=lambda X: -0.5 * np.square(X).sum(axis=1))
    x, y = figure.axes[0].lines[0].get_data()
    np.testing.assert_allclose(y, 2 * x)
    with pytest.raises(ValueError, match=r"pair must name single .*'v' has 3: v\[0\], \.\.\."):
        fk.plots.plot_2d(result, ("a", "v"))
    with pytest.raises(ValueError, match="'kk' is none: did you mean 'k'"):
        fk.plots.plot_2d(result, ("a", "kk"))
    if of == "ab":
        with pytest.raises(ValueError, match="'k' is an extra, of which there are no proposals"):
            fk.plots.plot_proposals(result, ("a", "k"))


def test_axes_whose_tick_labels_are_hidden():
    result = with_draws(np.random.default_rng(1).standard_normal((2, 50, 2)))
    own = style.new_figure(3, 3).subplots(2, 1, sharex=True)
    fk.plots.plot_rank(result, ax=own)
    assert [label.get_ha() for label in own[1].get_xticklabels()] == ["left", "right"]
    own = style.new_figure(5, 3).subplots(2, 3)
    for _ in range(2):
        fk.plots.plot_trace(result, ax=own)


def test_contours_of_a_density_that_is_nan_somewhere():
    result = with_draws(np.random.default_rng(1).standard_normal((2, 50, 2)))
    def logp(X, what=np.nan):
        return np.where(X[:, 0] < -1, what, -0.5 * np.square(X).sum(axis=1))

    (contours,) = fk.plots.plot_2d(result, logp=logp).axes[0].collections
    assert contours.levels[0] > 0
    for wrong in (lambda X: logp(X, np.inf), lambda X: np.full(len(X), np.nan)):
        with pytest.raises(ValueError, match=r"logp must be below \+inf, and finite somewhere"):
            fk.plots.plot_2d(result, logp=wrong)


@pytest.mark.parametrize(("every", "words"), [
    (1, ""), (2, "every 2nd draw"), (3, "every 3rd draw"), (11, "every 11th draw"),
    (22, "every 22nd draw"), (101, "every 101st draw"), (112, "every 112th draw")])
def test_ordinals(every, words):
    assert select.spaced(every) == words


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("kind", ["cauchy", "t2", "lognormal"])
def test_heavy_tails_leave_room_for_the_other_draws(kind, unit, tmp_path):
    rng = np.random.default_rng(1)
    z = {"cauchy": rng.standard_cauchy, "t2": lambda size: rng.standard_t(2, size),
         "lognormal": lambda size: np.exp(2 * rng.standard_normal(size))}[kind]((4, 1000))
    x = np.stack([z, rng.standard_normal(z.shape)], axis=2) * unit
    lost, inner = np.quantile(x[..., 0], [0.25, 0.75]), x[..., 0]
    trace = fk.plots.plot_trace(with_draws(x))
    pair = fk.plots.plot_pair(with_draws(x))
    for limits in (trace.axes[0].get_ylim(), pair.axes[0].get_xlim()):
        width = limits[1] - limits[0]
        assert width < 40 * (lost[1] - lost[0])
        away = int(((inner < limits[0]) | (inner > limits[1])).sum())
        assert 0 < away <= 0.04 * inner.size
    assert trace.axes[0].get_title(loc="left") == f"x[0] ({away} of 4000 draws outside)"
    assert trace.axes[3].get_title(loc="left") == "x[1]"
    assert f"{away} of 4000 draws outside the axes" in pair.texts[-1].get_text()
    for figure in (trace, pair):
        saved(figure, tmp_path)


def test_a_small_mode_far_away_is_no_tail():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((4, 1000))
    x[:, :12] += 60.0
    for some in (x, -x):
        low, high = select.range_of(some.ravel(), 30)
        assert low < some.min()
        assert high > some.max()


@pytest.mark.parametrize("x", [
    np.zeros(4000), np.r_[np.zeros(3999), 1.0], np.array([1e300, -1e300, 0.0]), np.array([3.0]),
    np.arange(4000.0), np.r_[np.zeros(3000), np.arange(1000.0)]],
    ids=["constant", "one", "large", "single", "uniform", "half"])
def test_light_tails_are_whole(x):
    low, high = select.range_of(x, 30)
    assert low < x.min()
    assert high > x.max()


def test_chains_are_named_beside_their_colors():
    x = np.random.default_rng(1).standard_normal((3, 50, 2))
    figure = fk.plots.plot_trace(with_draws(x))
    legend = figure.axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["chain 0", "1", "2"]
    assert [line.get_color() for line in legend.get_lines()] == list(style.COLORS[:3])
    assert figure.axes[3].get_legend() is None
    one = fk.plots.plot_trace(with_draws(x[:1]))
    many = fk.plots.plot_trace(with_draws(np.random.default_rng(1).standard_normal((12, 50, 2))))
    assert one.axes[0].get_legend() is None
    assert many.axes[0].get_legend() is None


def test_no_tail_of_few_draws_is_cut():
    """The quantiles of few draws are interpolated between the last ones."""
    x = np.append(np.random.default_rng(1).standard_normal(20), 100.0)
    low, high = select.range_of(x, 30)
    assert low < x.min()
    assert high > 100


@pytest.mark.filterwarnings("error")
def test_a_chain_outside_the_axes(tmp_path):
    """Its histogram would be 0 divided by 0."""
    x = np.random.default_rng(1).standard_normal((100, 40, 2))
    x[7] = np.geomspace(1e2, 1e6, 40)[:, None]
    assert select.range_of(x[..., 0].ravel(), 30)[1] < 100
    for plot in (fk.plots.plot_trace, fk.plots.plot_pair):
        saved(plot(with_draws(x)), tmp_path)


def test_chains_are_named_beside_the_lines_of_the_user():
    from matplotlib.figure import Figure

    axes = Figure().subplots(1, 3, squeeze=False)
    axes[0, 0].axhline(0.5, color="black")
    fk.plots.plot_trace(with_draws(np.random.default_rng(1).standard_normal((3, 50, 1))), ax=axes)
    lines = axes[0, 0].get_legend().get_lines()
    assert [line.get_color() for line in lines] == list(style.COLORS[:3])
