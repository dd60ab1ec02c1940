"""Parameter objects: classes that register themselves, under short names and for files.

A file names the class of each of its objects as "module:QualName". The reader looks that name up
among the classes that this process has defined, and imports nothing: a file cannot make code run.
"""

from __future__ import annotations

import gc
import inspect
import numbers
import sys
import weakref
from abc import ABCMeta
from copy import deepcopy
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_call, near, shown

MOST_ELEMENTS = 9  # of an array that is shown whole
DEFINED: dict[str, list[weakref.ref[type]]] = {}  # path -> the classes defined under it, in order


class Owning(ABCMeta):
    """Metaclass of classes whose objects own copies of their parameters."""

    @property
    def __signature__(cls) -> inspect.Signature:
        """The signature of the constructor, for `help` and editors, in place of `__call__`'s."""
        signature = inspect.signature(cls.__init__)  # type: ignore[misc]
        return signature.replace(parameters=list(signature.parameters.values())[1:])

    def __call__(cls, *places: Any, **named: Any) -> Any:
        """Make an object with its own copies of arrays and lists."""
        made = super().__call__(*places, **named)
        for field in fields(made) if is_dataclass(made) else ():
            if hasattr(made, field.name):
                value = getattr(made, field.name)
                try:
                    mine = owned(value, convert="ArrayLike" in str(field.type))
                except RecursionError:
                    raise ValueError(f"{field.name} must not be nested so deep") from None
                if mine is not value:
                    object.__setattr__(made, field.name, mine)
        return made


def owned(value: Any, *, convert: bool = False) -> Any:
    """A copy of a mutable value: a read-only array, or a list or dictionary of such copies.

    With `convert` a data frame, or another object with ``__array__``, becomes an array.
    """
    if type(value) in (list, tuple):
        return type(value)(owned(item, convert=convert) for item in value)
    if type(value) is dict:
        return {key: owned(item, convert=convert) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        mine = value.copy()
    elif not hasattr(type(value), "__array__") or isinstance(value, np.generic):
        return value
    elif convert:
        mine = np.array(value)
    else:
        return deepcopy(value)
    mine.flags.writeable = False
    return mine


class Parameters(metaclass=Owning):
    """Base class of parameter objects; its subclasses are frozen dataclasses.

    Their arrays are read-only copies of those that are passed. Two objects are equal if they are of
    the same class and have equal parameters, arrays by their elements; equal objects have equal
    hashes.

    ``class Mine(Sampler, name="mine")`` gives a class a short name, by which `chosen` finds it.
    """

    NAMES: ClassVar[dict[str, type[Any]]]  # short name -> class; each kind of object has its own

    def __new__(cls, *places: Any, **named: Any) -> Any:
        """Make an object; refuse parameters that the class does not have."""
        if places or named:
            signature = inspect.signature(cls.__init__)
            own = list(signature.parameters.values())[1:]
            check_call(cls.__name__, signature.replace(parameters=own), places, named)
        return super().__new__(cls)

    def __init_subclass__(cls, *, name: str | None = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        # `dataclass` without eq=False keeps these, in place of its own, which fail for arrays
        for method in ("__eq__", "__hash__"):
            if method not in vars(cls):
                setattr(cls, method, getattr(cls, method))
        path = class_path(cls)
        DEFINED[path] = [*(weakref.ref(one) for one in living(path)), weakref.ref(cls)]
        if name is not None:
            other = cls.NAMES.setdefault(name, cls)
            if class_path(other) != path:
                raise ValueError(f"name must be new, not {shown(name)}, which is "
                                 f"{class_path(other)}")
            cls.NAMES[name] = cls

    def __repr__(self) -> str:
        made: Any = self
        parts = (f"{one.name}={brief(getattr(made, one.name))}" for one in fields(made) if one.repr)
        return f"{type(self).__qualname__}({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return compared(self) == compared(other)

    def __hash__(self) -> int:
        """A hash of the numbers, texts and parameter objects, without arrays and lists."""
        return hash((type(self), *(value for value in compared(self)
                                   if isinstance(value, (numbers.Number, str, Parameters)))))


def brief(value: Any) -> str:
    """Return the repr of a parameter; of an array of many elements only the shape."""
    if isinstance(value, np.ndarray) and value.size > MOST_ELEMENTS:
        return f"<array {value.shape}>"
    return repr(value)


def compared(made: Any) -> list[Any]:
    """The parameters of an object, in the form in which they are compared."""
    return [elements(getattr(made, field.name)) for field in fields(made) if field.compare]


def elements(value: Any) -> Any:
    """Nested lists of the elements of arrays, lists and tuples; other values as they are."""
    if hasattr(type(value), "__array__"):
        value = np.asarray(value)
        if value.dtype != object:
            return value.tolist()
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [elements(item) for item in value]
    if isinstance(value, dict):
        return {key: elements(item) for key, item in value.items()}
    return value


Kind = TypeVar("Kind", bound=Parameters)


def chosen(what: str, value: Any, kind: type[Kind], others: tuple[str, ...] = ()) -> Kind:
    """An object of `kind` from itself or from its class's short name."""
    if isinstance(value, kind) and type(value) is not kind:  # which does nothing
        return value
    if isinstance(value, str) and value in kind.NAMES:
        made: Kind = kind.NAMES[value]()
        return made
    names = [*others, *kind.NAMES]
    mend = near(value, names)
    if isinstance(value, type) and issubclass(value, kind):
        mend = f": write {value.__name__}(), an object"
    elif isinstance(value, str) and not mend:
        titles = {made.__name__.lower(): name for name, made in kind.NAMES.items()}
        mend = f": did you mean {titles[value.lower()]!r}?" if value.lower() in titles else ""
    raise ValueError(f"{what} must be a {kind.__name__} or one of {names}, not "
                     f"{shown(value)}{mend}")


# ---- for files ----


class UnknownClass(ValueError):
    """The error about a class that a file names and this process does not know."""


def class_path(cls: type) -> str:
    """module:QualName"""
    return f"{cls.__module__}:{cls.__qualname__}"


def class_of(path: str) -> type[Parameters]:
    """The class defined under a path; UnknownClass if there is none, or more than one."""
    known = living(path)
    if len(known) > 1:  # made by several calls of a function: some may be garbage by now
        gc.collect()
        known = living(path)
    if not known:
        raise UnknownClass(f"names the class {path!r}, which this process has not defined: import "
                           f"the module {path.partition(':')[0]!r} first")
    if len(known) > 1:
        raise UnknownClass(f"names the class {path!r}, and this process has defined {len(known)} "
                           "classes under that name")
    cls: type[Parameters] = known[0]
    return cls


def living(path: str) -> list[type]:
    """The classes defined under a path that still exist.

    Of those of a module this is the one that the module has, or else the last; an older one was
    defined before it, and another is a copy that came from a worker.
    """
    known = [cls for one in DEFINED.get(path, ()) if (cls := one()) is not None]
    if "<locals>" in path or len(known) < 2:
        return known
    module, _, names = path.partition(":")
    found: Any = sys.modules.get(module)
    for name in names.split("."):
        found = getattr(found, name, None)
    return [found] if found in known else known[-1:]


def defined() -> dict[str, type[Parameters]]:
    """The classes of modules, by bare name; among those of the same name fastkam's is taken."""
    found: dict[str, type[Parameters]] = {}
    for path in sorted(DEFINED, key=lambda path: not path.startswith("fastkam.")):
        if "<locals>" not in path:
            for cls in living(path):
                found.setdefault(cls.__name__, cls)
    return found


def plain(value: Any) -> Any:
    """`value` in JSON's own types: arrays and parameter objects become marked dictionaries.

    A value that has no such form is left out: the reader of the file has to pass it again.
    """
    if isinstance(value, Parameters) and is_dataclass(value):
        init = [f.name for f in fields(value) if f.init]
        return {"class": class_path(type(value)),
                "parameters": {name: plain(getattr(value, name)) for name in init}}
    if isinstance(value, np.ndarray) and holds(value.dtype):
        return {"array": value.tolist(), "dtype": str(value.dtype)}
    if isinstance(value, np.generic) and holds(value.dtype):
        return value.item()
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: plain(item) for key, item in value.items()}}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    try:
        return {"left out": f"{value!r:.200}"}
    except Exception:  # of a class of the user's
        return {"left out": f"an object of {type(value)!r:.200}"}


def holds(dtype: np.dtype[Any]) -> bool:
    """Whether JSON holds the elements of an array exactly: no complex or long numbers or objects.
    """
    return dtype.kind in "biuU" or (dtype.kind == "f" and dtype.itemsize <= 8)


def revived(value: Any) -> Any:
    """The inverse of `plain` (tuples become lists); UnknownClass if a value has none."""
    if isinstance(value, list):
        return [revived(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return revived_array(value["array"], value["dtype"])
    if "dict" in value:
        return {key: revived(item) for key, item in value["dict"].items()}
    if "left out" in value:
        raise UnknownClass(f"could not hold {value['left out']}")
    cls = class_of(value["class"])
    given = {name: revived(item) for name, item in value["parameters"].items()}
    try:
        return cls(**given)
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise UnknownClass(f"has parameters that {value['class']!r} does not take: {error}") from (
            error)


def revived_array(values: Any, dtype: str) -> NDArray[Any]:
    """The array of these elements; an array of texts gets the length that its texts need."""
    kind = np.dtype(dtype)
    if kind.kind not in "biufU" or kind.subdtype is not None:
        raise UnknownClass(f"has an array of {dtype!r:.100}, which are no numbers")
    return np.array(values, dtype=str if kind.kind == "U" else kind)
