"""Whether the arguments of `sample` describe a Problem, without loading what makes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastkam.arguments import shown
from fastkam.interop.doors import is_distribution, opened
from fastkam.problem.described import Described

if TYPE_CHECKING:
    from fastkam.problem.coordinates import Coordinates
    from fastkam.problem.problem import Problem
    from fastkam.run.shapes import Layout


def start_by_name(x0: Any) -> Any:
    """A start that is a pandas Series with names as its index as a dict; any other as it is."""
    if type(x0).__module__.partition(".")[0] != "pandas" or not hasattr(x0, "to_dict"):
        return x0
    names = list(getattr(x0, "index", []))
    if getattr(x0, "ndim", 0) == 2 and any(isinstance(name, str) for name in x0.columns):
        if "mean" in x0.columns:
            raise TypeError("x0 must be an array, a dict or a Series, not a DataFrame: give the "
                            "summary of a run as it is, x0=result.summary()")
        raise TypeError("x0 must be an array, a dict or a Series, not a DataFrame, whose column "
                        "names would be lost: give x0=frame[names].to_numpy(), one row per chain, "
                        "with the parameters in their order")
    if getattr(x0, "ndim", 0) != 1 or not all(isinstance(name, str) for name in names):
        return x0
    if len(set(names)) < len(names):
        raise ValueError(f"x0 must have each name once in its index, not {shown(names)}")
    return x0.to_dict()


def names_of(
    target: Any, layout: Layout, bounds: Any, args: Any, kwargs: Any
) -> dict[str, Any] | None:
    """The arguments that describe these parameters, if the target is a function of their names.

    None if bounds by name describe them and others. Bounds of all of them give their order.
    """
    from fastkam.problem.call import takes_names

    names, shapes = list(layout.shapes), layout.shapes
    if isinstance(bounds, Mapping):
        if bounds.keys() > shapes.keys():
            return None
        names = list(bounds) if bounds.keys() == shapes.keys() else names
    try:
        if not takes_names(target, shapes, args, kwargs):
            return None
    except TypeError:  # the function takes other arguments, too: they are checked later
        return None
    return {"names": names, "shapes": {name: shapes[name] for name in names},
            "dims": layout.dims or None, "coords": layout.coords or None}


def as_problem(
    target: Any, x0: Any, *, own: dict[str, Any], common: dict[str, Any], vectorized: bool,
    named: bool = False,
) -> Problem | None:
    """The Problem that the arguments of `sample` describe, or None.

    Parameters
    ----------
    target, x0, vectorized
        As in `sample`.
    own, common : dict
        The arguments that only a Problem has, and those that other runs have too.
    named : bool
        Whether the target is a function of the names in `common`.
    """
    given = [name for name, value in own.items() if value is not None]
    target = opened(target)
    if is_distribution(target):
        if given or vectorized:
            raise ValueError(f"{[*given, 'vectorized'][0]} is not for a distribution of scipy, "
                             f"{shown(target)}")
        from fastkam.problem.problem import problem_of

        return problem_of(target, **common)
    if isinstance(target, Described):
        given += [name for name, value in common.items() if value is not None]
        if given or vectorized:
            raise ValueError(f"{[*given, 'vectorized'][0]} must be given to the Problem or the "
                             f"model, not beside {shown(target)}")
        problem: Any = target
        return problem
    if not (given or named or isinstance(x0, Mapping)):
        return None
    from fastkam.problem.problem import problem_from

    return problem_from(target, x0, {name: own[name] for name in given} | common, vectorized)


def problem_like(
    layout: Layout, coordinates: Coordinates, f: Any, vectorized: bool
) -> Problem | None:
    """The Problem of a function with these names and bounds; None if the map is another one."""
    from fastkam.problem.problem import Problem

    bounds = [(low, high) for _, _, _, _, n, low, high, _ in coordinates.rows for _ in range(n)]
    try:
        made = Problem(f, names=list(layout.shapes), shapes=layout.shapes, dims=layout.dims,
                       coords=layout.coords, bounds=bounds, vectorized=vectorized)
    except (TypeError, ValueError):  # these were other transforms
        return None
    return made if made.coordinates.header() == coordinates.header() else None
