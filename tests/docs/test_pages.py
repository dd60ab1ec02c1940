"""The pages: every example is run, every sampler has its place, every link leads somewhere."""

import doctest
import importlib
import importlib.util
import io
import math
import pkgutil
import platform
import re
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import fastkam as fk
from fastkam.samplers import SAMPLERS

ROOT = Path(__file__).parents[2]
HOSTS = {"bilby", "cobaya", "emcee", "pints", "pymc", "pypesto"}  # modules that need a package
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")),
         *sorted((ROOT / "docs" / "coming_from").glob("*.md"))]
LINKED = [*PAGES, *sorted((ROOT / "docs" / "gallery").glob("*.md")),
          *sorted((ROOT / "docs" / "api").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
FILE = re.compile(r"(?:/\*|#) ([\w.]+)")
NEEDS = re.compile(r"<!-- needs: ([\w, ]+) -->\n\Z")
NOT_RUN = {"README.md": {"sh"}, "contributing.md": {"sh", "python", "cython"},
           "models.md": {"text"}, "hosts.md": {"text", "yaml"}}
NEEDED = {
    "README.md": ("matplotlib",), "targets.md": ("numba", "cffi"), "quickstart.md": ("matplotlib",),
    "testing.md": ("matplotlib",), "plots.md": ("matplotlib",),
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page, tmp_path, monkeypatch):
    """Every file that a page names is written, every command and every block is run, in order.

    A block of text after a block of Python shows what that printed: in the README to the letter.
    """
    for package in NEEDED.get(page.name, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    space, printed = {"__name__": page.name}, ""
    whole = page.read_text()
    for block in BLOCK.finditer(whole):
        language, text = block.groups()
        if language in NOT_RUN.get(page.name, ()) or lacking(whole[: block.start()]):
            continue
        if language == "python":
            with redirect_stdout(io.StringIO()) as out:
                exec(compile(text, f"{page.name}: {text.splitlines()[0]}", "exec"), space)
            printed = out.getvalue()
        elif language == "text":
            assert_like(printed, text)
            if page.name == "README.md" and platform.machine() == "x86_64":
                assert printed == text
        elif language == "sh":
            run = subprocess.run(["sh", "-e", "-c", text], capture_output=True, text=True)
            assert run.returncode == 0, run.stderr
        elif named := FILE.match(text):
            Path(named[1]).write_text(text)


def lacking(before):
    """Whether the line in front of a block names a package that is not installed."""
    needs = NEEDS.search(before)
    return needs is not None and any(
        importlib.util.find_spec(package) is None for package in needs[1].split(", "))


def assert_like(printed, shown):
    """The same words, and numbers that differ by a few of their last digits at most.

    Another version of numpy may round a random number in another way, after which chains part.
    """
    ours, theirs = printed.split(), shown.split()
    assert len(ours) == len(theirs), printed
    for a, b in zip(ours, theirs, strict=True):
        a, b = a.strip("(),;"), b.strip("(),;")
        assert a == b or math.isclose(float(a), float(b), rel_tol=0.25, abs_tol=0.06), (a, b)


def test_shown_output_is_compared():
    assert_like("mean 0.51\n", "mean 0.49\n")
    for shown in ("mean 0.99\n", "sd 0.51\n", "mean 0.51 1\n"):
        with pytest.raises((AssertionError, ValueError)):
            assert_like("mean 0.51\n", shown)


@pytest.mark.parametrize("page", LINKED, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)\)", BLOCK.sub("", page.read_text()))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_has_its_section(name):
    """A section; test_site.py looks for the sentences of which the site makes a table."""
    text = (ROOT / "docs" / "samplers.md").read_text()
    section = re.search(rf"^## {name}: .*?(?=^## |\Z)", text, re.M | re.S)
    assert section, f"docs/samplers.md has no section {name!r}"


def modules():
    """Every module of the package that can be imported here."""
    for found in pkgutil.walk_packages(fk.__path__, "fastkam."):
        if found.name in ("fastkam.__main__", "fastkam.density.numba"):
            continue
        host = found.name.partition("fastkam.hosts.")[2].partition("_")[0]
        if host in HOSTS and importlib.util.find_spec(host) is None:
            continue
        yield importlib.import_module(found.name)


def test_docstring_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed = tried = 0
    for module in modules():
        result = doctest.testmod(module)
        failed, tried = failed + result.failed, tried + result.attempted
    assert not failed
    assert tried > 5


def test_the_table_of_verdicts_is_that_of_the_results():
    page, results = ((ROOT / name).read_text() for name in ("docs/verdict.md",
                                                            "bench/results/verdict.md"))
    rows = re.findall(r"^\| (?:R-hat|verdict).*\|$", page, re.M)
    assert len(rows) == 3
    kept = results.partition("## The half that was kept")[2].partition("\n## ")[0]
    assert all(row in kept for row in rows)
