"""A digest of a function: of its code, and of all data and functions that it refers to."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from fastkam._core.density.extras import is_masked
from fastkam.run.sending import portable_target

if TYPE_CHECKING:
    from fastkam.density.target import Target

MOST_OBJECTS = 20_000  # most objects that are followed
LONG = 100  # longer lists of numbers are read as arrays
PLAIN = (type(None), bool, int, float, complex, str, bytes, bytearray, range, slice,
         type(Ellipsis), np.generic, np.dtype)


class Unknown(Exception):
    """Raised for an object of which a change could not be detected."""


def digest_of(target: Target) -> str:
    """A digest of the function of a target; "" if there is no reliable one.

    The digest of a Python function includes its code and that of the functions and classes that it
    names, its defaults, its closure, the globals that it names and what these refer to; that of an
    object, its pickled form; that of installed code, the name and the version of the package. Data
    that a function reads from elsewhere are not included. The digest of another target is that of
    the bytes that would be sent to a worker.
    """
    while hasattr(target, "inner"):  # below a prior, which is sent whole
        target = target.inner
    function = getattr(target, "function", None)
    try:
        if not callable(function):
            return hashlib.sha256(portable_target(target)).hexdigest()
        digest = Digest()
        digest.add(function)
        return digest.whole.hexdigest()
    except Exception:  # also of the user's classes: the caller then compares a call
        return ""


class Digest:
    """A digest to which objects are added."""

    def __init__(self) -> None:
        self.whole = hashlib.sha256()
        # by address; the objects are kept, so that no address is used twice
        self.seen: dict[int, tuple[int, Any]] = {}
        self.size = 0.0  # bytes of arrays; infinite if some are not contiguous

    def put(self, *parts: Any) -> None:
        """Add texts and bytes."""
        for part in parts:
            data = part if isinstance(part, bytes) else str(part).encode("utf-8", "replace")
            self.whole.update(len(data).to_bytes(8, "little") + data)

    def add(self, value: Any) -> None:
        """Add an object, and what it refers to."""
        if isinstance(value, PLAIN):
            self.put(type(value).__name__, repr(value))
            return
        if id(value) in self.seen:
            self.put("again", self.seen[id(value)][0])
            return
        if len(self.seen) >= MOST_OBJECTS:
            raise Unknown
        self.seen[id(value)] = len(self.seen), value
        self.put(type(value).__qualname__)
        self.parts(value)

    def add_all(self, values: Any) -> None:
        """Add several objects."""
        for value in values:
            self.add(value)

    def parts(self, value: Any) -> None:
        """Add what an object refers to."""
        if isinstance(value, np.ndarray):
            self.array(value)
        elif type(value) in (list, tuple):
            self.sequence(value)
        elif type(value) is dict:
            self.add_all(value)
            self.add_all(value.values())
        elif type(value) in (set, frozenset):
            self.put(*sorted(map(repr, value)))
        elif isinstance(value, types.ModuleType):
            self.put(value.__name__, version_of(value.__name__))
        elif isinstance(value, types.MethodType):
            self.add_all([value.__func__, value.__self__])
        elif isinstance(value, functools._lru_cache_wrapper):
            self.add(value.__wrapped__)
        elif isinstance(value, functools.partial):
            self.add_all([value.func, value.args, value.keywords])
        elif is_installed(getattr(value, "__module__", None)) and named_as(value) and (
                "<locals>" not in value.__qualname__):
            self.put(value.__module__, value.__qualname__, version_of(value.__module__))
        elif isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType, np.ufunc)):
            self.put(repr(value.__name__))
            self.add(getattr(value, "__self__", None))
        elif isinstance(value, types.FunctionType):
            self.function(value)
        elif isinstance(value, (classmethod, staticmethod)):
            self.add(value.__func__)
        elif isinstance(value, (property, functools.cached_property)):
            self.add_all([getattr(value, name, None) for name in ("fget", "fset", "func")])
        elif isinstance(value, type):
            self.kind(value)
        else:
            self.object(value)

    def array(self, value: Any) -> None:
        """Add the elements of an array."""
        self.put(value.dtype, value.shape)
        contiguous = value.flags.c_contiguous or value.flags.f_contiguous
        self.size += value.nbytes if contiguous else np.inf
        if is_masked(value):
            self.add_all([value.filled(), value.mask])
        elif value.dtype.hasobject:
            self.add(value.tolist())
        else:
            self.put(np.ascontiguousarray(value).tobytes())

    def sequence(self, values: Any) -> None:
        """Add the elements of a list or a tuple."""
        if len(values) > LONG and all(isinstance(value, float) for value in values):
            self.array(np.array(values))
        else:
            self.put(len(values))
            self.add_all(values)

    def function(self, value: types.FunctionType) -> None:
        """Add a function of Python."""
        self.add_all([value.__defaults__, value.__kwdefaults__])
        self.add_all([contents(cell) for cell in value.__closure__ or ()])
        self.code(value.__code__, value.__globals__)

    def code(self, code: types.CodeType, named: dict[str, Any]) -> None:
        """Add a piece of code, with the globals that it names and the code within it."""
        self.put(code.co_code, code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self.code(constant, named)
            else:
                self.add(constant)
        found = [named[name] for name in code.co_names if name in named]
        modules = [value for value in found if isinstance(value, types.ModuleType)]
        looked: set[str] = set()
        while modules:  # objects that the code may take from the user's modules
            module = modules.pop()
            if module.__name__ in looked or is_installed(module.__name__):
                continue
            looked.add(module.__name__)
            more = [vars(module)[name] for name in code.co_names if name in vars(module)]
            modules += [value for value in more if isinstance(value, types.ModuleType)]
            found += more
        self.add_all(found)

    def kind(self, value: type) -> None:
        """Add a class: its attributes, and the classes that it inherits from."""
        self.add_all(value.__bases__)
        for name, attribute in vars(value).items():
            if not (name.startswith("__") and name.endswith("__")) or callable(attribute):
                self.put(name)
                if not isinstance(attribute, (types.MemberDescriptorType, type(vars))):
                    self.add(attribute)

    def object(self, value: Any) -> None:
        """Add any other object by its class and its reduced form, as for pickling."""
        self.add(type(value))
        reduced = value.__reduce_ex__(4)
        if isinstance(reduced, str):
            self.put(reduced)
            return
        for part in reduced:  # a function, its arguments, the state, elements and items
            self.add(list(part) if hasattr(part, "__next__") else part)


def named_as(value: Any) -> bool:
    """Whether an object is a function or class that is identified by its name."""
    return isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)) or (
        hasattr(value, "__qualname__") and not hasattr(value, "__dict__"))


def is_installed(module: Any) -> bool:
    """Whether a module belongs to Python or to an installed package."""
    if not isinstance(module, str):
        return False
    root = module.partition(".")[0]
    if root in sys.stdlib_module_names or root in ("numpy", "scipy", "fastkam"):
        return root != "__main__"
    place = getattr(sys.modules.get(root), "__file__", None) or ""
    return f"{os.sep}site-packages{os.sep}" in place or f"{os.sep}dist-packages{os.sep}" in place


def version_of(module: str) -> str:
    """Return the version of a module's package; "" if it has none."""
    root = module.partition(".")[0]
    if root in sys.stdlib_module_names:
        return sys.version
    return str(getattr(sys.modules.get(root), "__version__", ""))


def contents(cell: Any) -> Any:
    """The content of a cell of a closure, if it has any."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
