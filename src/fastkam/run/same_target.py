"""Whether the target with which a run goes on is the one that it had."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.run.state import RunState

TARGET_TOLERANCE = 1e-8  # of the log density at the points where a run goes on


def check_noise_of(state: RunState, target: Target) -> None:
    """Refuse a target with other noise than that of the run."""
    for chain in state.states:
        k = chain["u"].shape[1] if "u" in chain else 0
        if k != target.n_aux:
            raise ValueError(f"target takes {target.n_aux} numbers of noise, but that of the run "
                             f"took {k}")


def check_density_of(state: RunState, target: Target) -> None:
    """Refuse a target whose log density is not that of the run, at the points where it goes on."""
    for k, chain in enumerate(state.states):
        x, kept = chain["x"] * state.scales, float(chain["logp_x"])
        if not np.isfinite(kept):  # not begun
            continue
        try:
            found = (target.estimate(x, chain["u"][0]) if target.is_estimate
                     else float(target.logp(x)))
        except Exception:  # the run says so, with the draws that there are, if it comes back
            return
        if not abs(found - kept) <= TARGET_TOLERANCE * max(1.0, abs(kept)):
            raise ValueError(
                f"target must be the density of the run, not another one: at the point of chain "
                f"{k} it returns {found!r}, and the run found {kept!r} there (x = "
                f"{np.array2string(x, threshold=8)}); check_target=False goes on all the same")
