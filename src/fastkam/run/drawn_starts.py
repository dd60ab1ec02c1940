"""Starts that are drawn: by a function, from a distribution, or from an earlier run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_takes, real_array, shown
from fastkam.diagnostics.table import Summary
from fastkam.recorded import Recorded
from fastkam.run.streams import Stream, generator_of

if TYPE_CHECKING:
    from fastkam.points.evaluations import Evaluations

Array = NDArray[np.float64]


def check_order(target: Any, x0: Any) -> None:
    """Refuse a start in the place of the density, and the density in that of the start."""
    first = target[0] if type(target) in (list, tuple) and target else target
    if callable(x0) and isinstance(first, (int, float, np.ndarray, np.number)):
        raise TypeError(f"target must be the density, not {shown(target)}: the density comes "
                        "first, then the starting point")


def drawn_starts(x0: Any, chains: int, seed: np.random.SeedSequence) -> Any:
    """The starts of the chains if `x0` is something to draw them from; otherwise `x0` itself.

    Parameters
    ----------
    x0 : object
        A function of a generator that returns a point, as an array or by name; a list of points by
        name, one for each chain; a frozen distribution of scipy.stats; a `Result`, or draws
        (chains, n, d), of which some are chosen; a `Summary` of an earlier run, from whose means
        and standard deviations normal points are drawn, within its outer quantiles; an
        `Evaluations`, whose best points are taken; a result of scipy.optimize, whose x is taken.
    chains : int
    seed : SeedSequence

    Returns
    -------
    object
        Points (chains, d), `Starts`, or `x0`.
    """
    if isinstance(x0, (str, PathLike)):
        raise TypeError(f"x0 must be a point, or what to draw starts from, not the path "
                        f"{shown(x0)}: give fastkam.load(path) if the file has a run, or "
                        "fastkam.Evaluations(path) if it has calls")
    if isinstance(x0, Recorded):
        return chosen(x0.draws, generator_of(seed, Stream.DRAWN_STARTS, 0), chains, weights_of(x0))
    if isinstance(x0, Summary):
        return around(x0, generators(seed, chains))
    if (calls := stored_calls(x0)) is not None:
        return best_of(calls, chains)
    if isinstance(x0, Mapping):
        return x0["x"] if {"x", "fun", "success"} <= x0.keys() else x0
    if isinstance(x0, (list, tuple)) and x0 and all(isinstance(one, Mapping) for one in x0):
        if len(x0) != chains:
            raise ValueError(f"x0 must have a dict for each of {chains} chains, not {len(x0)}")
        return stacked(list(x0), "have")
    if isinstance(x0, np.ndarray) and x0.ndim == 3:
        return chosen(real_array("x0", x0), generator_of(seed, Stream.DRAWN_STARTS, 0), chains)
    if callable(getattr(x0, "rvs", None)) and not isinstance(x0, type):
        return stacked([x0.rvs(random_state=rng) for rng in generators(seed, chains)])
    if callable(getattr(x0, "sample", None)) and hasattr(x0, "logpdf"):
        return stacked([x0.sample(rng=rng) for rng in generators(seed, chains)])
    if callable(x0) and not isinstance(x0, type):
        return stacked([called(x0, rng) for rng in generators(seed, chains)])
    return x0


def labels_of(x0: Any) -> list[str]:
    """The labels of the coordinates of starts that are drawn from `x0`; [] if it has none."""
    if isinstance(x0, Recorded):
        return x0.state.layout.labels
    if (calls := stored_calls(x0)) is not None:
        return calls.names
    return list(x0.labels) if isinstance(x0, Summary) else []


def stored_calls(x0: Any) -> Evaluations | None:
    """`x0` if it is an `Evaluations`, whose module is loaded then; otherwise None."""
    module = sys.modules.get("fastkam.points.evaluations")
    return x0 if module is not None and isinstance(x0, module.Evaluations) else None


def by_labels(points: Any, own: list[str], labels: list[str]) -> Any:
    """Starts (chains, d) with coordinates in the order of `labels`; `own` are theirs, or [].

    They stay as they are where one of the two has no names, or both have the same names in the same
    order, though perhaps other coords. ValueError if they have other names.
    """
    if own == labels or unnamed(own) or unnamed(labels):
        return points
    if set(own) == set(labels):
        return points[:, [own.index(label) for label in labels]]
    if [one.partition("[")[0] for one in own] == [one.partition("[")[0] for one in labels]:
        return points
    missing, more = ([one for one in some if one not in others]
                     for some, others in ((labels, own), (own, labels)))
    what = ([f"lacks {shown(missing)}"] if missing else []) + (
        [f"has {shown(more)} too many"] if more else [])
    mend = "its draws (chains, n, d) for coordinates in that order"
    if len(own) != len(labels):
        first = labels[0].partition("[")[0]
        mend = (f"a dict of all parameters by name, x0={{{first!r}: ...}}, or a function of a "
                "generator that returns one")
    raise ValueError(f"x0 must have the parameters {shown(labels)}, and is of a run with "
                     f"{shown(own)}: it {', and '.join(what)}: give {mend}")


def unnamed(labels: list[str]) -> bool:
    """Whether these are the labels of a vector to which no name was given."""
    return labels == [f"x[{i}]" for i in range(len(labels))]


def best_of(
    calls: Evaluations, chains: int, inside: Callable[[Array], NDArray[np.bool_]] | None = None
) -> Array:
    """The best of the stored points, which are repeated if there are fewer, (chains, d).

    `inside` returns the mask of the points (n, d) that are within the support.
    """
    x = calls.x[calls.best_rows()]
    if inside is not None:
        x = x[inside(x)]
    if not len(x):
        where = "" if inside is None else " within the support of the parameters"
        raise ValueError(f"x0 must have a call with a density{where}, and {calls!r} has none")
    return np.asarray(x[np.arange(chains) % len(x)])


def generators(seed: np.random.SeedSequence, chains: int) -> Iterator[np.random.Generator]:
    """The generators of the starts of all chains."""
    return (generator_of(seed, Stream.DRAWN_STARTS, k) for k in range(chains))


def weights_of(result: Any) -> Array | None:
    """The importance weights of a run, (chains * n,), or None if all are equal."""
    return None if result.log_weights is None else np.ravel(result.weights)


def chosen(
    draws: Any, rng: np.random.Generator, chains: int, weights: Array | None = None
) -> Array:
    """Some of the draws (m, n, d), different ones if there are enough, (chains, d)."""
    m, n, _ = draws.shape
    if not m * n:
        raise ValueError("x0 must have draws, from which starts are chosen, and has none")
    p = None if weights is None else weights / weights.sum()
    many = m * n if p is None else int((p > 0).sum())
    some = rng.choice(m * n, chains, replace=many < chains, p=p)
    return np.array([draws[i // n, i % n] for i in some])  # draws in a store are not all read


def around(summary: Summary, generators: Iterable[np.random.Generator]) -> Array:
    """Normal points with the means and standard deviations of a summary, (chains, d)."""
    mean, sd = summary["mean"], summary["sd"]
    quantiles = sorted((float(name[1:]), name) for name in summary.columns
                       if name[0] == "q" and name[1:].replace(".", "", 1).isdigit())
    points = np.array([mean + sd * rng.standard_normal(len(mean)) for rng in generators])
    if len(quantiles) < 2:
        return points
    return np.clip(points, summary[quantiles[0][1]], summary[quantiles[-1][1]])


def called(x0: Callable[..., Any], rng: np.random.Generator) -> Any:
    """The start that a function of the user returns."""
    try:
        return x0(rng)
    except Exception as error:
        check_takes(x0, rng, "x0 must be a function of a numpy Generator, as lambda rng: "
                             "rng.normal(size=3)")
        error.add_note("raised by x0, which was called with a numpy Generator for a start")
        raise


class Starts(dict[str, Any]):
    """Starts by name, as arrays (chains, ...)."""


def stacked(points: list[Any], verb: str = "return") -> Any:
    """Starts as an array (chains, d), or by name as `Starts`."""
    if isinstance(points[0], Mapping):
        if any(point.keys() != points[0].keys() for point in points):
            raise ValueError(f"x0 must {verb} the same names for every chain, not "
                             f"{shown([list(point) for point in points])}")
        starts = {name: [np.asarray(point[name]) for point in points] for name in points[0]}
        for name, values in starts.items():
            if len({value.shape for value in values}) > 1:
                raise ValueError(f"x0 must {verb} {name!r} in the same shape for every chain, not "
                                 f"{shown([value.shape for value in values])}")
        return Starts({name: np.stack(values) for name, values in starts.items()})
    arrays = [np.atleast_1d(real_array("x0", point)) for point in points]
    if len({array.shape for array in arrays}) > 1 or arrays[0].ndim != 1:
        raise ValueError("x0 must return a point (d,), of the same d for every start, not "
                         f"{shown(points[0])}")
    return np.stack(arrays)
