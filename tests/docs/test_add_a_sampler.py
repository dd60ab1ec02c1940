"""The steps of docs/contributing.md give a tested sampler, and a tested parameter."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEP = re.compile(r"^`([\w./]+)`:\n\n```(\w+)\n(.*?)^```$", re.M | re.S)
PARTS = ("src", "tests", "docs", "tools", "meson.build", "meson.options", "pyproject.toml",
         "README.md")
# an editable install is found by a hook, which would come before PYTHONPATH, here and in children
SITE = """
import sys
sys.meta_path = [hook for hook in sys.meta_path if "Mesonpy" not in type(hook).__name__]
"""
TESTS = ("tests/oracle", "tests/stat", "tests/unit/test_fixed_points.py",
         "tests/unit/test_samplers_arguments.py", "tests/unit/test_samplers_documentation.py",
         "tests/api/test_cli.py", "tests/api/test_resume.py", "tests/docs/test_pages.py",
         "tests/docs/test_site.py", "tests/docs/test_names.py", "tests/unit/test_twins.py")
MADE = "asm or test_names or public_name or table_of_the_samplers"
TWIN = Path("tests/twins/samplers/scaling.py")

SAMPLER, PARAMETER = "## Add a sampler", "## Add a parameter"


def steps(title):
    """Return [(path, language, text)] of the section of the page that begins with this title."""
    page = (ROOT / "docs" / "contributing.md").read_text()
    return STEP.findall(page.partition(title)[2].partition("\n## ")[0])


def take(folder, path, language, text):
    """Take one step: write the file, or change its one place that the block shows."""
    path = folder / path
    if language != "diff":
        assert not path.exists(), path
        path.write_text(text)
        return
    lines = text.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    whole = path.read_text()
    assert whole.count(old) == 1, f"{path} has {whole.count(old)} places\n{old}"
    path.write_text(whole.replace(old, new))


def command(*words, cwd, **variables):
    run = subprocess.run(words, cwd=cwd, capture_output=True, text=True,
                         env=os.environ | variables)
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-8000:]
    return run.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A tree with the steps to a new sampler, and with no twin but its own."""
    folder = built(tmp_path_factory.mktemp("tree"), SAMPLER)
    for path in (folder / TWIN.parent).glob("[!_]*.py"):
        if path != folder / TWIN:
            path.unlink()
    return folder


def built(folder, title):
    """Copy the sources to a folder, take the steps of a section, and build a package in ``site``.

    Only the one sampler that is new or changed is compiled: the other compiled modules are those of
    this installation.
    """
    for tool in ("meson", "ninja", "cython"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    leave_out = shutil.ignore_patterns("__pycache__", "build", "*.so", ".*_cache")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=leave_out)
        else:
            shutil.copy(ROOT / part, folder / part)
    for step in steps(title):
        take(folder, *step)
    (new,) = {Path(path).relative_to("src") for path, *_ in steps(title) if path.endswith(".pyx")}
    compiled = {p.relative_to(folder / "src") for p in (folder / "src").rglob("*.pyx")} - {new}
    command("meson", "setup", "build", cwd=folder)
    library = new.stem + sysconfig.get_config_var("EXT_SUFFIX")
    command("ninja", "-C", "build", f"src/fastkam/{library}", cwd=folder)
    shutil.copytree(folder / "src", folder / "site")
    shutil.copy(folder / "build" / "src" / "fastkam" / "_version.py", folder / "site" / "fastkam")
    for path in [*compiled, Path("fastkam/_core/_cyutility.c")]:
        origin = Path(importlib.util.find_spec(".".join(path.with_suffix("").parts)).origin)
        shutil.copy(origin, folder / "site" / path.parent)
    shutil.copy(folder / "build" / "src" / "fastkam" / library, folder / "site" / new.parent)
    (folder / "site" / "sitecustomize.py").write_text(SITE)
    return folder


def test_the_sampler_in_python_runs():
    """The twenty lines that the page begins with."""
    text = (ROOT / "docs" / "contributing.md").read_text().partition("## Add a sampler")[2]
    space = {}
    exec(re.search(r"^```python\n(.*?)^```$", text, re.M | re.S)[1], space)
    acceptance = space["result"].acceptance
    assert (abs(acceptance - 0.234) < 0.1).all(), acceptance


def test_adding_a_sampler_changes_few_other_files():
    changed = [path for path, language, _ in steps(SAMPLER) if language == "diff"]
    assert len(changed) <= 4


def test_the_steps_give_a_tested_sampler(tree):
    said = command(sys.executable, "-m", "pytest", "-v", "-k", MADE, *TESTS, cwd=tree,
                   PYTHONPATH=str(tree / "site"))
    passed = int(re.search(r"(\d+) passed", said)[1])
    assert passed >= 25, said
    assert "skipped" not in said.splitlines()[-1], said
    assert "test_a_planted_mistake_is_detected[scale_learned_away-asm] PASSED" in said


def test_a_parameter_touches_three_files():
    assert len({path for path, *_ in steps(PARAMETER)}) == 3


def test_the_changes_give_a_tested_parameter(tmp_path):
    tree = built(tmp_path, PARAMETER)
    ways = {"cwd": tree, "PYTHONPATH": str(tree / "site")}
    said = command(sys.executable, "-c", "import fastkam as fk, numpy as np\n"
                   "runs = [fk.sample(lambda x: -0.5 * x @ x, np.zeros(2), draws=50, tune=200,"
                   " chains=1, seed=1, sampler=fk.AdaptiveMetropolis(min_gain=g))"
                   " for g in (0.0, 0.5)]\n"
                   "print((runs[0].draws == runs[1].draws).all())", **ways)
    assert said.split() == ["False"]
    said = command(sys.executable, "-m", "pytest", "-q", "-k", "test_names or [am]", "tests/oracle",
                   "tests/unit/test_samplers_arguments.py", "tests/docs/test_names.py",
                   "tests/unit/test_samplers_documentation.py", **ways)
    assert "skipped" not in said.splitlines()[-1], said
    assert int(re.search(r"(\d+) passed", said)[1]) >= 15, said
