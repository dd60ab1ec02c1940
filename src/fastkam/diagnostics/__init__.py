"""Quality of draws: effective sample sizes, R-hat, Monte Carlo errors, distances from a truth.

The functions of draws of shape (chains, draws, d) return (d,): NaN for a coordinate that never
moves, for R-hat of one chain, and for fewer than four draws. Those of (..., draws, d) return one
value per chain.
"""

from fastkam.diagnostics.distances import marginal_symmetric_kl, mmd2, symmetric_kl
from fastkam.diagnostics.draws import (
    ModeOccupancy,
    esjd,
    ess_bulk,
    ess_geyer,
    ess_range,
    ess_tail,
    mcse_mean,
    mcse_sd,
    mean_error,
    mode_occupancy,
    quantile_deviation,
    r_hat,
    summary,
)
from fastkam.diagnostics.identities import implied_moments
from fastkam.diagnostics.look import Finding
from fastkam.diagnostics.table import Summary
from fastkam.diagnostics.verdict import Verdict

__all__ = [
    "Finding",
    "ModeOccupancy",
    "Summary",
    "Verdict",
    "esjd",
    "ess_bulk",
    "ess_geyer",
    "ess_range",
    "ess_tail",
    "implied_moments",
    "marginal_symmetric_kl",
    "mcse_mean",
    "mcse_sd",
    "mean_error",
    "mmd2",
    "mode_occupancy",
    "quantile_deviation",
    "r_hat",
    "summary",
    "symmetric_kl",
]
