"""What a fault of the target was, in words."""

from __future__ import annotations

import numpy as np

from fastkam._core.engine.group import INFINITE, Fault


def describe(fault: Fault, where: str) -> str:
    """What happened, and where: "chain 0, step 3", say."""
    if fault.code == 0:
        what = "no finite log density at the start, nor at 100 points around it"
    elif fault.cause is not None:
        what = f"the target raised {type(fault.cause).__name__}: {fault.cause}"
    elif fault.code == INFINITE:
        what = "the log density is +inf, which no density is"
    else:
        what = f"the target returned the fatal code {fault.code}"
    return f"{what} ({where}, at x = {np.array2string(fault.x, threshold=8)})"
