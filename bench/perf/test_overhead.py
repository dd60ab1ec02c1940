"""Cost of a step above the bare work: `pytest bench/perf -q` prints each ratio.

Side by side in one run: the two sides of a ratio alternate, and the ratio of medians of many short
rounds is printed, so that a busy machine disturbs both alike.
"""

import time

import numpy as np
import pytest

import fastkam as fk
from bench.perf import floor, test_kernel_gradient, test_normal_density
from fastkam.schedules import Perpetual

ROUNDS = 41
FROZEN = (1.0, 0.0, 0.0, 1.0, 0, 0, 0.0)  # a schedule that never adapts


def medians(*functions, rounds=ROUNDS):
    """Median CPU seconds of each function, called in turn."""
    times = np.empty((rounds, len(functions)))
    for row in times:
        for i, function in enumerate(functions):
            begun = time.thread_time()
            function()
            row[i] = time.thread_time() - begun
    return np.median(times, axis=0)


def endless(sampler, d):
    """The schedule that adapts in every step."""
    return Perpetual().compiled(sampler, d, 0)


def stepper(target, sampler, x0, n, *, tune=0, schedule=FROZEN):
    """A function that makes n steps of one chain, draws stored, and goes on at each call."""
    from fastkam import as_target
    from fastkam._core.engine.chain import ChainState
    from fastkam._core.engine.group import Group
    from fastkam.run.trace import Trace
    from fastkam.samplers import as_sampler

    sampler = as_sampler(sampler)
    target = as_target(target, len(x0))
    if tune:
        state = fk.sample(target, x0, sampler=sampler, draws=1, tune=tune, chains=1, seed=1,
                          keep_warmup=False, search=False).states[0]
    chain = ChainState(sampler.build(np.asarray(x0, float)), np.random.PCG64(1), x0)
    if tune:
        chain.restore(state)
    group = Group(target.bind(), [chain], schedule)
    group.start()
    trace = Trace(1, n, len(x0), sampler.stat_names)

    def go():
        trace.counts[:] = 0
        chain.attach(trace.chain(0), n, 1)
        group.run(n)

    return go, trace


def test_the_bare_loop_makes_the_same_chain():
    n = 20_000
    go, trace = stepper(fk.targets.two_mode(), fk.RandomWalk(proposal_cov=15.0), [-8.0, 0.0], n)
    go()
    bare = floor.walk(1, n, np.sqrt(15.0), [-8.0, 0.0])
    np.testing.assert_allclose(trace.x[0], bare, rtol=1e-12)


@pytest.mark.parametrize("kind", ["built-in", "C pointer"])
def test_random_walk_against_the_bare_loop(kind, report, benchmark):
    n = 100_000
    target = fk.targets.two_mode() if kind == "built-in" else floor.library().two_mode_density
    go, _ = stepper(target, fk.RandomWalk(proposal_cov=15.0), [-8.0, 0.0], n)
    ours, bare = medians(go, lambda: floor.walk(1, n, np.sqrt(15.0), [-8.0, 0.0]))
    report(f"random walk, two-mode target as {kind}: {ours / n * 1e9:.1f} ns a step, bare loop "
           f"{bare / n * 1e9:.1f}: ratio {ours / bare:.2f}")
    benchmark(go)


def adaptive(d, n):
    """Steps of adaptive Metropolis that go on at each call, with their trace, and the bare loop."""
    sampler, target = fk.AdaptiveMetropolis(), fk.targets.Gaussian(np.zeros(d), np.ones(d))
    go, trace = stepper(target, sampler, np.zeros(d), n, schedule=endless(sampler, d))
    return go, trace, floor.AdaptiveWalk(1, d, sampler.default_gain(d))


@pytest.mark.parametrize("d", [2, 8, 32, 128])
def test_the_bare_adaptive_loop_makes_the_same_chain(d):
    go, trace, bare = adaptive(d, 500)
    go()
    np.testing.assert_allclose(trace.x[0], bare.draws(500), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("d", [2, 8, 32, 128])
def test_adaptive_metropolis_against_the_bare_loop(d, report, benchmark):
    n = 200_000 // d
    go, _, bare = adaptive(d, n)
    go()
    bare.draws(n)
    ours, alone = medians(go, lambda: bare.draws(n))
    report(f"adaptive Metropolis, learning, d = {d}: {ours / n * 1e9:.0f} ns a step, bare loop "
           f"{alone / n * 1e9:.0f}: ratio {ours / alone:.2f}")
    benchmark(go)


def test_python_callback(report, benchmark):
    n = 20_000

    def logp(x):
        return 0.0

    x = np.zeros(2)

    def bare():
        for _ in range(n):
            logp(x)

    go, _ = stepper(logp, "rwm", [0.0, 0.0], n)
    ours, alone = medians(go, bare)
    report(f"Python callback: {ours / n * 1e9:.0f} ns a step, bare call from Python "
           f"{alone / n * 1e9:.0f}: {(ours - alone) / n * 1e6:.3f} us above it")
    benchmark(go)


@pytest.mark.parametrize("adapting", [False, True])
def test_kam(adapting, report, benchmark):
    """Beside one kernel pass and one normal log density with its factor, as bare loops."""
    n, d = 2000, 8
    target = fk.targets.banana(b=0.03, V=100.0, d=d)
    sampler = fk.KernelAdaptiveMetropolis(kernel=fk.kernels.Gaussian(5.0), subsample=1000)
    schedule = endless(sampler, d) if adapting else FROZEN
    go, _ = stepper(target, sampler, np.zeros(d), n, tune=5000, schedule=schedule)
    parts = test_kernel_gradient.case("Gaussian", d, 1000), test_normal_density.case(d)
    ours, *bare = medians(go, *(lambda part=part: part.floor(n) for part in parts))
    phase = "learning" if adapting else "learned"
    report(f"KAM, Gaussian kernel, n = 1000, d = 8, {phase}: {ours / n * 1e6:.2f} us a step, pass "
           f"and factor {sum(bare) / n * 1e6:.2f}: ratio {ours / sum(bare):.2f}")
    benchmark(go)


@pytest.mark.parametrize("name", fk.samplers.SAMPLERS)
def test_cost_does_not_grow_with_the_chain(name, report):
    """Adapting all the while: the first 20 000 steps after 20 000, and again after 10^6."""
    n = 20_000
    target = fk.targets.banana(b=0.03, V=100.0, d=2)
    sampler = fk.samplers.as_sampler(name)
    go, _ = stepper(target, sampler, np.zeros(2), n, schedule=endless(sampler, 2))
    go()
    early = medians(go, rounds=5)[0]
    long_chain = 10**6 if name != "kpca" else 10**5
    for _ in range(long_chain // n):
        go()
    late = medians(go, rounds=5)[0]
    report(f"{name}, adapting: {early / n * 1e9:.0f} ns a step at first, {late / n * 1e9:.0f} "
           f"after {long_chain} steps")


@pytest.mark.parametrize("thin", [1, 10])
def test_two_threads(thin, report):
    """16 million steps of four chains; all of them stored are 528 MB, whose pages cost time too."""
    target = fk.targets.two_mode()
    seconds = {}
    for threads in (1, 2) * 7:
        begun = time.perf_counter()
        fk.sample(target, [-8.0, 0.0], sampler=fk.RandomWalk(proposal_cov=15.0),
                  draws=4_000_000 // thin,
                  tune=0, chains=4, seed=1, threads=threads, thin=thin, progress=False)
        seconds.setdefault(threads, []).append(time.perf_counter() - begun)
    one, two = (np.median(seconds[threads]) for threads in (1, 2))
    report(f"4 chains, one step in {thin} stored: {one:.2f} s with one thread, {two:.2f} with two: "
           f"ratio {one / two:.2f}")
