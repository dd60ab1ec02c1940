"""Checks that a run is resumed with the target that it had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.joined import JoinedTarget
from fastkam._core.density.problem_target import ProblemTarget
from fastkam._core.density.target import Target as CompiledTarget
from fastkam.arguments import shown, told
from fastkam.interop.doors import opened
from fastkam.problem.described import Described
from fastkam.problem.given import problem_like
from fastkam.run.state import NOWHERE
from fastkam.samplers.importance import ImportanceWeighted

if TYPE_CHECKING:
    from fastkam.density.target import Target
    from fastkam.run.state import RunState

TARGET_TOLERANCE = 1e-8  # for log densities at points of a run, relative and absolute
OWN_TOLERANCE = 1e-4  # for those of the function of the run, perhaps in single precision
MOST_DRAWS, MOST_COORDINATES = 20_000, 4  # of which outermost draws are compared


def target_in(
    state: RunState, target: Any, surrogate: Any, vectorized: bool = False
) -> tuple[Any, Any]:
    """The target and the surrogate, as densities of the run's points; those of a Problem too.

    A function alone stands for a Problem without a prior, with the names and bounds of the run.
    """
    target = opened(target)
    if state.coordinates is not None and is_function(target) and not derives(state):
        target = problem_like(state.layout, state.coordinates, target, vectorized) or target
    if isinstance(target, Described):
        target = cast(Any, target)
        if state.coordinates is None or target.coordinates.header() != state.coordinates.header():
            raise ValueError(f"target {target!r} has other parameters or transforms than the run")
        if surrogate is not None and not isinstance(
                surrogate, (JoinedTarget, ProblemTarget)):
            surrogate = target.beside(surrogate)
        return target.target(gradient=state.sampler.needs_gradient), surrogate
    inner = target.owner if getattr(target, "surrogate", None) is not None else target
    if state.coordinates is not None and not isinstance(inner, (JoinedTarget, ProblemTarget)):
        raise ValueError(f"target must be the fastkam.Problem or the model of which the run was, "
                         f"not {shown(target)}: its prior, transforms, data and functions are not "
                         "in the file. Write fk.Problem(f, prior=..., ...) with the arguments that "
                         "sample had")
    return target, surrogate


def is_function(target: Any) -> bool:
    """Whether it is a function, and no form of a density of its own."""
    return callable(target) and not isinstance(target, (type, CompiledTarget))


def derives(state: RunState) -> bool:
    """Whether the run has recorded derived quantities."""
    records = state.trace.records
    return len(records.fields or {}) > records.n_extras


def check_noise_of(state: RunState, target: Target) -> None:
    """Refuse a target that takes more or less noise than that of the run."""
    for chain in state.states:
        k = chain["u"].shape[1] if "u" in chain else 0
        if k != target.n_aux:
            raise ValueError(f"target takes {target.n_aux} numbers of noise, but that of the run "
                             f"took {k}")


def check_density_of(state: RunState, target: Target) -> None:
    """Refuse a target whose log density at the states of the chains differs from the run's."""
    for k, chain in enumerate(state.states):
        if not np.isfinite(chain["logp_x"]):  # not begun
            continue
        x, kept = chain["x"] * state.scales, float(chain["logp_x"])
        try:
            found = density_at(target, x, chain["u"][0] if target.is_estimate else None)
        except Exception:  # if it recurs, the run reports it with the draws so far
            return
        if differs(found, kept):
            raise other_density(state, f"the point of chain {k}", found, kept, x)


def check_unchanged(state: RunState, target: Target) -> None:
    """Refuse the density that a result holds if it has changed at the point of the first chain.

    Values may differ by more than rounding: one point alone may be computed otherwise than many.
    """
    chain = state.states[0]
    x, kept = chain["x"] * state.scales, float(chain["logp_x"])
    if not np.isfinite(kept):  # not begun
        return
    try:
        found = density_at(target, x, chain["u"][0] if target.is_estimate else None)
    except Exception:  # if it recurs, the run reports it with the draws so far
        return
    if not abs(found - kept) <= OWN_TOLERANCE * max(1.0, abs(kept)):
        raise ValueError(
            "the density of the result must be that of the run, and has changed since, or is "
            f"random: at the point of chain 0 it returns {found!r}, and the run found {kept!r} "
            f"there {at(state, x)}")


def check_draws_of(state: RunState, target: Target) -> None:
    """Refuse a target whose log density at the outermost draws differs from the run's."""
    for x, kept in outermost(state, target):
        try:
            found = density_at(target, x, None)
        except Exception:
            return
        if differs(found, kept):
            raise other_density(state, "one of the draws", found, kept, x)


def check_own_density(state: RunState, target: Target) -> None:
    """Refuse the density that a result holds if it fails or has changed at one of the draws."""
    for x, kept in outermost(state, target):
        try:
            found, what = density_at(target, x, None), ""
        except Exception as error:
            found, what = np.nan, f" ({told(error)})"
        if differs(found, kept):
            raise ValueError(
                "target must be given: the density that the result holds has changed or fails. At "
                f"one of the draws it returns {found!r}{what}, and the run found {kept!r} there "
                f"{at(state, x)}")
        return  # one evaluation shows it


def outermost(
    state: RunState, target: Target
) -> Iterator[tuple[NDArray[np.float64], float]]:
    """The lowest and the highest draws of a few coordinates, and their log densities.

    There are none if the target is an estimate, or if the run kept no log densities of its own.
    """
    trace = state.trace
    if (target.is_estimate or trace.stat_names is None or not trace.rows or not state.states
            or isinstance(state.sampler, ImportanceWeighted)):
        return
    step = max(1, state.chains * trace.rows // MOST_DRAWS)
    draws = np.asarray(trace.x[:, : trace.rows : step]).reshape(-1, state.d)
    kept = np.asarray(trace.logp[:, : trace.rows : step]).reshape(-1)
    some = draws[:, np.linspace(0, state.d - 1, min(MOST_COORDINATES, state.d)).astype(int)]
    for i in sorted({*some.argmin(axis=0), *some.argmax(axis=0)}):
        yield draws[i], float(kept[i])


def other_density(
    state: RunState, where: str, found: float, kept: float, x: NDArray[np.float64]
) -> ValueError:
    """The error for a target that differs from the density of a run at a point x (d,)."""
    mend = "" if state.coordinates is None else (
        "; if that had a prior, give the fk.Problem with it")
    return ValueError(
        f"target must be the density of the run, not another one: at {where} it returns "
        f"{found!r}, and the run found {kept!r} there {at(state, x)}{mend}")


def at(state: RunState, z: NDArray[np.float64]) -> str:
    """Return a point (d,) as text, in the user's coordinates."""
    x = np.array2string(state.constrain(z[None])[0], threshold=8)
    if state.coordinates is None:
        return f"(x = {x})"
    return f"(x = {x}; the values include the Jacobians of the transforms)"


def other_in_workers(
    target: Target, evaluated: Iterable[tuple[NDArray[np.float64], float]]
) -> ValueError | None:
    """The error for workers whose log density at a point (d,) differs from that of this process.

    The first finite of the values that they have returned is compared; None if it is the same, or
    if this process cannot evaluate the density.
    """
    for x, kept in evaluated:
        if not np.isfinite(kept) or target.is_estimate:
            continue
        try:
            found = density_at(target, x, None)
        except Exception:
            return None
        return None if not differs(found, kept) else ValueError(
            f"the workers of executor evaluate another density than this process: at x = "
            f"{np.array2string(x, threshold=8)} it is {kept!r} there and {found!r} here. They have "
            "imported the module of the function, without what was changed in it afterwards: pass "
            "data by args=, kwargs= or functools.partial, or give a fastkam.TargetRecipe")
    return None


def density_at(target: Target, x: NDArray[np.float64], u: NDArray[np.float64] | None) -> float:
    """The log density at x (d,), or its estimate with the noise u."""
    return float(target.logp(x)) if u is None else target.estimate(x, u)


def differs(found: float, kept: float) -> bool:
    """Whether two log densities differ by more than rounding."""
    return not abs(found - kept) <= TARGET_TOLERANCE * max(1.0, abs(kept))


def with_values_of(state: RunState, target: Target) -> tuple[RunState, NDArray[np.float64]]:
    """The run with the values of `target` at the states of its chains, and the differences.

    With the old values the first decisions would compare two densities; if the old values were
    larger, the chains might never move. Unfinished steps are begun again. If the differences are
    only rounding, the run is returned unchanged. ValueError if the new density is 0 at a state.
    """
    begun = [chain for chain in state.states if np.isfinite(chain["logp_x"])]
    moved = [at_new_values(chain, state, target) for chain in begun]
    pairs = [(float(new["logp_x"]), float(old["logp_x"]))
             for new, old in zip(moved, begun, strict=True)]
    for k, (found, _) in enumerate(pairs):
        if not np.isfinite(found):
            raise ValueError(f"target must have a density where the run goes on, and returns "
                             f"{found!r} at the point of chain {k}")
    if not any(differs(*pair) for pair in pairs):
        return state, np.zeros(len(pairs))
    states = iter(moved)
    return (replace(state, unvisited=NOWHERE,
                    states=[next(states) if np.isfinite(chain["logp_x"]) else chain
                            for chain in state.states]),
            np.array([found - kept for found, kept in pairs]))


def at_new_values(chain: dict[str, Any], state: RunState, target: Target) -> dict[str, Any]:
    """The state of a chain with the values of `target` at its points and those of its replicas."""
    new = {name: np.array(value) for name, value in chain.items()}
    d, decided, first = state.d, not chain["pending"], 0
    evaluate(new, "", "logp_x", "grad_x", new["u"][0] if "u" in new else None, state, target)
    for name in [name for name in chain if name.endswith(".log_pi_x")]:
        rung = name.removesuffix("log_pi_x")
        if decided and new[rung + "accepted"]:  # the replica has yet to move there
            new[rung + "x"] = new["y"][first * d : (first + 1) * d].copy()
            new[rung + "log_ref_x"] = new[rung + "log_ref_y"]
            if "u" in new and first:
                new["u"][first] = new["v"][first]
        u = new["u"][first] if "u" in new else None
        evaluate(new, rung, "log_pi_x", "grad_pi_x", u, state, target)
        new[rung + "accepted"], new[rung + "waits"] = np.array(0), np.array(0)
        first += len(new[rung + "logps"])
    for name in new:
        if name.endswith("log_s_x"):  # values of a surrogate, which is evaluated again
            new[name] = np.array(np.nan)
    if not decided:
        new["pending"], new["accepted"] = np.array(0), np.array(0)
    return new


def evaluate(
    new: dict[str, Any], prefix: str, density: str, gradient: str,
    u: NDArray[np.float64] | None, state: RunState, target: Target,
) -> None:
    """Set the log density at the x of a state, and its gradient where the sampler needs one."""
    x = new[prefix + "x"] * state.scales
    if prefix + gradient in new and state.sampler.needs_gradient:
        value, slope = target.logp_grad(x)
        new[prefix + gradient] = slope * state.scales
    else:
        value = density_at(target, x, u)
    new[prefix + density] = np.array(value)
