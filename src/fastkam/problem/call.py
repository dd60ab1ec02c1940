"""Calls of the user's function, with an array or by names, with its further arguments."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import AN_ESTIMATE, OF_NOISE, shown

NOISE = ("rng", "u", "generator", "noise")  # usual names of the noise of an estimate


class UserFunction:
    """Function of x that calls the user's function with an array or with named parameters.

    Parameters
    ----------
    f : callable
    args : tuple
        Arguments after the parameters.
    kwargs : dict
        Arguments by name.
    shapes : dict of str to tuple of int, or None
        Parameters to be passed by name, in their order in x.
    noise : str, optional
        The argument for the noise of an estimate; without it the noise is the second, after x.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
        noise: str | None = None,
    ) -> None:
        self.f, self.args, self.kwargs, self.noise = f, tuple(args), dict(kwargs or {}), noise
        self.shapes = None if shapes is None else dict(shapes)
        self.places: list[tuple[str, int, int, tuple[int, ...]]] = []
        start = 0
        for name, shape in (self.shapes or {}).items():
            # interned, since Python compares names of arguments with such ones at once
            self.places.append((sys.intern(str(name)), start, start + prod(shape), shape))
            start += prod(shape)
        if self.args and (shapes is not None or noise is not None):
            free = others(f, (*(shapes or ()), noise), self.kwargs)[shapes is None :]
            if len(self.args) > len(free):
                raise TypeError(f"args has {len(self.args)} arguments, and {shown(f)} has room for "
                                f"{len(free)} of them besides its parameters")
            self.kwargs |= dict(zip(free, self.args, strict=False))
            self.args = ()
        self.__name__ = getattr(f, "__name__", type(f).__name__)

    def named(self, x: NDArray[np.float64]) -> dict[str, Any]:
        """The parameters of x (..., n) by name; scalars as numbers if x is a single point."""
        if x.ndim == 1:
            return {name: x[start:stop].reshape(shape) if shape else x[start]
                    for name, start, stop, shape in self.places}
        return {name: x[..., start:stop].reshape(*x.shape[:-1], *shape)
                for name, start, stop, shape in self.places}

    def __call__(self, x: NDArray[np.float64], *noise: Any) -> Any:
        """Call the function at x (n,) or (k, n); `noise` is that of an estimate."""
        if self.noise is not None:
            kwargs = {**self.kwargs, self.noise: noise[0]}
            if self.shapes is None:
                return self.f(x, *self.args, **kwargs)
            return self.f(**self.named(x), **kwargs)
        if self.shapes is None:
            return self.f(x, *noise, *self.args, **self.kwargs)
        answer = self.f(*noise, **self.named(x), **self.kwargs)
        by_name = type(answer) is tuple and len(answer) > 1 and isinstance(answer[1], dict)
        if by_name and answer[1].keys() & self.shapes.keys():
            return (answer[0], self.joined(answer[1], np.shape(x)[:-1]), *answer[2:])
        return answer

    def joined(self, gradient: dict[str, Any], lead: tuple[int, ...]) -> NDArray[np.float64]:
        """A gradient by names as an array (..., n)."""
        names = [name for name, *_ in self.places]
        missing = [name for name in names if name not in gradient]
        unknown = [name for name in gradient if name not in names]
        if missing or unknown:
            raise TypeError("a gradient by name must have every parameter"
                            + (f", and {missing} are missing" if missing else "")
                            + (f", and only these: {unknown} are none" if unknown else "")
                            + "; or, if these are extras named like parameters, rename them")
        parts = []
        for name, *_, shape in self.places:
            part = np.asarray(gradient[name], dtype=float)
            if part.shape != (*lead, *shape) and not (prod(shape) == 1 and part.size == prod(lead)):
                raise ValueError(f"the gradient by {name} must have the shape {(*lead, *shape)}, "
                                 f"not {part.shape}")
            parts.append(part.reshape(*lead, -1))
        return np.concatenate(parts, axis=-1)

    def __reduce__(self) -> Any:
        return UserFunction, (self.f, self.args, self.kwargs, self.shapes, self.noise)


def signature_of(f: Any) -> inspect.Signature:
    """The signature of a function.

    That of the function it wraps is taken only if it has none, or takes arguments of any name.
    """
    try:
        own = inspect.signature(f, follow_wrapped=False)
    except (TypeError, ValueError):
        return inspect.signature(f)
    any_name = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in own.parameters.values())
    return signature_of(f.__wrapped__) if any_name and hasattr(f, "__wrapped__") else own


def arguments_of(f: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments among `kwargs` that a function has by these names; none if it is no function.
    """
    try:
        names = signature_of(getattr(f, "py_func", f)).parameters
    except (TypeError, ValueError):
        return {}
    return {name: value for name, value in kwargs.items() if name in names}


def noise_of(
    f: Any, shapes: Mapping[str, Any] | None, kwargs: Mapping[str, Any]
) -> tuple[str | None, list[str]]:
    """The argument of an estimator that takes its noise, and the others that it could be.

    It is one with a usual name for noise; or the first that is required, and neither a parameter
    nor in kwargs, after x if the function takes the array (shapes is None, or not all parameters
    are arguments). It is None if the signature does not show it.
    """
    try:
        parameters = signature_of(getattr(f, "py_func", f)).parameters
    except (TypeError, ValueError):
        return None, []
    usable = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    free = [name for name, p in parameters.items()
            if p.kind in usable and name not in (shapes or ()) and name not in kwargs]
    any_name = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    if shapes is None or not (any_name or set(shapes) <= parameters.keys()):
        free = free[1:]
    required = [name for name in free if parameters[name].default is inspect.Parameter.empty]
    usual = [name for name in NOISE if name in free]
    first = [name for name in usual if name in required]
    rest = [] if first else required[1:]
    return next(iter([*first, *required, *usual]), None), rest


def others(
    f: Callable[..., Any], shapes: Iterable[str | None], kwargs: Mapping[str, Any]
) -> list[str]:
    """The positional parameters of f that are neither the problem's nor in kwargs."""
    positional = (inspect.Parameter.POSITIONAL_OR_KEYWORD,)
    return [name for name, p in signature_of(f).parameters.items()
            if p.kind in positional and name not in shapes and name not in kwargs]


def takes_names(
    f: Any, shapes: Mapping[str, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> bool:
    """Decide whether a function is called by names if the user has not said so.

    It is if each parameter of the problem is an argument of the function, and `args` and `kwargs`
    supply all others that it requires. A function of one argument "x" takes the array, unless the
    only parameter is called so and has two axes or more: it takes that in its shape. One with
    ``**names`` takes all of them, if it requires no others.

    TypeError if the function can take neither the array nor the problem's parameters.
    """
    if not callable(f) or (list(shapes) == ["x"] and len(shapes["x"]) < 2):
        return False
    try:
        signature = signature_of(getattr(f, "py_func", f))
    except (TypeError, ValueError):
        return False
    usable = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    own = {name for name, p in signature.parameters.items() if p.kind in usable}
    free = [name for name, p in signature.parameters.items() if p.kind in usable
            and p.default is inspect.Parameter.empty and name not in kwargs]
    kinds = {p.kind for p in signature.parameters.values()}
    if (inspect.Parameter.VAR_KEYWORD in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds
            and set(free[len(args):]) <= set(shapes)):
        own |= set(shapes)
    rest = others(getattr(f, "py_func", f), shapes, kwargs)
    required = [name for name in rest[len(args):]
                if signature.parameters[name].default is inspect.Parameter.empty]
    if set(shapes) <= own:
        if required:
            estimate = f"; {AN_ESTIMATE}" if required[0] in OF_NOISE else ""
            raise TypeError(f"{getattr(f, '__name__', f)!s} takes {required[0]!r}, which is no "
                            "parameter: give it a prior, or a value in kwargs= or args="
                            f"{estimate}")
        return True
    alone = len(free) - len(args) == 1 and free[0] in shapes and free[0] != "x"
    if alone or len(free) - len(args) > 1:
        missing = [name for name in shapes if name not in own]
        raise TypeError(mismatch(f, missing, [name for name in free if name not in shapes]))
    return False


def mismatch(f: Any, missing: list[str], unknown: list[str]) -> str:
    """Describe a function whose arguments do not match the names of the parameters."""
    text = f"{getattr(f, '__name__', f)!s} has no argument {missing[0]!r}, which is a parameter"
    if unknown:
        from difflib import get_close_matches

        text += f", and takes {unknown[0]!r}, which is none"
        near = get_close_matches(unknown[0].lower(), [one.lower() for one in missing], 1)
        if near:
            text += " (are they the same?)"
    return (f"{text}: a function takes all parameters by their names, or one argument x, the array "
            "of all; data go into args= or kwargs=")


class Derived(UserFunction):
    """A function of derived quantities.

    Attributes
    ----------
    vectorized : bool
        It takes points (n, n_x).
    """

    def __init__(
        self, f: Callable[..., Any], shapes: Mapping[str, tuple[int, ...]] | None, vectorized: bool
    ) -> None:
        super().__init__(f, shapes=shapes)
        self.vectorized = vectorized

    def __call__(self, x: NDArray[np.float64], *noise: Any) -> Any:
        """Call the function; its errors say where they were raised."""
        try:
            return super().__call__(x, *noise)
        except Exception as error:
            error.add_note(f"raised by derived, at x = {np.array2string(x, threshold=8)}")
            raise

    def __reduce__(self) -> Any:
        return Derived, (self.f, self.shapes, self.vectorized)
