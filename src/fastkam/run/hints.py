"""Suggestions for common mistakes in a density that fails, and where memory does not suffice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.estimator import WITHOUT_SURROGATE
from fastkam._core.engine.fault import INFINITE
from fastkam.arguments import told
from fastkam.problem.call import UserFunction
from fastkam.run.faults import is_of_surrogate, of_transform

if TYPE_CHECKING:
    from fastkam._core.density.target import Target
    from fastkam._core.engine.fault import Fault

LOOKS_UP = (IndexError, KeyError, AttributeError)
NUMERICAL = (ArithmeticError, ValueError, RuntimeError, AssertionError)  # may be due to x alone
NEVER_DUE_TO_X = (NotImplementedError, RecursionError, UnicodeError)  # errors of the program


@contextmanager
def within_memory(chains: int, d: int) -> Iterator[None]:
    """A context in which a MemoryError says what needs memory, and what to do."""
    try:
        yield
    except MemoryError as error:
        raise MemoryError(of_memory(chains, d)) from error


def of_memory(chains: int, d: int) -> str:
    """Describe what needs memory in d dimensions, with a suggestion."""
    return (f"there is too little memory for {chains} chains in {d} dimensions. Most samplers "
            f"keep a matrix of {d} x {d} numbers, {round(8e-6 * d * d)} MB, for each chain, and a "
            "copy of it in the result. Give fewer chains, or a sampler without such a matrix "
            '(sampler="rwm" or, with a gradient, "mala" or "barker")')


def advice(fault: Fault, step: int, target: Target) -> str:
    """Suggest, as the end of a message, what to do about a Fault; "" if that is unknown."""
    if fault.code == 0:
        return at_start(target, fault.x)
    if of_transform(fault):
        return ""
    if fault.code == INFINITE:
        return (": is its sign wrong? A function that is to be minimized, such as a negative log "
                "likelihood, must be given with a minus sign. If it overflows there, return "
                f"-inf{or_reject(target)}")
    if fault.code == WITHOUT_SURROGATE:
        return (": it must be finite wherever the density is positive; or start the chains where "
                "it is, with x0 and search=False") if step == 0 else ""
    mistake = at_first_call(fault, target) if step == 0 else ""
    if mistake or not (may_be_due_to_x(fault.cause) or is_of_own_class(fault.cause)):
        return mistake
    return (": return -inf where x is impossible"
            f"{'' if is_of_surrogate(fault) else or_reject(target)}")


def may_be_due_to_x(error: BaseException | None) -> bool:
    """Whether an exception of the function may be due to the point alone."""
    return isinstance(error, NUMERICAL) and not isinstance(error, NEVER_DUE_TO_X)


def is_of_own_class(error: BaseException | None) -> bool:
    """Whether an exception is of a new class, such as a SolverError, and of no built-in kind."""
    built_in = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
    return built_in is Exception and type(error) is not Exception


def at_first_call(fault: Fault, target: Target) -> str:
    """Suggest a likely mistake in a function that fails in its first call; "" without one."""
    rows = by_rows(target)
    return hint(fault.cause, fault.x, named_to(target)) or (
        ": with vectorized=True the function is called with points (k, d), one per row"
        if rows and isinstance(fault.cause, (TypeError, ValueError))
        and "vectorized=True" not in told(fault.cause) else "")


def by_rows(target: Target) -> bool:
    """Whether the user's function takes many points at once."""
    return bool(target.batched) and not getattr(function_of(target), "of_single_points", False)


def or_reject(target: Target) -> str:
    """Suggest to reject failing points, as the end of a sentence; "" for an estimate."""
    return "" if target.is_estimate else ', or give on_error="reject"'


def at_start(target: Target, x: NDArray[np.float64]) -> str:
    """Describe the density at a point where a chain should have started, with a suggestion."""
    if target.is_estimate:
        return (": all estimates there were 0, or not finite: give x0 where some are positive, or "
                "use more terms in an estimate")
    try:
        value = float(target.logp(x))
    except Exception:  # the density was evaluated there before
        return ": give x0 inside the support"
    if np.isfinite(value):
        return f": it is {value:g} there, but its gradient is not finite"
    error = getattr(function_of(target), "error", None)
    why = "" if error is None else (
        f' (with on_error="reject": the function has raised {told(error)})')
    return (f": it is {value} there{why}; give x0 inside the support, and look at the function "
            "there")


def function_of(target: Target) -> Any:
    """The function that a target calls, or that takes its values from workers; None without one."""
    return getattr(getattr(target, "inner", target), "function", None)


def named_to(target: Target) -> str:
    """List the parameters that a function takes by name, with their shapes; "" if it does not."""
    function = function_of(target)
    function = getattr(function, "of_user", function)  # of workers
    if not isinstance(function, UserFunction) or function.shapes is None:
        return ""
    text = ", ".join(f"{name} {f'of shape {shape}' if shape else '(a number)'}"
                     for name, shape in function.shapes.items())
    return f"{text}, each with an axis of points before" if by_rows(target) else text


def hint(error: BaseException | None, x: NDArray[np.float64], named: str) -> str:
    """Suggest a likely mistake in a function that fails in its first call.

    `named` lists the parameters that it takes by name, if it does.
    """
    if named and (wants_dict(error) or isinstance(error, LOOKS_UP)):
        return f": the function was called by name, with {named}"
    if wants_dict(error):
        return (f": the function was called with an array of shape {x.shape}, one point; "
                "parameters are passed by name to a function of them, f(a, b), where x0 or prior "
                "is a dict")
    if isinstance(error, LOOKS_UP):
        return f": the function was called with an array of shape {x.shape}, one point"
    if isinstance(error, ValueError) and "read-only" in told(error):
        return ": x is read-only, change a copy, x.copy()"
    return ""


def wants_dict(error: BaseException | None) -> bool:
    """Whether an array of NumPy, JAX or PyTorch seems to have been indexed by a string."""
    text = told(error)
    return (isinstance(error, IndexError) and "only integers, slices" in text) or (
        isinstance(error, TypeError) and ("string indexing" in text or "data type 'str'" in text))
