"""Small runs of every kind, as files, and the densities with which they go on."""

import os

import numpy as np
import scipy.stats

import fastkam as fk
from fastkam.run.state import BIT_GENERATORS
from fastkam.samplers import SAMPLERS, Field, Proposal

D, TUNE, DRAWS, SEED = 2, 40, 24, 3
MOST_CALLS = 20_000  # of a density that goes on for a few steps
WEIGHTED = "weighted"
DIES = "dies"  # a case that ends the process, to see that it is noticed


class Stop(ValueError):
    """Exception of a density that stops a run within a step; a search ignores it."""


class TooManyCalls(BaseException):
    """A run that does not end."""


class Density:
    """log N(0, I) with its gradient; it raises at one evaluation, or after too many."""

    most = MOST_CALLS

    def __init__(self, stopped_at=None):
        self.calls, self.stopped_at = 0, stopped_at

    def __call__(self, x, *noise):
        self.calls += 1
        if self.calls == self.stopped_at:
            raise Stop
        if self.calls > self.most:
            raise TooManyCalls
        return self.value(np.asarray(x), *noise)

    def value(self, x):
        return -0.5 * float(x @ x), -x


class Plain(Density):
    """The same without its gradient."""

    def value(self, x):
        return -0.5 * float(x @ x)


class Estimate(Density):
    """The same with noise."""

    def value(self, x, u):
        return -0.5 * float(x @ x) + 0.1 * float(u.sum())


class WithExtras(Density):
    """The same with an array beside it."""

    def value(self, x):
        return -0.5 * float(x @ x), {"twice": 2 * x, "left": bool(x[0] < 0)}


class Bounded(Density):
    """A likelihood of named parameters."""

    def __call__(self, s, w):
        return super().__call__(np.append(w, s))

    def value(self, x):
        return -0.5 * float(x @ x)


class Funnel(Density):
    """x_0 ~ N(0, 9), x_1 ~ N(0, exp x_0): the search before a run makes many calls."""

    most = 40 * MOST_CALLS

    def value(self, x):
        return -x[0] * x[0] / 18 - 0.5 * x[0] - 0.5 * float(np.exp(-x[0])) * x[1] * x[1]


class Walk(fk.PythonSampler):
    """A random walk with a field of each type."""

    FIELDS = {"log_s": Field("log of the scale", shared=True, learned=True, stat="log_s"),
              "n": Field("steps", dtype="i8", least=0), "last": Field("last e", finite=True)}

    def start(self, x0):
        self.log_s, self.n, self.last = 0.0, 0, np.zeros(self.d)

    def propose(self, x, rng):
        self.last = rng.standard_normal(self.d)
        self.n += 1
        return x + np.exp(self.log_s) * self.last


class TwoTries(fk.PythonSampler):
    """Two evaluations a step, the first for nothing."""

    def step(self, x, rng):
        yield x + rng.standard_normal(self.d)
        return Proposal((yield x + rng.standard_normal(self.d)))


def targets(name):
    """A function that makes the density of a run, given where it stops."""
    def problem(stopped_at=None):
        return fk.Problem(Bounded(stopped_at), prior={
            "s": scipy.stats.gamma(2.0), "w": scipy.stats.dirichlet([1.0, 2.0, 3.0])})

    def estimate(stopped_at=None):
        return fk.Target.from_estimator(Estimate(stopped_at), D, 3)

    def others(kind):
        return lambda stopped_at=None: kind(stopped_at)

    gradient = SAMPLERS[name]().needs_gradient if name in SAMPLERS else False
    return {"problem": problem, "noisy": estimate, "noisy pt": estimate,
            "extras": others(WithExtras), "funnel": others(Funnel)}.get(
                name, others(Density if gradient else Plain))


def short(name):
    """The sampler of that name, small."""
    cls = SAMPLERS[name]
    given = {"cycle": 20, "subsample": 12, "history_size": 40, "max_tree_depth": 5, "bank_size": 10}
    fields = {f.name for f in cls.__dataclass_fields__.values() if f.init}
    return cls(**{one: value for one, value in given.items() if one in fields})


def surrogate(x):
    return -0.4 * float(x @ x)


PT = fk.ParallelTempering
CASES = {name: {"sampler": short(name)} for name in SAMPLERS} | {
    f"ram {bits}": {"bit_generator": bits} for bits in BIT_GENERATORS if bits != "PCG64"} | {
    "jumps around pt": {"sampler": fk.ModeJumping(
        sampler=PT(n_replicas=3, sampler="ram"), means=[[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]])},
    "pt around kam": {"sampler": PT(n_replicas=3, sampler=short("kam"))},
    "behind a surrogate": {"sampler": "kam", "surrogate": surrogate},
    "shared": {"sampler": short("kam"), "share": True},
    "thinned": {"thin": 3, "keep_warmup": False},
    "no statistics": {"keep_stats": False},
    "named": {"shapes": {"a": (), "b": 1}, "dims": {"b": "city"}, "coords": {"city": ["Bern"]}},
    "perpetual": {"schedule": "rare"},
    "problem": {}, "noisy": {}, "noisy pt": {"sampler": PT(n_replicas=3, sampler="ram")},
    "extras": {},
    "python": {"sampler": Walk()}, "python steps": {"sampler": TwoTries()},
    "pt around python": {"sampler": PT(n_replicas=3, sampler=TwoTries())},
    "searched": {"sampler": fk.NUTS(max_tree_depth=4, metric="dense"), "search": True},
    "funnel": {"sampler": "auto", "search": True},
    "given mixture": {"sampler": fk.ModeJumping(
        means=[[0.0, 0.0], [1.0, 1.0]], covs=[np.eye(2), [[1.0, 0.5], [0.5, 2.0]]],
        weights=[1.0, 3.0], n_states=20, max_components=3)},
    WEIGHTED: {"sampler": "auto", "search": True, "tune": None, "surrogate": "learn",
               "budget": 250},
}
GRADIENT = {"searched"}


def target_of(case, stopped_at=None):
    """The density of a case."""
    if case in GRADIENT:
        return Density(stopped_at)
    return targets(case)(stopped_at)


def make(case, path, stopped_at=None):
    """Write the file of a run, complete or stopped at one evaluation; whether it was stopped."""
    options = {"sampler": "ram", "search": False, "tune": TUNE, "draws": DRAWS, "chains": 2,
               "seed": SEED, "progress": False, "diagnose": False, "check_gradient": False,
               "threads": 1}  # a trial of threads would count as calls, on a slow machine
    start = None if case == "problem" else np.ones(D)
    try:
        result = fk.sample(target_of(case, stopped_at), start, **options | CASES[case])
    except fk.SamplingError as error:
        error.result.save(path)
        return True
    result.save(path)
    return False


def go_on(case, path):
    """Read a file, look at all of it, and go on for a few steps."""
    if case == DIES:
        os.abort()
    CASES[case]  # there is one
    result = fk.load(path)
    assert result.draws.shape[0] == result.chains
    for part in (result.stats, result.extras, result.adaptation, result.rejected,
                 result.offending):
        assert isinstance(part, dict)
    assert len(repr(result))
    assert result.state.layout.labels
    if case == WEIGHTED and result.log_weights is not None:
        look_at(result)
        return
    more = {"surrogate": surrogate} if case == "behind a surrogate" else {}
    options = {"progress": False, "diagnose": False, "check_target": False, **more}
    fk.resume(path, int(result.trace.counts.max() - result.trace.counts.min()) + 5,
              target=target_of(case), **options)
    fk.resume(path, target=target_of(case), stop=fk.stop.Evaluations(5), **options)


def look_at(result):
    """Use weighted draws in every way that a file with them allows; they cannot be resumed."""
    assert result.weights.shape == result.draws.shape[:2]
    for found in (result.summary(), result.warnings, result.verdict()):
        assert isinstance(str(found), str)
    if result.trace.rows >= 20:
        assert isinstance(str(result.log_evidence()), str)
    if result.draws.shape[1] >= 3 and (result.weights > 0).any():
        assert result.resample(3, seed=1).draws.shape[1] == 3
