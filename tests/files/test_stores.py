"""Runs whose draws go to a store: the same draws, in every form of a run and of a store."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from runs_in_files import CASES, DRAWS, WEIGHTED, surrogate, target_of
from same import assert_same
from stored_runs import SAMPLE, normal, run, same_extras, with_extras

import fastkam as fk
from fastkam.diagnostics import Finding, checks
from fastkam.run import checkpoint, stored
from fastkam.stores import Npy, Zarr

pytestmark = pytest.mark.usefixtures("small_windows")


# ---- the same bits, for every sampler and form ----


@pytest.mark.parametrize("case", [case for case in CASES if case != WEIGHTED])
def test_every_run_is_the_same_in_a_store(tmp_path, case):
    """Whole, and stopped within warm-up and within the draws, and resumed from the folder."""
    whole = run(case)
    more = {"surrogate": surrogate} if case == "behind a surrogate" else {}
    assert_same(run(case, store=tmp_path / "whole"), whole)
    first, last = whole.state.searched, whole.evaluations
    for i, stopped_at in enumerate((2, (first + last) // 2, first + 4 * (last - first) // 5)):
        path = tmp_path / f"part{i}"
        part = run(case, stopped_at, store=path)
        if part is None:  # stopped within the search
            continue
        assert part.status in ("failed", "complete")
        assert_same(fk.load(path), part)
        other = fk.resume(path, target=target_of(case), progress=False, diagnose=False, **more)
        assert_same(other, whole)
        same_extras(other, whole)
        assert_same(fk.load(path), whole)


@pytest.mark.parametrize("case", ["nuts", "pt", "jumps", "noisy", "extras", "problem", "shared",
                                  "no statistics", "dm"])
def test_every_kind_of_store(place, case):
    whole = run(case)
    part = run(case, whole.evaluations // 2, store=place)
    other = fk.resume(place, target=target_of(case), progress=False, diagnose=False)
    assert_same(other, whole)
    same_extras(other, whole)
    assert part.trace.rows < DRAWS
    np.testing.assert_array_equal(other.draws, whole.draws)
    np.testing.assert_array_equal(other.draws[:, ::-3], whole.draws[:, ::-3])
    for name in whole.names:
        np.testing.assert_array_equal(other[name][1, 3:], whole[name][1, 3:])
    np.testing.assert_array_equal(other.warmup_draws, whole.warmup_draws)
    assert other.rejected.keys() == whole.rejected.keys()
    np.testing.assert_array_equal(other.acceptance, whole.acceptance)


def test_vectorized_targets(place):
    def density(x):
        return -0.5 * np.einsum("ij,ij->i", x, x)

    for sampler in ("ram", "kam", fk.ModeJumping(sampler="ram", means=np.eye(2))):
        options = {"sampler": sampler, "vectorized": True, "draws": 90, "tune": 50, "chains": 5,
                   "seed": 3, "thin": 2, "search": False, "progress": False, "diagnose": False}
        whole = fk.sample(density, np.ones(2), **options)
        shutil.rmtree(place, ignore_errors=True)
        assert_same(fk.sample(density, np.ones(2), store=place, **options), whole)


def ridge(x):
    return -0.5 * float(x[0] ** 2 / 100 + (x[1] + 0.1 * x[0] ** 2 - 10) ** 2), {"twice": 2 * x}


def test_thinning_as_the_first_draws_show(place):
    """The draws before it is decided go to the store too, and the thinned ones to their place."""
    options = {"seed": 1, "draws": 600, "progress": False, "diagnose": False}
    whole = fk.sample(ridge, np.zeros(2), **options)
    assert whole.thin > 1
    np.testing.assert_array_equal(whole.extras["twice"], 2 * whole.draws)
    other = fk.sample(ridge, np.zeros(2), store=place, **options)
    assert_same(other, whole)
    same_extras(other, whole)
    assert not (Path(place) / stored.UNDECIDED).exists()
    assert_same(fk.load(place), whole)


def test_runs_that_are_made_longer(place, monkeypatch):
    """Thinned draws go to another section; the old one stays until it is complete."""
    thinned = []

    def findings(state):
        thinned.append(state.thin)
        return [] if len(set(thinned)) == 3 else [Finding("ess", "")]

    monkeypatch.setattr(checks, "findings", findings)
    monkeypatch.setattr("fastkam.sampling.DRAWS", 150)
    options = {"seed": 1, "progress": False}
    whole = fk.sample(with_extras, np.zeros(2), **options)
    thinned.clear()
    other = fk.sample(with_extras, np.zeros(2), store=place, **options)
    np.testing.assert_array_equal(whole.extras["twice"], 2 * whole.draws)
    assert_same(other, whole)
    same_extras(other, whole)
    assert_same(fk.load(place), whole)
    assert (Path(place) / stored.DRAWS).exists()
    assert not (Path(place) / stored.THINNED).exists()


# ---- processes and threads ----


@pytest.mark.parametrize("target", [normal, with_extras])
def test_executors(place, target):
    options = {"tune": 60, "draws": 250, "chains": 3, "seed": 4}
    whole = SAMPLE(target, np.ones(2), **options)
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(
            2, mp_context=get_context("spawn")) as processes:
        for pool in (threads, processes):
            shutil.rmtree(place, ignore_errors=True)
            part = SAMPLE(target, np.ones(2), executor=pool, store=place,
                          **options | {"draws": 101})
            assert part.trace.base.tolist() == [101] * 3
            other = fk.resume(place, 149, target=target, executor=pool, progress=False,
                              diagnose=False)
            assert_same(other, whole)
            same_extras(other, whole)


def test_threads(place):
    target = fk.targets.banana(d=2)
    options = {"tune": 60, "draws": 3000, "chains": 4, "seed": 4}
    whole = SAMPLE(target, np.zeros(2), **options)
    assert_same(SAMPLE(target, np.zeros(2), store=place, threads=2, checkpoint_interval=0.0,
                       **options), whole)


def test_a_worker_holds_no_lock():
    """A forked process does not keep the store of its parent locked."""
    code = """
import os, sys, time, tempfile, fastkam as fk
path = tempfile.mkdtemp() + "/run"
pids = []
def fork(p):
    if not pids:
        pids.append(os.fork())
        if not pids[0]:
            time.sleep(20)
            os._exit(0)
f = lambda x: -0.5 * float(x @ x)
fk.sample(f, [0.0], sampler="ram", search=False, draws=50, tune=5, store=path, progress=fork,
          diagnose=False)
fk.resume(path, 10, target=f, progress=False, diagnose=False)
os.kill(pids[0], 9)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


# ---- zarr alone ----


@pytest.mark.parametrize("compression", [None, "zstd", "gzip", "lz4"])
def test_compression(tmp_path, compression):
    zarr = pytest.importorskip("zarr")
    store = Zarr(tmp_path / "run.zarr", compression=compression)
    whole = SAMPLE(normal, np.ones(2), draws=300, tune=5, seed=1)
    assert_same(SAMPLE(normal, np.ones(2), draws=300, tune=5, seed=1, store=store), whole)
    group = zarr.open(tmp_path / "run.zarr", mode="r")
    np.testing.assert_array_equal(group["draws/x"], whole.draws)
    np.testing.assert_array_equal(group["draws/counts"], [300] * 4)
    assert bool(group["draws/x"].compressors) == (compression is not None)
    assert {name for name, _ in group.members()} == {"draws", "warmup", "state"}


def test_arguments_of_zarr(tmp_path):
    pytest.importorskip("zarr")
    for compression in ("zip", ["zstd"]):
        with pytest.raises(ValueError, match="compression must be None or one of"):
            Zarr(tmp_path / "run.zarr", compression=compression)
    with pytest.raises(ValueError, match="level must be given with compression"):
        Zarr(tmp_path / "run.zarr", level=3)


def test_a_section_that_is_written_again_has_the_shape_of_its_new_rows(tmp_path):
    zarr = pytest.importorskip("zarr")
    store = Zarr(tmp_path / "run.zarr")
    store.create()
    with store.writing():
        for rows in (np.ones((90, 2)), np.zeros((10, 2))):
            store.clear("draws")
            store.add("draws", "x", 1, (2,), float, 16)
            store.write("draws", "x", 0, 0, rows)
            store.publish("draws", ["x"], 0, len(rows))
    assert zarr.open(tmp_path / "run.zarr", mode="r")["draws/x"].shape == (1, 10, 2)


def test_without_zarr(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"needs zarr: pip install fastkam\[zarr\]; or"):
        SAMPLE(normal, np.ones(2), draws=10, store=tmp_path / "run.zarr")
    assert not (tmp_path / "run.zarr").exists()


def test_kinds_by_path(tmp_path):
    store = Npy(tmp_path / "run.zarr")  # an object decides itself
    SAMPLE(normal, np.ones(2), draws=10, tune=5, store=store)
    assert json.loads((tmp_path / "run.zarr" / "store.json").read_text())["kind"] == "npy"
    assert fk.load(tmp_path / "run.zarr").trace.rows == 10


# ---- results as tables ----


def test_arrays_tables_and_files(tmp_path):
    def density(a, b):
        return -0.5 * float(a @ a + b * b), {"sum": a.sum() + b}

    problem = fk.Problem(density, names=["a", "b"], shapes={"a": 2})
    result = SAMPLE(problem, {"a": [0.0, 0.0], "b": 0.0}, draws=20, tune=5, chains=3, seed=1)
    np.testing.assert_array_equal(result.to_numpy(), result.draws)
    np.testing.assert_array_equal(result.to_numpy(flat=True), result.draws.reshape(-1, 3))
    frame = result.to_pandas()
    assert list(frame.columns[:4]) == ["a[0]", "a[1]", "b", "sum"]
    assert frame.index.names == ["chain", "draw"]
    np.testing.assert_array_equal(frame.loc[(1, 3), ["a[0]", "a[1]", "b"]], result.draws[1, 3])
    np.testing.assert_array_equal(frame["lp"], result.stats["lp"].ravel())
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "run.nc"
    result.to_netcdf(path)
    result.to_netcdf(path)
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        np.testing.assert_array_equal(tree["posterior"]["a"], result["a"])
    assert os.listdir(tmp_path) == ["run.nc"]
    with pytest.raises(ValueError, match="path must be a file in a folder that exists"):
        result.to_netcdf(tmp_path / "none" / "run.nc")


def test_the_last_state_alone():
    """One draw after many steps takes no memory for the others."""
    whole = SAMPLE(normal, np.ones(2), draws=500, tune=50, seed=1)
    last = SAMPLE(normal, np.ones(2), draws=1, thin=500, tune=50, seed=1, keep_warmup=False)
    assert last.draws.shape == (4, 1, 2)
    assert last.trace.counts.tolist() == [1] * 4
    assert whole.draws.shape == (4, 500, 2)


def test_metadata_of_zarr_are_rarely_written(tmp_path, monkeypatch):
    """A file system may take milliseconds to replace a file that it has just written."""
    pytest.importorskip("zarr")
    from fastkam.stores.zarr import Form

    sizes = []
    resize = Form.resize
    monkeypatch.setattr(Form, "resize", lambda self, rows: (sizes.append(rows), resize(self, rows)))
    result = SAMPLE(normal, np.ones(2), draws=30, tune=10, store=tmp_path / "run.zarr")
    assert sizes == []
    monkeypatch.setattr("fastkam.run.stored.BLOCK_ROWS", 100)
    result = SAMPLE(fk.targets.Gaussian(np.zeros(2)), np.ones(2), draws=3000, tune=10,
                    store=tmp_path / "long.zarr")
    assert sorted(sizes) == 4 * [400] + 4 * [1600] + 4 * [3000] + 4 * [6400]
    group = zarr_group(tmp_path / "long.zarr")
    assert group["draws/x"].shape == (result.chains, 3000, 2)
    np.testing.assert_array_equal(group["draws/x"][:], result.draws[:])


def zarr_group(path):
    import zarr

    return zarr.open(path, mode="r")


def test_a_run_that_is_thinned_while_its_state_is_read_is_read_again(place, monkeypatch):
    """The rows of the first state are then no longer in the store."""
    SAMPLE(normal, np.zeros(2), seed=1, store=place, stop=fk.stop.Evaluations(1500))
    read = checkpoint.read_parts

    def read_and_go_on(path):
        parts = read(path)
        monkeypatch.undo()
        fk.resume(place, target=normal, progress=False, diagnose=False)
        return parts

    monkeypatch.setattr(checkpoint, "read_parts", read_and_go_on)
    result = fk.load(place)
    assert result.trace.section == stored.DRAWS
    assert np.asarray(result.draws).shape == (4, 1000, 2)
