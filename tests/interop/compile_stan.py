"""Compiles schools.stan into a library of BridgeStan without a download from its project.

    pip install --no-deps httpstan
    python tests/interop/compile_stan.py BRIDGESTAN OUT

BRIDGESTAN is a checkout of BridgeStan, OUT a folder for ``schools_model.so``. The package httpstan
has the headers of Stan and its compiler. It takes a minute.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

MACROS = ["STAN_THREADS", "_REENTRANT", "BOOST_DISABLE_ASSERTS",
          "BOOST_PHOENIX_NO_VARIADIC_EXPRESSION",
          "_GLIBCXX_USE_CXX11_ABI=0"]  # as the libraries of httpstan are
LIBRARIES = ["tbb", "sundials_cvodes", "sundials_idas", "sundials_kinsol", "sundials_nvecserial"]


def main(bridgestan, out):
    """Translate the model, and compile it with BridgeStan's interface."""
    stan = Path(importlib.util.find_spec("httpstan").origin).parent
    out, sources = Path(out), Path(bridgestan) / "src"
    model, header = Path(__file__).with_name("schools.stan"), out / "schools.hpp"
    subprocess.run([stan / "stanc", f"--o={header}", model], check=True)
    subprocess.run(
        ["g++", "-std=c++17", "-O1", "-fPIC", "-shared", "-w", *(f"-D{name}" for name in MACROS),
         f"-I{stan / 'include'}", f"-I{sources}", "-include", header, sources / "bridgestan.cpp",
         "-o", out / "schools_model.so", f"-L{stan / 'lib'}", *(f"-l{name}" for name in LIBRARIES),
         f"-Wl,-rpath,{stan / 'lib'}"], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
