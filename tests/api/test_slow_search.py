"""Advice of the live view on a slow density."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fastkam as fk
from fastkam.progress import text
from fastkam.search import watch


def slow(x):
    time.sleep(4e-3)
    return -0.5 * float(x @ x)


def advice(monkeypatch, f=slow, seconds=0.05, **options):
    """The advice in the reports of a search, {text}; until there is some, or 100 evaluations."""
    monkeypatch.setattr(watch, "ADVISED_SECONDS", seconds)
    monkeypatch.setattr(watch, "SLOW_SECONDS", 2e-3)
    found = set()

    def progress(now):
        found.add(now.advice)
        if now.total or now.advice or now.searched > 100:
            now.stop()

    fk.sample(f, np.zeros(2), draws=20, tune=20, seed=1, progress=progress, diagnose=False,
              **options)
    return found


def test_a_slow_search_has_advice(monkeypatch):
    assert advice(monkeypatch) - {""} == {(
        'surrogate="learn" often needs a tenth of the evaluations, and executor= makes them in '
        "several processes: see docs/costly.md")}


@pytest.mark.parametrize(("options", "kept", "omitted"), [
    ({"executor": ThreadPoolExecutor(2)}, "surrogate=", "executor="),
    ({"surrogate": "learn", "budget": 300}, "", "surrogate="),
])
def test_an_argument_that_was_given_is_not_advised(monkeypatch, options, kept, omitted):
    found = " ".join(advice(monkeypatch, **options))
    assert kept in found
    assert omitted not in found


def test_a_fast_search_has_none(monkeypatch):
    assert advice(monkeypatch, lambda x: -0.5 * float(x @ x)) == {""}


def test_a_short_search_has_none(monkeypatch):
    assert advice(monkeypatch, seconds=10.0) == {""}


def test_lines_have_it_once_and_a_terminal_below_the_counts():
    now = fk.progress.Progress(steps=0, total=0, draws=[0], tuning=True, acceptance=0.0,
                               seconds=31.0, searched=2000, rate=66.0, advice="take a break")
    lines = []
    view = fk.progress.Lines(lines.append, seconds=0.0)
    view(now)
    view(now)
    assert lines == ["fastkam: searching, 2 000 evaluations, 66 evaluations/s, 0:31",
                     "fastkam: take a break",
                     "fastkam: searching, 2 000 evaluations, 66 evaluations/s, 0:31"]
    assert text.several(now, plain=True, width=60) == [
        "searching, 2 000 evaluations, 66 evaluations/s, 0:31", "  take a break"]
