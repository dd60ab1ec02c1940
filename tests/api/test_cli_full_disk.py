"""The command line on a disk that is full at the end of a run."""

import errno
import os

import pytest
from limits import largest_file

import fastkam as fk
from fastkam.cli.main import main
from fastkam.run.writer import CheckpointWriter

MODEL = """
def logp(x):
    return -0.5 * float(x @ x)


def stops(x):
    if x[0] > 2:
        raise ValueError("no more")
    return -0.5 * float(x @ x)
"""
RUN = ["sample", "our_model.py:logp", "--dim", "2", "--sampler", "ram", "--no-search", "--seed",
       "1", "--no-progress", "--draws", "300", "--tune", "50", "--out", "r.fk"]


def no_room(*arguments, **more):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(autouse=True)
def folder(current_folder):
    """An empty current folder with a model in it."""
    current_folder("our_model", MODEL)


@pytest.fixture
def full(monkeypatch):
    """A function that runs a command on a disk without room for r.fk."""
    monkeypatch.setattr(fk.Result, "save", no_room)
    return lambda *words: main([*RUN, *words])


def test_draws_are_lost(full, capsys):
    assert full() == 1
    output = capsys.readouterr()
    assert "mean" in output.out
    assert "result  r.fk" not in output.out
    assert "fastkam: the result cannot be written to r.fk: No space left on device" in output.err
    assert "the draws are lost: make room, or give --out a file on another disk" in output.err


def test_draws_are_in_the_checkpoint(full, capsys):
    assert full("--checkpoint", "c.fk") == 1
    says = capsys.readouterr().err
    assert "cannot be written to r.fk: No space left" in says
    assert "1200 draws of all chains are in --checkpoint c.fk" in says
    assert says.rstrip().endswith("fastkam summary c.fk")
    assert main(["summary", "c.fk"]) == 0


def test_calls_are_in_a_file(full, capsys):
    assert full("--evaluations", "e.fk") == 1
    assert "the calls of the function are in --evaluations e.fk" in capsys.readouterr().err


def test_a_run_that_failed(full, capsys):
    assert main(["sample", "our_model.py:stops", *RUN[2:], "--checkpoint", "c.fk"]) == 1
    says = capsys.readouterr().err
    assert "no more" in says
    assert "cannot be written to r.fk: No space left" in says
    assert "to go on: fastkam resume c.fk --target our_model.py:stops" in says


def test_a_disk_that_is_full_during_the_run(capsys):
    """No frame of the traceback is the user's, and the message says everything."""
    with largest_file(1000):
        assert main([*RUN, "--checkpoint", "c.fk"]) == 1
    says = capsys.readouterr().err
    assert "Traceback" not in says
    assert "c.fk' cannot be written: [Errno 27] File too large" in says
    assert "the result cannot be written to r.fk: File too large" in says
    assert "the draws are lost" in says


def test_only_the_report_fails(capsys, monkeypatch):
    monkeypatch.setattr(fk.Result, "report", no_room)
    assert main([*RUN, "--report", "rep.html"]) == 1
    output = capsys.readouterr()
    assert "result  r.fk" in output.out
    assert "--report rep.html cannot be written: No space left on device" in output.err
    assert "the result was saved" in output.err
    assert fk.load("r.fk").draws.shape == (4, 300, 2)


@pytest.mark.parametrize("folder_of_draws", ["run", "run.zarr"])
def test_only_draws_in_the_store_are_said_to_be_saved(capsys, monkeypatch, folder_of_draws):
    """The others are in memory alone, and lost with the process."""
    if folder_of_draws == "run.zarr":
        pytest.importorskip("zarr")
    monkeypatch.setattr(CheckpointWriter, "write_store", first(1, CheckpointWriter.write_store))
    kind = fk.stores.Npy if folder_of_draws == "run" else fk.stores.Zarr
    monkeypatch.setattr(kind, "write", first(20, kind.write))
    assert main([*RUN[:-2], "--store", folder_of_draws]) == 1
    says = capsys.readouterr().err
    assert "cannot be written: No space left on device" in says
    saved = fk.load(folder_of_draws).trace.counts.tolist()
    assert saved == [0] * 4
    assert "fastkam: 0 of 300 draws a chain are saved in " in says


def first(n, write):
    """A function that writes n times, as on a disk that is then full."""
    made = []

    def limited(*arguments, **more):
        if len(made) == n:
            no_room()
        made.append(1)
        return write(*arguments, **more)

    return limited
