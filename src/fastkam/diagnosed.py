"""Diagnosed: the weights, summary, warnings and verdict of a result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_flag, check_generator, check_integer, checked_names
from fastkam.diagnostics import checks, summary
from fastkam.diagnostics.draws import OUTER_QUANTILES, check_levels
from fastkam.diagnostics.look import Finding
from fastkam.diagnostics.scouting import scout
from fastkam.diagnostics.table import Summary
from fastkam.diagnostics.verdict import Verdict
from fastkam.diagnostics.weights import normalized, weight_findings, weighted_summary
from fastkam.recorded import Recorded
from fastkam.run.lazy import distance
from fastkam.run.state import NOWHERE, RunState
from fastkam.run.streams import Stream, generator_of
from fastkam.samplers.importance import LOG_WEIGHT, ImportanceWeighted
from fastkam.search.cut import LOOK, WHOLE, looked, may_have_missed

if TYPE_CHECKING:
    from fastkam.result import Result

MOST_SCOUTED = 10_000_000  # bound of `evaluations` of a verdict


class Diagnosed(Recorded):
    """The part of `fastkam.Result` that judges its draws.

    Parameters
    ----------
    state : RunState
    """

    def __init__(self, state: RunState) -> None:
        super().__init__(state)
        self.found: list[Finding] | None = None  # cache of `warnings`
        self.further: list[Finding] = []  # of further evaluations

    @property
    def log_weights(self) -> NDArray[np.float64] | None:
        """Logs of the importance weights, (chains, draws), up to a constant; None if all are equal.

        The draws of a run with ``surrogate="learn"`` are those of the surrogate: the mean of h is
        ``(w * h).sum() / w.sum()`` with ``w = result.weights``. The weights are the ratios of the
        density and the surrogate, calibrated by means that are known under the surrogate (Deville
        and Särndal 1992).
        """
        if not isinstance(self.sampler, ImportanceWeighted):
            return None
        return np.asarray(self.stats[LOG_WEIGHT])

    @property
    def weights(self) -> NDArray[np.float64]:
        """Importance weights of the draws, (chains, draws), with mean 1; read-only if all are 1.

        Extras are NaN at draws of weight 0: use ``np.nansum(weights * extra)``, or `resample`.
        """
        if self.log_weights is None:
            return np.broadcast_to(np.float64(1.0), self.draws.shape[:2])
        return normalized(self.log_weights)

    @checked_names
    def summary(
        self, var_names: str | Iterable[str] | None = None, *,
        quantiles: Sequence[float] = OUTER_QUANTILES,
    ) -> Summary:
        """Mean, sd, quantiles, Monte Carlo error, effective sample sizes and R-hat.

        Parameters
        ----------
        var_names : str or list of str, optional
            Parameters and extras, or single elements of these such as "theta[2]"; all parameters
            by default.
        quantiles : list of float, optional
            Probabilities between 0 and 1; the columns are "q5", "q95", "q2.5" and so on.

        Returns
        -------
        Summary
            Prints as a table, followed by the verdict and the findings of `warnings`, which are
            those of the whole run; ``summary["r_hat"]`` is a column as an array. For a long run
            with ``store=`` some two million evenly spaced draws are read, as a note below the
            table says; other notes say if the draws have weights, which the table uses, and which
            rows are unknown because of draws that are NaN or infinite.

        Raises
        ------
        ValueError
            If there is no parameter, extra or element of such a name.
        """
        levels = check_levels("quantiles", quantiles)
        step = distance(self.draws) if self.log_weights is None else 1
        if var_names is None:
            draws, labels = np.asarray(self.draws[:, ::step]), self.state.layout.labels
        else:
            draws, labels = self.selected(var_names, step)
        table = self.table(draws, labels, levels)
        judged = checks.verdict_of(self.state, self.warnings,
                                   table if var_names is None else self.weighted_table())
        table.verdict, remarks = judged.heading, table.notes
        if var_names is None and self.log_weights is None:
            table.notes = checks.notes(list(judged.reasons), table)
        else:
            table.notes = [one.text for one in judged.reasons]
        if var_names is not None or not any(one.kind == "not_finite" for one in judged.reasons):
            table.notes += remarks
        if step > 1:
            table.notes.append(f"Of every {step}th draw of each chain: effective sample sizes are "
                               "no larger than those of all draws, and errors no smaller.")
        if self.log_weights is not None and self.trace.rows:
            table.notes.append("The draws have weights, which this table takes into account: "
                               "result.resample() returns draws with equal weights, for means and "
                               "figures of your own.")
        return table

    def table(
        self, draws: NDArray[np.float64], labels: list[str], levels: tuple[float, ...]
    ) -> Summary:
        """The summary of some columns (chains, draws, d), with their quantiles."""
        if self.log_weights is None:
            return summary(draws, labels, quantiles=levels)
        return weighted_summary(draws, self.log_weights, labels, levels, self.state.controls)

    def weighted_table(self) -> Summary | None:
        """The summary of all parameters of weighted draws; None if all weights are equal."""
        if self.log_weights is None:
            return None
        return self.table(np.asarray(self.draws), self.state.layout.labels, OUTER_QUANTILES)

    @property
    def warnings(self) -> list[Finding]:
        """Findings about the run; empty if there are none.

        Each has a ``kind``, a ``text`` that says what to do, and the ``coordinates`` and ``chains``
        concerned: see `fastkam.diagnostics.Finding`. The warning at the end of the run has the
        same findings, except those with the status "ok". Findings of `verdict` and `log_evidence`,
        which make further evaluations, are added.
        """
        if self.found is None:
            log_weights = self.log_weights
            self.found = (checks.findings(self.state) if log_weights is None else
                          weight_findings(self.state, log_weights))
        kinds = {one.kind for one in self.found}
        more = [one for one in self.further if one.kind not in kinds]
        return checks.causes(more + self.found)

    def remember(
        self, found: Iterable[Finding] = (), unvisited: NDArray[np.float64] = NOWHERE,
        made: int = 0,
    ) -> None:
        """Remember what further evaluations have found.

        Parameters
        ----------
        found : iterable of Finding
        unvisited : array
            `RunState.unvisited`, if they have found such a place.
        made : int
            Number of evaluations of a look for modes; enough of them lift the doubt of a search
            that was cut short.
        """
        found = list(found)
        new = {one.kind for one in found}
        self.further = [*(one for one in self.further if one.kind not in new), *found]
        state = self.state
        if len(unvisited):
            state = replace(state, unvisited=unvisited)
        if made >= WHOLE * LOOK and may_have_missed(state):
            state = replace(state, search=[*state.search, looked(made)])
        if state is not self.state:
            self.state, self.found = state, None

    @checked_names
    def verdict(
        self, evaluations: int = 0, *, target: Any = None, vectorized: bool = False,
        seed: Any = None,
    ) -> Verdict:
        """Whether the draws may be trusted: ok, doubtful or wrong, with the reasons.

        Parameters
        ----------
        evaluations : int
            Number of further evaluations of the density that may be used to look for points of
            comparable density that no chain has visited: by wide jumps from the draws, searches
            uphill from the points that these reach, and, if enough are left, gradients at draws. In
            few dimensions 1000 find most modes within some 20 standard deviations. With 0 the
            verdict uses `warnings` alone, to which these evaluations add what they find. Not
            counted are those that check that the density is that
            of the run: one, or some with `target`.
        target : optional
            The density, where the result comes from a file: as in `fastkam.resume`.
        vectorized : bool
            As in `fastkam.sample`, of that `target`.
        seed : int, SeedSequence or Generator, optional
            Seed of the jumps; by default it follows from the seed of the run.

        Returns
        -------
        Verdict
            Prints as a paragraph; its ``status`` is "ok", "doubtful" or "wrong". For a run of fewer
            than 100 draws per chain, or 160 weighted draws in all, it is not "ok".

        Raises
        ------
        TypeError, ValueError
            For a bad argument; if the density is needed and is missing, or differs from that of the
            run.
        SamplingError
            If the density raises an error, other than an ArithmeticError, ValueError, RuntimeError
            or AssertionError, which count as a density of 0.
        """
        evaluations = check_integer("evaluations", evaluations, least=0, most=MOST_SCOUTED)
        check_flag("vectorized", vectorized)
        if seed is not None:
            check_generator("seed", seed)
        made = 0
        if evaluations and self.trace.stat_names is None:
            raise ValueError("evaluations must be 0 for a run that kept no log densities "
                             f"(keep_stats=False), not {evaluations}")
        if evaluations and self.trace.rows >= checks.LEAST_DRAWS:
            found, place, made = scout(
                cast("Result", self), evaluations, target, vectorized,
                generator_of(self.state.seed, Stream.VERDICT) if seed is None
                else check_generator("seed", seed))
            self.remember(found, place, made)
        return checks.verdict_of(self.state, self.warnings, self.weighted_table(), made)
