"""The evidence from weighted draws: the mean of the weights, where the surrogate is normalized.

With draws x_i of a surrogate s of integral 1, and weights w_i = p(x_i) / s(x_i),

    log Z = log mean w.

The surrogate was divided by its integral when it was learned: see `fastkam.surrogate.integral`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastkam.diagnostics.weights import NORMALIZED, error_of, normalized

if TYPE_CHECKING:
    from fastkam.run.state import RunState

Array = NDArray[np.float64]


def by_weights(state: RunState, log_weights: Array) -> tuple[float, float] | None:
    """(log Z, standard error) from logs of weights (chains, n); None if s is not normalized."""
    lines = [line for line in state.search if line.startswith(NORMALIZED)]
    total = float(np.logaddexp.reduce(log_weights, axis=None))
    if not lines or not np.isfinite(total):
        return None
    own = float(lines[-1].removeprefix(NORMALIZED))
    w = normalized(log_weights)[:, :, None]
    with np.errstate(all="ignore"):
        error = np.hypot(error_of(w, state.controls)[0], own)
    return total - float(np.log(log_weights.size)), float(error)
