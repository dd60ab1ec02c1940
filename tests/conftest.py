"""Commands of the environment are found though it is not activated; the samplers with mistakes."""

import os
import sys
from pathlib import Path

import pytest

os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture(scope="session")
def twins(tmp_path_factory):
    """The samplers with one mistake each, compiled: see tests/twins."""
    from twins import TWINS
    from twins.build import Twins

    return Twins(tmp_path_factory, TWINS)
