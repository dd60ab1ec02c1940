"""A Target from whatever form a density comes in."""

from __future__ import annotations

import inspect
import numbers
from functools import partial
from typing import Any, cast

import numpy as np

from fastkam._core.density.estimator import SurrogateTarget
from fastkam.arguments import AN_ESTIMATE, OF_NOISE, check_flag, shown, told
from fastkam.density.estimator import Estimator
from fastkam.density.pointers import is_numba_dispatcher, is_pointer
from fastkam.density.recipe import TargetRecipe
from fastkam.density.target import Target
from fastkam.interop.differentiable import Differentiable
from fastkam.interop.doors import opened
from fastkam.problem.described import Described


def as_target(
    target: Any, dim: int, *, vectorized: bool = False, gradient: bool = False
) -> Target:
    """A Target from whatever form a density comes in.

    Parameters
    ----------
    target : Target, Problem, callable, pointer or TargetRecipe
        A Target; a `Problem`, for the density of its unconstrained point; a numba njit function; a
        SciPy LowLevelCallable, ctypes or cffi pointer or numba cfunc (see `Target.from_c`); an
        object with ``__fk_target__``; the result of `Target.from_estimator`, `from_pymc`,
        `from_bridgestan`, `from_jax` or `from_torch`; a PyMC model; a PINTS log density; an
        UM-Bridge client; a `TargetRecipe` of one of these; or any Python function ``f(x) -> float``
        or ``f(x) -> (float, gradient)``, whose tuple may end with a dict of extras.
    dim : int
        Dimension of the point.
    vectorized : bool
        The Python function takes points (k, dim) and returns (k,).
    gradient : bool
        The gradient of a Python function is needed: it must return the pair.

    Raises
    ------
    TypeError, ValueError
        If it is none of these, or has another dimension.
    """
    vectorized = check_flag("vectorized", vectorized)
    gradient = check_flag("gradient", gradient)
    if isinstance(target, type):
        raise TypeError(f"target must be an object, not the class {target.__name__}: write "
                        f"{target.__name__}(...)")
    target = opened(target)
    made: Any
    if isinstance(target, Described):
        made = target.target(gradient=gradient)
    elif isinstance(target, (Differentiable, Estimator)):
        made = target.target(dim)
    elif isinstance(target, TargetRecipe):
        made = as_target(target(), dim, vectorized=vectorized, gradient=gradient)
        made.recipe = partial(as_target, target, dim, vectorized=vectorized, gradient=gradient)
    elif isinstance(target, Target):
        made = target
    elif hasattr(target, "__fk_target__"):
        made = Target.from_capsule(target)
    elif is_numba_dispatcher(target) and not vectorized:
        made = Target.from_numba(target, dim)
    elif is_pointer(target):
        made = Target.from_c(target, dim)
    elif callable(target):
        check_function(target, "points X (k, d)" if vectorized else "a point x (d,)")
        made = Target.from_python(target, dim, vectorized=vectorized, gradient=gradient)
    else:
        raise TypeError(f"target must be a function, a pointer or a Target, not {shown(target)}"
                        + instead(target))
    if made.dim != dim:
        raise ValueError(f"target has dimension {made.dim}, but x0 has {dim} coordinates")
    return cast(Target, made)


def check_function(function: Any, takes: str) -> None:
    """Refuse a function whose signature shows that it cannot be called with one argument."""
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        kind = "an async" if inspect.iscoroutinefunction(function) else "a generator"
        raise TypeError(f"target must return a number, and {shown(function)} is {kind} function")
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):  # built-in functions may have none
        return
    try:
        signature.bind(None)
    except TypeError as error:
        name = getattr(function, "__name__", repr(function))
        if next(iter(signature.parameters), "") == "self":
            raise TypeError(f"target must be a function of one argument, {takes}, and {name}"
                            f"{signature} is a method: give that of an object") from None
        raise TypeError(
            f"target must be a function of one argument, {takes}, not {name}{signature} "
            f"({error}): data go in as lambda x: {name if name.isidentifier() else 'f'}(x, data), "
            f"or by functools.partial; {by_name(signature)}"
            f"{'; ' + AN_ESTIMATE if OF_NOISE & set(signature.parameters) else ''}") from None


def by_name(signature: inspect.Signature) -> str:
    """Advise how to pass the parameters of a function of several arguments by name."""
    named = [one.name for one in signature.parameters.values()
             if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
             and one.default is one.empty]
    x0 = ", ".join(f"{name!r}: ..." for name in named[:8]) or "'mu': ..."
    return f"parameters go in by name where x0 is a dict, x0={{{x0}}}, or with prior="


def instead(target: Any) -> str:
    """Suggest, as the end of a message, what to pass in place of an object that is no density."""
    if isinstance(target, (numbers.Number, np.ndarray)):
        return (": give the function itself, not what it returns (logp, not logp(x)); x0 comes "
                "second")
    if isinstance(target, (list, tuple)) and any(callable(one) for one in target):
        return ": give one function, the sum of these log densities"
    if isinstance(target, str):
        return ": give the function itself, not its name"
    return ""


# ---- for a sampler ----


def target_of(sampler, target, d, vectorized):
    """The target of a density, with a gradient if this sampler needs it."""
    gradient = sampler.needs_gradient
    made = as_target(target, d, vectorized=vectorized, gradient=gradient)
    if gradient:
        needs_gradient(made, type(sampler).__name__)
    return made


def with_surrogate(target, surrogate):
    """The target with this surrogate, which replaces an earlier one."""
    if target.surrogate is not None:
        target = target.owner
    try:
        cheap = as_target(surrogate, target.dim)
    except (TypeError, ValueError) as error:
        raise type(error)(f"surrogate: {error}") from None
    if cheap.is_estimate:
        raise ValueError(f"surrogate must be a known density, not the estimate {shown(cheap)}")
    return SurrogateTarget(target, cheap)


def check_surrogate(surrogate, points):
    """Refuse a surrogate that fails or is not finite at a starting point, where no chain moves."""
    for x in points:
        try:
            value = surrogate.logp(x)
        except Exception as error:
            raise ValueError(f"surrogate raised {told(error)} where a chain starts, at x = "
                             f"{np.array2string(x, threshold=8)}") from error
        if not np.isfinite(value):
            raise ValueError(f"surrogate must be finite where a chain starts, not {value} at x = "
                             f"{np.array2string(x, threshold=8)}")


def needs_gradient(target: Target, who: str) -> None:
    """Refuse a target without a gradient."""
    if target.is_estimate:
        raise ValueError(
            f"{who} needs the gradient of a known density, and target {shown(target)} is an "
            'estimate, which has none: take a sampler without gradients, such as "ram"')
    if not {"logp_grad", "batch"} & set(target.abilities) or getattr(target, "gradient", None) is (
            False):
        raise ValueError(
            f"{who} needs the gradient, and target {shown(target)} has none: a Python function "
            "must return the pair (log density, gradient), and a Target of it be made with "
            "gradient=True")
