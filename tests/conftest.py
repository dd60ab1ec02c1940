"""Fixtures of all tests: the commands of the environment, and the samplers with mistakes."""

import os
import signal
import sys
from pathlib import Path

import pytest

# nohup, a script's background and some CI runners ignore SIGINT, and processes would inherit that
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture(scope="session")
def twins(tmp_path_factory):
    """The samplers with one mistake each, compiled: see tests/twins."""
    from twins import TWINS
    from twins.build import Twins

    return Twins(tmp_path_factory, TWINS)
