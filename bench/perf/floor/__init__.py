"""Bare C loops, with which the engine and the kernels are compared. Compiled on first use.

`library` and `kernels` hold the floors, compiled for this machine with all it has; `repeat` calls
fastkam's own kernels from C, of any instruction set and any commit, and `lapack` BLAS and LAPACK as
scipy has them.
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
ROOT = HERE.parents[2]
NATIVE = ("-march=native", "-mprefer-vector-width=512", "-ffp-contract=fast")
# as src/fastkam/meson.build compiles the kernels
AS_BUILT = ("-ffp-contract=off", "-fno-trapping-math", "-fno-tree-slp-vectorize", "-fopenmp-simd",
            "-Wno-psabi")
LEVELS = {"base": (), "avx2": ("-mavx2", "-mfma"),
          "avx512": ("-mavx512f", "-mavx512dq", "-mavx512bw", "-mfma")}
KERNELS = ("kam/kernel_pass.c", "linalg/factor.c", "linalg/rank_one.c", "numerics/nearest.c")


def includes(tree):
    """Flags for the headers of a tree of fastkam's files."""
    folders = ("engine", "kam", "linalg", "numerics")
    return [f"-I{tree / 'src' / 'fastkam' / '_core' / folder}" for folder in folders]


def compiled(flags, *sources):
    """The C files of this folder, or with full names, compiled into a library."""
    out = Path(tempfile.mkdtemp(prefix="fastkam-floor")) / "floor.so"
    numpy_folder = Path(np.__file__).parent
    subprocess.run(
        [
            os.environ.get("CC", "cc"), "-O3", "-fno-math-errno", *flags, "-shared", "-fPIC",
            "-Wl,-Bsymbolic",
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
    lib = compiled(NATIVE, "gradient.c", "normal_density.c", "rank_one.c", "random.c",
                   "look_up.c")
    lib.floor_density.restype = ctypes.c_double
    lib.floor_index.restype = ctypes.c_void_p
    return lib


def level():
    """The instruction set for which fastkam's loops are chosen here."""
    flags = set(Path("/proc/cpuinfo").read_text().split())
    best = ("base" if not {"avx2", "fma"} <= flags
            else "avx512" if {"avx512f", "avx512dq", "avx512bw"} <= flags else "avx2")
    return os.environ.get("FASTKAM_LEVEL") or best


@functools.cache
def repeat(name=None, tree=ROOT):
    """Loops round fastkam's kernels, compiled from `tree` for the instruction set `name`."""
    name = name or level()
    core = tree / "src" / "fastkam" / "_core"
    lib = compiled((*AS_BUILT, *LEVELS[name], f"-DFK_SUFFIX=_{name}", *includes(tree)), "repeat.c",
                   *(core / kernel for kernel in KERNELS))
    lib.repeat_density.restype = ctypes.c_double
    lib.new_index.restype = ctypes.c_void_p
    return lib


@functools.cache
def lapack():
    """Loops round BLAS and LAPACK, and round numpy's random numbers."""
    lib = compiled(AS_BUILT, "lapack.c")
    lib.lapack_density.restype = lib.lapack_update.restype = ctypes.c_double
    return lib


def arguments(*values):
    """Convert arguments for C: arrays to pointers, int to ptrdiff_t, float to double."""
    return [
        v.ctypes.data_as(ctypes.c_void_p) if isinstance(v, np.ndarray)
        else ctypes.c_double(v) if isinstance(v, float)
        else ctypes.c_ssize_t(v) if isinstance(v, int) else v
        for v in values
    ]


def capsule_pointer(capsule):
    """Return the pointer in a capsule."""
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
    """The bare adaptive Metropolis on a standard normal, which continues at each call."""

    def __init__(self, seed, d, gain):
        self.generator = np.random.PCG64(seed)
        self.x, self.mu, self.L = np.zeros(d), np.zeros(d), np.eye(d)
        self.gain, self.made = gain, 0
        self.rank_one = chosen("fastkam._core.linalg.dense", "rank_one")
        self.call = compiled((*NATIVE, *includes(ROOT)), "adaptive.c").adaptive_walk
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
