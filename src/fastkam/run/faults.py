"""What stopped a run, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.group import INFINITE, Fault

if TYPE_CHECKING:
    from fastkam.density.target import Target


def describe(fault: Fault, step: int, target: Target) -> str:
    """What a Fault was, and where."""
    where = f"chain {fault.chain}, step {step}, at x = {np.array2string(fault.x, threshold=8)}"
    if fault.code == 0:
        what = ("no finite log density at the start, nor at 100 points around it"
                f"{at_start(target, fault.x)}")
    elif fault.cause is not None:
        what = (f"the target raised {type(fault.cause).__name__}: {fault.cause}"
                f"{hint(fault.cause, fault.x) if step == 0 else ''}")
    elif fault.code == INFINITE:
        what = "the log density is +inf, which no density is"
    else:
        what = f"the target returned the fatal code {fault.code}"
    return f"{what} ({where})"


def at_start(target: Target, x: NDArray[np.float64]) -> str:
    """What the density was where a chain should have started, and what to do about it."""
    advice = "give x0 inside the support" + (
        "" if target.is_estimate else ", and look at what the function returns there")
    try:
        value = None if target.is_estimate else float(target.logp(x))
    except Exception:  # it has been asked once already
        value = None
    if value is not None and np.isfinite(value):
        return f": it is {value:g}, but its gradient is not finite"
    return f": {'' if value is None else f'it is {value}; '}{advice}"


def hint(error: BaseException, x: NDArray[np.float64]) -> str:
    """What a function of a newcomer may have got wrong in its first call; nothing otherwise."""
    if isinstance(error, (IndexError, KeyError, AttributeError)):
        return f" [it was called with an array of shape {x.shape}, one point]"
    if isinstance(error, ValueError) and "read-only" in str(error):
        return " [x is read-only: change a copy, x.copy()]"
    return ""
