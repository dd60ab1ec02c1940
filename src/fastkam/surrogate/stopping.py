"""Stop rules for weighted draws, whose statistics are computed with the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from fastkam.diagnostics.weights import weight_findings, weighted_summary
from fastkam.run.rules import Both, Either
from fastkam.stop import ESS, MCSE, Done, Evaluations, Rhat, StopRule, Time

if TYPE_CHECKING:
    from fastkam.run.state import RunState

Array = NDArray[np.float64]

FIRST, FURTHER = 50, 1.1  # rows at the first check of a rule, and their growth between checks


@dataclass
class WeightedRun:
    """Weighted draws in the form that stop rules take.

    Attributes
    ----------
    past : RunState
        Its trace has the draws, and the statistic "log_weight".
    log_weights : ndarray, shape (chains, n)
    evaluations : float
    seconds : float
    """

    past: RunState
    log_weights: Array
    evaluations: float
    seconds: float

    @property
    def trace(self) -> Any:
        return self.past.trace

    def summary(self) -> Any:
        """Return the summary of the user's parameters."""
        draws = np.asarray(self.past.constrained(self.trace.draws))
        return weighted_summary(draws, self.log_weights, self.past.layout.labels,
                                controls=self.past.controls)

    def findings(self) -> list[Any]:
        """The findings on the weights."""
        return [one for one in weight_findings(self.past, self.log_weights)
                if one.kind == "weights"]


def reason(rule: StopRule | None, run: WeightedRun) -> StopRule | None:
    """Return the rule, among the parts of `rule`, that ends the run here, or None."""
    if rule is None:
        return None
    return found(rule, run, run.summary())


def found(rule: StopRule, run: WeightedRun, table: Any) -> StopRule | None:
    """Return the same as `reason`, given the summary of the draws."""
    if isinstance(rule, Either):
        return found(rule.one, run, table) or found(rule.other, run, table)
    if isinstance(rule, Both):
        both = found(rule.one, run, table) and found(rule.other, run, table)
        return rule if both else None
    return rule if holds(rule, run, table) else None


def holds(rule: StopRule, run: WeightedRun, table: Any) -> bool:
    """Return whether a single rule holds."""
    if isinstance(rule, ESS):
        sizes = {"bulk": table["ess_bulk"], "tail": table["ess_tail"]}
        return all(bool((size >= rule.size).all()) for name, size in sizes.items()
                   if rule.of in (name, "both"))
    if isinstance(rule, Rhat):
        return bool((table["r_hat"] <= rule.most).all())
    if isinstance(rule, Done):
        least = np.minimum(table["ess_bulk"], table["ess_tail"])
        agree = len(run.log_weights) == 1 or (table["r_hat"] <= rule.r_hat).all()
        return bool((least >= rule.ess).all() and agree) and not run.findings()
    if isinstance(rule, MCSE):
        which, most = rule.named(run.past.layout)
        return bool(which) and bool((table["mcse_mean"][which] <= most).all())
    if isinstance(rule, Evaluations):
        return run.evaluations >= rule.count
    if isinstance(rule, Time):
        return run.seconds >= rule.seconds
    return bool(rule.met(cast(Any, run)))  # a user's own rule
