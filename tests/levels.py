"""The same bits on every instruction set: a process of its own for each."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

every_level = pytest.mark.parametrize("level", ["base", "avx2", "avx512"])


def at_level(level, program):
    """Run a program, which may import unit tests, with FASTKAM_LEVEL set."""
    path = os.pathsep.join([str(TESTS / "unit"), str(TESTS), os.environ.get("PYTHONPATH", "")])
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          check=False, timeout=300,
                          env=os.environ | {"FASTKAM_LEVEL": level, "PYTHONPATH": path})


def digest_at(level, module):
    """Return the `digest` of a module of unit tests at another level."""
    run = at_level(level, f"from {module} import digest; print(digest())")
    if "is not an instruction set of this processor" in run.stderr:
        pytest.skip(f"an older processor, without {level}: there is nothing to compare")
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()
