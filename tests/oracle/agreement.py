"""Run a sampler and its reference in one engine from one seed, and find where they differ.

Where the covariance of a proposal depends on x, a step x + L(x) e expands differences: the map is
chaotic, and rounding of 1e-16 grows to 1e-10 within some 200 steps. So the samplers whose reference
says `lockstep` are compared point by point: each point looked at is compared, to the full
tolerance, and then taken over; what the reference learns and remembers stays its own to the end.
"""

import numpy as np
from runs import sample

import fastkam as fk
from fastkam.schedules import Finite
from reference import REFERENCES

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


def stairs(x):
    """Steps of 350, up to the left: ratios of densities that a double cannot hold."""
    return correlated(x) - 350 * np.clip(np.floor(2 * x[0]), -6, 6)


TARGETS = {"correlated": (correlated, 2), "five": (five, 5), "modes": (modes, 2),
           "holes": (holes, 2), "stairs": (stairs, 2), "twelve": (twelve, 12)}


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
             "holes": grad_correlated, "stairs": grad_correlated, "twelve": grad_twelve}


class Watch:
    """Records the evaluations of a reference, and values to take from a sampler's run.

    Parameters
    ----------
    points : list of ndarray, optional
        The points that each chain of the sampler has looked at: they replace the reference's.
    stats : dict of ndarray, optional
        The statistics of each of its steps.
    """

    def __init__(self, chains=1, points=None, stats=None):
        self.K, self.points, self.stats, self.started = chains, points, stats, []

    @property
    def chains(self):
        """The chains of the run; others have been started before to check their parameters."""
        return self.started[-self.K:]

    def replaced(self, chain, y):
        """The point to be evaluated in place of y."""
        chain.looked.append(np.array(y))
        if self.points is None:
            return y
        k, n = next(k for k, one in enumerate(self.chains) if one is chain), len(chain.looked)
        return self.points[k][n - 1] if n <= len(self.points[k]) else y


def watched(reference, watch, **attributes):
    """The reference whose points are watched and, in lockstep, replaced."""
    def start(self, x0):
        super(cls, self).start(x0)
        self.looked = []
        watch.started.append(self)

    def taken(self, name, own):
        return own if watch.stats is None else watch.stats[name][self.t]

    def propose(self, x, rng):
        return watch.replaced(self, super(cls, self).propose(x, rng))

    def step(self, x, rng):
        going, found = super(cls, self).step(x, rng), None
        while True:
            try:
                asked = going.send(found)
            except StopIteration as stop:
                return stop.value
            if np.ndim(asked) == 1:
                found = yield watch.replaced(self, asked)
            else:
                found = yield [watch.replaced(self, y) for y in asked]

    several = reference.step is not fk.PythonSampler.step
    moves = {"step": step} if several else {"propose": propose}
    cls = type(reference.__name__, (reference,),
               {"start": start, "taken": taken} | moves | attributes)
    return cls


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
    options = {"x0": np.full(d, 0.3), "tune": tune, "draws": draws, "thin": thin, "seed": seed,
               "schedule": schedule or Finite()}
    result, points = run(logp, grad, sampler=sampler, **options)
    watch = Watch()
    if reference.lockstep:
        every, _ = run(logp, grad, sampler=sampler, **options | {
            "thin": 1, "draws": draws * thin}) if thin > 1 else (result, points)
        stats = {name: np.r_[every.warmup.stats[name][0], every.stats[name][0]]
                 for name in every.stats}
        watch = Watch(points=[points], stats=stats)
    other, _ = run(logp, grad, sampler=watched(reference, watch)(s=sampler), **options)
    (chain,) = watch.chains
    if found := differ(points, np.array(chain.looked)):
        return f"evaluation {found[0]}: y differs by {found[1]}"
    for phase, ours, theirs in (("warm-up", result.warmup, other.warmup),
                                ("draw", result, other)):
        if found := differ(ours.draws[0], theirs.draws[0]):
            return f"{phase} {found[0]}: x differs by {found[1]}"
        assert ours.stats.keys() == theirs.stats.keys()
        for name, values in theirs.stats.items():
            if found := differ(ours.stats[name][0], values[0]):
                return f"{phase} {found[0]}: {name} differs by {found[1]}"
    return fields_differ(chain, result.states[0])


def fields_differ(chain, state):
    """The first field at the end that differs from the compiled sampler's, as text; or None."""
    for name, theirs in chain.fields().items():
        if found := differ(field(name, state), theirs):
            return f"at the end: {name} differs by {found[1]} at {found[0]}"
    return None


def run(logp, grad, x0, chains=1, **options):
    """(result, points looked at) of a run."""
    points = []

    def recording(x):
        points.append(x.copy())
        return logp(x), grad(x)

    result = sample(recording, x0, chains=chains, progress=False, diagnose=False,
                    check_gradient=False, **options)
    return result, np.array(points[chains:])        # the first are x0


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
            return [rows[:n] for rows, n in zip(value, state["bank_n"], strict=False)]
        return value.transpose(0, 2, 1) if name == "bank_C" else value
    return value


def points(blocks, n):
    """(n, d) from blocks of 8 points."""
    return blocks.transpose(0, 2, 1).reshape(-1, blocks.shape[1])[:n]
