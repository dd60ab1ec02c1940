"""Targets of densities that can only be estimated."""

from __future__ import annotations

import inspect

from fastkam._core.density.estimator import ForeignEstimator, PythonEstimator
from fastkam._core.density.foreign import CapsuleTarget, CFunctionTarget
from fastkam._core.density.target import Target
from fastkam.arguments import check_flag, check_integer, check_number, shown
from fastkam.density.pointers import is_numba_dispatcher, is_pointer
from fastkam.density.recipe import TargetRecipe


def estimator(f, dim, n_aux, vectorized, correlation, blocks, user_data, thread_safe):
    """The target of `Target.from_estimator`, which describes the arguments."""
    vectorized = check_flag("vectorized", vectorized)
    correlation = check_number("correlation", correlation, least=0, below=1)
    blocks = check_integer("blocks", blocks, least=1)
    if correlation > 0 and blocks > 1:
        raise ValueError(f"correlation and blocks exclude each other, not {shown(correlation)} and "
                         f"{shown(blocks)}")
    if n_aux is not None:
        n_aux = check_integer("n_aux", n_aux, least=1)
    if isinstance(f, TargetRecipe):
        raise TypeError("f must be an estimator, and a recipe make the whole target, not "
                        f"{shown(f)}")
    made = compiled_estimator(f, dim, n_aux, vectorized, user_data, thread_safe)
    if made is not None:
        check_blocks(blocks, made.n_aux)
        return ForeignEstimator(made, correlation=correlation, blocks=blocks)
    if not callable(f):
        raise TypeError(f"f must be a function or a pointer, not {shown(f)}")
    if user_data is not None:
        raise TypeError(f"user_data is for pointers, not for {shown(f)}")
    if n_aux is None and (correlation > 0 or blocks > 1):
        raise ValueError(f"correlation={shown(correlation)}, blocks={shown(blocks)} need n_aux: "
                         "what f(x, rng) draws cannot be drawn in part")
    if n_aux is None and vectorized:
        raise ValueError("n_aux must be given with vectorized=True, not None: the noise of each "
                         "row comes from its chain's own generator")
    if n_aux is not None:
        check_blocks(blocks, n_aux)
    check_two_arguments(f, n_aux, vectorized)
    return PythonEstimator(f, dim, n_aux, vectorized=vectorized, correlation=correlation,
                           blocks=blocks)


def compiled_estimator(f, dim, n_aux, vectorized, user_data, thread_safe):
    """The target of a compiled function, or of an object with one; None for a Python function."""
    compiled = is_pointer(f) or (is_numba_dispatcher(f) and not vectorized)
    if vectorized and (compiled or hasattr(f, "__fk_target__")):
        raise TypeError(f"vectorized=True is for Python functions, not for {shown(f)}")
    if hasattr(f, "__fk_target__"):
        made = f if isinstance(f, Target) else CapsuleTarget(f)
        check_foreign(made, f, dim, n_aux)
        return made
    if not compiled:
        return None
    if n_aux is None:
        raise ValueError(f"n_aux must be given for a compiled estimator: {shown(f)}")
    if is_numba_dispatcher(f):
        from fastkam.density.numba import NumbaEstimator

        return NumbaEstimator(f, dim, n_aux)
    return CFunctionTarget(f, dim, user_data, thread_safe, n_aux)


def check_two_arguments(f, n_aux, vectorized):
    """Refuse a Python function whose signature shows that it does not take a point and noise."""
    try:
        signature = inspect.signature(f, follow_wrapped=False)
    except (TypeError, ValueError):  # built-in functions may have none
        return
    try:
        signature.bind(None, None)
    except TypeError:
        takes = ("f(X, U), points (k, d) and their noise (k, n_aux)" if vectorized else
                 "f(x, rng), a point (d,) and a generator" if n_aux is None else
                 "f(x, u), a point (d,) and its noise (n_aux,)")
        name = getattr(f, "__name__", repr(f))
        raise TypeError(f"f must be a function {takes}, not {name}{signature}; data go in as "
                        "lambda x, noise: f(x, data, noise), and x has all parameters, in their "
                        "order") from None


def check_foreign(made, f, dim, n_aux):
    """Refuse a foreign target that has no estimates, or other sizes."""
    if "noisy" not in made.abilities:
        raise ValueError(f"f must have the ability noisy, and {shown(f)} has only {made.abilities}")
    if made.dim != dim:
        raise ValueError(f"dim is {dim}, but {shown(f)} has dimension {made.dim}")
    if n_aux is not None and n_aux != made.n_aux:
        raise ValueError(f"n_aux is {n_aux}, but {shown(f)} takes {made.n_aux} numbers")


def check_blocks(blocks, n_aux):
    if blocks > n_aux:
        raise ValueError(f"blocks must be at most n_aux = {n_aux}, not {shown(blocks)}")
