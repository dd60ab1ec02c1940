"""Runs leave nothing behind; ``python -m leaks`` makes 100 000 of them."""

import gc
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from leaks.growth import Use, growth, leaks
from leaks.runs import logp, plain

# a kind of each sort: samplers with a density in Python and in C, couplings, files, errors
SOME = ["kam", "nuts", "jumps", "vectorized", "in threads", "noisy", "problem", "python sampler",
        "fails", "refused", "resumed", "through a file", "linear algebra", "interrupted"]


@pytest.fixture
def traced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gc.freeze()  # a collection goes through what this test makes, not through all of the session
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.unfreeze()


ALONE = """
import tracemalloc
from leaks.growth import growth, leaks
from leaks.runs import KINDS

def run(seed):
    for name in {names}:
        KINDS[name](seed)

tracemalloc.start()
# ten rounds: the names of attributes that threadpoolctl looks up fill a cache of the interpreter in
# the first six
print(leaks(growth(run, rounds=10, per_round=6), 6))
"""


def test_runs_of_every_sort_leave_nothing(tmp_path):
    """In a process of its own: what other tests have left behind grows too."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ALONE.format(names=SOME)], cwd=tmp_path, text=True,
        capture_output=True, env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])})
    assert done.stdout == "[]\n", done.stderr


KEPT = []


def planted(kind):
    """A run that leaves something behind."""
    run = plain(logp)

    def leaking(seed):
        run(seed)
        if kind == "a kilobyte":
            KEPT.append(bytes(1000))
        elif kind == "an object":
            KEPT.append([seed])
        elif kind == "a reference":
            KEPT.append(None)
        elif kind == "a file":
            KEPT.append(open("left", "w"))  # noqa: SIM115

    return leaking


@pytest.mark.parametrize(("kind", "word"), [
    ("a kilobyte", "traced"), ("an object", "objects"), ("a reference", "references"),
    ("a file", "files")])
def test_a_planted_leak_is_found(traced, kind, word):
    try:
        found = leaks(growth(planted(kind), rounds=6, per_round=15), 15)
        assert any(word in one for one in found)
    finally:
        for one in KEPT:
            getattr(one, "close", int)()
        KEPT.clear()


def test_references_that_are_released_too_often_are_found():
    nothing = Use(0, 0, 0, 0, 0, 0)
    assert leaks(nothing, 8000) == []
    assert leaks(nothing._replace(references=-0.1), 8000) == []
    assert "released" in leaks(nothing._replace(references=-1), 8000)[0]
