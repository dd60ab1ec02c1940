"""The command line's advice is in options and commands, where there are such."""

import errno
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import fastkam as fk
from fastkam.cli.ending import in_options
from fastkam.cli.main import main, say_choice

MODEL = """
def logp(x):
    return -0.5 * float(x @ x)

def nan(x):
    return -0.5 * float(x @ x) if x[0] < 1 else float("nan")
"""


@pytest.fixture
def folder(current_folder):
    """An empty current folder with a model in it."""
    return current_folder("our_advice", MODEL)


def sample(name, *words):
    return main(["sample", f"our_advice:{name}", "--dim", "2", "--sampler", "ram", "--no-search",
                 "--seed", "1", "--out", "run.fk", "--no-progress", *words])


def in_one_line(text):
    return " ".join(text.split())


def test_more_draws(folder, capsys):
    assert sample("logp", "--draws", "150") == 0
    said = in_one_line(capsys.readouterr().out)
    assert "make more draws (fastkam resume run.fk --target our_advice:logp --draws N)" in said
    assert "result." not in said
    assert "In Python" not in said
    assert main(["summary", "run.fk"]) == 0
    said = in_one_line(capsys.readouterr().out)
    assert "(fastkam resume run.fk --target MODULE:FUNCTION --draws N)" in said


def test_a_longer_run(folder, capsys):
    sample("logp", "--draws", "150", "--tune", "1")
    assert "run longer (--tune, --draws)" in in_one_line(capsys.readouterr().out)


def test_what_python_alone_shows(folder, capsys):
    assert sample("nan", "--draws", "300") == 0
    said = in_one_line(capsys.readouterr().out)
    assert "(with --on-error reject: what makes it fail)" in said
    assert "in result.offending" in said
    assert "(In Python: result = fastkam.load('run.fk'))" in said


def test_a_file_that_could_not_be_written_is_not_offered(folder, capsys, monkeypatch):
    def no_room(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fk.Result, "save", no_room)
    assert sample("nan", "--draws", "300") == 1
    said = in_one_line(capsys.readouterr().out)
    assert "in result.offending" in said
    assert "In Python" not in said


@pytest.mark.parametrize(("words", "message"), [
    (["--chains", "0"], "fastkam: --chains must be at least 1, not 0"),
    (["--processes", "0"], "fastkam: --processes must be a number of processes"),
])
def test_a_bad_value_names_the_option(folder, capsys, words, message):
    assert sample("logp", *words) == 2
    assert capsys.readouterr().err.startswith(message)


@pytest.mark.parametrize(("text", "told"), [
    ("continue (result.resume()).", "continue (RESUME)."),
    ("continue (result.resume(stop=...))", "continue (RESUME)"),
    ("Allow more (stop=, budget=)", "Allow more (--time-limit, --ess, --budget)"),
    ("near the mode (x0=), or", "near the mode (--init), or"),
    ('or try sampler="jumps" or', "or try --sampler jumps or"),
    ('give bounds= and transforms="periodic"', 'give bounds= and transforms="periodic"'),
    ("leave it out (bounds=, prior=)", "leave it out (bounds=, prior=)"),
    ("continue it by fk.resume('a/b', target=...), or",
     "continue it by fastkam resume 'a/b' --target MODULE:FUNCTION, or"),
    ("sampler must be a name", "--sampler must be a name"),
])
def test_texts_of_the_library(text, told):
    assert in_options(text, "RESUME") == told


def test_the_choice_is_printed_though_the_search_went_on(capsys):
    result = fk.sample(lambda x: -0.5 * x @ x, np.zeros(2), draws=20, seed=1, progress=False)
    choice = result.search[-1]
    result.state = replace(result.state, search=[*result.search, "the density stays the same"])
    say_choice(SimpleNamespace(sampler="auto"), result)
    assert capsys.readouterr().out == f"Sampler: {choice}.\n"
