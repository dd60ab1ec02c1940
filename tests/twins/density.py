"""Transforms and priors with one mistake each: copies of the compiled density, as of samplers."""

import fcntl
import importlib
import os
import shutil
import subprocess
import sys
from typing import NamedTuple

import pytest

from twins.build import CYTHON, IMPORT, files_of, meson_file

MODULES = ("density.coordinate", "density.vectors", "density.space", "density.prior",
           "density.problem_target")


class DensityTwin(NamedTuple):
    """A change of a module, and the posterior of tests/stat/test_parametrization.py it spoils."""

    name: str
    spoils: str
    mistake: str
    module: str
    old: str
    new: str


def twin(name, spoils, mistake, old, new, module="density.coordinate"):
    return DensityTwin(name, spoils, mistake, module, old, new)


LIST = [
    twin("log_alone", "log", "The Jacobian of the logarithm is left out.",
         "log_jacobian[0] += z\n    elif kind == UPPER", "pass\n    elif kind == UPPER"),
    twin("log_sign", "log", "The Jacobian of the logarithm has the wrong sign.",
         "log_jacobian[0] += z\n    elif kind == UPPER",
         "log_jacobian[0] -= z\n    elif kind == UPPER"),
    twin("upper_sign", "upper", "The Jacobian of the reflected logarithm has the wrong sign.",
         "log_jacobian[0] -= z", "log_jacobian[0] += z"),
    twin("interval_alone", "interval", "The Jacobian of the logit is left out.",
         "log_jacobian[0] += s.log_width + log_p + log_q", "pass"),
    twin("interval_half", "interval", "The Jacobian of the logit lacks one of its factors.",
         "log_jacobian[0] += s.log_width + log_p + log_q",
         "log_jacobian[0] += s.log_width + log_p"),
    twin("simplex_rest", "simplex", "The Jacobian of a simplex lacks the rest of the stick.",
         "log_jacobian[0] += below[k]", "log_jacobian[0] += below[k] - rest",
         module="density.vectors"),
    twin("simplex_alone", "simplex", "The Jacobian of a simplex has log(1 - s) left out.",
         "        log_jacobian[0] += log_sigmoid(-shifted)\n", "", module="density.vectors"),
    twin("ordered_alone", "ordered", "The Jacobian of ordered values is left out.",
         "            log_jacobian[0] += z[k]\n", "", module="density.vectors"),
    twin("correlation_row", "correlation", "The Jacobian of a Cholesky factor lacks its rows.",
         "log_jacobian[0] += part * (1 + 0.5 * (i - 1 - j))", "log_jacobian[0] += part",
         module="density.vectors"),
    twin("pole", "log", "The prior of a gamma distribution has a in place of a - 1.",
         "times(f.a - 1, p) - y, -1, f.a - 1", "times(f.a, p) - y, -1, f.a",
         module="density.prior"),
    twin("prior_alone", "interval", "The log likelihood is left out of the density.",
         "        logp[0] += p.base\n    leave(&self.workspace, at, memory)\n    return rc\n\n\n"
         "cdef int call_logp_grad",
         "        logp[0] = p.base\n    leave(&self.workspace, at, memory)\n    return rc\n\n\n"
         "cdef int call_logp_grad", module="density.problem_target"),
]
TWINS = {one.name: one for one in LIST}


def copies(one):
    """The files of a twin, {name: text}."""
    def renamed(match):
        return copy_name(one, match[1]) if match[1] in MODULES else match[0]

    found = {}
    for module in MODULES:
        for file in files_of(module):
            text = file.read_text()
            if module == one.module and (file.suffix == ".pyx" or len(files_of(module)) == 1):
                assert text.count(one.old) == 1, (one.name, text.count(one.old))
                text = text.replace(one.old, one.new)
            found[copy_name(one, module) + file.suffix] = IMPORT.sub(renamed, text)
    return found


def copy_name(one, module):
    return f"{one.name}__{module.rpartition('.')[2]}"


def build(folder):
    files = {name: text for one in LIST for name, text in copies(one).items()}
    for name, text in files.items():
        (folder / name).write_text(text)
    sources = [name for name in files if name.endswith(".pyx")]
    (folder / "meson.build").write_text(meson_file(sources))
    for command in ([*CYTHON, *sources], ["meson", "setup", "build"], ["ninja", "-C", "build"]):
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-8000:]


def density_twins(tmp_path_factory):
    """A function of a twin's name that returns its ProblemTarget class."""
    for tool in ("meson", "ninja", "cython"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed, with which densities with mistakes are built")
    session = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        session = session.parent
    folder = session / "density_twins"
    with (session / "density_twins.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            folder.mkdir(exist_ok=True)
            build(folder)
            (folder / "done").touch()
    sys.path.append(str(folder / "build"))

    def target_class(name):
        module = importlib.import_module(copy_name(TWINS[name], "density.problem_target"))
        return module.ProblemTarget

    return target_class
