"""The evidence of one run: all estimates that the run allows, and the choice among them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from fastkam._core.density.problem_target import ProblemTarget
from fastkam.arguments import check_choice, check_flag, check_generator, check_integer, check_number
from fastkam.diagnostics.tempering import tempering
from fastkam.evidence.bridged import Bridged, by_fitted, by_frozen, doubts
from fastkam.evidence.density import LEAST_ROWS, recorded, target_for
from fastkam.evidence.pareto import k_hat
from fastkam.evidence.proposals import is_resampled
from fastkam.evidence.weighted import by_weights
from fastkam.run.streams import Stream, generator_of
from fastkam.samplers.exchange import Coupled
from fastkam.samplers.jumps import ModeJumping

if TYPE_CHECKING:
    from fastkam.result import Result

BRIDGE, FROZEN = "bridge sampling", "bridge sampling with the run's own q"
STONES, THERMODYNAMIC = "stepping stones", "thermodynamic integration"
WEIGHTS = "importance weights of the surrogate"
METHODS = {"bridge": BRIDGE, "frozen_bridge": FROZEN, "stepping_stones": STONES,
           "thermodynamic": THERMODYNAMIC, "weights": WEIGHTS}
NEEDS = {BRIDGE: "evaluations of the density at draws of q",
         FROZEN: "a run of jumps (or auto, where it has chosen jumps) with a q that is kept fixed",
         STONES: "a run of pt or scout, alone or within jumps, whose ladder ends at 0"}
NEEDS[THERMODYNAMIC] = NEEDS[STONES]
NEEDS[WEIGHTS] = 'weighted draws, of a run with surrogate="learn"'

MOST_ASKED = 100_000_000    # evaluations that may be asked for
MOST_DIFFERENCE = 3.5       # standard errors between two estimates
MOST_ERROR = 1.0            # above which an estimate says little
# findings that concern the evidence
GRAVE = ("not_finite", "stuck", "constant", "improper", "not_a_logarithm", "tails", "moments",
         "divergences", "log_density", "weights", "modes", "excursion", "stay", "search")
WIDTH = 88
LIKELIHOOD, INTEGRAL = "marginal likelihood", "integral of the density"
EITHER = "marginal likelihood, if the run had a prior"


@dataclass(frozen=True)
class Evidence:
    """The log of the integral of a density, estimated from a run.

    Attributes
    ----------
    value : float
        log Z; NaN where it could not be estimated.
    error : float
        Standard error of `value`; infinite where the draws are too few for an estimate.
    method : str
        "bridge sampling", "bridge sampling with the run's own q", "stepping stones",
        "thermodynamic integration" or "importance weights of the surrogate".
    k_hat : float
        Shape of the tail of the weights p / q at the draws of q, in bridge sampling, or of the
        importance weights; above 0.7, q (or the surrogate) does not reach all of the density. NaN
        for the other methods.
    evaluations : int
        Number of evaluations of the density for this estimate, beyond those of the run.
    kind : str
        "marginal likelihood" if every parameter of the run had a prior; "integral of the density"
        if it had a log density alone, or a parameter whose prior is None; "marginal likelihood,
        if the run had a prior" if the result comes from a file that does not tell.
    estimates : dict of str to (float, float)
        Value and standard error by each method that the run allows.
    notes : tuple of str
        Why the value may be wrong, or its error too small; empty if there is no reason for doubt.
    """

    value: float
    error: float
    method: str
    k_hat: float = np.nan
    evaluations: int = 0
    kind: str = "integral of the density"
    estimates: dict[str, tuple[float, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval that contains log Z with probability `level`, if the error is right.

        Parameters
        ----------
        level : float
            Between 0 and 1.
        """
        from scipy.special import ndtri

        level = check_number("level", level, above=0, below=1)
        wide = float(ndtri(0.5 + level / 2)) * self.error
        return self.value - wide, self.value + wide

    def __str__(self) -> str:
        k = f", k-hat {self.k_hat:.2f}" if np.isfinite(self.k_hat) else ""
        more = f", {self.evaluations} further evaluations" if self.evaluations else ""
        lines = [f"log evidence {self.value:.4f} +- {self.error:.2g} ({self.method}{k}{more}; "
                 f"{self.kind})"]
        lines += [f"  {name} {value:.4f} +- {error:.2g}"
                  for name, (value, error) in self.estimates.items() if name != self.method]
        return "\n".join([*lines, *(line for note in self.notes for line in wrap(
            note, WIDTH, initial_indent="- ", subsequent_indent="  "))])

    __repr__ = __str__


# ---- the estimates of a run ----


@np.errstate(under="ignore")
def log_evidence(
    result: Result, *, method: str | None = None, evaluations: int | None = None,
    target: Any = None, vectorized: bool = False, seed: Any = None,
) -> Evidence:
    """Return the `Evidence` of a result: see `fastkam.Result.log_evidence`."""
    if method is not None:
        check_choice("method", method, METHODS)
    if evaluations is not None:
        evaluations = check_integer("evaluations", evaluations, least=0,
                                    most=MOST_ASKED)
    check_flag("vectorized", vectorized)
    rng = None if seed is None else check_generator("seed", seed)
    state = result.state
    if not state.states or state.trace.rows < LEAST_ROWS:
        more = ("continue with result.resume(draws=...)" if result.log_weights is None else
                "call sample again with a larger budget")
        raise ValueError(f"result must have at least {LEAST_ROWS} draws a chain, not "
                         f"{state.trace.rows}: {more}")
    if state.trace.stat_names is None:
        raise ValueError("result must have the log densities of its draws, which a run with "
                         "keep_stats=False does not keep")
    wanted = None if method is None else METHODS[method]
    if result.log_weights is not None:
        return of_weighted(result, wanted, evaluations)
    if is_resampled(state):
        raise ValueError("result must be the one with weights from which these draws were "
                         "resampled: their errors are no longer known")
    density = target_for(result, target, vectorized)
    frozen = by_frozen(state)
    bridges: dict[str, Bridged | None] = {FROZEN: frozen}
    estimates = tempered(result)
    if density is not None and evaluations != 0 and wanted in (None, BRIDGE):
        rng = generator_of(state.seed, Stream.EVIDENCE) if rng is None else rng
        with recorded(result, density, given=target is not None) as at:
            made = by_fitted(result, at, evaluations, rng)
        if made is not None and frozen is not None:     # what the chains lack, every q lacks
            made = replace(made, apart=frozen.apart)
        bridges[BRIDGE] = made
        if made is not None:
            result.remember(unvisited=made.unvisited)
    estimates |= {name: made.estimate for name, made in bridges.items() if made is not None}
    chosen = best(estimates, bridges) if wanted is None else wanted
    if chosen not in estimates:
        raise ValueError(why_not(chosen, density is None, evaluations == 0))
    return judged(result, chosen, estimates, bridges, kind_of(result, density))


def of_weighted(result: Result, wanted: str | None, evaluations: int | None) -> Evidence:
    """Return the evidence of weighted draws, which needs no further evaluations."""
    if wanted not in (None, WEIGHTS):
        raise ValueError('method must be "weights" for weighted draws, whose steps were made on '
                         "the surrogate")
    if evaluations:
        raise ValueError(f"evaluations must be 0 or None for weighted draws, not {evaluations}: "
                         "more of them come from a larger budget=")
    assert result.log_weights is not None
    found = by_weights(result.state, result.log_weights)
    if found is None:
        raise ValueError("result must have weights above 0 and a surrogate of known integral, and "
                         "the integral of this one could not be found: too little of the density "
                         "has been learned. Call sample again with a larger budget=, or without "
                         'surrogate=, with a sampler such as "jumps" or "pt"')
    made = judged(result, WEIGHTS, {WEIGHTS: found}, {}, kind_of(result, result.target))
    return replace(made, k_hat=k_hat(result.log_weights.ravel()))


def why_not(name: str, no_target: bool, no_evaluations: bool) -> str:
    """Return the reason why an estimate is missing, with a remedy."""
    if name != BRIDGE:
        return f"method must be one that the run has the means for: {name} needs {NEEDS[name]}"
    if no_target:
        return ("target must be given, as to sample: a result from a file does not hold the "
                "density, and its evidence needs it at new points "
                "(result.log_evidence(target=...))")
    if no_evaluations:
        return ("evaluations must be at least 1, not 0: this run has kept no draws of a density q "
                "beside those of its chains")
    return ("result must have draws that spread along each coordinate: no q can be fitted to "
            "these")


def tempered(result: Result) -> dict[str, tuple[float, float]]:
    """Return the estimates from tempered replicas if their ladder ends at the reference."""
    sampler = result.sampler
    inner = sampler.parts()[0] if isinstance(sampler, ModeJumping) else sampler
    if not isinstance(inner, Coupled):
        return {}
    report = tempering(result)
    found = {STONES: (report.log_z, report.log_z_error),
             THERMODYNAMIC: (report.log_z_thermodynamic, report.log_z_thermodynamic_error)}
    return {name: pair for name, pair in found.items() if np.isfinite(pair).all()}


def kind_of(result: Result, density: Any) -> str:
    """Return what the value is: the attribute `kind` of `Evidence`."""
    if isinstance(density, ProblemTarget) and not density.without_prior:
        return LIKELIHOOD
    return EITHER if density is None and result.state.coordinates is not None else INTEGRAL


# ---- which to trust ----


def best(estimates: dict[str, tuple[float, float]], bridges: dict[str, Bridged | None]) -> str:
    """Return the first method without doubts, or else that with the smallest error."""
    for name in (BRIDGE, FROZEN):
        made = bridges.get(name)
        if made is not None and not doubts(made):
            return name
    for name in (STONES, THERMODYNAMIC):
        if name in estimates and estimates[name][1] <= MOST_ERROR:
            return name
    finite = {name: error for name, (_, error) in estimates.items() if np.isfinite(error)}
    if finite:
        return min(finite, key=lambda name: finite[name])
    return BRIDGE if BRIDGE in estimates else next(iter(estimates), BRIDGE)


def judged(
    result: Result, chosen: str, estimates: dict[str, tuple[float, float]],
    bridges: dict[str, Bridged | None], kind: str,
) -> Evidence:
    """Return the chosen estimate with its notes, and a larger error if the methods disagree."""
    value, error = estimates[chosen]
    made, used = bridges.get(chosen), bridges.get(BRIDGE)
    notes = [] if made is None else doubts(made, STONES in estimates)
    worst = 0.0
    for name, (other, its) in estimates.items():
        away = abs(value - other)
        if away > MOST_DIFFERENCE * np.hypot(error, its):
            worst = max(worst, away)
            notes.append(f"Two methods disagree: {chosen} {value:.4f} +- {error:.2g}, {name} "
                         f"{other:.4f} +- {its:.2g}. The error counts their difference.")
    error = float(np.hypot(error, worst))
    if not (error <= MOST_ERROR or (made is not None and made.lost)):  # which has its own note
        notes.append("The error is large: run longer, or with a sampler that suits the density.")
    if made is not None and made.apart:
        notes.append("The chains are in different parts of the density, without moves between "
                     "them: how much of it is in each part is not known, and the error counts "
                     "this. Run longer, or with another sampler (\"pt\").")
    notes += [f"{one.text} The evidence lacks what is there."
              for one in result.warnings if one.kind == "unvisited"]
    grave = [one.text for one in result.warnings
             if one.kind in GRAVE or (one.kind == "r_hat" and one.status == "wrong")]
    if grave:
        first = grave[0].split(". ")[0].rstrip(".")
        notes.append(f"The run itself is in doubt (see result.warnings): {first}.")
    return Evidence(
        value=value, error=error, method=chosen, k_hat=np.nan if made is None else made.k_hat,
        evaluations=0 if used is None else used.evaluations, kind=kind, estimates=estimates,
        notes=tuple(notes))
