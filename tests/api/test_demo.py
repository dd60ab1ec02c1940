"""The demonstrations: they run, print what they promise, and write what they say."""

import dataclasses
import sys

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam.cli.main import main
from fastkam.demo import outbreak, report, table, two_modes
from fastkam.diagnostics.checks import verdict

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


# ---- two modes ----


def test_two_modes(demo_parts, tmp_path, capsys):
    result = two_modes.run(tmp_path, seed=1, quick=True)
    said = capsys.readouterr().out
    assert "in mode 1" in said
    assert "truth" in said
    assert "plain random walk" in said
    assert " a second" in said
    assert max(map(len, said.splitlines())) <= 90
    assert fk.load(tmp_path / "two-modes.fk").draws.shape == result.draws.shape
    if "matplotlib" in sys.modules:
        assert (tmp_path / "two-modes.png").stat().st_size > 1000


def two_mode_result(x):
    """A result whose first coordinate is x (chains, draws), the second noise."""
    x = np.asarray(x, dtype=float)
    y = np.random.default_rng(0).standard_normal(x.shape)
    result = sample(lambda x: -0.5 * x @ x, [0.0, 0.0], draws=x.shape[1], tune=0,
                    chains=len(x), seed=1, progress=False)
    result.trace.x[:] = np.stack([x, y], axis=-1)
    return result


def test_a_run_that_missed_a_mode_gets_no_good_verdict(demo_parts):
    """Its R-hat is perfect, and its effective sample size the larger."""
    target = fk.targets.two_mode()
    rng = np.random.default_rng(1)
    blind = two_mode_result(-8 + rng.standard_normal((4, 400)))
    seeing = two_mode_result(8 * np.sign(rng.standard_normal((4, 400))))
    assert blind.summary()["r_hat"].max() < 1.02
    assert two_modes.judged(blind, target).startswith("No chain has left its first mode.")
    assert "Changes of mode" in two_modes.judged(seeing, target)
    assert two_modes.worth(blind, target) == 0 < two_modes.worth(seeing, target)
    assert two_modes.missed(blind, target) == 0.5
    assert "the walk is the better choice" in two_modes.compared(blind, seeing, target)
    assert "better" not in two_modes.compared(seeing, blind, target)


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


def test_outbreak(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(outbreak, "predictions", lambda result, seed, days: np.ones((9, len(days))))
    result = outbreak.run(tmp_path, seed=1, quick=True)
    said = capsys.readouterr().out
    assert "R0 = beta / gamma" in said
    assert "infectious period" in said
    assert max(map(len, said.splitlines())) <= 90
    r0 = outbreak.quantities(result.draws)[..., 0]
    assert 3 < r0.mean() < 4.2
    assert (tmp_path / "outbreak.fk").exists()


def test_predictions_follow_the_data():
    """The data lie within the central 98 % of what parameters that fit them predict."""
    result = sample(lambda x: 0.0, np.zeros(4), draws=5, tune=0, seed=1, progress=False)
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


@pytest.mark.parametrize(("text", "label", "expected"), [
    ("a,y\n1,0\n2,1\n", "z", "--label must be a column of .*, not 'z': a, y"),
    ("a,y\n1,0\n,1\n", "y", "row 3, column 'a' has no value"),
    ("a,y\n1,0\nNA,1\n", "y", r"row 3, column 'a' has no value \('NA'\)"),
    ("a,y\n1,0\n2,?\n", "y", "row 3, column 'y' has no value"),
    ("a,y\n1,0\n2,1\n3,2\n", "y", "must be a column of two values; 'y' has 0.0, 1.0, 2.0"),
    ("a,y\n1,0\n2,0\n", "y", "must be a column of two values; 'y' has 0.0"),
    ("a,y\n1,0\n2,1,3\n", "y", "row 3 has 3 values, but the header names 2"),
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


def test_a_table_that_is_not_there(tmp_path, capsys):
    assert main(["demo", "--data", str(tmp_path / "none.csv"), "--label", "y",
                 "--out", str(tmp_path)]) == 2
    assert "--data cannot be read" in capsys.readouterr().err
    assert main(["demo", "--data", "x.csv"]) == 2
    assert "--data and --label go together" in capsys.readouterr().err


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
    assert verdict(fk.diagnostics.summary(good)).startswith("The chains agree: R-hat is")
    assert "size is below 400: 1" in verdict(fk.diagnostics.summary(good[:, :40]))
    assert "R-hat is unknown" in verdict(fk.diagnostics.summary(good[:1]))
    assert "x[1] never changed" in verdict(fk.diagnostics.summary(good * [1, 0]))
    good[0] += 3
    assert "do not agree" in verdict(fk.diagnostics.summary(good))


@pytest.mark.parametrize(("number", "text"), [
    (0, "0"), (999, "999"), (1234, "1 230"), (1234567, "1 230 000"), (41.6, "42"),
])
def test_counts_are_grouped(number, text):
    assert report.grouped(number) == text


def test_without_matplotlib_there_is_no_figure(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = sample(lambda x: -0.5 * x @ x, [0.0], draws=20, tune=0, seed=1, progress=False)
    report.save(result, lambda: fk.plots.plot_trace(result), tmp_path, "x")
    assert "figure  none: this needs matplotlib: pip install fastkam[plot]" in (
        capsys.readouterr().out
    )
    assert (tmp_path / "x.fk").exists()
