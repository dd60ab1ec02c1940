"""Files with something wrong in them are refused by name, or work: none ends the process."""

import collections

import fuzzing
import numpy as np
import pytest
import runs_in_files
from fuzzing import REFUSED, WORKS, damaged_files, every_file, is_good, originals, tried

SOME = 800  # mistakes, of about 190 000
WORKERS = 2


@pytest.fixture(scope="module")
def good():
    """A complete file of each case, and one that was stopped within a step."""
    return originals(stops=(75,))


def faults(answers):
    """Return the files that were neither refused nor worked, and the counts of both."""
    counts, bad = collections.Counter(), []
    for case, what, answer in answers:
        counts[answer] += 1
        if not is_good(answer):
            bad.append(f"{case}: {what}: {answer}")
    return bad, counts


def test_the_files_themselves_work(good):
    bad, counts = faults(tried(((case, "good", whole) for (case, _), whole in good.items()),
                               WORKERS))
    assert not bad
    assert counts == {WORKS: len(good)}
    assert {case for case, _ in good} == set(runs_in_files.CASES)


def test_some_mistakes(good):
    """A part of them, chosen at random; the others by ``python tests/files/fuzzing.py``."""
    rng = np.random.default_rng(1)
    number = sum(1 for whole in good.values()
                 for _ in fuzzing.all_mistakes(fuzzing.arrays_in(whole)))
    bad, counts = faults(tried(every_file(good, SOME / number, rng), WORKERS))
    assert not bad
    assert counts[REFUSED] > 0.5 * SOME
    assert counts[WORKS] > 0.1 * SOME


def test_some_damage(good):
    files = damaged_files(good, np.random.default_rng(2))
    bad, counts = faults(tried((next(files) for _ in range(300)), WORKERS))
    assert not bad
    assert counts[REFUSED] > 200


@pytest.mark.long
def test_every_mistake():
    bad, _ = faults(tried(every_file(originals()), WORKERS))
    assert not bad


def test_the_fuzzer_reports_a_mistake_that_ends_the_process(good):
    """Other errors are reported, too; the files after it are still tried."""
    (case, _), whole = next(iter(good.items()))
    files = [(runs_in_files.DIES, "", whole), ("no case", "", whole), (case, "", whole)]
    answers = [answer for _, _, answer in tried(files, 1)]
    assert answers[0].startswith("ended with")
    assert answers[1].startswith("KeyError")
    assert answers[2] == WORKS
    assert [is_good(answer) for answer in answers] == [False, False, True]


def test_the_fuzzer_reports_a_mistake_that_takes_too_long(good, monkeypatch):
    monkeypatch.setattr(fuzzing, "SECONDS", 0.01)
    (case, _), whole = next(iter(good.items()))
    (_, _, answer), = tried([(case, "", whole)], 1)
    assert answer.startswith("took more than")
