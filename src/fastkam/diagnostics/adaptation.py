"""Convergence of the adaptation: quantities that still drifted at the end of warm-up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fastkam.run.state import RunState

LEAST_SNAPSHOTS = 12
LEAST_DRIFT = 0.35      # of a logarithm: a scale that changed by 40 %
STANDARD_ERRORS = 4
LOCATIONS = {"mu", "means", "weights", "ladder"}    # neither scales nor step sizes


def unsettled(state: RunState) -> list[str]:
    """Return the names of the learned quantities that drifted in the last third of warm-up.

    The logarithms of scales are compared: of a number, of each element of a vector, and of each
    diagonal element of a matrix. A scale has drifted if the mean of its logarithm over the last
    sixth of the snapshots differs from that over the sixth before by more than LEAST_DRIFT, in the
    same direction in all chains, and by more than STANDARD_ERRORS standard errors, which are
    computed from the differences between chains. With fewer than three chains that adapt
    separately, it must have moved in that direction in 4 of 5 snapshots.
    """
    prefix = "adaptation."
    names = [name for name in state.states[0] if name.startswith(prefix)]
    return [name.removeprefix(prefix) for name in names
            if name.removeprefix(prefix) not in LOCATIONS
            and drifts(np.array([one[name] for one in state.states]), state.share)]


def drifts(values: NDArray[Any], share: bool) -> bool:
    """Return whether a learned quantity (chains, snapshots, *shape) has drifted."""
    if values.shape[1] < LEAST_SNAPSHOTS:
        return False
    scales = logarithms(values[:1] if share else values)
    n = scales.shape[1] // 6
    if not scales.shape[2]:
        return False
    last, before = scales[:, -n:], scales[:, -2 * n : -n]
    drift = last.mean(axis=1) - before.mean(axis=1)  # (chains, k)
    mean, chains = drift.mean(axis=0), len(drift)
    far = (np.abs(mean) > LEAST_DRIFT) & (np.sign(drift) == np.sign(mean)).all(axis=0)
    if chains > 2:
        error = drift.std(axis=0, ddof=1) / np.sqrt(chains)
        return bool((far & (np.abs(mean) > STANDARD_ERRORS * error)).any())
    steps = np.sign(np.diff(scales[:, -2 * n :], axis=1)) == np.sign(mean)
    return bool((far & (steps.mean(axis=1) > 0.8).all(axis=0)).any())


def logarithms(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the logarithms of the scales in a learned quantity: (chains, snapshots, k).

    k is 0 if the quantity has no scale. A number that is not always positive is taken for a
    logarithm.
    """
    shape = values.shape[2:]
    if len(shape) == 2 and shape[0] == shape[1]:
        values = np.abs(np.diagonal(values, axis1=2, axis2=3))
    elif len(shape) == 2 or len(shape) > 2:
        return np.empty((*values.shape[:2], 0))
    values = values.reshape(*values.shape[:2], -1)
    if not np.isfinite(values).all():
        return np.empty((*values.shape[:2], 0))
    if (values > 0).all():
        return np.asarray(np.log(values))
    return values if not shape else np.empty((*values.shape[:2], 0))
