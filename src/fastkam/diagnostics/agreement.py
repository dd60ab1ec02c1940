"""Findings on the agreement of chains and on their effective sample sizes, from a summary."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.diagnostics.look import NAMED, Finding, listed

MOST_R_HAT, WRONG_R_HAT = 1.01, 1.1
WRONG_OF_FEW = 2.0  # R-hat of 25 to 99 draws; of independent ones it is at most about 1.3
LEAST_ESS = 400

IF_IT_STAYS = ("if it stays so, look at where the chains are (several modes? a bend?), and "
               "reparametrize, or try another sampler")
RUN_LONGER = f"The chains do not agree yet: run longer (tune=, draws=); {IF_IT_STAYS}."


def r_hats(
    labels: list[str], r_hat: NDArray[np.float64], advice: str = RUN_LONGER,
    wrong: float = WRONG_R_HAT,
) -> Finding | None:
    """Return a finding for coordinates on which the chains disagree."""
    bad = np.flatnonzero(r_hat > MOST_R_HAT)
    if not len(bad):
        return None
    bad = bad[np.argsort(-r_hat[bad])]
    digits = 4 if r_hat[bad[:NAMED]].min() >= MOST_R_HAT + 0.0005 else 5  # not "above 1.01: 1.01"
    values = [f"{r_hat[i]:.{digits}g} for {labels[i]}" for i in bad[:NAMED]]
    return Finding(
        "r_hat", f"R-hat is above {MOST_R_HAT}: {listed(values, len(bad))}. {advice}",
        tuple(labels[i] for i in bad),
        status="wrong" if r_hat[bad[0]] > wrong else "doubtful")


def sizes(labels: list[str], columns: Any) -> Finding | None:
    """Return a finding for coordinates whose effective sample size is too small."""
    ess = np.fmin(columns["ess_bulk"], columns["ess_tail"])
    bad = np.flatnonzero(ess < LEAST_ESS)
    if not len(bad):
        return None
    bad = bad[np.argsort(ess[bad])]
    values = [f"{ess[i]:.0f} {'for' if columns['ess_bulk'][i] <= ess[i] else 'in the tails of'} "
              f"{labels[i]}" for i in bad[:NAMED]]
    return Finding(
        "ess", f"The effective sample size is below {LEAST_ESS}: {listed(values, len(bad))}. Means "
        "and quantiles are rough: make more draws (result.resume(draws=...)).",
        tuple(labels[i] for i in bad))


def of_columns(labels: list[str], columns: Any, wrong: float = WRONG_R_HAT) -> list[Finding]:
    """Return findings on the agreement of chains and the number of draws, from a summary."""
    return [one for one in (r_hats(labels, columns["r_hat"], wrong=wrong), sizes(labels, columns))
            if one is not None]
