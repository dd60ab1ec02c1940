"""The experiments run the samplers of the papers, not the choice of fastkam."""

import ast
from pathlib import Path

import pytest

FILES = [path for path in sorted(Path(__file__).parent.glob("*/*.py"))
         if "fk.sample(" in path.read_text()]


def calls(path):
    """The arguments by name of each call of fk.sample."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "fk.sample":
            yield {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_run_has_its_sampler_and_its_scales(path):
    """Without a search: it would move the starts, and put default lengths in units it has found."""
    found = list(calls(path))
    assert found
    for arguments in found:
        assert "sampler" in arguments
        assert arguments.get("search") == "False"


def test_the_experiments_are_found():
    assert len(FILES) >= 9
