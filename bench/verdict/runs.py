"""One run of a case, judged: what is known of it, and what its verdicts say."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from bench.verdict.cases import CASES

WRONG = 5.0         # Monte Carlo standard errors
PRECISE = 0.1       # standard deviations, within which a right run knows means and deviations
SCOUTED = 1000      # further evaluations


def judge(name: str, seed: int) -> dict[str, Any]:
    """A run and its verdicts, as numbers and texts.

    "z" is the worst error of means and standard deviations in the standard errors that the run
    states, "off" the worst in true standard deviations.
    """
    case = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.perf_counter()
        result = case.run(seed)
        seconds = time.perf_counter() - begun
        table = result.summary()
        verdict = result.verdict()
        begun = time.perf_counter()
        scouted = result.verdict(evaluations=SCOUTED)
        scouting = time.perf_counter() - begun
    errors = np.r_[np.abs(table["mean"] - case.mean), np.abs(table["sd"] - case.sd)]
    stated = np.r_[table["mcse_mean"], table["mcse_sd"]]
    ess = float(np.fmin(table["ess_bulk"], table["ess_tail"]).min())
    usual = bool((table["r_hat"] <= 1.01).all() and ess >= 400 and not result.trace.n_diverging)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = float(np.nan_to_num(errors / stated, nan=np.inf).max())
    return {"name": name, "seed": seed, "group": case.group, "half": case.half, "z": z,
            "off": float((errors / np.r_[case.sd, case.sd]).max()), "usual": usual,
            "status": verdict.status, "kinds": [one.kind for one in verdict.reasons],
            "scouted": scouted.status, "scouted_kinds": [one.kind for one in scouted.reasons],
            "further": scouted.evaluations, "evaluations": int(result.evaluations),
            "r_hat": float(np.nanmax(table["r_hat"], initial=1.0)), "ess": ess,
            "seconds": seconds, "scouting_seconds": scouting}


def kind_of(run: dict[str, Any]) -> str:
    """"wrong", "right", or "rough": within its stated errors, which are large."""
    if not run["z"] <= WRONG:
        return "wrong"
    return "right" if run["off"] <= PRECISE else "rough"
