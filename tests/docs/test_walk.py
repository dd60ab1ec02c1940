"""A draw passes through the files that docs/contributing.md lists, and these are seven at most."""

import re
import sys
from pathlib import Path

import numpy as np
from runs import sample

import fastkam as fk

PAGE = Path(__file__).parents[2] / "docs" / "contributing.md"
SOURCE = Path(__file__).parents[2] / "src" / "fastkam"
PACKAGE = Path(fk.__file__).parent
MOST_FILES = 7


def listed():
    """The files of the page's sentence, in order."""
    text = re.search(r"To follow one draw, read (.*?)\.\n\n", PAGE.read_text(), re.S)[1]
    return re.findall(r"`([\w./]+)`", text)


def files_on_the_stack():
    """The files of the package whose Python functions are under way, the outermost first."""
    frame, found = sys._getframe(), []
    while frame:
        path = Path(frame.f_code.co_filename)
        checks = path.name == "arguments.py"    # of the names of arguments, around the call
        if PACKAGE in path.parents and path.suffix == ".py" and not checks:
            found.insert(0, path.relative_to(PACKAGE).as_posix())
        frame = frame.f_back
    return list(dict.fromkeys(found))


def test_the_documented_call_path_from_sample_to_the_density():
    ways = []

    def logp(x):
        ways.append(files_on_the_stack())
        return -0.5 * x @ x

    result = sample(logp, np.zeros(2), draws=10, tune=10, chains=1, progress=False)
    assert result.draws.shape == (1, 10, 2)
    # from the face into the loop; all that follows up to the stored draw is compiled
    assert ways[-1] == [path for path in listed() if path.endswith(".py")]


def test_the_compiled_files_of_the_path_lead_to_the_next():
    """Each includes the next, and the last has the functions that a sampler defines."""
    group, step = (path for path in listed() if path.endswith((".pyx", ".pxd")))
    assert f"engine.{Path(step).stem} cimport" in (SOURCE / group).read_text()
    assert {"kernel.propose(", "kernel.adapt("} <= set(re.findall(
        r"kernel\.\w+\(", (SOURCE / step).read_text()))
    assert "_core/samplers" in listed()


def test_the_files_on_the_call_path_exist_and_are_few():
    files = listed()
    assert len(files) <= MOST_FILES, files
    assert all((SOURCE / file).exists() for file in files), files
