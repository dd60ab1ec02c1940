"""Couplings leave the joint law of their rungs invariant; their log Z and swap rates are right.

False-alarm rates are 1e-4 a test; seeds are fixed.
"""

import itertools

import numpy as np
import pytest

import fastkam as fk
from fastkam._core.engine.group import ChainState, Group
from fastkam.testing import compare

FALSE_ALARM = 1e-4
MODES = fk.targets.GaussianMixture([[-2.0], [2.0]], covs=[0.3, 1.0], weights=[0.3, 0.7])
GRID = np.linspace(-40, 40, 400_001)


def exact(density, n, rng):
    """Draws (n,) from an unnormalised log density on a line, by its distribution function."""
    p = np.exp(density - density.max())
    return np.interp(rng.random(n), np.cumsum(p) / p.sum(), GRID)


def log_q(x, mean, sd):
    return -0.5 * ((x - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)


def found(sampler, steps, replicates, seed, reference=None):
    """Whether the law of the coldest rung has changed after some steps from exact states."""
    kernel = sampler.build(np.zeros(1))
    within = "inner." if isinstance(sampler, fk.ModeJumping) else ""
    exchange = kernel.parts()["inner"] if within else kernel
    ladder, rng = np.asarray(exchange.ladder), np.random.default_rng(seed)
    logp = MODES.logp(GRID[:, None])
    q = 0 if reference is None else log_q(GRID, *reference)
    points = np.array([exact(b * logp + (1 - b) * q, replicates, rng) for b in ladder]).T
    chain = ChainState(kernel, np.random.PCG64(seed), np.zeros(1))
    group = Group(MODES.bind(), [chain], (1.0, 0.0, 0.0, 1.0, 0, 0, 0.0))
    first, after = kernel.state(), np.empty(replicates)
    for i, xs in enumerate(points):
        exact_rungs = {"x": xs[:, None], "logp": MODES.logp(xs[:, None]), "begun": np.array(1),
                       "grad": np.array([MODES.logp_grad(x)[1] for x in xs[:, None]]),
                       "log_ref": 0 * xs if reference is None else log_q(xs, *reference),
                       "accepted": np.zeros(len(xs), int)}
        kernel.restore(first | {within + name: value for name, value in exact_rungs.items()})
        chain.place(xs[:1])
        group.start()
        group.run(steps + i % 2)     # so that both halves of the even-odd scheme come first
        after[i] = chain.position[0]
    return compare(points[:, :1], after[:, None], seed=seed)


TEMPERING = {"rungs": 3, "ladder": [1.0, 0.5, 0.2]}
SAMPLERS = [
    fk.ParallelTempering(reference="flat", **TEMPERING),
    fk.ParallelTempering(reference="flat", scheme="random", sampler="rwm", **TEMPERING),
    fk.ParallelTempering(reference=([0.5], 9.0), rungs=3, ladder=[1.0, 0.3, 0.0]),
    fk.Scout(tau=0.3, every=2),
    fk.Scout(main="kam", tau=0.3, every=1),
    *(fk.ModeJumping(sampler=fk.ParallelTempering(reference=reference, **TEMPERING), chance=0.6,
                     means=[[-1.5], [1.0]], covs=[0.5, 2.0], fit=False)
      for reference in ("flat", ([0.5], 9.0))),
    fk.ModeJumping(sampler=fk.ParallelTempering(
        sampler=fk.HMC(steps=2, metric="fixed", step_size=0.8), reference=([0.5], 9.0),
        **TEMPERING), chance=0.4, means=[[-1.5], [1.0]], covs=[0.5, 2.0], fit=False),
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: f"{type(s).__name__}")
def test_couplings_are_invariant(sampler):
    coupled = getattr(sampler, "sampler", None)
    coupled = coupled if isinstance(coupled, fk.ParallelTempering) else sampler
    reference = None
    if not isinstance(getattr(coupled, "reference", "flat"), str):
        reference = 0.5, 3.0
    result = found(sampler, 4, 40_000, seed=1, reference=reference)
    assert result.p_value > FALSE_ALARM, result


@pytest.mark.parametrize("scheme", ["random", "copy"])
def test_a_swap_that_copies_is_caught(scheme):
    """Rungs that move slowly, so that a copied state is still there at the next swaps."""
    sampler = fk.ParallelTempering(reference="flat", scheme=scheme, sampler=fk.RandomWalk(cov=0.01),
                                   **TEMPERING)
    result = found(sampler, 50, 30_000, seed=2)
    assert (result.p_value < FALSE_ALARM) == (scheme == "copy"), result


@pytest.mark.parametrize("target", [
    fk.targets.two_mode(), fk.targets.TARGETS["basis_vectors"](),
    fk.targets.TARGETS["banana_bunch"]()], ids=["two modes", "basis vectors", "bunch"])
def test_log_z(target):
    """Of normalised densities it is 0: within 4 of its own errors, and these below 0.05."""
    result = fk.sample(target, np.zeros(target.dim), sampler=fk.ParallelTempering(rungs=10),
                       draws=50_000, tune=20_000, chains=4, seed=3, keep_warmup=False)
    report = fk.tempering(result)
    assert report.log_z_error < 0.05, report
    assert abs(report.log_z) < 4 * report.log_z_error, report
    assert abs(report.log_z_thermodynamic) < 4 * report.log_z_thermodynamic_error, report


def test_swap_rates_of_gaussians():
    """Of N(0, I / beta): the mean of min(1, exp((a - b)(|x_a|^2 - |x_b|^2) / 2)), by simulation."""
    d, ladder = 3, [1.0, 0.4, 0.15]
    gaussian = fk.as_target(lambda x: -0.5 * x @ x, d)
    result = fk.sample(gaussian, np.zeros(d), sampler=fk.ParallelTempering(
        rungs=3, ladder=ladder, reference="flat"), draws=4000, tune=1000, seed=4)
    rng = np.random.default_rng(5)
    for i, (a, b) in enumerate(itertools.pairwise(ladder)):
        x_a, x_b = rng.chisquare(d, (2, 10**6)) / np.array([[a], [b]])
        expected = np.exp(np.minimum(0, (a - b) * (x_a - x_b) / 2)).mean()
        rates = fk.tempering(result).swap_rates[:, i]
        assert abs(rates.mean() - expected) < 5 * rates.std(ddof=1) / 2 + 0.002


def test_the_report_of_tempering_within_mode_jumping():
    sampler = fk.ModeJumping(sampler=fk.ParallelTempering(rungs=4))
    result = fk.sample(MODES, [0.0], sampler=sampler, draws=20_000, tune=5000, seed=6)
    report = fk.tempering(result)
    assert report.ladder.shape == (4, 4)
    assert (report.round_trips > 10).all()
    assert abs(report.log_z) < 4 * report.log_z_error
