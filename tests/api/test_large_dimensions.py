"""Memory of a run whose learned quantities are large."""

import gc
import weakref

import numpy as np
import runs

import fastkam as fk
from fastkam.run import loop, state


def test_large_factors_have_no_course(monkeypatch, tmp_path):
    """Without snapshots warm-up ends where it should, and the draws are the same."""
    target = fk.targets.banana(d=4)
    options = {"sampler": "ram", "draws": 50, "tune": 130, "seed": 1}
    usual = fk.sample(target, np.zeros(4), **options)
    monkeypatch.setattr(state, "LARGE_BYTES", 200)
    monkeypatch.setattr(state, "HISTORY_BYTES", 100)
    result = fk.sample(target, np.zeros(4), checkpoint=tmp_path / "run.fk", **options)
    np.testing.assert_array_equal(result.draws, usual.draws)
    assert result.adaptation["S"].shape == (4, 0, 4, 4)
    assert len(result.adaptation["step"]) == 0
    assert len(usual.adaptation["step"]) == 50
    again = fk.resume(tmp_path / "run.fk", target=target, draws=10)
    assert again.draws.shape == (4, 60, 4)


def test_memory_of_the_chains_is_freed_at_the_end(monkeypatch):
    """A factor of 3000 dimensions, 72 MB, is freed before the collector runs."""
    kept = []
    made = loop.ChainGroup.__init__

    def watched(self, run, indices):
        made(self, run, indices)
        kept.append(weakref.ref(self))

    monkeypatch.setattr(loop.ChainGroup, "__init__", watched)
    gc.collect()
    gc.disable()
    try:
        runs.sample(fk.targets.banana(d=2), np.zeros(2), sampler="ram", draws=10, tune=10, seed=1)
        assert kept
        assert all(group() is None for group in kept)
    finally:
        gc.enable()
