"""Reply: the outcome of an evaluation at one point."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Reply(NamedTuple):
    """The outcome of an evaluation at one point.

    Attributes
    ----------
    value : float
        The log density; NaN if there is an error.
    gradient : ndarray, shape (d,), or None
    extras : dict or None
        The extras that the function returned, {name: number or array}.
    seconds : float
        Duration of the evaluation.
    worker : str
        The process that made it, "host:process".
    error : Exception or None
        The exception of the function, or of a lost worker.
    """

    value: float = np.nan
    gradient: NDArray[np.float64] | None = None
    extras: dict[str, Any] | None = None
    seconds: float = 0.0
    worker: str = ""
    error: BaseException | None = None


class PointLost(Exception):
    """The worker that was to evaluate a point has died, or the task was lost on its way.

    The latter if it was caused by an OSError of the executor, such as a lost connection.
    """
