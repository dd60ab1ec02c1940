"""nutpie on a fastkam target: the same compiled function, through the same pointer."""

import ctypes

import numba
import numpy as np
from numba import carray, types
from nutpie import _lib
from nutpie.sample import CompiledModel


class Struct(ctypes.Structure):
    """fk_target of fastkam/target.h."""

    _fields_ = (
        [("abi", ctypes.c_uint32), ("flags", ctypes.c_uint32)]
        + [(name, ctypes.c_size_t) for name in ("dim", "n_aux")]
        + [(name, ctypes.c_void_p)
           for name in ("logp", "logp_grad", "batch", "hvp", "noisy", "data")]
    )


def struct_of(target):
    """The C struct behind a target."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Struct.from_address(get(target.__fk_target__(), b"fk_target_v1"))


@numba.cfunc(types.int64(types.uint64, types.uint64, types.CPointer(types.double),
                         types.CPointer(types.double), types.voidptr))
def expand(n, m, x, out, data):
    """Nothing but the point itself is kept."""
    carray(out, m)[:] = carray(x, n)
    return 0


class Model(CompiledModel):
    """A fastkam target as nutpie takes it; every chain starts at x0."""

    def __init__(self, target, x0):
        object.__setattr__(self, "dims", {"x": ("x_dim",)})
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "x0", np.asarray(x0, dtype=float))

    n_dim = property(lambda self: self.target.dim)
    shapes = property(lambda self: {"x": (self.target.dim,)})
    coords = property(lambda self: {})

    def _make_sampler(self, settings, init_mean, cores, progress_type, store):
        return _lib.PySampler.from_pymc(settings, cores, self._make_model(init_mean),
                                        progress_type, store)

    def _make_model(self, init_mean):
        d, struct = self.target.dim, struct_of(self.target)
        sizes = {"x_dim": d}
        variables = _lib.PyVariable.new_variables(["x"], ["float64"], [(d,)], sizes, self.dims)
        return _lib.PyMcModel(
            _lib.LogpFunc(struct.logp_grad, struct.data or 0, self),
            _lib.ExpandFunc(d, d, expand.address, 0, self),
            variables, d, sizes, {}, lambda seed: self.x0, None,
        )
