"""Modules that `import fastkam` loads, and names that are imported on demand."""

import importlib.util
import json
import pickle
import pkgutil
import subprocess
import sys
import typing
from types import ModuleType

import pytest

import fastkam as fk

OPTIONAL = ["arviz", "arviz_base", "arviz_stats", "matplotlib", "numba", "pandas", "scipy",
            "sklearn", "tqdm", "xarray"]

SAMPLE = "fk.sample(lambda x: -0.5 * x.dot(x), [0.0, 0.0], draws=10, tune=10, progress=False)"
DEFAULT = "fk.sample(lambda x: -0.5 * x.dot(x), [0.0, 0.0], seed=1, progress=False)"
OF_GRADIENTS = "fk.sample(lambda x: (-0.5 * x.dot(x), -x), [0.0, 0.0], seed=1, progress=False)"


def loaded(script):
    """The modules that a fresh process has loaded after the script."""
    said = subprocess.run(
        [sys.executable, "-c", f"{script}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"],
        capture_output=True, text=True, check=True, timeout=300)
    return set(json.loads(said.stdout.splitlines()[-1]))


def test_import_loads_nothing_else():
    modules = loaded("import fastkam")
    ours = {name for name in modules if name.partition(".")[0] == "fastkam"}
    assert ours == {"fastkam"}
    assert not modules & {"numpy", *OPTIONAL}


@pytest.mark.parametrize("run", [SAMPLE, DEFAULT, OF_GRADIENTS])
def test_a_run_imports_only_the_modules_it_needs(run):
    before = loaded("import fastkam, numpy.random, threadpoolctl")
    modules = loaded(f"import fastkam as fk\nstr({run}.summary())") - before
    unused = {"fastkam.plots", "fastkam.points.ahead", "fastkam.points.pool", "fastkam.stop",
              "fastkam.targets", "fastkam.run.executors", "fastkam.run.pools",
              "fastkam.run.processes", "concurrent.futures.thread", "difflib", "html",
              "multiprocessing", "numpy.ma", "pathlib", "statistics", "subprocess", "zipfile"}
    assert not modules & {*OPTIONAL, *unused}


@pytest.mark.parametrize(("function", "x0"), [
    ("lambda a, b: -0.5 * (a * a + b * b)", '{"a": 0.0, "b": 0.0}'),
    ("lambda x: -0.5 * x.dot(x)", "[0.0, 0.0], bounds=[(-9, None), (None, 9)]"),
    ("lambda x: -0.5 * x.dot(x)", "[0.0, 0.0], transforms={'x': 'identity'}"),
])
def test_a_run_without_a_prior_imports_no_distributions(function, x0):
    """The modules scipy.stats and scipy.optimize take a second to import."""
    modules = loaded(f"import fastkam as fk\nstr(fk.sample({function}, {x0}, draws=10, tune=10, "
                     "progress=False).summary())")
    assert "fastkam.problem.problem" in modules
    assert not modules & {"scipy.optimize", "scipy.special", "scipy.stats"}


def test_every_module_can_be_the_first():
    """No import depends on another that happens to come before it."""
    homes = [found.name for found in pkgutil.walk_packages(fk.__path__, "fastkam.")
             if found.name not in ("fastkam.__main__", "fastkam.density.numba")
             and not found.name.startswith(("fastkam._core.", "fastkam.hosts."))]  # need packages
    script = f"""
import os
import numpy.random, scipy.optimize, scipy.stats  # not ours: once for all
for home in {homes}:
    if os.fork() == 0:
        __import__(home)
        os._exit(0)
    assert os.wait()[1] == 0, home
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)


@pytest.mark.parametrize("name", fk.__all__)
def test_every_public_name_can_be_imported(name):
    value = getattr(fk, name)
    assert value is getattr(fk, name)
    assert name in dir(fk)
    if isinstance(value, ModuleType):
        assert value.__name__ == f"fastkam.{name}"
        return
    assert value == pickle.loads(pickle.dumps(value))
    # a module of that name would take its place as soon as it is imported
    assert importlib.util.find_spec(f"fastkam.{name}") is None


def test_every_module_can_be_reached_by_name():
    """The order of the imports does not matter."""
    said = subprocess.run(
        [sys.executable, "-c", "import fastkam as fk; print(fk.errors.SamplingError, fk.testing)"],
        capture_output=True, text=True, check=True, timeout=300)
    assert "SamplingError" in said.stdout


def test_type_hints_of_public_names():
    for function in (fk.sample, fk.resume):
        assert "executor" in typing.get_type_hints(function)


def test_star_import():
    names = {}
    exec("from fastkam import *", names)
    assert set(fk.__all__) <= set(names)


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="No fastkam attribute summon"):
        _ = fk.summon
    with pytest.raises(ImportError, match="cannot import name 'summon' from 'fastkam'"):
        exec("from fastkam import summon")
