"""The evidence of one run: every estimate that the run has the means for, and which to trust."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from fastkam._core.density.problem_target import ProblemTarget
from fastkam.arguments import check_choice, check_flag, check_generator, check_integer, check_number
from fastkam.diagnostics.tempering import tempering
from fastkam.evidence.bridged import Bridged, by_fitted, by_frozen, doubts
from fastkam.evidence.density import LEAST_ROWS, target_for
from fastkam.samplers.exchange import Coupled
from fastkam.samplers.jumps import ModeJumping

if TYPE_CHECKING:
    from fastkam.result import Result
    from fastkam.run.state import RunState

BRIDGE, FROZEN = "bridge sampling", "bridge sampling with the run's own q"
STONES, THERMODYNAMIC = "stepping stones", "thermodynamic integration"
METHODS = {"bridge": BRIDGE, "frozen_bridge": FROZEN, "stepping_stones": STONES,
           "thermodynamic": THERMODYNAMIC}
NEEDS = {BRIDGE: "evaluations of the density at draws of q",
         FROZEN: "a run of jumps (or auto, where it has chosen jumps) with a q that is kept fixed",
         STONES: "a run of pt or scout, alone or within jumps, whose ladder ends at 0"}
NEEDS[THERMODYNAMIC] = NEEDS[STONES]

MOST_ASKED = 100_000_000    # evaluations that may be asked for
MOST_DIFFERENCE = 3.5       # standard errors between two estimates
MOST_ERROR = 1.0            # above which an estimate says little
GRAVE = ("not_finite", "stuck", "constant", "improper", "not_a_logarithm", "tails", "moments",
         "divergences", "r_hat", "log_density")   # findings that concern the evidence
WIDTH = 88
STREAM = 2**32 - 2          # which child of the seed draws of q come from; chain k has the k-th
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
        Standard error of `value`.
    method : str
        "bridge sampling", "bridge sampling with the run's own q", "stepping stones" or
        "thermodynamic integration".
    k_hat : float
        Shape of the tail of the weights p / q of the draws of q, of bridge sampling; above 0.7, q
        does not reach all of the density. NaN for the other methods.
    evaluations : int
        Evaluations of the density that this estimate has needed besides those of the run.
    kind : str
        "marginal likelihood" where the run had a likelihood and a prior, which is normalized:
        "integral of the density" where it had a log density alone; "marginal likelihood, if the run
        had a prior" where a file does not say which.
    estimates : dict of str to (float, float)
        Value and standard error by each method that the run had the means for.
    notes : tuple of str
        Why the value may be wrong, or its error too small; empty where nothing speaks against it.
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
        """The interval that has the true log Z with probability `level`, if the error is right.

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


def log_evidence(
    result: Result, *, method: str | None = None, evaluations: int | None = None,
    target: Any = None, vectorized: bool = False, seed: Any = None,
) -> Evidence:
    """The `Evidence` of a result: see `fastkam.Result.log_evidence`."""
    if method is not None:
        check_choice("method", method, METHODS)
    if evaluations is not None:
        evaluations = check_integer("evaluations", evaluations, least=0,
                                    most=MOST_ASKED)
    check_flag("vectorized", vectorized)
    rng = None if seed is None else check_generator("seed", seed)
    state = result.state
    if not state.states or state.trace.rows < LEAST_ROWS:
        raise ValueError(f"result must have at least {LEAST_ROWS} draws a chain, not "
                         f"{state.trace.rows}: go on with result.resume(draws=...)")
    density = target_for(result, target, vectorized)
    wanted = None if method is None else METHODS[method]
    bridges: dict[str, Bridged | None] = {FROZEN: by_frozen(state)}
    estimates = tempered(result)
    if density is not None and evaluations != 0 and wanted in (None, BRIDGE):
        bridges[BRIDGE] = by_fitted(
            result, density, evaluations, own_generator(state) if rng is None else rng)
    estimates |= {name: made.estimate for name, made in bridges.items() if made is not None}
    chosen = best(estimates, bridges) if wanted is None else wanted
    if chosen not in estimates:
        raise ValueError(why_not(chosen, density is None, evaluations == 0))
    return judged(result, chosen, estimates, bridges, kind_of(result, density))


def why_not(name: str, no_target: bool, no_evaluations: bool) -> str:
    """Why there is no such estimate, and what would mend it."""
    if name != BRIDGE:
        return f"method must be one that the run has the means for: {name} needs {NEEDS[name]}"
    if no_target:
        return ("target must be given, as to sample: a result from a file does not hold the "
                "density, and its evidence needs it at new points "
                "(result.log_evidence(target=...))")
    if no_evaluations:
        return ("evaluations must be at least 1, not 0: this run has kept no draws of a density q "
                "beside those of its chains")
    return ("result must have more draws than coordinates, which spread along each: no q can "
            "be fitted to these")


def own_generator(state: RunState) -> np.random.Generator:
    """A generator that depends on the seed of the run, and on nothing that the run has used."""
    seed = state.seed
    return np.random.default_rng(np.random.SeedSequence(
        seed.entropy, spawn_key=(*seed.spawn_key, STREAM), pool_size=seed.pool_size))


def tempered(result: Result) -> dict[str, tuple[float, float]]:
    """The estimates of tempered replicas, where the run had these down to the reference."""
    sampler = result.sampler
    inner = sampler.parts()[0] if isinstance(sampler, ModeJumping) else sampler
    if not isinstance(inner, Coupled):
        return {}
    report = tempering(result)
    found = {STONES: (report.log_z, report.log_z_error),
             THERMODYNAMIC: (report.log_z_thermodynamic, report.log_z_thermodynamic_error)}
    return {name: pair for name, pair in found.items() if np.isfinite(pair).all()}


def kind_of(result: Result, density: Any) -> str:
    """What the value is."""
    if isinstance(density, ProblemTarget):
        x = np.ascontiguousarray(result.draws[:, :1].reshape(-1, result.d))
        if (density.log_prior_x(x) != 0).any():
            return LIKELIHOOD
    return EITHER if density is None and result.state.coordinates is not None else INTEGRAL


# ---- which to trust ----


def best(estimates: dict[str, tuple[float, float]], bridges: dict[str, Bridged | None]) -> str:
    """A bridge that nothing speaks against; else the estimate of the least error."""
    for name in (BRIDGE, FROZEN):
        made = bridges.get(name)
        if made is not None and not doubts(made):
            return name
    finite = {name: error for name, (_, error) in estimates.items() if np.isfinite(error)}
    return min(finite, key=lambda name: finite[name]) if finite else BRIDGE


def judged(
    result: Result, chosen: str, estimates: dict[str, tuple[float, float]],
    bridges: dict[str, Bridged | None], kind: str,
) -> Evidence:
    """The chosen estimate with what speaks against it; where methods disagree, a larger error."""
    value, error = estimates[chosen]
    made, used = bridges.get(chosen), bridges.get(BRIDGE)
    notes = [] if made is None else doubts(made)
    worst = 0.0
    for name, (other, its) in estimates.items():
        away = abs(value - other)
        if away > MOST_DIFFERENCE * np.hypot(error, its):
            worst = max(worst, away)
            notes.append(f"Two methods disagree: {chosen} {value:.4f} +- {error:.2g}, {name} "
                         f"{other:.4f} +- {its:.2g}. The error counts their difference.")
    error = float(np.hypot(error, worst))
    if not error <= MOST_ERROR:
        notes.append("The error is large: run longer, or with a sampler that suits the density.")
    grave = [one.text for one in result.warnings if one.kind in GRAVE]
    if grave:
        first = grave[0].split(". ")[0].rstrip(".")
        notes.append(f"The run itself is in doubt (see result.warnings): {first}.")
    return Evidence(
        value=value, error=error, method=chosen, k_hat=np.nan if made is None else made.k_hat,
        evaluations=0 if used is None else used.evaluations, kind=kind, estimates=estimates,
        notes=tuple(notes))
