"""Rules that end a run of the command line, and numbers of its options."""

import sys

import pytest

import fastkam as fk
from fastkam.cli.main import main
from fastkam.cli.options import whole

MODEL = """
def logp(x):
    return -0.5 * float(x @ x)
"""


@pytest.fixture
def folder(current_folder):
    """An empty current folder with a model in it."""
    return current_folder("our_rules", MODEL)


def run(command, *words):
    """The exit code of a command, also where argparse leaves."""
    more = ["--dim", "2", "--seed", "1", "--sampler", "ram", "--no-search"]
    words = [command, *words, *(more if command == "sample" else []), "--no-progress"]
    try:
        return main(words)
    except SystemExit as error:
        return error.code


@pytest.mark.parametrize(("words", "rule"), [
    (["--ess", "300"], "ESS(size=300"), (["--time-limit", "0.5s"], "Time(limit=0.5"),
    (["--ess", "1e9", "--time-limit", "0.3s"], "Time(limit=0.3")])
def test_a_rule_ends_the_run(folder, words, rule):
    assert run("sample", "our_rules:logp", *words) == 0
    assert fk.load("logp.fk").stopped_by.startswith(rule)


def test_a_rule_ends_a_run_that_goes_on(folder):
    assert run("sample", "our_rules:logp", "--draws", "1e2", "--tune", "1e2") == 0
    assert fk.load("logp.fk").draws.shape[1] == 100
    assert run("resume", "logp.fk", "--target", "our_rules:logp", "--ess", "500") == 0
    assert fk.load("logp.fk").stopped_by.startswith("ESS(size=500")


@pytest.mark.parametrize(("words", "expected"), [
    (["--time-limit", "soon"], "fastkam: --time-limit must be like"),
    (["--ess", "0"], "fastkam: --ess must be above 0, not 0"),
    (["--draws", "1.5"], "argument --draws: must be a whole number, as 1000 or 1e3, not '1.5'"),
    (["--budget", "many"], "argument --budget: must be a whole number"),
    (["--tune", "inf"], "argument --tune: must be a whole number"),
])
def test_mistakes(folder, capsys, words, expected):
    assert run("sample", "our_rules:logp", *words) == 2
    assert expected in capsys.readouterr().err
    assert not list(folder.glob("*.fk"))


def test_a_result_inside_a_store_is_refused_before_the_run(folder, capsys):
    some = ["our_rules:logp", "--draws", "20", "--tune", "5"]
    assert run("sample", *some, "--store", "st") == 0
    (folder / "our_rules.py").write_text("def logp(x):\n    raise SystemExit\n")
    sys.modules.pop("our_rules")
    assert run("sample", *some, "--out", "st/state.npz") == 2
    assert "fastkam: --out must be a file outside of the store" in capsys.readouterr().err
    assert fk.load("st").draws.shape[1] == 20


def test_whole_numbers():
    assert [whole(one) for one in ("7", "1e3", "2.0", "1_000")] == [7, 1000, 2, 1000]


def test_the_density_of_resume_has_an_option(folder, capsys):
    assert run("resume", "logp.fk", "our_rules.py:logp") == 2
    assert ("the density must be given by --target: fastkam resume logp.fk --target "
            "our_rules.py:logp") in capsys.readouterr().err
    assert run("resume", "a.fk", "b.fk", "--target", "our_rules.py:logp") == 2
    assert "one FILE must be given, not 'b.fk' as well" in capsys.readouterr().err


def test_help_has_the_rules(capsys):
    for command in ("sample", "resume"):
        assert run(command, "--help") == 0
        said = capsys.readouterr().out
        assert "--time-limit" in said
        assert "--ess" in said
        assert "more" not in said.split("options:")[0].split()


def test_a_report_has_the_suffix_of_a_page(folder, capsys):
    pytest.importorskip("matplotlib")
    assert run("sample", "our_rules:logp", "--draws", "5", "--tune", "5", "--report", "a.HTM") == 0
    assert (folder / "a.HTM").exists()
    capsys.readouterr()
    assert main(["summary", "logp.fk", "--report", "run.txt"]) == 2
    words = ["--target", "our_rules:logp", "--draws", "5", "--report", "run.txt"]
    assert run("resume", "logp.fk", *words) == 2
    refusal = "--report must be a file that ends with .html or .htm, not 'run.txt'"
    assert capsys.readouterr().err.count(refusal) == 2
    assert not (folder / "run.txt").exists()
    assert fk.load("logp.fk").trace.rows == 5
