"""A Cython package that cimports only fastkam.target, built and sampled from."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import densities
import numpy as np
import pytest
from runs import sample
from same import assert_same

import fastkam as fk

SOURCE = Path(__file__).parent / "outside_package"


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    for tool in ("meson", "cython"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path_factory.mktemp("outside")
    shutil.copytree(SOURCE, folder, dirs_exist_ok=True)
    for command in (["meson", "setup", "build"], ["meson", "compile", "-C", "build"]):
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr
    (library,) = (folder / "build").glob("density.*.so")
    spec = importlib.util.spec_from_file_location("density", library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_outside_package(outside):
    target = fk.as_target(outside.Banana(0.5), 2)
    assert not target.needs_gil
    options = {"x0": np.ones(2), "draws": 200, "tune": 100, "seed": 3}
    assert_same(sample(target, threads=2, **options), sample(densities.python, **options))
    with pytest.raises(ValueError, match="target has dimension 2, but x0 has 3 coordinates"):
        sample(outside.Banana(0.5), np.ones(3))


def test_it_uses_the_public_interface_only():
    used = re.findall(r"^(?:from|cimport|import) +(fastkam[.\w]*)",
                      (SOURCE / "density.pyx").read_text(), re.M)
    assert used == ["fastkam.target"]


def test_headers_for_c_and_cython_are_in_one_folder():
    include = Path(fk.get_include()) / "fastkam"
    assert {"target.h", "target.pxd"} <= {path.name for path in include.iterdir()}
