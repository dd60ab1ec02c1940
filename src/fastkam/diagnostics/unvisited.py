"""Findings on places that no chain has visited."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fastkam.diagnostics.look import Finding, Look, listed
from fastkam.samplers.delayed import DelayedAcceptance

Floats = NDArray[np.float64]

SHOWN = 8  # coordinates of a point in a message
REMOTE = 1e10  # times the range of the draws


def unvisited(look: Look) -> Iterator[Finding]:
    """Yield a finding for a place that no chain has visited."""
    state = look.state
    for *z, value, mass in state.unvisited:
        x = state.constrain(np.array([z]))[0]
        point = tuple(x.tolist())
        place = placed(x, look.x, look.labels if len(state.layout.shapes) > 1 else None)
        if isinstance(state.sampler, DelayedAcceptance):
            yield Finding(
                "unvisited", f"The surrogate is far too small near {place}, where it leaves out "
                f"mass of the density: {100 * mass:.2g} % of what the draws have, by a rough "
                "estimate. Give one with heavier tails, or none.", status="wrong", point=point)
            continue
        if mass > 0:
            text = (f"Far from all draws, near {place}, the density has mass that no chain has "
                    f"visited: {multiple(mass)} what the draws have, by a rough estimate.")
        else:
            level = float(np.median(state.trace.logp[:, : state.trace.rows]))
            text = (f"No chain has visited a mode near {place}, where the log density is "
                    f"{value:.4g}; at the draws its median is {level:.4g}.")
        search = "" if state.by_gradients else ', or let sampler="auto" search from there'
        rest = "; all coordinates are in the finding's `point`" if len(x) > SHOWN else ""
        mend = f"Start chains there too (x0={rest}){search}."
        if is_remote(x, look.x):
            mend = ("That is so far away that the function may have lost its digits there, by a "
                    "difference of large numbers, say: look at its values. If they are wrong, "
                    "return -inf there, or give bounds that leave them out (bounds=, prior=). "
                    f"Otherwise: {mend[0].lower()}{mend[1:]}")
        yield Finding("unvisited", f"{text} {mend}", status="wrong", point=point)


def is_remote(x: Floats, draws: Floats) -> bool:
    """Whether a point is far beyond all draws, by REMOTE times their range in a coordinate."""
    low, high = draws.min(axis=(0, 1)), draws.max(axis=(0, 1))
    with np.errstate(all="ignore"):  # x, and draws, may be infinite
        away = np.maximum(x - high, low - x) > REMOTE * (high - low)
    return bool((away & (high > low)).any())


def placed(x: Floats, draws: Floats, labels: list[str] | None = None) -> str:
    """Return a point (d,) as text, to a hundredth of the standard deviations of draws.

    `draws` has shape (chains, n, d). Of many coordinates the first ones are shown; with labels,
    those that are farthest from the mean of the draws.
    """
    with np.errstate(all="ignore"):  # x, and draws, may be infinite
        sd = np.maximum(draws.std(axis=(0, 1)), 1e-300)
        digits = np.ceil(np.log10(np.abs(x) / sd + 1)) + 2
        away = np.abs(x - draws.mean(axis=(0, 1))) / sd
    digits = np.clip(np.where(np.isfinite(digits), digits, 3), 3, 17).astype(int)
    which = np.arange(len(x)) if labels is None else np.argsort(-away, kind="stable")
    which = np.sort(which[:SHOWN])
    texts = [f"{x[i]:.{digits[i]}g}" for i in which]
    if labels is not None:
        named = [f"{labels[i]} = {one}" for i, one in zip(which, texts, strict=True)]
        return listed(named, len(x))
    return f"({', '.join(texts)}{', ...' if len(x) > SHOWN else ''})"


def multiple(share: float) -> str:
    """Return a rough share as text: in percent, or from 1 on as a number of times."""
    return f"{100 * share:.2g} % of" if share < 0.995 else f"{share:.2g} times"
