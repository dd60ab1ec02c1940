"""The figures of the pages can be made again, and are small."""

import importlib.util
import re
from pathlib import Path

import pytest

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
PNG = b"\x89PNG"
NAMES = ["calibration", "choosing", "curved", "pair", "proposals"]


@pytest.fixture(scope="module")
def make():
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("make", FIGURES / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def named():
    """The figures of this folder that the pages show."""
    pages = [FIGURES.parents[1] / "README.md", *FIGURES.parent.glob("*.md")]
    links = [link for page in pages for link in re.findall(r"!\[[^]]+\]\(([^)]+)\)",
                                                           page.read_text())]
    return {Path(link).stem for link in links if Path(link).parent.name == "figures"}


def test_each_figure_is_shown():
    assert {path.stem for path in FIGURES.glob("*.png")} == named() == set(NAMES)


def test_figures_are_small():
    for path in FIGURES.glob("*.png"):
        assert path.read_bytes().startswith(PNG)
        assert path.stat().st_size < 60_000


@pytest.mark.parametrize("name", NAMES)
def test_figure_is_made(make, name, tmp_path):
    getattr(make, name)(tmp_path)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(PNG)


def test_tables_of_the_page_are_read(make):
    (_, with_gradient, densities, first), (_, without, others, second) = make.tables()
    assert with_gradient[0] == without[0] == "jumps around pt"
    assert len(densities) == len(first) >= 10
    assert len(others) == len(second) >= 10
    assert all(len(row) == len(with_gradient) for row in first)
    assert all(len(row) == len(without) for row in second)
    assert any(None in row for row in first)
