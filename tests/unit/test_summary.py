"""The table of a result: its columns, its rounding, its forms, and tables of unusual draws."""

import sys

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam.arguments import counted, import_extra
from fastkam.diagnostics import Summary, summary
from fastkam.diagnostics.weights import weighted_summary

COLUMNS = ["mean", "sd", "q5", "q95", "mcse_mean", "mcse_sd", "ess_bulk", "ess_tail", "r_hat"]


@pytest.fixture
def draws():
    """Independent draws: a unit normal, one of small scale far from 0, one of large scale."""
    z = np.random.default_rng(3).standard_normal((4, 500, 3))
    return z * [1.0, 1e-3, 1e4] + [0.0, 5.0, 1e5]


def test_columns_are_those_of_the_draws(draws):
    table = summary(draws, ["a", "b", "c"])
    flat = draws.reshape(-1, 3)
    np.testing.assert_allclose(table["mean"], flat.mean(axis=0))
    np.testing.assert_allclose(table["sd"], flat.std(axis=0, ddof=1))
    np.testing.assert_allclose(table["q5"], np.quantile(flat, 0.05, axis=0))
    np.testing.assert_allclose(table["q95"], np.quantile(flat, 0.95, axis=0))
    assert list(table.columns) == COLUMNS
    assert all(table[name].shape == (3,) for name in COLUMNS)
    assert len(table) == 3
    with pytest.raises(KeyError, match="no column 'rhat'"):
        table["rhat"]
    assert table.row("b") == {name: table[name][1] for name in COLUMNS}
    with pytest.raises(KeyError, match=r"summary\.row\('b'\)"):
        table["b"]
    with pytest.raises(KeyError, match="no row 'd'"):
        table.row("d")


def test_quantities_by_name(draws):
    """Functions of the draws of a run have the numbers that they would have as coordinates."""
    a, b = draws[..., 0], draws[..., 1]
    table = summary({"ratio": a / b, "v": draws[:, :, :2], "m": draws[:, :, None, 2:]})
    assert table.labels == ["ratio", "v[0]", "v[1]", "m[0, 0]"]
    same = summary(np.concatenate([(a / b)[..., None], draws], axis=2))
    for name in COLUMNS:
        np.testing.assert_array_equal(table[name], same[name])
    assert summary({"a": a, "none": a[..., None][..., :0]}).labels == ["a"]
    assert summary({"a": a}, ["b"]).labels == ["b"]
    assert np.isnan(summary({"a": a[:, :0]})["mean"]).all()


@pytest.mark.parametrize(("quantities", "message"), [
    ({}, "draws must have at least one quantity"),
    ({"a": np.zeros(5)}, r"draws\['a'\] must have shape \(chains, draws\) or .*, not \(5,\)"),
    ({"a": np.zeros((4, 5)), "b": np.zeros((4, 6))},
     r"draws\['b'\] must have as many chains and draws as the others, \(4, 5\), not \(4, 6\)"),
    ({3: np.zeros((4, 5))}, "draws must have names as its keys, not 3"),
    ({"a": "far"}, r"draws\['a'\] must be an array of numbers, not 'far'"),
    ({"a": np.zeros((4, 5)), "b": np.zeros((4, 5))}, "labels must be 2 names"),
])
def test_wrong_quantities(quantities, message):
    labels = ["a"] if "labels" in message else None
    with pytest.raises((TypeError, ValueError), match=message):
        summary(quantities, labels)


def test_a_summary_is_a_mapping_of_its_columns(draws):
    table = summary(draws, ["a", "b", "c"])
    assert list(table) == list(table.keys()) == COLUMNS
    assert "mean" in table
    for name in ("a", "rhat", 0, None, []):
        assert name not in table
    assert dict(table) == {**table} == table.columns
    assert len(table) == 3


def test_the_text_is_aligned_and_rounded_by_the_sd(draws):
    lines = str(summary(draws, ["a", "bb", "c"])).splitlines()
    assert lines[0].split() == COLUMNS
    assert len({len(line) for line in lines}) == 1
    by_label = {line.split()[0]: line.split()[1:] for line in lines[1:]}
    assert len(by_label["a"][1].partition(".")[2]) in (2, 3)  # sd near 1
    assert len(by_label["bb"][0].partition(".")[2]) in (5, 6)  # sd near 1e-3
    assert "." not in by_label["c"][0]  # sd near 1e4
    assert by_label["a"][6].isdigit()
    assert by_label["a"][8].startswith("1.0")


@pytest.mark.parametrize(("sd", "value", "text"), [
    (1.0, 0.12345, "0.12"), (0.02, 0.12345, "0.1235"), (250.0, 1234.5, "1234"),
    (1e-9, 1.5e-9, "1.5e-09"), (np.nan, 3.0, "3"), (1.0, np.nan, "-"), (1.0, np.inf, "inf"),
])
def test_digits_of_a_mean_follow_its_sd(sd, value, text):
    table = Summary(["x"], {"mean": [value], "sd": [sd]})
    assert str(table).splitlines()[1].split()[1] == text


@pytest.mark.parametrize(("sd", "value", "text"), [
    (1e-5, 3.52474859, "3.5247486"), (1e-5, 0.0, "0"), (1e-5, -1.23456789e-6, "-1.235e-06"),
    (1e-8, -1000.00000012, "-1000.00000012"), (1e-3, 123456.7891, "123456.78910"),
    (1e6, 1.23456789e9, "1.23457e+09"), (1e8, 1.23456789e15, "1.23456789e+15"),
    (1e-18, 3.5, "3.5"), (1e308, 1.5e308, "1.5e+308"), (5e-324, 1e-300, "1e-300"),
    (0.0, 7.0, "7"), (np.inf, 7.0, "7")])
def test_a_hundredth_of_the_sd_can_be_seen_in_the_mean_and_the_quantiles(sd, value, text):
    table = Summary(["x"], {"mean": [value], "sd": [sd], "q5": [value], "q95": [value]})
    cells = table.cells()[1]
    assert cells[1] == cells[3] == cells[4] == text


@pytest.mark.parametrize("sd", 10.0 ** np.arange(-12, 13))
def test_digits_suffice_for_every_sd(sd):
    values = np.random.default_rng(1).standard_normal(50) * 1e3 * sd + np.pi
    for value in values:
        shown = Summary(["x"], {"mean": [value], "sd": [sd]}).cells()[1][1]
        assert abs(float(shown) - value) < 0.01 * sd + 1e-15 * abs(value)


def test_a_long_table_has_a_gap_but_keeps_its_columns():
    table = summary(np.random.default_rng(0).standard_normal((2, 8, 200)))
    lines = str(table).splitlines()
    assert len(lines) == 52
    assert "... 150 more" in lines[41]
    assert lines[-1].startswith("x[199]")
    assert len(table["mean"]) == 200


def test_other_forms(draws):
    table = summary(draws, ["a<b", "b", "c"])
    assert repr(table) == str(table)
    html = table._repr_html_()
    assert html.count("<tr>") == 4
    assert "a&lt;b" in html
    plain = table.to_dict()
    assert plain["label"] == ["a<b", "b", "c"]
    assert plain["mean"] == table["mean"].tolist()


def test_a_pandas_frame(draws):
    pytest.importorskip("pandas")
    frame = summary(draws, ["a", "b", "c"]).to_pandas()
    assert list(frame.columns) == COLUMNS
    assert frame.loc["b", "mean"] == pytest.approx(5.0, abs=1e-3)


def test_a_missing_package_is_named_with_advice(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"this needs pandas: pip install pandas"):
        import_extra("pandas", "pip install pandas")


def test_labels_must_fit(draws):
    with pytest.raises(ValueError, match="labels must be 3 names, one a coordinate, not"):
        summary(draws, ["a", "b"])
    with pytest.raises(ValueError, match=r"draws must have shape \(chains, draws, d\), not \(4,\)"):
        summary(np.zeros(4))


@pytest.mark.parametrize("shape", [(4, 0, 2), (4, 1, 2), (4, 3, 2), (1, 3, 2)])
def test_few_draws_neither_crash_nor_warn(shape):
    table = summary(np.random.default_rng(1).standard_normal(shape))
    for name in ("mcse_mean", "mcse_sd", "ess_bulk", "ess_tail", "r_hat"):
        assert np.isnan(table[name]).all(), name
    assert "-" in str(table)


def test_one_chain_and_a_constant_coordinate():
    draws = np.random.default_rng(1).standard_normal((1, 200, 2))
    draws[..., 1] = 7.0
    table = summary(draws)
    assert np.isnan(table["r_hat"]).all()
    assert table["ess_bulk"][0] > 50
    assert np.isnan(table["ess_bulk"][1])
    assert table["sd"][1] == 0
    assert str(table).splitlines()[2].split()[:4] == ["x[1]", "7", "0", "7"]


def test_a_result_is_summarized_by_name():
    result = sample(lambda x: -0.5 * x @ x, [0.0, 0.0, 0.0], draws=200, tune=200, seed=1,
                    names=["a", "b"], shapes={"b": 2}, progress=False)
    assert result.summary().labels == ["a", "b[0]", "b[1]"]


def test_stop_rules_are_not_met_by_a_coordinate_that_never_moves():
    """Such a coordinate has no effective size; that the others have one must not hide it."""
    def logp(x):
        return -0.5 * x[0] ** 2 if x[1] == 3.0 else -np.inf

    options = {"draws": 300, "tune": 0, "seed": 1, "progress": False, "sampler": "rwm",
               "diagnose": False}
    for rule in (fk.stop.ESS(10), fk.stop.Rhat(2.0)):
        stuck = sample(logp, [0.0, 3.0], stop=rule, **options)
        assert stuck.status == "complete"
        free = sample(lambda x: -0.5 * x @ x, [0.0, 3.0], stop=rule, **options)
        assert free.status == "stopped"


@pytest.mark.parametrize(("value", "text"), [
    (1e8 + 12, "100000012"), (2.45e6, "2450000"), (1e15 + 26, "1000000000000026"),
    (-1e11, "-100000000000")])
def test_large_means_have_digits_down_to_their_sd(value, text):
    assert f" {text} " in str(Summary(["x"], {"mean": [value], "sd": [1000.0]}))


def test_rows_without_statistics_are_explained(draws):
    assert summary(draws).notes == []
    some = draws.copy()
    some[0, 3, 0], some[1, :2, 2] = np.nan, np.inf
    table = summary(some, ["a", "b", "c"])
    assert table.notes == ["Some draws are NaN or infinite: 1 of 2000 of a and 2 of 2000 of c. "
                           "The statistics of these rows are unknown (-)."]
    assert table.notes[0][:40] in str(table)
    assert table.notes[0] in table._repr_html_()
    assert "3 of 2000 of x[2] and 4 more" in summary(np.full((4, 500, 7), np.nan)).notes[0].replace(
        "2000 of 2000", "3 of 2000")
    for few in (some[:, :0], some[:1, :1]):
        assert len(summary(few).notes) == 0


def test_a_lost_extra_is_explained_and_others_stay():
    def logp(x):
        return -0.5 * x @ x, {"lost": np.nan if x[0] > 1 else x[0], "fine": x[0] > 0}

    result = sample(logp, [0.0, 0.0], draws=200, tune=200, seed=1, progress=False, diagnose=False,
                    sampler="ram")
    lost = int(np.isnan(result["lost"]).sum())
    table = result.summary(["lost", "fine"])
    assert f"{lost} of 800 of lost" in table.notes[-1]
    assert np.isnan(table["mean"][0])
    assert np.isfinite(table["mean"][1])
    assert not any("NaN or infinite" in note for note in result.summary().notes)


def test_lost_draws_of_weight_zero_do_not_count():
    rng = np.random.default_rng(1)
    x, log_weights = rng.standard_normal((2, 400, 1)), 0.1 * rng.standard_normal((2, 400))
    log_weights[:, :5] = -np.inf
    known = weighted_summary(x, log_weights, ["a"])
    x[:, :5] = np.nan
    lost = weighted_summary(x, log_weights, ["a"])
    assert lost.notes == []
    for name in ("mean", "sd", "q5", "mcse_mean", "mcse_sd", "ess_bulk", "ess_tail"):
        assert lost[name] == pytest.approx(known[name], rel=1e-12), name
    x[1, 7] = np.inf
    assert "1 of 800 of a" in weighted_summary(x, log_weights, ["a"]).notes[0]


@pytest.mark.parametrize(("sd", "error", "mean", "texts"), [
    (1e4, 1612.0, 123456.7, ["123457", "10000", "1600"]),
    (3e5, 161234.0, 123456.7, ["123457", "300000", "160000"]),
    (1.0, 0.0041, 0.0042, ["0.004", "1.00", "0.0041"]),       # nearly known: another decimal
    (1.0, 0.0088, 0.4963, ["0.50", "1.00", "0.0088"]),
    (13.9, 1.2, -1.34, ["-1", "13.9", "1.2"]),
    (1.0, 0.22, 0.4963, ["0.5", "1.00", "0.22"]),
    (2e-4, 1e-5, 3.14159e-3, ["0.00314", "0.000200", "0.000010"]),
    (1e-12, 1e-14, 3e-12, ["3e-12", "1e-12", "1.0e-14"]),
    (1e12, 1e10, 3e12, ["3e+12", "1e+12", "1.0e+10"]),
    (1.0, 1e-15, 1.0, ["1.00000", "1.00", "1.0e-15"]), (0.9, 2.0, -0.3, ["0", "0.90", "2.0"]),
    (0.0, np.nan, 7.0, ["7", "0", "-"]),
    (1.0, np.inf, 7.0, ["7.00", "1.00", "inf"]),
    (1.0, 0.0, 7.0, ["7.00", "1.00", "0.0"])])
def test_a_mean_has_the_digits_that_its_error_supports(sd, error, mean, texts):
    table = Summary(["x"], {"mean": [mean], "sd": [sd], "mcse_mean": [error]})
    assert table.cells()[1][1:] == texts


def test_the_sd_has_the_digits_of_its_own_error():
    table = Summary(["x"], {"mean": [0.34], "sd": [13.88], "mcse_mean": [1.2], "mcse_sd": [4.1]})
    assert table.cells()[1][1:] == ["0", "14", "1.2", "4.1"]


def test_a_notebook_shows_the_summary_of_a_result():
    result = sample(lambda x: -0.5 * x @ x, {"a<b": 0.0}, draws=50, tune=20, chains=1, seed=1,
                    progress=False, diagnose=False, sampler="rwm")
    html = result._repr_html_()
    assert html.startswith("<p>&lt;Result of RandomWalk: 1 chain, 50 draws, 1 dimension, ")
    assert result.summary()._repr_html_() in html
    assert "a&lt;b" in html


def test_one_is_singular():
    result = sample(lambda x: -0.5 * x @ x, [0.0], draws=1, tune=0, chains=1, seed=1,
                    progress=False, diagnose=False, sampler="rwm")
    assert repr(result) == "<Result of RandomWalk: 1 chain, 1 draw, 1 dimension, complete>"
    assert "There is 1 draw a chain: too few" in str(result.verdict())
    assert counted(1, "draw") == "1 draw"
    assert counted(0, "draw") == "0 draws"
