"""Whether the arguments of `sample` describe a Problem, without loading what makes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastkam.arguments import shown
from fastkam.interop.doors import is_distribution, opened
from fastkam.problem.described import Described

if TYPE_CHECKING:
    from fastkam.problem.problem import Problem


def as_problem(
    target: Any, x0: Any, *, own: dict[str, Any], common: dict[str, Any], vectorized: bool
) -> Problem | None:
    """The Problem that the arguments of `sample` describe, or None.

    Parameters
    ----------
    target, x0, vectorized
        As in `sample`.
    own, common : dict
        The arguments that only a Problem has, and those that other runs have too.
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
    if not given and not isinstance(x0, Mapping):
        return None
    from fastkam.problem.problem import problem_from

    return problem_from(target, x0, {name: own[name] for name in given} | common, vectorized)
