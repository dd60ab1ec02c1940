"""Many chains cost as much each as a few: what is done for each is counted, not timed."""

import gc
import time
from collections import Counter

import numpy as np
import pytest
from runs import sample
from same import assert_same

import fastkam as fk
from fastkam.progress.reporter import CHAINS, SECONDS, Interval
from fastkam.run import groups
from fastkam.run.groups import CHUNK_SECONDS, ChainGroup
from fastkam.run.loop import Run

TARGET = fk.targets.Gaussian(np.zeros(2))
OPTIONS = {"sampler": "ram", "draws": 100, "tune": 100, "seed": 3, "diagnose": False}


@pytest.fixture
def counted(monkeypatch):
    """Return the numbers of calls of the watched parts of a run, by name."""
    calls = Counter()

    def watch(owner, name):
        function = getattr(owner, name)

        def watched(*args, **options):
            calls[name] += 1
            return function(*args, **options)

        monkeypatch.setattr(owner, name, watched)

    watch(ChainGroup, "chunk")
    watch(Run, "progress")
    # as if no time passed, so that the lengths of chunks do not depend on the machine
    monkeypatch.setattr(groups, "paced", lambda made, seconds: 8 * made)
    return calls


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("chains", [20, 400])
def test_a_chain_takes_two_chunks_and_no_progress(counted, chains, threads):
    """One chunk of warm-up, however many snapshots it has, and one of draws; more for the first."""
    result = sample(TARGET, np.zeros(2), chains=chains, threads=threads, **OPTIONS)
    assert len(result.adaptation["step"]) == 50
    assert counted["chunk"] <= 2 * chains + 8
    assert counted["progress"] == 0


@pytest.mark.parametrize(("sampler", "vectorized", "most"), [
    ("rwm", False, 26), ("rwm", True, 12), ("ram", False, 27), ("ram", True, 17)])
def test_a_chain_is_a_few_objects(monkeypatch, sampler, vectorized, most):
    """The garbage collector visits few objects of a chain; its visits took a third of a call."""
    drive, made, chains = Run.drive, [], 200

    def counting(run, *args):
        gc.collect()
        made.append(len(gc.get_objects()))
        return drive(run, *args)

    monkeypatch.setattr(Run, "drive", counting)
    target = fk.Target.from_python(
        lambda X: -0.5 * (X**2).sum(axis=1), 2, vectorized=True) if vectorized else TARGET
    options = OPTIONS | {"sampler": sampler, "threads": 1}
    sample(target, np.zeros(2), chains=2, **options)  # so that all modules have been imported
    made.clear()
    for n in (2, 2 + chains):
        sample(target, np.zeros(2), chains=n, **options)
    assert made[1] - made[0] <= most * chains


def test_progress_of_many_chains_is_reported_after_some_chunks(counted):
    seen = []
    sample(TARGET, np.zeros(2), chains=400, threads=1, progress=seen.append, **OPTIONS)
    assert counted["progress"] == len(seen)
    assert 10 < len(seen) <= counted["chunk"] * CHAINS / 400 + 10 + elapsed(seen) / SECONDS
    assert seen[-1].steps == seen[-1].total == 400 * 200
    assert seen[-1].draws == [100] * 400


def elapsed(seen):
    return seen[-1].seconds


def test_progress_of_a_few_chains_is_reported_after_every_chunk(counted):
    seen = []
    sample(TARGET, np.zeros(2), chains=3, threads=1, progress=seen.append, **OPTIONS)
    assert len(seen) == counted["chunk"] + 1  # and at the end


def test_progress_of_many_chains_is_reported_in_time():
    interval = Interval(chains=10_000)
    assert not interval.over()
    time.sleep(1.1 * SECONDS)
    assert interval.over()
    assert not interval.over()


def test_the_length_of_chunks_changes_nothing(monkeypatch):
    """Snapshots are made where they are due, in the midst of a chunk or at its end."""
    options = OPTIONS | {"chains": 3, "sampler": "gam", "tune": 103}
    expected = sample(TARGET, np.zeros(2), **options)
    for length in (1, 7, 1000):
        monkeypatch.setattr(groups, "paced", lambda made, seconds, length=length: length)
        result = sample(TARGET, np.zeros(2), **options)
        assert_same(result, expected)
        for name, values in result.adaptation.items():
            assert not np.isnan(values).any()
            np.testing.assert_array_equal(values, expected.adaptation[name])


def test_a_chain_takes_the_length_of_chunks_from_the_others():
    assert groups.paced(100, CHUNK_SECONDS) == 100
    assert groups.paced(100, CHUNK_SECONDS / 1000) == 800
    assert groups.paced(100, 1000 * CHUNK_SECONDS) == 10
    assert groups.paced(0, 0.0) == 1
