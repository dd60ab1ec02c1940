"""Chains that step side by side are chains that have been run alone, bit for bit."""

import hashlib

import numpy as np
import pytest
from levels import digest_at, every_level

import fastkam as fk
from fastkam._core.engine.chain import ChainState
from fastkam._core.engine.fault import Fault
from fastkam._core.engine.group import Group
from fastkam.run.trace import Trace
from fastkam.samplers import SAMPLERS, as_sampler

IN_LANES = ["am", "hmc", "mala", "nuts", "ram", "rwm"]
SCHEDULE = (1.0, 0.6, 0.0, 0.5, 10, 60, 0.0)  # learns from the 10th step to the 60th
RARELY = (*SCHEDULE[:-1], 0.3)
STEPS = 120


def density(X):
    """A normal one, which is 0 beyond a wall that chains often meet."""
    return np.where(X[:, 0] > 1.5, -np.inf, -0.5 * ((X - 0.3) ** 2).sum(axis=1))


def with_gradient(X):
    return density(X), 0.3 - X


def chains_of(sampler, d, *, count, generator=np.random.PCG64):
    points = np.random.default_rng(4).standard_normal((count, d)) - 1
    return [ChainState(sampler.build(x), generator(k), x) for k, x in enumerate(points)]


def group_of(sampler, chains, target, **options):
    schedule = options.pop("schedule", SCHEDULE)
    return Group(target.bind(), chains, schedule, **options)


def target_of(sampler, d, function=None):
    gradient = as_sampler(sampler).needs_gradient
    return fk.Target.from_python(function or (with_gradient if gradient else density), d,
                                 vectorized=True, gradient=gradient)


def run(sampler, chains, target, *, thin=1, pieces=(STEPS,), scales=None, **options):
    """The trace of chains that are run as one group."""
    d = len(chains[0].position)
    trace = Trace(len(chains), STEPS // thin, d, sampler.stat_names)
    for array in (trace.x, trace.logp, trace.log_ratio, trace.accepted, trace.extra):
        array[:] = 0
    group = group_of(sampler, chains, target, **options)
    group.start()
    for k, chain in enumerate(chains):
        arrays = trace.chain(k)
        if scales is not None:
            arrays["scales"] = scales
        chain.attach(arrays, STEPS // thin, thin)
    for n in pieces:
        group.run(n)
    return trace


def assert_same(one, other):
    for name in ("x", "logp", "log_ratio", "accepted", "extra", "counts"):
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_array_equal(a, b, err_msg=name)


def assert_same_states(chains, others):
    for one, other in zip(chains, others, strict=True):
        a, b = one.state(), other.state()
        assert a.keys() == b.keys()
        for name in a:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)
        assert one.bit_generator.random_raw() == other.bit_generator.random_raw()
        assert one.rejected == other.rejected


def compare(name, d=2, *, count=5, generator=np.random.PCG64, schedule=SCHEDULE, thin=1,
            scales=None, pieces=(STEPS,), **parameters):
    """Chains together and chains alone: draws, statistics, states and generators."""
    sampler, target = SAMPLERS[name](**parameters), target_of(name, d)
    together = chains_of(sampler, d, count=count, generator=generator)
    found = run(sampler, together, target, schedule=schedule, thin=thin, scales=scales,
                pieces=pieces)
    alone = chains_of(sampler, d, count=count, generator=generator)
    for k, chain in enumerate(alone):
        expected = run(sampler, [chain], target, schedule=schedule, thin=thin, scales=scales)
        assert_same(found.select([k]), expected)
    assert_same_states(together, alone)
    return together


def test_the_kernels_in_lanes_are_known():
    found = [name for name, cls in SAMPLERS.items() if cls().build(np.zeros(2)).in_lanes]
    assert sorted(found) == IN_LANES


@pytest.mark.parametrize("d", [1, 2, 3, 5, 40])
@pytest.mark.parametrize("name", IN_LANES)
def test_chains_together_are_chains_alone(name, d):
    compare(name, d)


@pytest.mark.parametrize("count", [2, 8, 63, 64, 65, 200])
def test_any_number_of_chains(count):
    together = compare("rwm", count=count)
    assert sum(chain.rejected["outside"] for chain in together) > count  # the wall has been met


@pytest.mark.parametrize("name", IN_LANES)
def test_adaptation_that_is_rare_rows_that_are_thinned_and_runs_in_pieces(name):
    compare(name, schedule=RARELY, thin=3, pieces=(1, 2, 57, 3, 57))


@pytest.mark.parametrize("generator", [np.random.SFC64, np.random.PCG64DXSM, np.random.MT19937])
def test_other_generators(generator):
    compare("rwm", generator=generator)
    compare("hmc", generator=generator)


@pytest.mark.parametrize("name", ["rwm", "am", "ram", "mala", "hmc"])
def test_a_step_size_that_jitters(name):
    compare(name, jitter=0.3)


def test_walks_of_every_shape():
    compare("rwm", 3, proposal_cov=np.array([0.5, 1.0, 2.0]))
    compare("rwm", 2, proposal_cov=np.array([[1.0, 0.4], [0.4, 2.0]]))
    compare("rwm", 2, target_acceptance=0.4)


def test_walks_of_different_shapes_step_together():
    walks = [fk.RandomWalk(proposal_cov=cov) for cov in (1.0, np.array([0.5, 2.0]), 3.0)]

    def made():
        return [ChainState(walk.build(np.zeros(2)), np.random.PCG64(k), np.zeros(2))
                for k, walk in enumerate(walks)]

    together, alone, target = made(), made(), target_of("rwm", 2)
    found = run(walks[0], together, target)
    for k, chain in enumerate(alone):
        assert_same(found.select([k]), run(walks[k], [chain], target))
    assert_same_states(together, alone)


@pytest.mark.parametrize("thin", [1, 7])
def test_more_chains_than_rows_are_held_of(thin):
    """Rows are dealt out many times, and some are left at the end."""
    compare("rwm", 5, count=300, thin=thin, pieces=(50, 70))


def test_states_are_scaled_where_they_are_recorded():
    compare("rwm", scales=np.array([3.0, 0.5]))


def test_chains_of_different_generators_step_together():
    sampler, target = SAMPLERS["rwm"](), target_of("rwm", 2)
    kinds = [np.random.PCG64, np.random.SFC64, np.random.PCG64]

    def made():
        return [ChainState(sampler.build(np.zeros(2)), kind(7), np.zeros(2)) for kind in kinds]

    together, alone = made(), made()
    found = run(sampler, together, target)
    for k, chain in enumerate(alone):
        assert_same(found.select([k]), run(sampler, [chain], target))
    assert_same_states(together, alone)


def test_a_chain_that_is_behind_or_ahead_of_the_others():
    """Chains restored from different steps go on each where it is."""
    sampler, target = SAMPLERS["am"](), target_of("am", 2)
    together, alone = (chains_of(sampler, 2, count=3) for _ in range(2))
    for chains in (together, alone):
        group_of(sampler, chains[:1], target).start()
        first = group_of(sampler, chains[:1], target)
        first.run(7)
    found = run(sampler, together, target)
    for k, chain in enumerate(alone):
        assert_same(found.select([k]), run(sampler, [chain], target))
    assert_same_states(together, alone)


class Breaks:
    """A density that raises at one of its calls."""

    def __init__(self, function, at):
        self.function, self.calls, self.at = function, 0, at

    def __call__(self, X):
        self.calls += 1
        if self.calls == self.at:
            raise ValueError("broken")
        return self.function(X)


@pytest.mark.parametrize("at", [2, 3, 40, 77])
@pytest.mark.parametrize("name", IN_LANES)
def test_a_density_that_fails_leaves_the_step_pending(name, at):
    """The run goes on from there as if nothing had happened."""
    sampler = SAMPLERS[name]()
    whole, broken = (chains_of(sampler, 2, count=4) for _ in range(2))
    expected = run(sampler, whole, target_of(name, 2))
    trace = Trace(4, STEPS, 2, sampler.stat_names)
    function = with_gradient if sampler.needs_gradient else density
    group = group_of(sampler, broken, target_of(name, 2, Breaks(function, at)))
    group.start()
    for k, chain in enumerate(broken):
        chain.attach(trace.chain(k), STEPS, 1)
    with pytest.raises(Fault, match="chain"):
        group.run(STEPS)
    assert all(chain.pending for chain in broken)
    group.run(STEPS)
    assert_same(trace, expected)
    assert_same_states(broken, whole)


@pytest.mark.parametrize("name", ["rwm", "hmc"])
def test_a_log_density_of_plus_infinity_names_the_chain(name):
    sampler = SAMPLERS[name]()

    def wrong(X):
        value = density(X)
        if wrong.calls > 20 and len(X) == 4:  # of fewer, the third is of another chain
            value[2] = np.inf
        wrong.calls += 1
        return (value, 0.3 - X) if sampler.needs_gradient else value

    wrong.calls = 0
    chains = chains_of(sampler, 2, count=4)
    group = group_of(sampler, chains, target_of(name, 2, wrong))
    group.start()
    with pytest.raises(Fault, match="chain 2"):
        group.run(STEPS)


def test_a_gradient_that_is_not_finite_rejects_the_point():
    def holes(X):
        value, gradient = with_gradient(X)
        gradient[X[:, 0] > 0.5] = np.nan
        return value, gradient

    sampler, target = SAMPLERS["mala"](), target_of("mala", 2, holes)
    together, alone = (chains_of(sampler, 2, count=6) for _ in range(2))
    found = run(sampler, together, target)
    for k, chain in enumerate(alone):
        assert_same(found.select([k]), run(sampler, [chain], target))
    assert sum(chain.rejected["gradient"] for chain in together) > 10
    assert_same_states(together, alone)


@pytest.mark.parametrize("most", [30, 31])
def test_the_budget_of_evaluations_ends_the_run(most):
    sampler, target = SAMPLERS["hmc"](), target_of("hmc", 2)
    chains = chains_of(sampler, 2, count=3)
    group = group_of(sampler, chains, target)
    group.start()
    made = group.run(STEPS, most)
    assert 0 < made < STEPS
    total = sum(chain.n_evaluations for chain in chains)
    assert 3 * most <= total < 3 * (most + 11)  # a step makes 10, and one more at most


def test_extras_are_noted():
    def extras(X):
        return density(X), {"first": X[:, 0]}

    result = fk.sample(extras, np.zeros(2), sampler="rwm", draws=50, tune=10, chains=5,
                       vectorized=True, seed=3, progress=False)
    np.testing.assert_array_equal(result.extras["first"], result.draws[:, :, 0])


def digest():
    """Return a digest of draws of a group, for a process with another instruction set."""
    result = fk.sample(density, np.zeros(3), sampler="rwm", draws=2000, tune=0, chains=70,
                       vectorized=True, seed=1, progress=False)
    return hashlib.sha256(result.draws.tobytes()).hexdigest()


@every_level
def test_every_instruction_set_gives_the_same_draws(level):
    assert digest_at(level, "api.test_lockstep") == digest()
