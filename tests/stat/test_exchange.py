"""Couplings leave the joint distribution of their rungs invariant; their log Z and rates are right.

False-alarm rates are 1e-4 a test (Bonferroni over features); seeds are fixed.
"""

import itertools
from bisect import bisect

import numpy as np
import pytest
import runs
from rungs import at_rungs
from twins import TWINS, caught_by

import fastkam as fk
from fastkam._core.density.python_target import PythonTarget
from fastkam._core.engine.chain import ChainState
from fastkam._core.engine.group import Group
from fastkam.samplers import SAMPLERS
from fastkam.schedules import Finite
from fastkam.testing import compare, learned_state

FALSE_ALARM = 1e-4
MODES = fk.targets.GaussianMixture([[-2.0], [2.0]], covs=[0.3, 1.0], weights=[0.3, 0.7])
GRID = np.linspace(-40, 40, 400_001)
HALF = 1e-4     # of the distance of its points


class Steps(PythonTarget):
    """A density on a line that is constant between edges: log pi is `heights`, outside -inf.

    The edges are halfway between points of the grid.
    """

    def __init__(self, edges, heights):
        self.edges, self.heights = [edge + HALF for edge in edges], [-np.inf, *heights, -np.inf]
        super().__init__(self.logp_grad, 1, vectorized=False, gradient=True)

    def logp_grad(self, x):
        """log pi and its gradient at x (1,)."""
        return self.heights[bisect(self.edges, x[0])], np.zeros(1)

    def logp(self, x):
        """log pi at each row of x (n, 1)."""
        return np.array(self.heights)[np.searchsorted(self.edges, x[:, 0])]

    def sample(self, n, seed):
        return draws(self.logp(GRID[:, None]), n, np.random.default_rng(seed))[:, None]


BOX = Steps([-1, 1], [0.0])
PLATEAUS = Steps([-2, 0, 1, 3], [0.0, 1.5, 0.7])


def draws(density, n, rng):
    """Draws (n,) from an unnormalized log density on the grid, constant about each point."""
    p = np.exp(density - density.max())
    at = np.searchsorted(np.cumsum(p) / p.sum(), rng.random(n))
    return GRID[at] + rng.uniform(-HALF, HALF, n)


def log_q(x, reference):
    """Return the log density of the reference (mean, variance); 0 where it is flat."""
    if reference is None:
        return 0 * x
    mean, variance = reference
    return -0.5 * ((x - mean) ** 2 / variance + np.log(2 * np.pi * variance))


def tempering_of(sampler):
    """Return the tempering, which mode jumping may be around."""
    inner = getattr(sampler, "sampler", None)
    return inner if isinstance(inner, fk.ParallelTempering) else sampler


class Rungs:
    """A coupling, to be put at exact states of all rungs."""

    def __init__(self, sampler, target, *, tune, seed, plan=(1.0, 0.0, 0.0, 1.0, 0, 0, 0.0)):
        given = getattr(tempering_of(sampler), "reference", "flat")
        self.target, self.seed = target, seed
        self.reference = None if isinstance(given, str) else (given[0][0], given[1])
        self.kernel = sampler.build(np.zeros(1))
        self.within = "inner." if isinstance(sampler, fk.ModeJumping) else ""
        self.exchange = self.kernel.parts()["inner"] if self.within else self.kernel
        self.first = (learned_state(sampler, target, tune, seed=seed) if tune
                      else self.kernel.state())
        self.chain = ChainState(self.kernel, np.random.PCG64(seed), np.zeros(1))
        self.group = Group(target.bind(), [self.chain], plan)
        replicas = self.exchange.replicas.members
        rows = np.cumsum([0] + [replica.kernel.width for replica in replicas])
        y = self.chain.views()["y"]
        self.known = [replica.views() | {"y": y[row:row + 1]}
                      for replica, row in zip(replicas, rows, strict=False)]

    def exact(self, n):
        """Draws (n, rungs) from the joint distribution."""
        rng, logp = np.random.default_rng(self.seed), self.target.logp(GRID[:, None])
        q = log_q(GRID, self.reference)
        with np.errstate(invalid="ignore"):
            return np.array([draws(np.where(logp == -np.inf, -np.inf, b * logp) + (1 - b) * q, n,
                                   rng) if b else draws(q, n, rng)
                             for b in np.asarray(self.exchange.ladder)]).T

    def place(self, xs):
        """Put the rungs at xs (rungs,), as new chains."""
        found = [self.target.logp_grad(x) for x in xs[:, None]]
        self.kernel.restore(at_rungs(
            self.first, xs[:, None], [logp for logp, _ in found], log_q(xs, self.reference),
            [grad for _, grad in found], self.within))
        self.chain.place(xs[:1])
        self.group.start()

    def states(self):
        """Return the state (rungs,) after a step; those of the others are moved by the next one."""
        others = [known["y"][0] if known["accepted"] else known["x"][0] for known in self.known[1:]]
        return np.array([self.chain.position[0], *others])


def found(sampler, steps, replicates, seed, target=MODES, tune=300):
    """Whether the joint distribution of all rungs changes in some steps from exact states."""
    rungs = Rungs(sampler, target, tune=tune, seed=seed)
    before = rungs.exact(replicates)
    after = np.empty_like(before)
    for i, xs in enumerate(before):
        rungs.place(xs)
        rungs.group.run(steps + i % 2)     # so that both halves of the even-odd scheme come first
        after[i] = rungs.states()
    return compare(before, after, seed=seed)


FLAT = {"n_replicas": 3, "betas": [1.0, 0.5, 0.2], "reference": "flat"}
GAUSSIAN = FLAT | {"reference": ([0.5], 9.0)}
PRIOR = GAUSSIAN | {"betas": [1.0, 0.3, 0.0]}
KAM = fk.KernelAdaptiveMetropolis(subsample=20, history_size=100)
MIXTURE = {"means": [[-1.5], [1.0]], "covs": [0.5, 2.0], "fit": False}
COUPLINGS = [
    fk.ParallelTempering(**FLAT),
    fk.ParallelTempering(scheme="random", sampler="rwm", **FLAT),
    fk.ParallelTempering(**PRIOR),
    fk.ParallelTempering(sampler=KAM, **GAUSSIAN),
    fk.Scout(beta=0.3, swap_interval=2),
    fk.Scout(main=KAM, beta=0.3, swap_interval=1),
    *(fk.ModeJumping(sampler=fk.ParallelTempering(**options), jump_probability=0.6, **MIXTURE)
      for options in (FLAT, GAUSSIAN)),
    fk.ModeJumping(sampler=fk.ParallelTempering(
        sampler=fk.HMC(n_steps=2, metric="fixed", step_size=0.8), **GAUSSIAN),
        jump_probability=0.4, **MIXTURE),
]


@pytest.mark.parametrize("sampler", COUPLINGS, ids=lambda s: f"{type(s).__name__}")
def test_couplings_are_invariant(sampler):
    result = found(sampler, 4, 30_000, seed=1)
    assert result.p_value > FALSE_ALARM, result


# ---- kernels of several evaluations a step: the point that they take is not the last one ----

SEVERAL = {"nuts": {"max_tree_depth": 4}, "hmc": {"n_steps": 3}, "automala": {}, "autorwm": {},
           "gadmala": {"exact": True}, "dram": {}}
DENSITIES = {"modes": MODES, "box": BOX, "plateaus": PLATEAUS}


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")     # of a gradient that is 0
@pytest.mark.parametrize("target", DENSITIES)
@pytest.mark.parametrize("name", SEVERAL)
def test_kernels_of_several_evaluations(name, target):
    sampler = fk.ParallelTempering(sampler=SAMPLERS[name](**SEVERAL[name]), **GAUSSIAN)
    result = found(sampler, 4, 10_000, seed=7, target=DENSITIES[target])
    assert result.p_value > FALSE_ALARM, result


TILTED = FLAT | {"reference": ([0.5], 0.2)}


def share_above_half(sampler, replicates=20_000):
    """z of the share of x > 0.5 at the coldest rung: a quarter of U(-1, 1), from exact states."""
    rungs = Rungs(sampler, BOX, tune=300, seed=9)
    above = 0
    for xs in rungs.exact(replicates):
        rungs.place(xs)
        rungs.group.run(4)
        above += rungs.states()[0] > 0.5
    return (above - replicates / 4) / np.sqrt(replicates * 3 / 16)


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")     # of a gradient that is 0
@pytest.mark.parametrize("name", SEVERAL)
def test_draws_on_a_plateau_are_uniform(name):
    """Log densities that are equal do not tell which point a kernel has taken: |z| < 4, 6e-5."""
    sampler = fk.ParallelTempering(sampler=SAMPLERS[name](**SEVERAL[name]), **TILTED)
    assert abs(share_above_half(sampler)) < 4


def test_a_planted_mistake_on_a_plateau_is_detected(twins):
    sampler = fk.ParallelTempering(sampler=twins.sampler("half_recalled")(), **TILTED)
    assert abs(share_above_half(sampler)) > 4


def error(found, right):
    """Return the size of differences of log densities, which may both be -inf."""
    return 0.0 if found == right else abs(found - right) / max(1.0, abs(right))


def discrepancy(sampler, target, steps=400):
    """The largest error of the densities and gradients kept at the state of any rung, by size.

    Over half of the steps it adapts, and so does a reference that is fitted.
    """
    gain = sampler.default_gain(1)
    rungs = Rungs(sampler, target, tune=0, seed=8,
                  plan=Finite(gain=gain).compiled(sampler, 1, steps // 2))
    reference, worst, accepted = rungs.exchange.reference.views(), 0.0, 0
    rungs.chain.place([0.3])
    rungs.group.start()
    for _ in range(steps):
        rungs.group.run(1)
        of = None
        if rungs.exchange.reference.proper:
            of = reference["mean"][0], reference["L"][0, 0] ** 2
        for known in rungs.known:
            for at in "xy" if known["accepted"] else "x":
                logp, grad = target.logp_grad(known[at])
                worst = max(worst, error(known[f"log_pi_{at}"], logp),
                            error(known[f"log_ref_{at}"], log_q(known[at][0], of)))
                if at == "x" and rungs.kernel.gradient:
                    worst = max(worst, abs(known["grad_pi_x"] - grad)[0])
            accepted += int(known["accepted"])
    assert accepted > steps / 10
    return worst


@pytest.mark.parametrize("reference", ["fitted", ([0.5], 9.0)], ids=["fitted", "given"])
@pytest.mark.parametrize("target", DENSITIES)
@pytest.mark.parametrize("name", SEVERAL)
def test_a_replica_keeps_the_densities_of_its_state(name, target, reference):
    """No false alarms: after each step, log pi, log q and gradient are those at the state."""
    sampler = fk.ParallelTempering(sampler=SAMPLERS[name](**SEVERAL[name]), n_replicas=3,
                                   reference=reference)
    assert discrepancy(sampler, DENSITIES[target]) < 1e-12


# ---- with one mistake ----

def coupling(cls, name, **options):
    """Return a spoilt coupling of rungs close to each other; `sampler` moves all."""
    if name == "pt":
        return cls(**FLAT | options)
    moved = {"main": options["sampler"], "scout": options["sampler"]} if options else {}
    return cls(beta=0.6, swap_interval=1, **moved)


NARROW = FLAT | {"reference": ([0.5], 1.0)}
SLOW = fk.RandomWalk(proposal_cov=0.01)      # a copied state is still there at the next swaps
MISTAKES = {
    "swap_copies": lambda cls, name: found(coupling(cls, name, sampler=SLOW), 12, 15_000, seed=2),
    "stale_reference": lambda cls, name: found(cls(**NARROW), 4, 15_000, seed=2),
    "half_recalled": lambda cls, name: found(
        fk.ParallelTempering(sampler=cls(), **GAUSSIAN), 4, 20_000, seed=7),
    "swaps_unannounced": lambda cls, name: found(coupling(cls, name, sampler=KAM), 12, 30_000,
                                                 seed=2),
}


def swaps(cls, name):
    return found(coupling(cls, name), 4, 15_000, seed=2)


@pytest.mark.parametrize(("twin", "name"), caught_by("exchange"))
def test_a_planted_mistake_is_detected(twins, twin, name):
    result = MISTAKES.get(twin, swaps)(twins.sampler(twin, name), name)
    assert result.p_value < FALSE_ALARM, (TWINS[twin].mistake, result)


@pytest.mark.parametrize("twin", [twin for twin in MISTAKES if twin != "half_recalled"])
def test_without_a_mistake_nothing_is_detected(twin):
    result = MISTAKES[twin](fk.ParallelTempering, "pt")
    assert result.p_value > FALSE_ALARM, result


@pytest.mark.parametrize("target", DENSITIES)
def test_a_point_restored_without_its_densities_is_detected(twins, target):
    sampler = fk.ParallelTempering(sampler=twins.sampler("half_recalled")(), n_replicas=3)
    assert discrepancy(sampler, DENSITIES[target]) > 0.1


@pytest.mark.parametrize("target", [
    fk.targets.two_mode(), fk.targets.TARGETS["basis_vectors"](),
    fk.targets.TARGETS["banana_bunch"]()], ids=["two modes", "basis vectors", "bunch"])
def test_log_z(target):
    """log Z is 0 for normalized densities, within 4 of its errors, which are below 0.05."""
    result = runs.sample(target, np.zeros(target.dim), sampler=fk.ParallelTempering(n_replicas=10),
                       draws=50_000, tune=20_000, chains=4, seed=3, keep_warmup=False)
    report = fk.tempering(result)
    assert report.log_z_error < 0.05, report
    assert abs(report.log_z) < 4 * report.log_z_error, report
    assert abs(report.log_z_thermodynamic) < 4 * report.log_z_thermodynamic_error, report


def test_swap_rates_of_gaussians():
    """Rates of N(0, I / beta) are means of min(1, exp((a - b)(|x_a|^2 - |x_b|^2) / 2))."""
    d, ladder = 3, [1.0, 0.4, 0.15]
    gaussian = fk.as_target(lambda x: -0.5 * x @ x, d)
    result = runs.sample(gaussian, np.zeros(d), sampler=fk.ParallelTempering(
        n_replicas=3, betas=ladder, reference="flat"), draws=4000, tune=1000, seed=4)
    rng = np.random.default_rng(5)
    for i, (a, b) in enumerate(itertools.pairwise(ladder)):
        x_a, x_b = rng.chisquare(d, (2, 10**6)) / np.array([[a], [b]])
        expected = np.exp(np.minimum(0, (a - b) * (x_a - x_b) / 2)).mean()
        rates = fk.tempering(result).swap_rates[:, i]
        assert abs(rates.mean() - expected) < 5 * rates.std(ddof=1) / 2 + 0.002


def test_the_report_of_tempering_within_mode_jumping():
    sampler = fk.ModeJumping(sampler=fk.ParallelTempering(n_replicas=4))
    result = runs.sample(MODES, [0.0], sampler=sampler, draws=20_000, tune=5000, seed=6)
    report = fk.tempering(result)
    assert report.ladder.shape == (4, 4)
    assert (report.round_trips > 10).all()
    assert abs(report.log_z) < 4 * report.log_z_error
