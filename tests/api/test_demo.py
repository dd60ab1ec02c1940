"""The demonstrations run, print correct results, and write the files that they announce."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam._core.targets.outbreak import OutbreakDensity
from fastkam.cli.main import main
from fastkam.demo import many_modes, outbreak, peer, report, ridge, table
from fastkam.diagnostics.checks import convergence

TABLE = """age, smoker, city, level, outcome
31, yes, Ulm, 1.5, bad
44, no, Ulm, 2.5, good
51, no, Bonn, 0.5, good
28, yes, Bonn, 3.5, bad
39, no, Kiel, 2.0, good
60, yes, Kiel, 1.0, good
35, yes, Ulm, 0.1, bad
47, no, Bonn, 2.2, bad
"""


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(TABLE)
    return path


# ---- many modes, and a ridge ----


def with_draws(x):
    """A result whose draws are x (chains, draws, d)."""
    result = sample(lambda x: -0.5 * x @ x, np.zeros(x.shape[2]), draws=x.shape[1], tune=0,
                    chains=len(x), seed=1, sampler="rwm", progress=False)
    result.trace.x[:] = x
    return result


def exact_draws(rng, modes, size=(4, 500)):
    """Exact draws of the target with many modes, of some of these alone, (*size, 2)."""
    weights = many_modes.WEIGHTS[modes] / many_modes.WEIGHTS[modes].sum()
    k = rng.choice(modes, size, p=weights)
    return many_modes.MODES[k] + many_modes.SDS[k][..., None] * rng.standard_normal((*size, 2))


@pytest.mark.parametrize("module", [many_modes, ridge])
def test_default_call(module, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(peer, "emcee_run", lambda *_arguments: None)
    monkeypatch.chdir(tmp_path)
    result = module.run(Path(), seed=1, quick=True)
    said = capsys.readouterr().out
    assert "truth" in said
    assert " a second" in said
    assert peer.ABSENT[:20] in said
    assert max(map(len, said.splitlines())) <= 90
    name = "many-modes" if module is many_modes else "ridge"
    assert fk.load(tmp_path / f"{name}.fk").draws.shape == result.draws.shape
    if "matplotlib" in sys.modules:
        assert (tmp_path / f"{name}.png").stat().st_size > 1000


def test_modes_are_separate_and_have_their_weights():
    rng = np.random.default_rng(1)
    x = exact_draws(rng, np.arange(many_modes.K), (4, 5000))
    # five standard errors of the share of the likeliest mode
    error = 5 * np.sqrt(many_modes.WEIGHTS.max() / x[..., 0].size)
    np.testing.assert_allclose(many_modes.shares(x), many_modes.WEIGHTS, atol=error)
    height = [np.exp(many_modes.logp(mode)) * sd**2
              for mode, sd in zip(many_modes.MODES, many_modes.SDS, strict=True)]
    np.testing.assert_allclose(height, many_modes.WEIGHTS, rtol=1e-3)


def test_a_run_that_missed_modes_gets_no_good_verdict():
    """Its R-hat is perfect, and its effective sample size large."""
    rng = np.random.default_rng(1)
    blind = with_draws(exact_draws(rng, np.arange(3)))
    seeing = with_draws(exact_draws(rng, np.arange(many_modes.K)))
    assert blind.summary()["r_hat"].max() < 1.02
    assert many_modes.judged(blind).startswith(f"{many_modes.K - 3} of the {many_modes.K} modes")
    assert many_modes.judged(seeing).startswith("All modes were found.")
    assert many_modes.missed(seeing.draws) < 0.1 < 0.5 < many_modes.missed(blind.draws)


def test_truth_of_the_ridge():
    rng = np.random.default_rng(1)
    x, e, z = rng.standard_normal((3, 400_000))
    y = (100 * x**2 - 100) / 10 + e
    draws = np.stack([10 * x, y, z], axis=-1)
    np.testing.assert_allclose(draws.std(axis=0), ridge.SDS, rtol=0.02)
    assert (np.abs(draws[:, 0]) > 20).mean() == pytest.approx(0.046, abs=0.002)
    # the density of independent normals under a map of unit Jacobian
    expected = -0.5 * (x**2 + e**2 + z**2)
    np.testing.assert_allclose([ridge.logp(row) for row in draws[:50]], expected[:50], rtol=1e-8)


def test_emcee_is_compared_if_it_is_installed(capsys):
    pytest.importorskip("emcee")
    state = np.random.mtrand._rand.get_state()[1].copy()
    found = peer.emcee_run(lambda x: -0.5 * x @ x, [0.0, 0.0], 32_000, 1)
    again = peer.emcee_run(lambda x: -0.5 * x @ x, [0.0, 0.0], 32_000, 1)
    np.testing.assert_array_equal(found.draws, again.draws)
    np.testing.assert_array_equal(np.random.mtrand._rand.get_state()[1], state)
    assert found.draws.shape[0] == peer.WALKERS
    assert found.draws.std() == pytest.approx(1, abs=0.1)
    many_modes.table(with_draws(exact_draws(np.random.default_rng(1), np.arange(many_modes.K))),
                     found)
    assert "emcee" in capsys.readouterr().out


# ---- the outbreak ----


def test_the_ode_solver_is_within_its_tolerance():
    """Against a tight solution of the plain equations, over a wide range of parameters."""
    from scipy.integrate import solve_ivp

    for beta, gamma, i0 in ((1.8, 0.5, 1.0), (6.0, 0.3, 5.0), (0.3, 0.6, 2.0)):
        def slope(_t, y, beta=beta, gamma=gamma):
            new = beta * y[0] * y[1] / outbreak.BOYS
            return [-new, new - gamma * y[1]]

        exact = solve_ivp(slope, [0, 14], [outbreak.BOYS - i0, i0], t_eval=outbreak.DAYS,
                          rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(
            outbreak.solve(beta, gamma, i0, outbreak.DAYS), exact.y[1], rtol=1e-4)


def test_the_compiled_solver_is_within_its_tolerance():
    """The solution agrees with SciPy's solver, for stiff equations too."""
    from scipy.integrate import solve_ivp

    target = outbreak.compiled()
    for beta, gamma, i0 in ((1.8, 0.5, 1.0), (6.0, 0.3, 5.0), (0.3, 0.6, 2.0), (40.0, 20.0, 0.1),
                            (300.0, 1.0, 700.0), (1e-6, 1e-6, 1e-3)):
        def slope(_t, y, beta=beta, gamma=gamma):
            infection = beta * y[0]
            return [-infection * np.exp(y[1]) / outbreak.BOYS, infection - gamma]

        exact = solve_ivp(slope, [0, 14], [1 - i0 / outbreak.BOYS, np.log(i0)], method="LSODA",
                          t_eval=outbreak.DAYS, rtol=1e-11, atol=1e-12)
        infected = np.maximum(np.exp(exact.y[1]), 1e-6)
        np.testing.assert_allclose(target.solve(beta, gamma, i0, outbreak.DAYS), infected,
                                   rtol=2e-4)


def test_both_densities_are_the_same():
    rng = np.random.default_rng(1)
    points = outbreak.PRIOR_MEAN + rng.standard_normal((200, 4))
    python = outbreak.LogDensity()
    np.testing.assert_allclose(outbreak.compiled().logp(points), [python(x) for x in points],
                               rtol=1e-4)


@pytest.mark.parametrize("x", [
    [0, 0, 7, 2], [800, 0, 0, 2], [0, 800, 0, 2], [0, 0, 0, 800], [0, 0, -800, 2], [0, 0, 0, -800],
    [-800, 0, 0, 2], [0, -800, 0, 2], [np.nan, 0, 0, 0], [12, 12, 0, 0], [30, -3, 5, 1]])
def test_points_far_off_are_refused_or_finite_in_bounded_time(x):
    value = outbreak.compiled().logp(np.array(x, dtype=float))
    assert not value > 0


def test_the_log_gamma_of_the_density_is_right():
    """The mean is known without infections, I(t) = i0 e^(-gamma t)."""
    from scipy.stats import nbinom

    target = OutbreakDensity()
    days, counts = np.array([1.0, 2.0, 4.0]), np.array([0.0, 300.0, 7.0])
    target.set_up(days, counts, 1e6, np.zeros(4))
    for phi in (1e-3, 0.3, 2.0, 7.9, 8.1, 500.0):
        x = np.array([-700.0, np.log(0.1), np.log(40.0), np.log(phi)])
        mean = 40 * np.exp(-0.1 * days)
        expected = nbinom.logpmf(counts, phi, phi / (phi + mean)).sum() - 0.5 * x @ x
        assert target.logp(x) == pytest.approx(expected, rel=1e-7)


def test_days_of_a_compiled_outbreak_are_bounded():
    with pytest.raises(ValueError, match="days must be 1 to 64, not 65"):
        OutbreakDensity().set_up(np.arange(1.0, 66), np.zeros(65), 10.0, np.zeros(4))


def test_the_log_density_is_that_of_its_model():
    from scipy.stats import nbinom, norm

    x = np.array([0.6, -0.6, 0.1, 2.2])
    beta, gamma, i0, phi = np.exp(x)
    mean = outbreak.solve(beta, gamma, i0, outbreak.DAYS)
    expected = nbinom.logpmf(outbreak.IN_BED, phi, phi / (phi + mean)).sum()
    expected += norm.logpdf(x, outbreak.PRIOR_MEAN).sum() + 2 * np.log(2 * np.pi)
    assert outbreak.LogDensity()(x) == pytest.approx(expected, rel=1e-10)
    assert outbreak.LogDensity()(np.array([0.0, 0.0, 7.0, 2.0])) == -np.inf


def test_draws_of_the_prior_neither_warn_nor_fail():
    logp = outbreak.LogDensity()
    z = np.random.default_rng(0).standard_normal((200, 4))
    assert np.isfinite([logp(x) for x in outbreak.PRIOR_MEAN + 2 * z]).all()


def test_outbreak(tmp_path, capsys):
    result = outbreak.run(tmp_path, seed=1, quick=True)
    said = capsys.readouterr().out
    assert "R0 = beta / gamma" in said
    assert "infectious period" in said
    assert "microseconds" in said
    assert max(map(len, said.splitlines())) <= 90
    r0 = outbreak.quantities(result.draws)[..., 0]
    assert 3 < r0.mean() < 4.2
    assert (tmp_path / "outbreak.fk").exists()


def test_predictions_follow_the_data():
    """The data lie within the central 98 % of what parameters that fit them predict."""
    result = sample(outbreak.compiled(), np.zeros(4), draws=5, tune=0, seed=1, sampler="rwm",
                    progress=False)
    result.trace.x[:] = [np.log(1.9), np.log(0.53), np.log(0.6), np.log(12.0)]
    counts = outbreak.predictions(result, 1, outbreak.DAYS, size=400)
    low, high = np.quantile(counts, [0.01, 0.99], axis=0)
    assert counts.shape == (400, 14)
    assert ((low <= outbreak.IN_BED) & (high >= outbreak.IN_BED)).all()


# ---- the user's table ----


def test_a_table_becomes_a_design_matrix_and_labels(data):
    read = table.read_table(data, "outcome")
    assert read.names == ["age", "smoker=yes", "city=Kiel", "city=Ulm", "level", "intercept"]
    np.testing.assert_array_equal(read.y, [0, 1, 1, 0, 1, 1, 0, 0])
    np.testing.assert_array_equal(read.X[:, -1], 1)
    np.testing.assert_allclose(read.X[:, :-1].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(read.X[:, :-1].std(axis=0, ddof=1), 1)
    age = np.array([31, 44, 51, 28, 39, 60, 35, 47.0])
    np.testing.assert_allclose(read.X[:, 0], (age - age.mean()) / age.std(ddof=1))
    assert read.notes[0].startswith("outcome = 'good' in 4 rows")
    assert "'bad' in 4" in read.notes[0]


def test_constant_columns_are_dropped_with_a_note(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,same,word,y\n1,5,x,-1\n2,5,x,1\n4,5,x,1\n")
    read = table.read_table(path, "y")
    assert read.names == ["a", "intercept"]
    assert read.notes[1:] == ["column 'same' is constant: dropped",
                              "column 'word=x' is constant: dropped"]
    np.testing.assert_array_equal(read.y, [0, 1, 1])


def test_columns_get_names_that_a_run_takes(tmp_path, demo_parts):
    path = tmp_path / "t.csv"
    path.write_text(",a/b,a|b,intercept,chain,c,c=v,y\n" + "".join(
        f"{i},{i % 3},{i % 4},{i % 5},{i % 7},{'uv'[i % 2]},{i % 11},{i // 3 % 2}\n"
        for i in range(24)))
    assert main(["demo", "--data", str(path), "--label", "y", "--out", str(tmp_path),
                 "--quick"]) == 0
    assert fk.load(tmp_path / "regression.fk").names == [
        "column 1", "a|b", "a|b'", "intercept'", "chain'", "c=v", "c=v'", "intercept"]


@pytest.mark.parametrize(("text", "label", "expected"), [
    ("a,y\n1,0\n2,1\n", "z", "--label must be a column of .*, not 'z': a, y"),
    ("a,y\n1,0\n,1\n", "y", "line 3, column 'a' has no value"),
    ("a,y\n1,0\nNA,1\n", "y", r"line 3, column 'a' has no value \('NA'\)"),
    ("a,y\n1,0\n2,?\n", "y", "line 3, column 'y' has no value"),
    ("a,y\n1,0\n2,1\n3,2\n", "y", "must be a column of two values; 'y' has 0.0, 1.0, 2.0"),
    ("a,y\n1,0\n2,0\n", "y", "must be a column of two values; 'y' has 0.0"),
    ('a,y\n\n"1\n",0\n2,1\n,1\n', "y", "line 6, column 'a' has no value"),
    ("a,y\n1,0\n\n2,1,3\n", "y", "line 4 has 3 values, but the header names 2"),
    ("a,a,y\n1,1,0\n2,1,1\n", "y", "names a column twice"),
    ("a,y\n5,0\n5,1\n", "y", "has no column to predict 'y' from"),
    ("y\n0\n1\n", "y", "has no column to predict 'y' from"),
    ("", "y", "is not a CSV file with a header"),
    ("a,y\n", "y", "has 0 rows below the header"),
    ("a,y\n" + "".join(f"t{i},{i % 2}\n" for i in range(30)), "y",
     "column 'a' is not numeric .as 't0'. and has 30 different values"),
])
def test_errors_in_a_table_name_row_and_column(tmp_path, capsys, text, label, expected):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=expected):
        table.read_table(path, label)
    assert main(["demo", "--data", str(path), "--label", label, "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_missing_table_is_refused(tmp_path, capsys):
    assert main(["demo", "--data", str(tmp_path / "none.csv"), "--label", "y",
                 "--out", str(tmp_path)]) == 2
    assert "--data cannot be read" in capsys.readouterr().err
    assert main(["demo", "--data", "x.csv"]) == 2
    assert "--data and --label go together" in capsys.readouterr().err
    assert main(["demo", "--seed", "-1", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "fastkam: --seed must be at least 0, not -1\n"


def test_regression(demo_parts, data, tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    assert main(["demo", "--data", str(data), "--label", "outcome", "--out", str(out),
                 "--quick"]) == 0
    said = capsys.readouterr().out
    for name in ("age", "smoker=yes", "intercept", "ROC curve", "outcome = 'good'"):
        assert name in said
    assert fk.load(out / "regression.fk").names[1] == "smoker=yes"


def test_the_normal_approximation_is_that_of_the_posterior():
    """Zero gradient at the mode, by differences; covariance the inverse Hessian's."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((60, 2)), np.ones(60)])
    y = (rng.random(60) < 0.5).astype(int)
    mode, cov = table.laplace(X, y)

    def logp(w):
        z = X @ w
        return y @ z - np.logaddexp(0, z).sum() - 0.5 * w @ w

    h = 1e-4
    steps = h * np.eye(3)
    gradient = [(logp(mode + s) - logp(mode - s)) / (2 * h) for s in steps]
    np.testing.assert_allclose(gradient, 0, atol=1e-6)
    hessian = [[(logp(mode + s + t) - logp(mode + s - t) - logp(mode - s + t)
                 + logp(mode - s - t)) / (4 * h * h) for s in steps] for t in steps]
    np.testing.assert_allclose(np.linalg.inv(-np.array(hessian)), cov, rtol=1e-4, atol=1e-6)


def test_separated_classes_have_a_mode():
    x = np.linspace(-2, 2, 40)
    X = np.column_stack([1e3 * x, np.ones(40)])
    mode, cov = table.laplace(X, (x > 0).astype(int))
    assert np.isfinite(mode).all()
    assert (np.linalg.eigvalsh(cov) > 0).all()


def test_area_under_the_curve_by_hand():
    p, y = np.array([0.1, 0.4, 0.4, 0.9]), np.array([0, 1, 0, 1])
    assert table.area_under_curve(p, y) == 3.5 / 4


def test_long_lists_of_coefficients_are_shortened(capsys):
    draws = np.random.default_rng(0).standard_normal((2, 50, 60))
    draws[..., 59] += 100
    table.print_coefficients(fk.diagnostics.summary(draws))
    said = capsys.readouterr().out
    assert "x[59]" in said
    assert "These 20 of 60 stand out most from 0." in said


def test_an_interrupted_demonstration_ends_quietly(demo_parts, data, tmp_path, capsys,
                                                    monkeypatch):
    def interrupted(*_arguments, **_options):
        result = sample(lambda x: 0.0, [0.0], draws=1, tune=0)
        return fk.Result(dataclasses.replace(result.state, status="interrupted"))

    monkeypatch.setattr(report, "fk", type("Library", (), {"sample": staticmethod(interrupted)}))
    assert main(["demo", "--data", str(data), "--label", "outcome", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "fastkam: interrupted\n"


# ---- words ----


def test_verdicts():
    rng = np.random.default_rng(0)
    good = rng.standard_normal((4, 2000, 2))
    assert convergence(fk.diagnostics.summary(good)).startswith("The chains agree: R-hat is")
    assert "size is below 400: 1" in convergence(fk.diagnostics.summary(good[:, :40]))
    assert "R-hat is unknown" in convergence(fk.diagnostics.summary(good[:1]))
    assert "x[1] never changed" in convergence(fk.diagnostics.summary(good * [1, 0]))
    good[0] += 3
    assert "do not agree" in convergence(fk.diagnostics.summary(good))


@pytest.mark.parametrize(("number", "text"), [
    (0, "0"), (999, "999"), (1234, "1 230"), (1234567, "1 230 000"), (41.6, "42"),
])
def test_counts_are_grouped(number, text):
    assert report.grouped(number) == text


def test_numbers_are_not_broken_at_the_end_of_a_line(capsys):
    report.say("x" * 83 + " 12 345 678 more")
    assert "12 345 678 more" in capsys.readouterr().out.splitlines()[1]


def test_without_matplotlib_there_is_no_figure(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = sample(lambda x: -0.5 * x @ x, [0.0], draws=20, tune=0, seed=1, progress=False)
    report.save(result, lambda: fk.plots.plot_trace(result), tmp_path, "x")
    assert "figure  none: this needs matplotlib: pip install fastkam[plot]" in (
        capsys.readouterr().out
    )
    assert (tmp_path / "x.fk").exists()
