"""Run a sampler and its reference on the same random numbers, and say where they part.

Where the covariance of a proposal depends on x, a step x + L(x) e expands differences: the map is
chaotic, and rounding of 1e-16 grows to 1e-10 within some 200 steps. So the samplers whose reference
says `lockstep` are compared point by point: each point looked at is compared, to the full
tolerance, and then taken over; what the reference learns and remembers stays its own to the end.
"""

import numpy as np

import fastkam as fk
from fastkam.schedules import Finite
from reference import REFERENCES
from reference.chain import Calendar

TOLERANCE = 1e-10
FIVE = np.linalg.inv(0.6 ** np.abs(np.subtract.outer(range(5), range(5))) * np.arange(1, 6))
SCALES = np.linspace(0.5, 2.0, 12)


def correlated(x):
    return -0.5 * (x[0] ** 2 - 1.2 * x[0] * x[1] + x[1] ** 2) / 0.64


def five(x):
    return -0.5 * x @ FIVE @ x


def twelve(x):
    return -0.5 * (x / SCALES) @ (x / SCALES) - 0.1 * x[0] * x[1]


def modes(x):
    """1/2 N((-8, 0), I/2) + 1/2 N((8, 0), 2 I)"""
    left = -((x[0] + 8) ** 2 + x[1] ** 2) + np.log(2)
    right = -((x[0] - 8) ** 2 + x[1] ** 2) / 4 - np.log(2)
    return np.logaddexp(left, right)


def holes(x):
    if x[0] > 1.5:
        return -np.inf
    return np.nan if x[1] > 1.5 else correlated(x)


TARGETS = {"correlated": (correlated, 2), "five": (five, 5), "modes": (modes, 2),
           "holes": (holes, 2), "twelve": (twelve, 12)}


def grad_correlated(x):
    return -np.array([x[0] - 0.6 * x[1], x[1] - 0.6 * x[0]]) / 0.64


def grad_five(x):
    return -0.5 * (FIVE + FIVE.T) @ x


def grad_twelve(x):
    return -x / SCALES**2 - 0.1 * np.r_[x[1], x[0], np.zeros(10)]


def grad_modes(x):
    left, right = x - [-8, 0], x - [8, 0]
    p = np.exp(-left @ left + np.log(2) - modes(x))
    return -2 * p * left - 0.5 * (1 - p) * right


GRADIENTS = {"correlated": grad_correlated, "five": grad_five, "modes": grad_modes,
             "holes": grad_correlated, "twelve": grad_twelve}


def compare(name, sampler, target, **options):
    """Assert that sampler and reference agree to the end."""
    found = disagreement(REFERENCES[name], sampler, target, **options)
    assert found is None, found


def disagreement(reference, sampler, target, *, tune, draws, thin=1, schedule=None, seed=1):
    """The first thing in which they differ by more than TOLERANCE, as text; None if there is none.

    Relative to numbers of size 1 or more, absolute below. Proposals, states, log densities,
    acceptance probabilities, decisions, the sampler's own statistics, and its state at the end.
    """
    (logp, d), grad = TARGETS[target], GRADIENTS[target]
    x0, schedule = np.full(d, 0.3), schedule or Finite()
    trace, warmup, state, points = run(logp, grad, x0, sampler=sampler, tune=tune, draws=draws,
                                       thin=thin, schedule=schedule, seed=seed)
    given = None
    if reference.lockstep:      # every step of it, thinned or not
        parts = run(logp, grad, x0, sampler=sampler, tune=tune, draws=draws * thin,
                    schedule=schedule, seed=seed) if thin > 1 else (trace, warmup)
        given = {name: np.r_[parts[1][name], parts[0][name]] for name in trace}
    other = reference(sampler, x0)
    calendar = Calendar(schedule.gain or sampler.default_gain(d), schedule.start, schedule.rarity)
    rows = other.run(
        logp, x0, int(state["t"]), generator(seed), calendar,
        stop=tune if isinstance(schedule, Finite) else np.inf,
        points=points if reference.lockstep else None, grad=grad,
        given=given,
    )
    if found := differ(points, rows.pop("y")):
        return f"evaluation {found[0]}: y differs by {found[1]}"
    t = np.arange(1, len(rows["x"]) + 1)
    kept = rows.pop("keep") & (t % thin == 0)
    for phase, ours, part in (("warm-up", warmup, t <= tune), ("draw", trace, t > tune)):
        for name, values in rows.items():
            if found := differ(ours[NAMES.get(name, name)], values[kept & part]):
                return f"{phase} {found[0]}: {name} differs by {found[1]}"
    for name, theirs in other.fields().items():
        if found := differ(field(name, state), theirs):
            return f"at the end: {name} differs by {found[1]} at {found[0]}"
    return None


def generator(seed, chain=0, chains=1):
    """The generator of one chain."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed).spawn(chains)[chain]))


def run(logp, grad, x0, **options):
    """(draws, warm-up, state, points looked at) of one chain."""
    points = []

    def recording(x):
        points.append(x.copy())
        return logp(x), grad(x)

    result = fk.sample(recording, x0, chains=1, progress=False, check_gradient=False, **options)
    phases = [{"x": part.draws[0]} | {name: v[0] for name, v in part.stats.items()}
              for part in (result, result.warmup)]
    return *phases, result.states[0], np.array(points[1:])      # the first is x0


NAMES = {"logp": "lp", "alpha": "acceptance_rate"}


def differ(ours, theirs):
    """(row, by how much) of the first difference, or None."""
    if isinstance(theirs, list):
        found = (differ(a, b) for a, b in zip(ours, theirs, strict=True))
        return next((f for f in found if f), None)
    ours, theirs = np.atleast_1d(ours).astype(float), np.atleast_1d(theirs).astype(float)
    if ours.shape != theirs.shape:
        return "shape", f"{ours.shape} against {theirs.shape}"
    with np.errstate(invalid="ignore"):     # inf - inf
        off = np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))
    wrong = ~((off <= TOLERANCE) | (ours == theirs))     # a NaN is wrong
    if not wrong.any():
        return None
    row = int(np.argwhere(wrong)[0][0])
    return row, np.max(off[row])


def field(name, state):
    """A field of the compiled kernel, in the form in which the reference has it."""
    *within, name = name.split(".")      # of a kernel within the kernel
    state = {field.removeprefix(".".join(["kernel", *within, ""])): value
             for field, value in state.items()}
    value = state[name]
    if name == "z":
        return points(value, state["n"])
    if name in ("history", "order"):
        return value[: state["kept"]]
    if name.startswith("bank_"):
        value = value[: min(state["banked"], len(value))]
        if name == "bank_z":
            return [points(*b) for b in zip(value, state["bank_n"], strict=False)]
        return value.transpose(0, 2, 1) if name == "bank_C" else value
    return value


def points(blocks, n):
    """(n, d) from blocks of 8 points."""
    return blocks.transpose(0, 2, 1).reshape(-1, blocks.shape[1])[:n]
