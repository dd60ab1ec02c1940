"""Evaluation of a target at some points, in this process and in a worker."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.python_target import (
    PythonTarget,
    as_array,
    as_float,
    extras_in,
    paired,
)
from fastkam._core.engine.evaluation import Evaluation
from fastkam.arguments import shown
from fastkam.points.reply import Reply
from fastkam.run import worker
from fastkam.run.blas import one_blas_thread
from fastkam.run.serial import serially

Array = NDArray[np.float64]

HOST = socket.gethostname()


def replies_at(target: Any, X: Array) -> list[Reply]:
    """Evaluate a target at each row of X (k, d); a failure becomes the reply for its point.

    Compiled targets also return their gradient, if they have one.
    """
    if isinstance(target, PythonTarget):
        if target.vectorized:
            return replies_at_once(target, X)
        return [timed(lambda x=x: parts_of(paired(target.function(x)), len(x))) for x in X]
    if target.has_gradient:
        return [timed(lambda x=x: (*target.logp_grad(x), None)) for x in X]
    evaluation = Evaluation(target, 1, False)
    return [timed(lambda x=x: (value_at(target, evaluation, x), None, None)) for x in X]


def timed(call: Any) -> Reply:
    """The reply of a call that returns (log density, gradient or None, extras or None)."""
    begun = time.perf_counter()
    try:
        value, gradient, extras = call()
    except Exception as error:
        return Reply(seconds=time.perf_counter() - begun, worker=who(), error=error)
    return Reply(value, gradient, extras, time.perf_counter() - begun, who())


def parts_of(returned: Any, d: int | None = None) -> tuple[float, Any, Any]:
    """Log density, gradient and extras from the value that a function of d coordinates returned."""
    extras = gradient = None
    if type(returned) is tuple:
        extras = extras_in(returned)
        if len(returned) - (extras is not None) == 2:
            gradient = gradient_of(returned[1], d)
        returned = returned[0]
    return as_float(returned), gradient, extras


def gradient_of(value: Any, d: int | None) -> Array:
    """Return the second of two returned values as an array (d,); a TypeError if it is none."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "fiubc" or (d is not None and array.shape != (d,)):
        size = "" if d is None else f" of {d} numbers"
        raise TypeError("the log density must be alone, or together with its gradient, an array"
                        f"{size}, or extras in a dict, not {shown(value)}")
    return as_array(value, array.shape, "gradient").copy().reshape(array.shape)


def replies_at_once(target: PythonTarget, X: Array) -> list[Reply]:
    """Evaluate a function of many points in one call; if that fails, one by one."""
    k, begun = len(X), time.perf_counter()
    try:
        returned = paired(target.function(X))
        extras = gradients = None
        if type(returned) is tuple:
            extras = extras_in(returned)
            gradients = returned[1] if len(returned) - (extras is not None) == 2 else None
            returned = returned[0]
        values = as_array(returned, (k,), "log density")
        if gradients is not None:
            gradients = as_array(gradients, X.shape, "gradient").copy()
    except Exception as error:
        if k > 1:
            return [reply for x in X for reply in replies_at_once(target, x[None])]
        return [Reply(seconds=time.perf_counter() - begun, worker=who(), error=error)]
    seconds = (time.perf_counter() - begun) / k
    return [Reply(float(values[i]), None if gradients is None else gradients[i],
                  None if extras is None else {name: rows[i] for name, rows in extras.items()},
                  seconds, who()) for i in range(k)]


def value_at(target: Any, evaluation: Evaluation, x: Array) -> float:
    """The log density of a compiled target at x (d,); NaN if it fails there."""
    values, codes = evaluation.values_of(x[None])
    if codes[0] < 0:
        error = target.fault(int(codes[0]), x)
        raise error or ArithmeticError(f"the target returned the fatal code {codes[0]}")
    return float(values[0]) if codes[0] == 0 else np.nan


def who() -> str:
    """The name of this process: "host:process"."""
    return f"{HOST}:{os.getpid()}"


# ---- in a worker ---------------------------------------------------------------------------------


def evaluate_sent(
    number: int, run: str, digest: str, payload: bytes | None, function: str, X: Array
) -> Any:
    """The replies at points (k, d), as (number, replies).

    (number, None) if the worker did not have the target of the run. The replies are `OfAnother` if
    its function is another one.

    The names and the target are as in `fastkam.run.worker.run_sent`. An exception of the function
    is part of a reply; one that is raised here is that of a recipe, for example.
    """
    worker.interrupts.begin()
    try:
        target, _, another = worker.known_target(run, digest, payload, function)
        if target is None:
            return number, None
        with serially(target), one_blas_thread():
            replies = replies_at(target, X)
    finally:
        worker.interrupts.end()
    return number, (OfAnother if another else list)(
        reply if reply.error is None
        else reply._replace(error=worker.portable_error(reply.error)) for reply in replies)


class OfAnother(list[Reply]):
    """Replies of a function that refers to other code or data than that of the run."""
