"""The command line: its output, its files, and its messages about mistakes."""

import os
import subprocess
import sys

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam.cli.main import main

MODEL = """
import numpy as np

calls = 0


def logp(x):
    return -0.5 * float(x @ x)


def rows(x):
    return -0.5 * np.square(x).sum(axis=1)


def half(x):
    return -0.5 * float(x @ x) if x[0] < 1 else -np.inf


def failing(x):
    global calls
    calls += 1
    if calls > 900:
        raise RuntimeError("no luck; really")
    return -0.5 * float(x @ x)


def fails_beyond(x):
    if x[0] > 1:
        raise RuntimeError("no convergence")
    return -0.5 * float(x @ x)


class Model:
    logp = staticmethod(logp)


number = 3
"""


@pytest.fixture
def folder(current_folder):
    """An empty current folder with a model in it."""
    return current_folder("our_model", MODEL)


def run(*words):
    """The command line's exit code."""
    words = list(words)
    if words[0] == "sample":
        words += [] if "--seed" in words else ["--seed", "1"]
        words += [] if "--sampler" in words else ["--sampler", "ram"]
        words += [] if "auto" in words else ["--no-search"]
    if words[0] in ("sample", "resume"):
        words += ["--no-progress"]
    return main(words)


# ---- sample ----


@pytest.mark.parametrize("module", ["our_model.py", "our_model", "./our_model.py"])
def test_sample(folder, capsys, module):
    code = run("sample", f"{module}:logp", "--init", "-1,2", "--sampler", "rwm",
               "--set", "proposal_cov=2",
               "--draws", "100", "--tune", "50", "--chains", "3", "--seed", "7", "--names", "a,b")
    assert code == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0].split()[:2] == ["mean", "sd"]
    assert [line.split()[0] for line in lines[1:3]] == ["a", "b"]
    assert " a second" in said.out
    assert lines[-1] == "result  logp.fk"
    assert said.err == ""
    saved = fk.load("logp.fk")
    assert saved.draws.shape == (3, 100, 2)
    assert saved.sampler.proposal_cov == 2
    np.testing.assert_array_equal(saved.state.x0[0], [-1, 2])
    direct = sample(lambda x: -0.5 * float(x @ x), [-1, 2],
                    sampler=fk.RandomWalk(proposal_cov=2),
                    draws=100, tune=50, chains=3, seed=7, progress=False)
    np.testing.assert_array_equal(saved.draws, direct.draws)


def test_processes(folder, capsys):
    """They find the module where the command has found it."""
    run("sample", "our_model:logp", "--dim", "2", "--draws", "30", "--tune", "30", "--out", "a.fk")
    code = run("sample", "our_model:logp", "--dim", "2", "--draws", "30", "--tune", "30",
               "--out", "b.fk", "--processes", "2")
    assert code == 0
    np.testing.assert_array_equal(fk.load("a.fk").draws, fk.load("b.fk").draws)


def test_the_options_arrive(folder):
    run("sample", "our_model:rows", "--dim", "2", "--vectorized", "--thin", "3", "--draws", "20",
        "--tune", "30", "--schedule", "perpetual", "--threads", "2", "--out", "out.fk",
        "--checkpoint", "check.fk", "--set", "target_acceptance=0.3",
        "--set", "proposal_cov=[1, 4]",
        "--seed", "1")
    saved = fk.load("out.fk")
    assert saved.thin == 3
    assert type(saved.schedule).__name__ == "Perpetual"
    assert saved.sampler.target_acceptance == 0.3
    assert saved.sampler.proposal_cov == [1, 4]
    np.testing.assert_array_equal(fk.load("check.fk").draws, saved.draws)


def test_failing_points_are_rejected_and_calls_kept(folder):
    assert run("sample", "our_model:fails_beyond", "--dim", "2", "--draws", "20", "--tune", "20",
               "--evaluations", "calls.fk", "--on-error", "reject") == 0
    saved, calls = fk.load("fails_beyond.fk"), fk.Evaluations("calls.fk")
    assert saved.draws[:, :, 0].max() <= 1
    assert sum(bool(error) for error in calls.errors) == saved.rejected["nan"].sum() > 0


def test_a_budget(folder):
    assert run("sample", "our_model:logp", "--dim", "2", "--budget", "3000") == 0
    assert fk.load("logp.fk").evaluations <= 3000


def test_a_file_of_something_else_is_not_replaced(folder, capsys):
    assert run("sample", "our_model:logp", "--dim", "2", "--draws", "5", "--out",
               "our_model.py") == 2
    assert "--out must be a new file or one that fastkam has written" in capsys.readouterr().err
    assert (folder / "our_model.py").read_text() == MODEL


def test_a_result_is_replaced_only_where_it_is_named(folder, capsys):
    """A second run used to replace the result of the first one without a word."""
    how = ["sample", "our_model:logp", "--dim", "2", "--draws", "5", "--tune", "5"]
    (folder / "logp.fk").touch()  # an empty file has no result
    assert run(*how) == 0
    first = (folder / "logp.fk").read_bytes()
    assert run(*how, "--seed", "2") == 2
    assert ("logp.fk has the result of an earlier run: continue it (fastkam resume logp.fk "
            "--target our_model:logp)" in capsys.readouterr().err)
    assert (folder / "logp.fk").read_bytes() == first
    assert run(*how, "--seed", "2", "--store", "draws") == 0
    assert run("resume", "logp.fk", "--target", "our_model:logp", "--draws", "5") == 0
    assert run(*how, "--seed", "2", "--checkpoint", "logp.fk") == 0
    assert (folder / "logp.fk.bak").exists()
    assert run(*how, "--seed", "2", "--out", "logp.fk") == 0
    assert (folder / "logp.fk").read_bytes() != first


def test_a_report_is_written(folder, capsys):
    assert run("sample", "our_model:logp", "--dim", "2", "--draws", "20", "--tune", "20",
               "--sampler", "rwm", "--report", "run.html") == 0
    assert "report  run.html" in capsys.readouterr().out
    assert "our_model:logp" in (folder / "run.html").read_text()
    assert run("resume", "logp.fk", "--target", "our_model:logp", "--draws", "5", "--report",
               "more.html") == 0
    assert "25 of 25" in (folder / "more.html").read_text()


@pytest.mark.parametrize(("name", "words"), [
    ("none/run.html", "--report must be a file in a folder that exists"),
    ("logp.fk", "--report and the result must be different files"),
    ("../{}/logp.fk", "--report and the result must be different files"),
    ("run.txt", "--report must be a file that ends with .html or .htm, not 'run.txt'"),
    ("run", "--report must be a file that ends with .html or .htm, not 'run'"),
])
def test_a_report_that_cannot_be_written_is_refused_before_the_run(folder, capsys, name, words):
    name = name.format(folder.name)  # the same file by another path
    assert run("sample", "our_model:logp", "--dim", "2", "--report", name) == 2
    assert words in capsys.readouterr().err
    assert not (folder / "logp.fk").exists()
    assert not (folder / "run.txt").exists()


def test_a_report_and_a_result_replace_no_run_and_no_calls(folder, capsys):
    how = ("sample", "our_model:logp", "--dim", "2", "--draws", "5", "--tune", "5", "--sampler",
           "rwm")
    assert run(*how, "--evaluations", "calls.fk") == 0
    before = (folder / "logp.fk").read_bytes()
    assert run("summary", "logp.fk", "--report", "logp.fk") == 2
    assert "another file than that of a run, or of its calls, not 'logp.fk'" in (
        capsys.readouterr().err)
    for word in ("--report", "--out"):
        assert run(*how, "--evaluations", "calls.fk", word, "calls.fk") == 2
    assert run(*how, "--evaluations", "new.fk", "--out", "new.fk") == 2
    assert "the result and --evaluations must be different files, not both 'new.fk'" in (
        capsys.readouterr().err)
    result = fk.load("logp.fk")
    for write in (result.report, result.to_netcdf):
        for name in ("logp.fk", "calls.fk"):
            with pytest.raises(ValueError, match="another file than that of a run"):
                write(name)
    assert (folder / "logp.fk").read_bytes() == before
    assert len(fk.Evaluations("calls.fk").x)
    (folder / "empty.html").touch()
    assert run("summary", "logp.fk", "--report", "empty.html") == 0
    assert run(*how, "--out", "both.fk", "--checkpoint", "both.fk") == 0


def test_a_checkpoint_that_is_moved_aside_is_mentioned(folder, capsys):
    for seed in ("1", "2"):
        assert run("sample", "our_model:logp", "--dim", "2", "--draws", "20", "--tune", "5",
                   "--sampler", "rwm", "--checkpoint", "check.fk", "--seed", seed, "--out", "run.fk"
                   ) == 0
    assert (folder / "check.fk.bak").exists()
    printed = capsys.readouterr()
    assert printed.err.count("check.fk' had 80 draws") == 1
    assert "R-hat" not in printed.err  # findings are below the table


def test_an_attribute_of_an_object_is_a_density(folder):
    assert run("sample", "our_model:Model.logp", "--dim", "1", "--draws", "9", "--tune", "0") == 0
    assert (folder / "Model.logp.fk").exists()


@pytest.mark.parametrize(("name", "text", "expected"), [
    ("one.txt", "1 2\n", [[1, 2], [1, 2]]),
    ("column.txt", "1\n2\n", [[1, 2], [1, 2]]),
    ("two.csv", "1,2\n\n3,4\n", [[1, 2], [3, 4]]),
    ("array.npy", None, [[5, 6], [7, 8]]),
])
def test_a_start_from_a_file(folder, name, text, expected):
    if text is None:
        np.save(name, np.array(expected, dtype=float))
    else:
        (folder / name).write_text(text)
    assert run("sample", "our_model:logp", "--init", f"@{name}", "--chains", "2", "--draws", "5",
               "--tune", "0", "--out", "x.fk") == 0
    np.testing.assert_array_equal(fk.load("x.fk").state.x0, expected)


@pytest.mark.parametrize("start", ["-.5,1", "-0.5,1"])
def test_a_negative_start_and_names_with_spaces(folder, start):
    assert run("sample", "our_model:logp", "--init", start, "--names", "a, b", "--draws", "5",
               "--tune", "0", "--out", "x.fk") == 0
    result = fk.load("x.fk")
    np.testing.assert_array_equal(result.state.x0[0], [-0.5, 1.0])
    assert list(result.shapes) == ["a", "b"]


def test_a_start_by_name(folder):
    """For a function of named parameters."""
    (folder / "named.py").write_text("def logp(mu, tau):\n    return -mu * mu - tau * tau\n")
    words = ["--init", "tau=0.5,mu=-1", "--sampler", "rwm", "--no-search", "--draws", "5", "--tune",
             "2", "--seed", "1", "--no-progress", "--out", "named.fk"]
    assert main(["sample", "named.py:logp", *words]) == 0
    result = fk.load("named.fk")
    assert list(result.shapes) == ["tau", "mu"]
    np.testing.assert_array_equal(result.state.x0[0], [0.5, -1.0])


def test_auto_says_what_it_chose(folder, capsys):
    assert run("sample", "our_model:logp", "--dim", "2", "--draws", "20", "--tune", "20",
               "--sampler", "auto") == 0
    said = capsys.readouterr().out
    assert "Sampler: ModeJumping(RandomWalk), because the density has no gradient" in said
    assert run("sample", "our_model:logp", "--dim", "2", "--sampler", "auto", "--set", "x=1") == 2


def test_rejected_proposals_are_counted(folder, capsys):
    run("sample", "our_model:half", "--dim", "2", "--draws", "200", "--tune", "0", "--seed", "1")
    counts = fk.load("half.fk").rejected["outside"].sum()
    assert counts > 0
    assert f"Rejected without a density: {counts} outside the support (-inf)." in (
        capsys.readouterr().out
    )


# ---- resume ----


def test_resuming_continues_bit_for_bit(folder):
    common = ["--dim", "2", "--tune", "40", "--seed", "3"]
    run("sample", "our_model:logp", *common, "--draws", "30", "--out", "short.fk")
    run("sample", "our_model:logp", *common, "--draws", "50", "--out", "long.fk")
    assert run("resume", "short.fk", "--target", "our_model:logp", "--draws", "20") == 0
    np.testing.assert_array_equal(fk.load("short.fk").draws, fk.load("long.fk").draws)
    assert run("resume", "long.fk", "--target", "our_model:logp", "--draws", "1",
               "--out", "longer.fk") == 0
    assert fk.load("long.fk").draws.shape[1] == 50
    assert fk.load("longer.fk").draws.shape[1] == 51


def test_a_density_that_raises(folder, capsys):
    code = run("sample", "our_model.py:failing", "--dim", "2", "--draws", "400", "--tune", "100",
               "--chains", "1", "--seed", "1", "--out", "part.fk")
    assert code == 0  # 500 calls and one
    code = run("resume", "part.fk", "--target", "our_model.py:failing", "--draws", "1000",
               "--out", "more.fk")
    said = capsys.readouterr()
    assert code == 1
    assert 'raise RuntimeError("no luck; really")' in said.err
    assert "fastkam: the target raised RuntimeError: no luck; really (chain 0, step" in said.err
    assert ".pyx" not in said.err
    kept = fk.load("more.fk")
    assert kept.status == "failed"
    assert f"{kept.draws.shape[1]} of 1400 draws a chain are saved in more.fk" in said.err
    assert "fastkam resume more.fk --target our_model.py:failing" in said.err
    assert run("resume", "more.fk", "--target", "our_model.py:logp") == 0
    assert fk.load("more.fk").draws.shape[1] == 1400


def test_a_density_that_raises_at_the_first_call(folder, capsys, monkeypatch):
    (folder / "our_model.py").write_text("def logp(x):\n    raise KeyError('nothing')\n")
    assert run("sample", "our_model:logp", "--dim", "2") == 1
    assert "0 of 1000 draws a chain are saved in logp.fk" in capsys.readouterr().err


def test_an_interrupted_run_is_kept(folder, capsys):
    (folder / "our_model.py").write_text(
        "n = 0\ndef logp(x):\n    global n\n    n += 1\n"
        "    if n == 700: raise KeyboardInterrupt\n    return -0.5 * float(x @ x)\n")
    code = run("sample", "our_model:logp", "--dim", "2", "--tune", "0", "--chains", "1")
    said = capsys.readouterr()
    assert code == 130
    assert "interrupted; 698 of 1000 draws a chain are saved" in said.out
    assert "result.resume()" not in said.err
    assert "fastkam resume logp.fk --target our_model:logp" in said.out
    assert fk.load("logp.fk").draws.shape[1] == 698


# ---- mistakes: exit code 2 and one line ----


MISTAKES = {
    "no function": (["our_model.py:nothing"], "our_model.py has no 'nothing'; it has logp, rows"),
    "no colon": (["our_model.py"], "must be given as MODULE:FUNCTION, not 'our_model.py'"),
    "no file": (["other.py:logp"], "there is no file 'other.py'"),
    "no module": (["nowhere.model:logp"], "there is no module 'nowhere.model'"),
    "broken": (["broken.py:logp"], "cannot import broken.py: ZeroDivisionError: division by zero "
               "(broken.py, line 2)"),
    "syntax": (["syntax.py:logp"], "cannot import syntax.py: SyntaxError"),
    "missing import": (["needy.py:logp"], "No module named 'not_there_at_all'"),
    "not callable": (["our_model.py:number"], "target must be a function"),
    "sampler": (["our_model:logp", "--sampler", "nuts9"], "there is no sampler 'nuts9'; there are"),
    "schedule": (["our_model:logp", "--schedule", "x"], "schedule must be a Schedule or one of"),
    "parameter": (["our_model:logp", "--set", "size=2"], "ram has no parameter 'size'; its "
                  "parameters are proposal_cov, target_acceptance"),
    "no value": (["our_model:logp", "--set", "proposal_cov"],
                 "--set must be KEY=VALUE, not 'proposal_cov'"),
    "bad value": (["our_model:logp", "--set", "target_acceptance=2"],
                  "target_acceptance must be below 1, not 2"),
    "text value": (["our_model:logp", "--set", "target_acceptance=high"],
                   "target_acceptance must be a number, not 'high'"),
    "no class": (["our_model:logp", "--set", "proposal_cov=Thing(2)"], "--set knows no 'Thing'"),
    "draws": (["our_model:logp", "--draws", "0"], "draws must be at least 1, not 0"),
    "names": (["our_model:logp", "--names", "a"], "names and shapes describe 1 coordinate,"),
    "out": (["our_model:logp", "--out", "no/where.fk"], "--out must be a file in a folder"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_of_sample(folder, capsys, mistake):
    (folder / "broken.py").write_text("x = 1\nx / 0\n")
    (folder / "syntax.py").write_text("def logp(x:\n")
    (folder / "needy.py").write_text("import not_there_at_all\n")
    words, expected = MISTAKES[mistake]
    assert run("sample", *words, "--dim", "2") == 2
    said = capsys.readouterr()
    assert expected in said.err
    assert said.err.startswith("fastkam: ")
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not list(folder.glob("*.fk"))


@pytest.mark.parametrize(("words", "expected"), [
    (["--init", "1,a"], "--init must be numbers like 0,0, or a=0,b=0 by name, or @FILE, not '1,a'"),
    (["--init", "a=1,b"], "or a=0,b=0 by name, or @FILE, not 'a=1,b'"),
    (["--init", "a=1,a=2"], "by name, or @FILE, not 'a=1,a=2'"),
    (["--init", "@none.txt"], "--init cannot be read from 'none.txt'"),
    (["--init", "@ragged.txt"], "--init must be a file of points of one dimension"),
    (["--init", "0,0", "--dim", "2"], "not allowed with argument"),
    (["--dim", "0"], "--dim must be at least 1, not 0"),
    ([], "--init, where the chains start, or --dim, to start at 0, must be given"),
    (["--dim", "two"], "invalid int value: 'two'"),
])
def test_mistakes_about_the_start(folder, capsys, words, expected):
    (folder / "ragged.txt").write_text("1 2\n3\n")
    try:
        code = run("sample", "our_model:logp", *words)
    except SystemExit as error:  # as argparse leaves
        code = error.code
    assert code == 2
    assert expected in capsys.readouterr().err


def test_mistakes_of_resume(folder, capsys):
    np.save("array.npy", np.zeros(3))
    for words, expected in (
        (["array.npy", "--target", "our_model:logp"], "array.npy is not a fastkam result"),
        (["none.fk", "--target", "our_model:logp"], "none.fk"),
        (["our_model.py", "--target", "our_model:logp"], "our_model.py is not a fastkam result"),
        (["none.fk"], "--target must be given"),
    ):
        assert run("resume", *words) == 2
        assert expected in capsys.readouterr().err


# ---- the rest ----


def test_summary(tmp_path, capsys):
    def logp(x):
        return -0.5 * x @ x, {"twice": 2 * x}

    path = tmp_path / "run.fk"
    fk.sample(logp, np.zeros(2), sampler="am", draws=200, tune=100, seed=1, progress=False,
              diagnose=False, names=["a", "b"]).save(path)
    assert run("summary", str(path)) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0].split()[:2] == ["mean", "sd"]
    assert "Verdict: " in said
    assert run("summary", str(path), "twice[1]", "a") == 0
    rows = capsys.readouterr().out.splitlines()[1:3]
    assert [row.split()[0] for row in rows] == ["twice[1]", "a"]
    assert run("summary", str(path), "c") == 2
    assert "var_names has 'c', and there are a, b, twice" in capsys.readouterr().err
    assert run("summary", str(tmp_path / "none.fk")) == 2
    assert "none.fk" in capsys.readouterr().err


def test_samplers(capsys):
    assert run("samplers") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(fk.samplers.SAMPLERS)
    for line, (name, cls) in zip(lines, fk.samplers.SAMPLERS.items(), strict=True):
        assert line.split()[:2] == [name, cls.__name__]
        assert line.endswith(".")


def test_every_sampler_can_be_described(capsys):
    import dataclasses

    for name, cls in fk.samplers.SAMPLERS.items():
        assert run("samplers", name) == 0
        said = capsys.readouterr().out
        assert said.startswith(f"{name}: fastkam.samplers.{cls.__name__}\n")
        assert "References" in said
        for field in dataclasses.fields(cls):
            assert f"  {field.name} = " in said
        fields = cls.kernel_class().FIELDS
        learned = {key for key, field in fields.items() if field.learned}
        for key in learned | {field.stat for field in fields.values() if field.stat}:
            assert f"\n  {key}: " in said
    assert run("samplers", "ram") == 0
    said = capsys.readouterr().out
    assert "  target_acceptance = 0.234   (float)\n      Acceptance probability that the" in said
    assert run("samplers", "none") == 2
    names = ", ".join(fk.samplers.SAMPLERS)
    assert f"there is no sampler 'none'; there are {names}\n" in capsys.readouterr().err


def test_version_and_help(capsys):
    for word, expected in (("--version", f"fastkam {fk.__version__}"), ("--help", "demo")):
        with pytest.raises(SystemExit) as leaving:
            main([word])
        assert leaving.value.code == 0
        assert expected in capsys.readouterr().out


def test_parameter_objects_can_be_written():
    from fastkam.cli.options import UsageError, read_value

    assert read_value("Power(c=2.0, k=0.5)") == fk.schedules.Power(c=2.0, k=0.5)
    assert read_value("[1, -2.5]") == [1, -2.5]
    assert read_value("None") is None
    assert read_value("median") == "median"
    assert read_value("not python at all") == "not python at all"
    with pytest.raises(UsageError, match="--set cannot make 'Power"):
        read_value("Power(c=-1)")
    with pytest.raises(UsageError, match="--set cannot make"):
        read_value("Power(c=open('x'))")


def test_from_an_empty_folder_in_a_new_process(folder):
    """The command works in another process and in any current folder."""
    done = subprocess.run(
        [sys.executable, "-m", "fastkam", "sample", "our_model:logp", "--dim", "2", "--draws", "50",
         "--tune", "50", "--seed", "1"],
        cwd=folder, env=os.environ, capture_output=True, text=True, check=False, timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "result  logp.fk"
    assert fk.load(folder / "logp.fk").draws.shape == (4, 50, 2)
