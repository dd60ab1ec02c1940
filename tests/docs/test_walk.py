"""A draw passes through the files that docs/contributing.md lists, and these are seven at most."""

import re
import sys
from pathlib import Path

import numpy as np
from runs import sample

import fastkam as fk

PAGE = Path(__file__).parents[2] / "docs" / "contributing.md"
PACKAGE = Path(fk.__file__).parent
MOST_FILES = 7


def listed():
    """The files of the page's sentence, in order; what is in brackets may be left for later."""
    text = re.search(r"To follow one draw, read (.*?)\.\n\n", PAGE.read_text(), re.S)[1]
    return re.findall(r"`([\w./]+)`", re.sub(r"\([^)]*\)", "", text))


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
    assert set(ways[-1]) <= set(listed()), ways[-1]
    assert ways[-1][0] == "sampling.py"
    assert "run/loop.py" in ways[-1]


def test_the_files_on_the_call_path_exist_and_are_few():
    files = listed()
    assert len(files) <= MOST_FILES, files
    source = Path(__file__).parents[2] / "src" / "fastkam"
    assert all((source / file).exists() for file in files), files
