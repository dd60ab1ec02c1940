"""docs/requests.md: each request has a thread and tests that exist, and the counts are right."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "requests.md").read_text()
SECTIONS = re.split(r"^## (\d+)\. ", PAGE, flags=re.M)[1:]
REQUESTS = dict(zip(map(int, SECTIONS[::2]), SECTIONS[1::2], strict=True))
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
STATUS = re.compile(r"^\*\*(Yes|Partly|Not yet)\.\*\* ", re.M)


def names_in(path):
    """The names of the tests in a file."""
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)
            and node.name.startswith("test")}


def missing(text):
    """The tests named in a text that do not exist."""
    return [(path, name) for path, name in TEST.findall(text)
            if not (ROOT / path).exists() or (name and name not in names_in(path))]


def test_there_are_twenty_five():
    assert list(REQUESTS) == list(range(1, 26))


@pytest.mark.parametrize("number", REQUESTS)
def test_request_has_a_status_a_thread_and_tests(number):
    text = REQUESTS[number]
    assert len(STATUS.findall(text)) == 1
    assert re.search(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", text)
    assert TEST.search(text)
    assert missing(text) == []


def test_counts_are_those_of_the_page():
    counts = Counter(STATUS.search(text)[1] for text in REQUESTS.values())
    said = re.search(r"All (\d+) work\.", PAGE)
    assert counts == {"Yes": int(said[1])}


def test_a_missing_test_is_found():
    assert missing("`tests/docs/test_requests.py::test_there_are_twenty_five`") == []
    assert missing("`tests/docs/test_requests.py::test_none`")
    assert missing("`tests/docs/no_such_file.py`")
