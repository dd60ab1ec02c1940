"""Memory of a run whose learned quantities are large."""

import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest
import runs

import fastkam as fk
from fastkam.run import loop, state
from fastkam.search import scales


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


def test_a_search_for_scales_needs_little_memory(monkeypatch):
    """In 5000 dimensions all its points of one round would fill 400 MB."""
    rows, scale = [], np.geomspace(1e-3, 1e3, 50)

    def evaluate(X):
        rows.append(len(X))
        return -0.5 * ((X / scale) ** 2).sum(axis=1)

    whole = scales.find_scales(evaluate, np.ones(50), float(evaluate(np.ones((1, 50)))[0]))
    assert max(rows) == 100
    monkeypatch.setattr(scales, "MOST_BYTES", 8 * 50 * 7)
    rows.clear()
    parts = scales.find_scales(evaluate, np.ones(50), float(evaluate(np.ones((1, 50)))[0]))
    assert max(rows) == 7
    np.testing.assert_array_equal(parts, whole)


@pytest.mark.parametrize("place", [
    "fastkam.beginning.Call.prepare", "fastkam.run.loop.Run.__init__",
    "fastkam.run.groups.ChainGroup.chunk"])
def test_an_error_names_what_needs_too_much_memory(monkeypatch, place):
    def fails(*args):
        raise MemoryError

    def density(x):
        return -0.5 * x @ x

    says = r"too little memory for 4 chains in 100 dimensions\. .* 100 x 100 numbers, 0 MB, .*rwm"
    part = runs.sample(density, np.zeros(100), draws=10, tune=10, seed=1)
    monkeypatch.setattr(place, fails)
    error = fk.SamplingError if place.endswith("chunk") else MemoryError
    with pytest.raises(error, match=says):
        runs.sample(density, np.zeros(100), draws=10, tune=10, seed=1)
    if not place.endswith("prepare"):
        with pytest.raises(error, match=says):
            part.resume(10)


@pytest.mark.skipif(sys.platform != "linux", reason="only there is a limit of memory respected")
def test_dimensions_for_which_there_is_too_little_memory():
    code = ("import resource\n"
            "import numpy as np, fastkam as fk\n"
            "fk.sample(lambda x: -0.5 * float(x @ x), np.zeros(2), draws=5, tune=5)\n"
            "with open('/proc/self/statm') as file:\n"
            "    most = int(file.read().split()[0]) * resource.getpagesize() + 300 * 2**20\n"
            "resource.setrlimit(resource.RLIMIT_AS, (most, most))\n"
            "try:\n"
            "    fk.sample(lambda x: -0.5 * float(x @ x), np.zeros(3000), sampler='am',\n"
            "              search=False, tune=5, draws=5)\n"
            "except MemoryError as error:\n"
            "    print(error)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})
    assert "too little memory for 4 chains in 3000 dimensions" in done.stdout
