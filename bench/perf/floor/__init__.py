"""Bare C loops: what the engine is measured against. Compiled on first use."""

import ctypes
import functools
import os
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import numpy as np


@functools.cache
def library():
    """The compiled loops of this folder."""
    here = Path(__file__).parent
    out = Path(tempfile.mkdtemp(prefix="fastkam-floor")) / "floor.so"
    random = Path(np.__file__).parent / "random" / "lib"
    core = Path(np.__file__).parent / "_core" / "lib"
    subprocess.run(
        [
            os.environ.get("CC", "cc"), "-O3", "-march=native", "-ffp-contract=off",
            "-fno-math-errno", "-shared", "-fPIC", str(here / "walk.c"), "-o", str(out),
            f"-I{np.get_include()}", f"-I{sysconfig.get_path('include')}",
            f"-L{random}", f"-L{core}", "-lnpyrandom", "-lnpymath", "-lm",
        ],
        check=True,
    )
    lib = ctypes.CDLL(str(out))
    lib.walk.restype = None
    lib.two_mode_density.restype = ctypes.c_double
    lib.two_mode_density.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p]
    return lib


def walk(seed, n, scale, x0):
    """n draws (n, 2) of the bare random walk on the two-mode target."""
    generator = np.random.PCG64(seed)
    capsule = generator.capsule
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    start, draws = np.array(x0, dtype=float), np.empty((n, 2))
    library().walk(
        ctypes.c_void_p(pointer(capsule, b"BitGenerator")), ctypes.c_int64(n),
        ctypes.c_double(scale), ctypes.c_void_p(start.ctypes.data),
        ctypes.c_void_p(draws.ctypes.data),
    )
    return draws
