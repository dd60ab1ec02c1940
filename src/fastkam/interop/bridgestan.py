"""BridgeStan: a compiled Stan model, called through its C interface without another package.

The interface is that of BridgeStan 2 (`bs_model_construct`, `bs_log_density_gradient`, ...): see
`fastkam._core.density.stan`, which has the reference.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import zlib
from collections.abc import Mapping
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_uint, c_void_p
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.joined import JoinedTarget
from fastkam._core.density.stan import StanTarget
from fastkam.arguments import check_flag, check_integer, shown
from fastkam.density.target import Target
from fastkam.interop.model import Model, Quantities, whole
from fastkam.run.shapes import Layout

Array = NDArray[np.float64]

SPREAD = 2.0  # Stan's own starts are uniform within this of 0
ERROR = POINTER(c_void_p)
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "bs_model_construct": (c_void_p, [c_char_p, c_uint, ERROR]),
    "bs_model_destruct": (None, [c_void_p]),
    "bs_free_error_msg": (None, [c_void_p]),
    "bs_name": (c_char_p, [c_void_p]),
    "bs_model_info": (c_char_p, [c_void_p]),
    "bs_param_names": (c_char_p, [c_void_p, c_bool, c_bool]),
    "bs_param_num": (c_int, [c_void_p, c_bool, c_bool]),
    "bs_param_unc_num": (c_int, [c_void_p]),
    "bs_param_constrain": (c_int, [c_void_p, c_bool, c_bool, c_void_p, c_void_p, c_void_p, ERROR]),
    "bs_param_unconstrain": (c_int, [c_void_p, c_void_p, c_void_p, ERROR]),
    "bs_log_density": (c_int, [c_void_p, c_bool, c_bool, c_void_p, POINTER(c_double), ERROR]),
    "bs_log_density_gradient": (
        c_int, [c_void_p, c_bool, c_bool, c_void_p, POINTER(c_double), c_void_p, ERROR]),
    "bs_rng_construct": (c_void_p, [c_uint, ERROR]),
    "bs_rng_destruct": (None, [c_void_p]),
}


def from_bridgestan(
    lib: Any, data: Any = None, *, quantities: bool = True, seed: int = 0
) -> StanModel:
    """A Stan model that BridgeStan has compiled, ready to be sampled.

    Parameters
    ----------
    lib : path
        The shared library, such as ``bridgestan.compile_model("model.stan")`` returns.
    data : dict, str or path, optional
        The data of the model: a dict, whose values may be arrays; JSON; or the path of a .json
        file.
    quantities : bool
        Whether transformed parameters and generated quantities are recorded with each draw, in
        ``result.extras``.
    seed : int
        Seed of the model's transformed data and generated quantities. At the same point these have
        the same random numbers.

    Returns
    -------
    StanModel
        A `fastkam.interop.model.Model`. Its density has the log Jacobian and all constants
        (``propto=False, jacobian=True``). A point where Stan raises an error is rejected and
        counted in ``result.rejected["failed"]``; ``model.error`` is the text of the last one.

    Raises
    ------
    TypeError, ValueError
        If `lib` is not a library of BridgeStan, or the model refuses the data, with Stan's text.
    FileNotFoundError
        If there is no such file.
    """
    return StanModel(check_library(lib), text_of(data), check_flag("quantities", quantities),
                     check_integer("seed", seed, least=0, most=2**32 - 1))


def check_library(lib: Any) -> str:
    """The absolute path of a shared library."""
    if not isinstance(lib, (str, os.PathLike)):
        raise TypeError(f"lib must be the path of a shared library, not {shown(lib)}")
    path = Path(lib)
    if path.suffix == ".stan":
        raise ValueError(f"lib must be a compiled model, not {str(path)!r}: give what "
                         f"bridgestan.compile_model({str(path)!r}) returns")
    if not path.is_file():
        raise FileNotFoundError(f"lib: there is no file {str(path)!r} in {str(Path.cwd())!r}")
    return str(path.resolve())


def text_of(data: Any) -> str:
    """Data as JSON."""
    if data is None:
        return "{}"
    if isinstance(data, Mapping):
        return json.dumps({name: plain(f"data[{name!r}]", value) for name, value in data.items()})
    if isinstance(data, os.PathLike) or (isinstance(data, str) and data.endswith(".json")):
        path = Path(data)
        if not path.is_file():
            raise FileNotFoundError(f"data: there is no file {str(path)!r} in {str(Path.cwd())!r}")
        return path.read_text()
    if not isinstance(data, str):
        raise TypeError(f"data must be a dict, JSON or the path of a .json file, not {shown(data)}")
    try:
        json.loads(data or "{}")
    except ValueError as error:
        raise ValueError(f"data must be JSON or the path of a .json file: {error}") from None
    return data or "{}"


def plain(name: str, value: Any) -> Any:
    """A value of data in JSON's own types."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        if isinstance(value, (list, tuple)):  # rows of different lengths, or tuples of Stan
            return [plain(name, one) for one in value]
        if isinstance(value, Mapping):
            return {key: plain(name, one) for key, one in value.items()}
        raise TypeError(f"{name} must be a number or an array of numbers, not {shown(value)}")
    return (array.astype(int) if array.dtype.kind == "b" else array).tolist()


class Library:
    """The functions of a library with BridgeStan's C interface."""

    def __init__(self, path: str) -> None:
        try:
            loaded = ctypes.CDLL(path)
        except OSError as error:
            raise ValueError(f"lib {path!r} cannot be loaded: {error}") from error
        missing = [name for name in FUNCTIONS if not hasattr(loaded, name)]
        if missing:
            raise ValueError(f"lib {path!r} must have BridgeStan's C interface, version 2, and has "
                             f"no {missing[0]}")
        self.functions = {}
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
            self.functions[name] = function

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the model that cannot fail."""
        return self.functions["bs_" + name](*arguments)

    def checked(self, name: str, *arguments: Any) -> Any:
        """Call a function of the model; ValueError with Stan's text where it fails."""
        error = c_void_p()
        found = self.call(name, *arguments, byref(error))
        construct = name.endswith("construct")
        if found if not construct else not found:
            raise ValueError(self.taken(error) or f"bs_{name} has failed")
        self.taken(error)
        return found

    def taken(self, error: c_void_p) -> str | None:
        """The text of an error, which is freed."""
        if not error.value:
            return None
        text = ctypes.string_at(error.value).decode(errors="replace").strip()
        self.call("free_error_msg", error)
        return text

    def address(self, name: str) -> int:
        """The address of a function."""
        found = ctypes.cast(self.functions["bs_" + name], c_void_p).value
        assert found is not None
        return found


class StanModel(Model):
    """A Stan model as a density of Stan's own unconstrained parameters.

    Made by `from_bridgestan`, which describes it.
    """

    route = "C"

    def __init__(self, path: str, data: str, quantities: bool, seed: int) -> None:
        self.given = path, data, quantities, seed
        self.library, self.seed, self.model = Library(path), seed, None
        try:
            self.model = self.library.checked("model_construct", data.encode(), seed)
        except ValueError as error:
            raise ValueError(f"data of {Path(path).name}: {error}") from None
        self.name = self.library.call("name", self.model).decode()
        self.dim = self.library.call("param_unc_num", self.model)
        if self.dim < 1:
            raise ValueError(f"lib must have parameters, and the model {self.name!r} has none")
        self.of_parameters = Columns(self.names_with(False))
        self.layout = Layout(self.of_parameters.shapes, {}, {})
        self.more = Columns(self.names_with(True)[len(self.names_with(False)):])
        text = self.library.call("model_info", self.model).decode()
        threads = re.search(r"STAN_THREADS\s*=\s*true", text, re.I) is not None
        address = self.library.address
        self.stan = StanTarget(
            self.dim, self.model, address("log_density"), address("log_density_gradient"),
            address("free_error_msg"), self, not threads)
        self.derived = Quantities(self, self.quantities) if quantities and self.more.width else None
        digest = hashlib.sha256((data + repr(self.layout.shapes)).encode()).hexdigest()[:16]
        self.coordinates = whole(self, f"Stan model {self.name} {digest}", self.n_x,
                                 ", ".join(self.names))

    def names_with(self, more: bool) -> list[str]:
        """The names of all numbers, as Stan has them: those of the parameters are the first."""
        text = self.library.call("param_names", self.model, more, more).decode()
        return text.split(",") if text else []

    @property
    def error(self) -> str | None:
        """The text of the last evaluation that failed since this was last read, or None."""
        return self.stan.take_error()

    # ---- the map ----

    def constrain_one(self, z: Array) -> Array:
        return self.of_parameters.in_c_order(self.written(z, False))

    def written(self, z: Array, more: bool) -> Array:
        """The output of bs_param_constrain at z (dim,), with all quantities or without."""
        z = np.ascontiguousarray(z, dtype=float)
        n = self.library.call("param_num", self.model, more, more)
        out, rng = np.empty(n), None
        if more:
            rng = self.library.checked("rng_construct", zlib.crc32(z.tobytes(), self.seed))
        try:
            self.library.checked("param_constrain", self.model, more, more, z.ctypes.data,
                                 out.ctypes.data, rng)
        finally:
            if rng is not None:
                self.library.call("rng_destruct", rng)
        return out

    def unconstrain_one(self, x: Array) -> Array:
        z, theta = np.empty(self.dim), self.of_parameters.in_stan_order(x)
        self.library.checked("param_unconstrain", self.model, theta.ctypes.data, z.ctypes.data)
        return z

    def quantities(self, Z: Array) -> dict[str, Any]:
        """Transformed parameters and generated quantities of Z (k, dim), {name: (k, *shape)}."""
        rows = np.array([self.more.in_c_order(self.written(z, True)[self.of_parameters.width:])
                         for z in Z])
        return Layout(self.more.shapes, {}, {}).split(rows)

    # ---- starts and targets ----

    def start_point(self, rng: np.random.Generator) -> Array:
        """A point within 2 of 0 in each unconstrained coordinate, as Stan starts."""
        return rng.uniform(-SPREAD, SPREAD, self.dim)

    def target(self, *, gradient: bool = False) -> Target:
        """The density of z as a Target."""
        made: Any = JoinedTarget(self.stan, None, self.derived, partial(target_of, *self.given))
        return made

    def __reduce__(self) -> Any:
        return StanModel, self.given

    def __del__(self) -> None:
        if getattr(self, "model", None):
            self.library.call("model_destruct", self.model)


def target_of(path: str, data: str, quantities: bool, seed: int) -> Target:
    """The target of a model in another process."""
    return StanModel(path, data, quantities, seed).target()


class Columns:
    """Numbers under Stan's names, such as "theta.2" or "L.2.1", which are in column-major order.

    Attributes
    ----------
    shapes : dict of str to tuple of int
    width : int
        Number of columns.
    """

    def __init__(self, names: list[str]) -> None:
        parts: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
        for place, full in enumerate(names):
            found = re.fullmatch(r"(.*?)((?:\.\d+)*)", full)
            assert found is not None
            index = tuple(int(one) - 1 for one in found[2].split(".")[1:])
            parts.setdefault(found[1], []).append((place, index))
        self.width, self.shapes, order = len(names), {}, []
        for name, places in parts.items():
            self.shapes[name] = tuple(1 + max(one) for one in
                                      zip(*(index for _, index in places), strict=True))
            order += [place for place, _ in sorted(places, key=lambda pair: pair[1])]
        self.order = np.array(order, dtype=int)

    def in_c_order(self, theta: Array) -> Array:
        """The numbers in the order of NumPy's arrays."""
        return theta[self.order]

    def in_stan_order(self, x: Array) -> Array:
        """The numbers in Stan's order."""
        theta = np.empty(self.width)
        theta[self.order] = x
        return theta
