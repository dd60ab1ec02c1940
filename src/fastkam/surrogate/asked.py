"""Checks of the arguments of `surrogate="learn"`, which do not load the rest of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastkam._core.surrogate.learned import MOST_DIMENSIONS
from fastkam.arguments import check_choice, check_integer, shown
from fastkam.run.rules import Budget, StopRule

if TYPE_CHECKING:
    from fastkam._core.density.target import Target
    from fastkam.search.found import Known

BUDGET = 2000  # calls, by default
LEAST_BUDGET = 50
CHECKED = 5  # calls that a gradient check takes if the gradient is right

DEFAULTS = {  # the only values accepted, with the reason
    "sampler": ("auto", "chains on the surrogate have a sampler of their own"),
    "share": (False, "chains on the surrogate do not learn together"),
    "keep_stats": (True, "weights are statistics"),
    "thin": (None, "chains on the surrogate are thinned as they need it"),
    "store": (None, "the draws are few"),
    "checkpoint": (None, 'evaluations="calls.fk" keeps every call, and the same call of sample '
                         "continues from there"),
}


def check_learning(budget: Any, **given: Any) -> None:
    """Refuse a bad budget, and arguments that do not go with a learned surrogate."""
    if budget is not None:
        check_integer("budget", budget, least=LEAST_BUDGET)
    for name, value in given.items():
        default, why = DEFAULTS[name]
        if not (value is default or (isinstance(value, str) and value == default)):
            raise ValueError(f'{name} must be {default!r} with surrogate="learn", not '
                             f"{shown(value)}: {why}")


def within_budget(
    stop: StopRule | None, budget: int | None, reserved: int = 0
) -> StopRule | None:
    """Return the stop rule, combined with one for the budget if there is a budget.

    Of the budget, `reserved` evaluations are kept for calls that a run does not count.
    """
    if budget is None:
        return stop
    rule = Budget(max(1, budget - reserved), budget)
    return rule if stop is None else stop | rule


def uncounted(chains: int, *, vectorized: bool, share: bool) -> int:
    """Return the number of calls that a run of one call per step makes beyond its `evaluations`.

    They are made at the starting points of the chains, to find out what the function returns, to
    check its gradient, and twice for each of several chains to find out whether threads may call it
    at once; and equal shares of the budget for the chains are rounded up.
    """
    alone = chains == 1 or share or vectorized
    tried = 0 if alone else 2 * chains
    return chains + (chains if vectorized else 1) + CHECKED + tried + chains - 1


def check_learnable(target: Target, known: Known | None) -> None:
    """Refuse densities of which no surrogate can be learned."""
    if target.is_estimate:
        raise ValueError('surrogate="learn" takes a known density, and target is an estimate: the '
                         "weights of its draws would not be those of the density. Run it without "
                         "surrogate, or give a cheap approximation (surrogate=f)")
    if target.dim > MOST_DIMENSIONS:
        raise ValueError(f'surrogate="learn" takes at most {MOST_DIMENSIONS} coordinates, not '
                         f"{target.dim}")
    if known is not None and known.periods is not None:
        raise ValueError('surrogate="learn" takes no periodic coordinates: run it without '
                         "surrogate, or give bounds in place of the period")


def is_learned(surrogate: Any) -> bool:
    """Return whether a surrogate is to be learned; raise ValueError for another string."""
    if not isinstance(surrogate, str):
        return False
    check_choice("surrogate", surrogate, ["learn"])
    return True
