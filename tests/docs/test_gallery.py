"""The gallery: every page runs, and says so where the verdict on a run is not "ok"."""

import ast
import re
import sys
import warnings
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [*sorted((DOCS / "gallery").glob("*.md")), DOCS / "kam_in_100_lines.md"]
PAGES = [page for page in PAGES if page.name != "index.md"]
CELL = re.compile(r"^```\{code-cell\}\n(.*?)^```$", re.M | re.S)
NEEDS = re.compile(r"^needs: ([\w, ]+)$", re.M)
USED = ("matplotlib", "numba", "cloudpickle", "xarray", "pandas")
SHOWS_DOUBT = {"diagnostics.md", "particle_filter.md"}


@pytest.fixture
def plain_figures(monkeypatch):
    """Figures without a window, that are closed again."""
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_runs_and_ends_with_a_figure_or_a_table(page, tmp_path, monkeypatch, capsys,
                                                     plain_figures):
    needed = NEEDS.search(page.read_text())
    for package in (*USED, *(needed[1].split(", ") if needed else ())):
        pytest.importorskip(package)
    from matplotlib.figure import Figure

    monkeypatch.chdir(tmp_path)
    shown = False
    with warnings.catch_warnings():
        warnings.simplefilter("always" if page.name in SHOWS_DOUBT else "error")
        if needed:      # packages of others may warn of each other
            warnings.simplefilter("default")
        space = {"__name__": "__main__"}
        for cell in CELL.findall(page.read_text()):
            value = run(cell, page.name, space)
            is_figure = isinstance(value, Figure)
            assert not (is_figure and cell.rstrip().endswith(";")), "the semicolon hides the figure"
            shown = is_figure or bool(capsys.readouterr().out or plain_figures.get_fignums())
            plain_figures.close("all")
    assert shown, "the last cell shows nothing"


def run(cell, name, space):
    """Run a cell, as a notebook does: its last expression is the value."""
    tree = ast.parse(cell)
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), space)
    return eval(compile(last, name, "eval"), space) if last else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_says_what_it_shows_and_what_to_read_next(page):
    text = page.read_text()
    assert len(CELL.findall(text)) >= 2
    assert len(text.splitlines()) < 200
    assert "**Next:**" in text
    assert "**What it shows:**" in text or page.name == "kam_in_100_lines.md"


def test_there_are_twelve_pages_and_each_is_listed():
    index = (DOCS / "gallery" / "index.md").read_text()
    assert len(PAGES) >= 13
    assert [page.name for page in PAGES if f"{page.name})" not in index] == []


def test_packages_that_are_missing_are_noticed(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "extensions")
    from missing_packages import missing, needed, not_run

    text = "---\nkernelspec:\n  name: python3\nneeds: numpy, no_such_package\n---\n\n# A\n\n**B**\n"
    assert missing(needed(text)) == ["no_such_package"]
    assert needed("# A page\n") == []
    changed = not_run(text, ["no_such_package"])
    assert "execution_mode: 'off'\n---\n\n# A\n\n:::{note}\n" in changed
    assert changed.endswith(":::\n\n**B**\n")
    sys.modules.pop("missing_packages")
