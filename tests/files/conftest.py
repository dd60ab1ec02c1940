"""Fixtures of the tests of files and stores."""

import pytest
from stored_runs import KINDS

from fastkam.run import stored


@pytest.fixture
def small_windows(monkeypatch, request):
    """Few rows in memory, so that short runs write often; zarr takes milliseconds each time."""
    zarr = "zarr" in request.node.name
    monkeypatch.setattr(stored, "WINDOW_BYTES", 0)  # nor of many chains: a multiple of it
    monkeypatch.setattr(stored, "FEWEST_ROWS", 120 if zarr else 8)


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    """The path of a store that is not there yet."""
    return str(tmp_path / request.param)
