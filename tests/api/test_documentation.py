"""The examples of docs/: every file they name is written, every command and every block is run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
FILE = re.compile(r"(?:/\*|#) ([\w.]+)")


@pytest.mark.parametrize("page", ["targets.md"])
def test_examples_run(page, tmp_path, monkeypatch):
    for package in ("numba", "cffi"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    space = {"__name__": page}
    blocks = BLOCK.findall((DOCS / page).read_text())
    assert blocks
    for language, text in blocks:
        if language == "python":
            exec(compile(text, f"{page}: {text.splitlines()[0]}", "exec"), space)
        elif language == "sh":
            run = subprocess.run(["sh", "-e", "-c", text], capture_output=True, text=True)
            assert run.returncode == 0, run.stderr
        elif named := FILE.match(text):
            Path(named[1]).write_text(text)
        if language == "python" and "fk.sample" in text:
            assert space["result"].draws.shape[1:] == (200, 3), text
