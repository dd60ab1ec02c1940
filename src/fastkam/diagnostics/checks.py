"""Checks of a run: findings in plain words, each with a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam import errors
from fastkam._core.diagnostics.convergence import COLUMNS, measure
from fastkam.arguments import counted
from fastkam.diagnostics.adaptation import unsettled
from fastkam.diagnostics.agreement import IF_IT_STAYS, WRONG_OF_FEW, WRONG_R_HAT, of_columns
from fastkam.diagnostics.doubts import (
    FEWEST_CHAINS,
    FEWEST_ROWS,
    agree_as_groups,
    doubts,
    of_short_chains,
)
from fastkam.diagnostics.edges import without_digits
from fastkam.diagnostics.faults import (
    FAR,
    FEWEST_MEASURED,
    LEAST_DRAWS,
    grave,
    odd,
    of_repeated_calls,
)
from fastkam.diagnostics.look import EXCHANGED, NAMED, Finding, Look, listed
from fastkam.diagnostics.methods import of_methods
from fastkam.diagnostics.table import Summary
from fastkam.diagnostics.verdict import Verdict, status_of
from fastkam.diagnostics.weights import DOES_NOT_PAY, FIRST_CHECK, NO_SURROGATE
from fastkam.errors import ConvergenceWarning, SamplingWarning
from fastkam.samplers.importance import ImportanceWeighted
from fastkam.search.cut import LOOK, may_have_missed

if TYPE_CHECKING:
    from fastkam.result import Result
    from fastkam.run.state import RunState

MOST_R_HAT_OF_LP = 1.05     # where the coordinates agree
APART = 1e20            # in units of the scales
FEW_ACCEPTED = 0.05     # with noise that is not too large, 7 % at least

NO_LOG_DENSITY = {"constant", "not_a_logarithm"}
ABOUT_DENSITY = NO_LOG_DENSITY | {"improper"}
MEASURES = {"r_hat", "ess"}
AGREEMENT = {"log_density", "functionals", "drift", "mcse_sd"}
WITHOUT_INTEGRAL = AGREEMENT | MEASURES | {"adaptation", "moments", "mixture", "unvisited"}
# kind of finding -> the kinds that follow from it
FOLLOWING = {"r_hat": AGREEMENT, "improper": WITHOUT_INTEGRAL, "digits": {"boundary", "bound"}}
FOLLOWING |= dict.fromkeys(
    NO_LOG_DENSITY, WITHOUT_INTEGRAL | {"improper", "not_finite", "stuck", "acceptance"})
# kinds that mean only that a run is too short
TOO_SHORT = {"r_hat", "functionals", "ess", "mcse_sd", "adaptation", "short"}


def findings(state: RunState) -> list[Finding]:
    """Return the findings on a run; an empty list if there are none."""
    if not state.states:
        return []
    found = [*of_gradient(state), *of_repeated_calls(state)]
    if state.trace.rows:
        with np.errstate(all="ignore"):  # draws from an improper density may be anywhere
            found = causes(found + looked_at(Look(state)))
    if ABOUT_DENSITY.isdisjoint(one.kind for one in found):
        found += of_search(state)
    return found + of_labels(state) + stopped_early(state) + without_surrogate(state)


def of_labels(state: RunState) -> list[Finding]:
    """Return the finding that parameters of components can be exchanged."""
    for line in state.search:
        if line.startswith(EXCHANGED):
            return [Finding(
                "labels", f"{line[0].upper()}{line[1:]}. It has a mode for each order of such "
                "components; chains must visit all of them, and the mean of a parameter is then "
                "the mean of all components. Order one of the parameters, if it is a vector "
                '(transforms={name: "ordered"}), or look only at quantities that do not depend on '
                "the order.", status="ok")]
    return []


def causes(found: list[Finding]) -> list[Finding]:
    """Return the findings without those that follow from graver ones among them.

    Chains on a density without an integral do not agree, whatever else is found; and if chains do
    not agree, findings on how they differ add nothing.
    """
    dropped: set[str] = set()
    for one in found:
        if one.status == "wrong":
            dropped |= FOLLOWING.get(one.kind, set())
    return [one for one in found if one.kind not in dropped]


def looked_at(look: Look) -> list[Finding]:
    """Return the findings on the draws."""
    found = list(grave(look))
    if look.rows < LEAST_DRAWS:
        found += [] if found else [*of_short_chains(look), *of_short_run(look)]
    else:
        found += odd(look)
        kinds = {one.kind for one in found}
        if "stuck" in kinds:  # this finding says more
            found = [one for one in found if one.kind != "acceptance"]
        elif "not_finite" not in kinds:
            found += precision(look, certain=not kinds & ABOUT_DENSITY)
            found += [] if "acceptance" in kinds else noisy(look, found)
            found += [] if kinds & ABOUT_DENSITY else of_methods(look)
        if any(one.kind in ("stuck", "r_hat") and one.status == "wrong" for one in found):
            found = [*without_digits(look), *found]
    return found


def of_gradient(state: RunState) -> list[Finding]:
    """Return the finding that the gradient was wrong where the run began."""
    if not state.wrong_gradient:
        return []
    return [Finding("gradient", f"{state.wrong_gradient} (fastkam.check_gradient). Correct it: "
                                "with a wrong gradient chains may move slowly, or not at all.")]


def without_surrogate(state: RunState) -> list[Finding]:
    """Return the finding that a run went on without the surrogate that it was to learn."""
    for line in state.search:
        if line.startswith((NO_SURROGATE, DOES_NOT_PAY)):
            text = (f"{line[0].upper()}{line[1:]}. The draws are those of a run without a "
                    "surrogate, and all count alike; result.state.calls has the calls.")
            return [Finding("surrogate", text, status="ok")]
    return []


def stopped_early(state: RunState) -> list[Finding]:
    """Return a finding if a rule has ended the run before there were enough draws to check."""
    rows = state.trace.rows
    if state.status != "stopped" or rows >= LEAST_DRAWS:
        return []
    if rows and without_surrogate(state) and state.stopped_by.startswith(("Evaluations", "budget")):
        text = ("Learning a surrogate has used up nearly all calls. What was left made "
                f"{counted(rows, 'draw')} a chain without one: they are still those of warm-up. "
                "Allow more calls (budget=), start near the mode (x0=), or run without surrogate.")
        return [Finding("short", text, status="wrong")]
    if rows:
        text = (f"The run ended after {counted(rows, 'draw')} a chain: they are too few to see "
                "whether they are right. Allow more (stop=, budget=), or continue "
                "(result.resume()).")
    else:
        k, last = min(enumerate(state.states), key=lambda one: int(one[1]["t"]))
        made = (f"{last['t']} of {counted(state.tune, 'step')} of warm-up"
                if last["t"] < state.tune else
                f"{last['t'] - state.tune} of the {state.thin} steps before its first draw")
        text = (f"The run ended before any draw was kept: chain {k} has made {made}, with "
                f"{counted(last['n_evaluations'], 'evaluation')}. {without_draws(state)}.")
    return [Finding("short", text)]


def of_search(state: RunState) -> list[Finding]:
    """Return the finding that a search was cut short while it looked for modes."""
    if state.trace.rows < LEAST_DRAWS or not may_have_missed(state):
        return []
    return [Finding("search", "The limit of the run ended the search while it looked for the modes "
                              "of the density: some may be missing. Allow more (budget=, stop=), "
                              f"or look for them (result.verdict(evaluations={LOOK})).")]


def without_draws(state: RunState) -> str:
    """Advise on a run that has used its evaluations before its first draw."""
    if state.wrong_gradient:
        return "A wrong gradient may be the cause: correct it first"
    mend = "Allow more (stop=, budget=), tune for less (tune=), or continue (result.resume())"
    z = np.array([one["x"] for one in state.states])
    with np.errstate(all="ignore"):
        away = (np.abs(z * state.scales - state.x0) / (1 + np.abs(state.x0))).max()
        apart = np.ptp(z, axis=0).max()
    if away > 100 * FAR or apart > APART:
        return ("The chains have wandered far away: the density may have no finite integral (a "
                "prior is missing, or a sign is wrong), or its scale is far from that of x0. "
                f"Otherwise: {mend[0].lower()}{mend[1:]}")
    return mend


# ---- convergence and precision ----


def precision(look: Look, *, certain: bool) -> list[Finding]:
    """Return findings on the agreement of chains and the number of draws.

    `certain`: nothing was found that makes the density itself doubtful.
    """
    which, columns = look.measured
    found = wandering(look, which, columns["r_hat"]) if certain else []
    some = of_columns([look.labels[i] for i in which], columns)
    if any(one.kind == "r_hat" and one.status == "doubtful" for one in some) and agree_as_groups(
            look, look.x[:, :, which]):
        some = [one for one in some if one.kind != "r_hat"]
    found += some
    if look.lp is not None and not any(one.kind == "r_hat" for one in found):
        value = measure(look.lp[:, :, None], sizes=False)[COLUMNS.index("r_hat"), 0]
        if value > MOST_R_HAT_OF_LP and not agree_as_groups(look, look.lp[:, :, None]):
            found.append(Finding(
                "log_density", f"R-hat of the log density is {value:.3g}, though the coordinates "
                "agree: chains are in regions of different density. Run longer (tune=, draws=); "
                f"{IF_IT_STAYS}."))
        if certain:
            found += doubts(look, which, columns)
    if {one.kind for one in found} & {"r_hat", "ess", "log_density", "drift", "improper"}:
        names = unsettled(look.state)
        if names:
            found.append(Finding(
                "adaptation", f"{type(look.state.sampler).__name__} was still learning when "
                f"warm-up ended ({listed(names[:NAMED], len(names))}, see result.adaptation): tune "
                "for longer (tune=)."))
    return found


def of_short_run(look: Look) -> list[Finding]:
    """Return findings on a few draws that were asked for: R-hat and the effective sample size.

    If a rule has ended the run, `stopped_early` says so; many chains are judged in groups.
    """
    chains, rows = len(look.x), look.rows
    if look.state.status != "complete" or rows < FEWEST_MEASURED or chains >= FEWEST_CHAINS:
        return []
    which, columns = look.measured
    return of_columns([look.labels[i] for i in which], columns, WRONG_OF_FEW)


def noisy(look: Look, found: list[Finding]) -> Iterator[Finding]:
    """Yield a finding if chains that disagree accept few proposals, of an estimated density."""
    apart = any(one.kind == "r_hat" and one.status == "wrong" for one in found)
    if not apart or not look.is_estimate or look.log_ratio is None:
        return
    rate = np.exp(np.minimum(look.log_ratio, 0.0)).mean()
    if rate < FEW_ACCEPTED:
        yield Finding(
            "acceptance", f"{100 * rate:.2g} % of the proposals are accepted. If estimates are "
            "noisy (see fastkam.check_noise), chains stay for long where one is too high: make "
            "them less noisy; otherwise begin with narrower proposals.")


def wandering(look: Look, which: Any, r_hat: NDArray[np.float64]) -> list[Finding]:
    """Return a finding if chains that disagree are far from their starting points."""
    x0 = look.state.constrain(look.state.x0)[:, which]
    # the scales are those of x where it is not transformed
    unit = look.state.scales[which] if look.state.coordinates is None else 1.0
    away = (np.abs(look.x[:, :, which] - x0[:, None]).max(axis=1) / (unit + np.abs(x0))).max(axis=0)
    far = np.flatnonzero((away > FAR) & (r_hat > WRONG_R_HAT))
    if not len(far):
        return []
    labels = [look.labels[which[i]] for i in far[np.argsort(-away[far])]]
    return [Finding(
        "improper", f"{listed(labels[:NAMED], len(labels))}: the chains have wandered off by up to "
        f"{away[far].max():.2g} times (scale + |x0|), and do not agree. The density may have no "
        "finite integral there (a prior is missing, a sign is wrong, or it repeats, as that of an "
        "angle does: give bounds= and transforms=\"periodic\"), or the function loses its digits "
        "there; or its scale is far from that of x0: start nearer, and tune for longer (tune=).",
        tuple(labels), status="wrong")]


# ---- texts and warnings ----


def notes(found: list[Finding], summary: Summary) -> list[str]:
    """Return the texts of findings for a summary, with the summary's R-hat and sample sizes.

    The findings themselves have those of the draws that were checked, which may be fewer.
    """
    measured = {one.kind for one in found if one.kind in MEASURES}
    own = [one for one in of_columns(summary.labels, summary.columns) if one.kind in measured]
    before = [one.text for one in found if one.kind not in MEASURES | {"adaptation", "log_density"}]
    after = [one.text for one in found if one.kind in ("adaptation", "log_density")]
    told = [*before, *(one.text for one in own), *after]
    return told or [one.text for one in found]  # or all draws are just within a bound


def warn(result: Result) -> None:
    """Issue one warning with all findings against the draws of a run, if there are any.

    A wrong gradient was warned of when the run began.
    """
    found = [one for one in result.warnings if one.status != "ok" and one.kind != "gradient"]
    if not found:
        return
    kind = ConvergenceWarning if {one.kind for one in found} <= TOO_SHORT else SamplingWarning
    text = found[0].text if len(found) == 1 else "\n".join(f"- {one.text}" for one in found)
    if len(found) > 1:
        text = f"{len(found)} findings:\n{text}"
    errors.warn(kind(text, result=result))


def verdict_of(
    state: RunState, found: list[Finding], table: Summary | None, evaluations: int = 0
) -> Verdict:
    """Return the verdict that follows from findings; `table` is the summary, if there is one."""
    reasons = tuple(found)
    rows = state.trace.rows
    few = rows < LEAST_DRAWS and not (state.chains >= FEWEST_CHAINS and rows >= FEWEST_ROWS)
    more = "Make more (result.resume(draws=...))."
    if isinstance(state.sampler, ImportanceWeighted):  # nearly independent
        few, more = rows * state.chains < FIRST_CHECK, "Allow more calls (budget=, draws=)."
    if few and status_of(reasons) == "ok":
        there = "is" if rows == 1 else "are"
        reasons += (Finding("short", f"There {there} {counted(rows, 'draw')} a chain: too few to "
                            f"see whether they are right. {more}"),)
    status = status_of(reasons)
    with np.errstate(all="ignore"):
        known = known_of(state, table) if status == "ok" else ""
    return Verdict(status, reasons, known, evaluations)


def known_of(state: RunState, table: Summary | None) -> str:
    """Return R-hat and the effective sample size of the worst coordinate as text."""
    if table is None:
        _, columns = Look(state).measured
    else:
        columns = table.columns
    r_hat, ess = columns["r_hat"], np.fmin(columns["ess_bulk"], columns["ess_tail"])
    size = "" if np.isnan(ess).all() else f"ESS at least {np.nanmin(ess):.0f}"
    if not np.isnan(r_hat).all():
        agree = f"The chains agree: R-hat is at most {np.nanmax(r_hat):.3f}"
        return f"{agree}, {size}." if size else f"{agree}."
    why = ": one chain alone" if state.chains == 1 else ""
    return f"R-hat is unknown{why}.{size and f' {size}.'}"


def convergence(summary: Summary) -> str:
    """Return the notes of a summary or, if there are none, R-hat and sample sizes as text."""
    notes = summary.notes or [one.text for one in of_columns(summary.labels, summary.columns)]
    if notes:
        return " ".join(notes)
    r_hat, ess = summary["r_hat"], np.fmin(summary["ess_bulk"], summary["ess_tail"])
    still = [label for label, sd in zip(summary.labels, summary["sd"], strict=True) if sd == 0]
    if still:
        return f"{still[0]} never changed: the chains are stuck, or it can have one value only."
    if np.isnan(r_hat).any():
        return "R-hat is unknown for some coordinates: more chains, or more draws, would tell."
    return f"The chains agree: R-hat is at most {r_hat.max():.3f}, ESS at least {ess.min():.0f}."


def rejected_points(result: Result) -> str:
    """Return the number of points without a density as text; empty if there are none."""
    words = {"outside": "outside the support (-inf)", "nan": "NaN", "failed": "failed",
             "gradient": "gradient not finite"}
    counts = {words[kind]: n.sum() for kind, n in result.rejected.items() if n.sum()}
    if not counts:
        return ""
    return ("Rejected without a density: "
            + ", ".join(f"{count} {kind}" for kind, count in counts.items()) + ".")
