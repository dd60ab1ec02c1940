"""A digest of a function: of its code, and of the numbers and arrays that it refers to."""

from __future__ import annotations

import hashlib
import types
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fastkam.problem.call import Call
from fastkam.run.sending import portable_target

if TYPE_CHECKING:
    from fastkam.density.target import Target

MOST_FUNCTIONS = 200  # that are followed


def digest_of(target: Target) -> str:
    """A digest of the function of a target, "" where there is none.

    Of a Python function: its code and that of the functions that it calls by name, with the floats
    and arrays in its arguments, its closure and the globals that it names. Counters and lists,
    which a function may change, are left out. Of other targets: what would be sent to a worker.
    """
    function = getattr(target, "function", None)
    if callable(function):
        whole = hashlib.sha256()
        for part in parts_of(function, set()):
            whole.update(len(part).to_bytes(8, "little") + part)
        return whole.hexdigest()
    try:
        return hashlib.sha256(portable_target(target)).hexdigest()
    except TypeError:
        return ""


def parts_of(value: Any, seen: set[int]) -> Iterator[bytes]:
    """The parts of a digest, as bytes."""
    if id(value) in seen or len(seen) > MOST_FUNCTIONS:
        return
    if isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape}".encode()
        if value.dtype != object:
            yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, (float, complex, str, np.floating)):
        yield repr(value).encode()
    elif isinstance(value, Call):
        yield from parts_of_all([value.f, *value.args, *value.kwargs.items()], seen)
    elif isinstance(value, partial):
        yield from parts_of_all([value.func, *value.args, *value.keywords.items()], seen)
    elif isinstance(value, tuple):
        yield from parts_of_all(value, seen)
    elif isinstance(value, types.MethodType):
        yield from parts_of_all([value.__func__, value.__self__], seen)
    elif isinstance(value, types.FunctionType):
        seen.add(id(value))
        yield value.__qualname__.encode()
        yield from parts_of_all(value.__defaults__ or (), seen)
        yield from parts_of_all((value.__kwdefaults__ or {}).items(), seen)
        yield from parts_of_all([contents(cell) for cell in value.__closure__ or ()], seen)
        yield from parts_of_code(value.__code__, value.__globals__, seen)
    elif hasattr(value, "__dict__") and not isinstance(value, (type, types.ModuleType)):
        seen.add(id(value))
        own = vars(type(value)).get("__call__")
        yield type(value).__qualname__.encode()
        yield from parts_of_all([own, *sorted(vars(value).items())], seen)


def parts_of_all(values: Any, seen: set[int]) -> Iterator[bytes]:
    for value in values:
        yield from parts_of(value, seen)


def parts_of_code(
    code: types.CodeType, named: dict[str, Any], seen: set[int]
) -> Iterator[bytes]:
    """The parts of a piece of code, with the globals that it names and the code within it."""
    yield code.co_code
    yield repr(code.co_names).encode()
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from parts_of_code(constant, named, seen)
        elif not isinstance(constant, frozenset):  # whose order is not fixed
            yield repr(constant).encode()
    yield from parts_of_all([named[name] for name in code.co_names if name in named], seen)


def contents(cell: Any) -> Any:
    """The content of a cell of a closure, if it has any."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
