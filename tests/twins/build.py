"""Copies of compiled modules with a twin's changes made, built in one go.

A copy has a name of its own, "twin__module". Of each twin the modules are copied that it changes,
and those through which its samplers reach them; all else is the installed package.
"""

import fcntl
import importlib
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from fastkam.samplers import SAMPLERS, DelayedAcceptance

CORE = Path(__file__).parents[2] / "src" / "fastkam" / "_core"
PACKAGE = "fastkam._core."
IMPORT = re.compile(r"\bfastkam\._core\.([\w.]+)(?= c?import)")
CYTHON = ("cython", "-3", "-Xfreethreading_compatible=True", "-Xwraparound=False",
          "-Xauto_pickle=False",
          "-Xcdivision=True", "-Xboundscheck=False", "-Xinitializedcheck=False",
          "--shared=fastkam._core._cyutility", "-I", str(CORE.parents[1]),
          "-I", str(CORE.parent / "include"), "-I", ".")
# the flags of src/fastkam/meson.build, but not optimized: compilation takes longer than the tests
MESON = """\
project('twins', 'c', default_options: ['optimization=0', 'debug=false', 'c_std=c11'])
py = import('python').find_installation(pure: false)
cc = meson.get_compiler('c')
numpy = run_command(py, '-c', 'import numpy; print(numpy.__path__[0])',
  check: true).stdout().strip()
random = cc.find_library('npyrandom', dirs: numpy / 'random' / 'lib', static: true)
math = cc.find_library('npymath', dirs: numpy / '_core' / 'lib', static: true)
core = '@core@'
flags = cc.get_supported_arguments('-fopenmp-simd', '-ffp-contract=off', '-fno-math-errno',
  '-fno-trapping-math', '-w') + ['-DFK_ONE_LEVEL']
foreach folder : ['diagnostics', 'engine', 'kam', 'linalg', 'numerics', 'samplers', 'surrogate',
    'targets']
  flags += '-I' + core / folder
endforeach
flags += '-I' + numpy / '_core' / 'include'
loops = static_library('loops', @loops@, c_args: flags + ['-DFK_SUFFIX=_base'], pic: true,
  dependencies: py.dependency().partial_dependency(includes: true, compile_args: true))
foreach name : @names@
  py.extension_module(name, name + '.c', link_with: loops,
    c_args: flags + ['-I' + core / '..' / 'include',
      '-DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION'],
    dependencies: [random, math, cc.find_library('m', required: false)])
endforeach
"""


def sampler_class(name):
    """Return a class of sampler from its registered name; delayed acceptance is not registered."""
    return DelayedAcceptance if name == "delayed" else SAMPLERS[name]


def kernel_of(name):
    """Return (module, class) of a sampler's kernel."""
    module, kernel = sampler_class(name).KERNEL.split(".")
    return f"samplers.{module}", kernel


# ---- the text of a twin ----


def files_of(module):
    """Return the source files of a module of the core that is named from there."""
    path = CORE.joinpath(*module.split("."))
    return [file for end in (".pxd", ".pyx") if (file := path.with_suffix(end)).exists()]


@cache
def imports_of(module):
    """Return the modules of the core that a module names in its imports."""
    return {name for file in files_of(module) for name in IMPORT.findall(file.read_text())}


@cache
def reached(module):
    """Return the modules of the core that a module imports, by whatever way, and itself."""
    found, more = set(), {module}
    while more:
        found |= more
        more = {name for one in more for name in imports_of(one)} - found
    return found


def modules_of(twin):
    """Return the modules to be copied: those between the samplers' kernels and the changes."""
    changed = {change.module for change in twin.changes}
    return sorted({module for name in twin.spoils for module in reached(kernel_of(name)[0])
                   if reached(module) & changed})


def copy_name(twin, module):
    return f"{twin.name}__{module.rpartition('.')[2]}"


def copies(twin):
    """Return the files of a twin, {name: text}."""
    modules = modules_of(twin)

    def renamed(match):
        return copy_name(twin, match[1]) if match[1] in modules else match[0]

    found, places = {}, []
    for module in modules:
        for file in files_of(module):
            text = file.read_text()
            for change in twin.changes:
                if change.module == module and change.old in text:
                    places += [change] * text.count(change.old)
                    text = text.replace(change.old, change.new)
            found[copy_name(twin, module) + file.suffix] = IMPORT.sub(renamed, text)
    for change in twin.changes:
        assert places.count(change) == 1, (
            f"{twin.name}: {change.module} has {places.count(change)} places\n{change.old}")
    return found


# ---- compilation ----


def meson_file(sources):
    """Return the text of meson.build for the modules of some .pyx files."""
    loops = [str(file) for file in CORE.glob("*/*.c") if file.name != "levels.c"]
    return (MESON.replace("@core@", str(CORE)).replace("@loops@", repr(sorted(loops)))
            .replace("@names@", repr([Path(name).stem for name in sources])))


def build(folder, twins):
    """Compile all twins in a folder."""
    files = {name: text for twin in twins for name, text in copies(twin).items()}
    for name, text in files.items():
        (folder / name).write_text(text)
    sources = [name for name in files if name.endswith(".pyx")]
    (folder / "meson.build").write_text(meson_file(sources))
    # two processes translate all: each takes as long to begin as for a module
    parts = [part for part in (sources[::2], sources[1::2]) if part]
    for commands in ([[*CYTHON, *part] for part in parts],
                     [["meson", "setup", "build"]], [["ninja", "-C", "build"]]):
        started = [subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT) for command in commands]
        told = [run.communicate()[0][-16_000:] for run in started]
        assert not any(run.returncode for run in started), "\n".join(told)


def built(tmp_path_factory, twins):
    """Return the folder of the compiled twins; the first worker of a session builds them."""
    for tool in ("meson", "ninja", "cython"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed, with which samplers with mistakes are built")
    session = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        session = session.parent
    folder = session / "twins"
    with (session / "twins.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "done"
        if not done.exists():
            folder.mkdir(exist_ok=True)
            build(folder, twins)
            done.touch()
    return folder / "build"


class Twins:
    """The compiled twins of a session."""

    def __init__(self, tmp_path_factory, twins):
        folder = str(built(tmp_path_factory, twins.values()))
        if folder not in sys.path:
            sys.path.append(folder)
        self.twins = twins

    def sampler(self, name, spoils=None, base=None):
        """Return the class of sampler that a twin spoils.

        Parameters
        ----------
        name : str
            Of the twin.
        spoils : str, optional
            Which sampler, where there are several.
        base : class, optional
            What to derive it from in place of the registered class.
        """
        twin = self.twins[name]
        spoils = spoils or twin.spoils[0]
        module, kernel = kernel_of(spoils)
        compiled = getattr(importlib.import_module(copy_name(twin, module)), kernel)
        return type(name, (base or sampler_class(spoils),),
                    {"kernel_class": classmethod(lambda cls: compiled), "__module__": __name__})
