"""Bare C loops: what the engine and the kernels are measured against. Compiled on first use.

`library` holds the floors, compiled for this machine with all it has; `repeat` calls fastkam's own
kernels, and BLAS and LAPACK as scipy has them, from C.
"""

import ctypes
import functools
import importlib
import os
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
CORE = HERE.parents[2] / "src" / "fastkam" / "_core"
INCLUDES = tuple(f"-I{CORE / folder}" for folder in ("engine", "kam", "linalg"))
NATIVE = ("-march=native", "-mprefer-vector-width=512", "-ffp-contract=fast")
AS_BUILT = ("-ffp-contract=off", "-fno-trapping-math", "-fno-tree-slp-vectorize", *INCLUDES)


def compiled(flags, *sources):
    """The C files of this folder, compiled into a library."""
    out = Path(tempfile.mkdtemp(prefix="fastkam-floor")) / "floor.so"
    numpy_folder = Path(np.__file__).parent
    subprocess.run(
        [
            os.environ.get("CC", "cc"), "-O3", "-fno-math-errno", *flags, "-shared", "-fPIC",
            *(str(HERE / source) for source in sources), "-o", str(out),
            f"-I{np.get_include()}", f"-I{sysconfig.get_path('include')}",
            f"-L{numpy_folder / 'random' / 'lib'}", f"-L{numpy_folder / '_core' / 'lib'}",
            "-lnpyrandom", "-lnpymath", "-lm",
        ],
        check=True, capture_output=True,
    )
    return ctypes.CDLL(str(out))


@functools.cache
def library():
    """The floors of this folder."""
    lib = compiled((*NATIVE[:1], "-ffp-contract=off"), "walk.c")
    lib.walk.restype = None
    for density in (lib.two_mode_density, lib.normal_density):
        density.restype = ctypes.c_double
        density.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p]
    return lib


@functools.cache
def kernels():
    """The floors of the kernels."""
    lib = compiled(NATIVE, "gradient.c", "normal_density.c", "rank_one.c", "random.c")
    lib.floor_density.restype = ctypes.c_double
    return lib


@functools.cache
def repeat():
    """Loops round fastkam's kernels and LAPACK's."""
    lib = compiled(AS_BUILT, "repeat.c")
    lib.repeat_density.restype = lib.lapack_density.restype = ctypes.c_double
    lib.lapack_update.restype = ctypes.c_double
    return lib


def arguments(*values):
    """What C takes: arrays as pointers that keep them, int as ptrdiff_t, float as double."""
    return [
        v.ctypes.data_as(ctypes.c_void_p) if isinstance(v, np.ndarray)
        else ctypes.c_double(v) if isinstance(v, float)
        else ctypes.c_ssize_t(v) if isinstance(v, int) else v
        for v in values
    ]


def capsule_pointer(capsule):
    """What a capsule holds."""
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name(capsule))


def function(module, name):
    """A C function that a Cython module exports."""
    return ctypes.c_void_p(capsule_pointer(importlib.import_module(module).__pyx_capi__[name]))


def chosen(module, name):
    """A C function that a Cython module has chosen for this processor."""
    at = capsule_pointer(importlib.import_module(module).__pyx_capi__[name])
    return ctypes.cast(at, ctypes.POINTER(ctypes.c_void_p)).contents


class AdaptiveWalk:
    """The bare adaptive Metropolis on a standard normal, which goes on at each call."""

    def __init__(self, seed, d, gain):
        self.generator = np.random.PCG64(seed)
        self.x, self.mu, self.L = np.zeros(d), np.zeros(d), np.eye(d)
        self.gain, self.made = gain, 0
        self.rank_one = chosen("fastkam._core.linalg.dense", "rank_one")
        self.call = compiled((*NATIVE, *INCLUDES), "adaptive.c").adaptive_walk
        self.draws(0)       # makes tables with bits of the generator
        self.generator.state = np.random.PCG64(seed).state

    def draws(self, n):
        """The next n (n, d)."""
        d, g = len(self.x), self.gain
        found = np.empty((n, d))
        self.call(
            ctypes.c_void_p(capsule_pointer(self.generator.capsule)), self.rank_one,
            ctypes.c_ssize_t(d), ctypes.c_int64(n), ctypes.c_int64(self.made),
            *arguments(2.38 / np.sqrt(d), g.c, g.k, g.offset, g.cap, self.x, self.mu, self.L,
                       found))
        self.made += n
        return found


def walk(seed, n, scale, x0):
    """n draws (n, 2) of the bare random walk on the two-mode target."""
    generator = np.random.PCG64(seed)
    start, draws = np.array(x0, dtype=float), np.empty((n, 2))
    bits = ctypes.c_void_p(capsule_pointer(generator.capsule))
    library().walk(bits, ctypes.c_int64(n), *arguments(float(scale), start, draws))
    return draws
