"""The pool of points of a run, with their evaluator and the file of their calls."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from fastkam.points.calls import Calls, FileOfCalls
from fastkam.points.carriers import Here, OverExecutor
from fastkam.points.digest import digest_of
from fastkam.points.executor import TakesPoints
from fastkam.points.pool import Carrier, PointPool
from fastkam.points.records import Form
from fastkam.points.target import of_function

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.run.workers import Workers


def make_pool(
    target: Target, names: list[str], executor: Workers | None, evaluations: Any,
    on_error: str,
) -> PointPool:
    """The pool in which the function of a target is evaluated.

    Parameters
    ----------
    target : Target
        For a Problem, the function is its likelihood.
    names : list of str
        Labels of the user's coordinates.
    executor : Workers or None
        The evaluator of points; None for this process.
    evaluations : path or None
        The file of calls.
    on_error : str
        As in `fastkam.sample`.
    """
    inner = of_function(target)
    carrier: Carrier = Here(inner)
    if executor is not None:
        given = executor.executor
        carrier = given if isinstance(given, TakesPoints) else OverExecutor(executor, inner)
    if evaluations is None:
        return PointPool(carrier, Calls(), on_error)
    form = Form(inner.dim, names if len(names) == inner.dim else [], target=digest_of(inner))
    calls = FileOfCalls(evaluations, form, on_error == "reject")
    try:
        if not isinstance(carrier, TakesPoints):
            check_same(carrier, calls)
    except BaseException:
        calls.close()
        raise
    return PointPool(carrier, calls, on_error)


def check_same(carrier: Carrier, calls: FileOfCalls) -> None:
    """Refuse a file of calls of another density.

    Unless the digest of the function is that in the file, the function is evaluated again at the
    last recorded point with a finite density.
    """
    if calls.form.target and calls.form.target == calls.written.target:
        return
    key, kept = next(((key, reply) for key, reply in reversed(calls.known.items())
                      if reply.error is None and np.isfinite(reply.value)), (b"", None))
    if kept is None:
        return
    reply = PointPool(carrier).evaluate(np.frombuffer(key)[None])[0]
    if reply.value != kept.value:
        path = os.fspath(calls.path)
        raise ValueError(
            f"evaluations={path!r} has the calls of another density: at x = "
            f"{np.array2string(np.frombuffer(key), threshold=8)} it was {kept.value!r}, and is now "
            f"{reply.value!r}; give another file")
