"""Options and records of the experiments."""

import sys

import pytest

from bench.papers.record import heading, options


@pytest.mark.parametrize(("given", "seeds", "command"), [
    ([], None, "python -m x"), (["--quick", "--seed", "3"], None, "python -m x --quick --seed 3"),
    ([], 10, "python -m x"), (["--seeds", "4", "--seconds", "7"], 10,
                              "python -m x --seeds 4 --seconds 7")])
def test_the_heading_has_the_command(monkeypatch, given, seeds, command):
    monkeypatch.setattr(sys, "argv", ["x", *given])
    chosen = options(__file__, "What it does.", quick="one seed", seeds=seeds)
    assert f"`{command}`, fastkam" in heading("Title", "python -m x", chosen)
