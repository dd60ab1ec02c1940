"""Reply: what an evaluation at one point has returned."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Reply(NamedTuple):
    """The outcome of an evaluation at one point.

    Attributes
    ----------
    value : float
        The log density; NaN where there is an error.
    gradient : ndarray, shape (d,), or None
    extras : dict or None
        What the function returned besides, {name: number or array}.
    seconds : float
        What it took.
    worker : str
        Who made it: "host:process".
    error : Exception or None
        What the function raised, or what became of the worker.
    """

    value: float = np.nan
    gradient: NDArray[np.float64] | None = None
    extras: dict[str, Any] | None = None
    seconds: float = 0.0
    worker: str = ""
    error: BaseException | None = None


class PointLost(Exception):
    """The worker that was to evaluate a point has died, or the task was lost on its way."""
