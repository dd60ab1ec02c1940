"""The pool of points of a run, with their evaluator and the file of their calls."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import told
from fastkam.points.calls import Calls, FileOfCalls
from fastkam.points.carriers import Here, OverExecutor
from fastkam.points.digest import digest_of
from fastkam.points.executor import TakesPoints
from fastkam.points.pool import Carrier, PointPool
from fastkam.points.records import Form
from fastkam.points.reply import Reply
from fastkam.points.target import Lookup, of_function, through

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.run.workers import CallExecutor

Array = NDArray[np.float64]
SECONDS_TO_COMPARE = 0.2  # by the recorded durations, for more than five points
MOST_COMPARED = 100  # points


def make_pool(
    target: Target, names: list[str], executor: CallExecutor | None, evaluations: Any,
    on_error: str,
) -> PointPool:
    """The pool in which the function of a target is evaluated.

    Parameters
    ----------
    target : Target
        For a Problem, the function is its likelihood.
    names : list of str
        Labels of the user's coordinates.
    executor : CallExecutor or None
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
    calls = calls_of(inner, names, evaluations, on_error)
    try:
        if not isinstance(carrier, TakesPoints):
            check_same(carrier, calls)
    except BaseException:
        calls.close()
        raise
    return PointPool(carrier, calls, on_error)


def calls_of(inner: Target, names: list[str], path: Any, on_error: str) -> FileOfCalls:
    """The file of the calls of a function, open; the parameters are those of `make_pool`."""
    form = Form(inner.dim, names if len(names) == inner.dim else [], target=digest_of(inner))
    return FileOfCalls(path, form, on_error == "reject")


@contextmanager
def keeping(
    target: Target, names: list[str], path: str, on_error: str, start: bytes
) -> Iterator[Target]:
    """The target, with its calls in a file: see `fastkam.points.desk.Kept`."""
    if not start or not os.path.isfile(path) or first_bytes(path, len(start)) != start:
        yield target
        return
    inner = of_function(target)
    pool = PointPool(Here(inner), calls_of(inner, names, path, on_error), on_error)
    try:
        yield through(target, Lookup(pool))
    finally:
        pool.close()


def first_bytes(path: str, n: int) -> bytes:
    """Read the first n bytes of a file."""
    with open(path, "rb") as file:
        return file.read(n)


def check_same(carrier: Carrier, calls: FileOfCalls) -> None:
    """Refuse a file of calls of another density.

    Unless the digest of the function is that in the file, the function is evaluated again at some
    of the recorded points; its value, gradient and extras there must be those in the file.
    """
    if calls.form.target and calls.form.target == calls.written.target:
        return
    points = points_to_compare(calls)
    if len(points) == 0:
        return
    for x, now in zip(points, PointPool(carrier).evaluate(points), strict=True):
        difference = difference_of(calls.known[x.tobytes()], now)
        if difference:
            raise ValueError(
                f"evaluations={os.fspath(calls.path)!r} has the calls of another density: at x = "
                f"{np.array2string(x, threshold=8)} {difference}; give another file")


def points_to_compare(calls: FileOfCalls) -> Array:
    """Recorded points, (k, d), far from each other: five, and more where calls were fast.

    The five are the last one without a density, the last other one, those with the largest and
    the smallest log density, and the one farthest from the mean, in standard deviations. As many
    others, evenly spaced in the file, are added as take `SECONDS_TO_COMPARE`.
    """
    kept = [(np.frombuffer(key), reply.value, reply.seconds)
            for key, reply in calls.known.items() if reply.error is None]
    finite = [i for i, (_, value, _) in enumerate(kept) if np.isfinite(value)]
    chosen = [i for i, (_, value, _) in enumerate(kept) if not np.isfinite(value)][-1:]
    if finite:
        x = np.array([kept[i][0] for i in finite])
        values = [kept[i][1] for i in finite]
        scale = x.std(axis=0)
        distance = np.square((x - x.mean(axis=0)) / np.where(scale > 0, scale, 1.0)).sum(axis=1)
        chosen += [finite[k] for k in (-1, np.argmax(values), np.argmin(values),
                                       np.argmax(distance))]
    seconds = sum(taken for *_, taken in kept)
    more = int(min(MOST_COMPARED, len(kept) * SECONDS_TO_COMPARE / max(seconds, 1e-6)))
    chosen += np.linspace(0, len(kept) - 1, min(more, len(kept))).astype(int).tolist()
    return np.array([kept[i][0] for i in dict.fromkeys(chosen)])


def difference_of(kept: Reply, now: Reply) -> str:
    """The difference between a kept reply and a new one at the same point, as text; "" if none."""
    if now.error is not None:
        return f"it was {kept.value!r}, and the function now raises {told(now.error)}"
    if not same(kept.value, now.value):
        return f"it was {kept.value!r}, and is now {now.value!r}"
    if now.gradient is not None and kept.gradient is None:
        return "there is no gradient in the file, and the function now returns one"
    if now.gradient is not None and not same(kept.gradient, now.gradient):
        return f"the gradient was {kept.gradient}, and is now {now.gradient}"
    before, after = kept.extras or {}, now.extras or {}
    if before.keys() != after.keys():
        return f"the extras were {sorted(before)}, and are now {sorted(after)}"
    return next((f"the extra {name!r} was {before[name]!r:.100}, and is now {after[name]!r:.100}"
                 for name in before if not same(before[name], after[name])), "")


def same(first: Any, second: Any) -> bool:
    """Whether two numbers or arrays are equal, with NaN equal to NaN."""
    return np.array_equal(np.asarray(first, float), np.asarray(second, float), equal_nan=True)
