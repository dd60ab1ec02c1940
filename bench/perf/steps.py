"""A step of every sampler: `python -m bench.perf.steps` writes bench/results/steps.md.

The target is a standard normal, whose own time is part of each figure, in the first table as a
built-in density, in the others as a C pointer, a Python function, and a function of many points.
"""

import time
from pathlib import Path

import numpy as np

import fastkam as fk
from bench.papers.record import heading, options, table, write
from bench.perf import floor
from fastkam._core.engine.chain import ChainState
from fastkam._core.engine.group import Group
from fastkam.run.trace import Trace
from fastkam.samplers import SAMPLERS, as_sampler
from fastkam.schedules import Perpetual

DIMENSIONS = (2, 8, 32, 128)
TUNE, TOGETHER = 2000, 64
SECONDS, ROUNDS = 0.02, 7       # of a round, about
FROZEN = (1.0, 0.0, 0.0, 1.0, 0, 0, 0.0)
NOTE = f"""
CPU nanoseconds of a step of one chain, draws stored, one thread, default parameters; medians of
{ROUNDS} rounds. *learning*: while it adapts; *learned*: frozen, after {TUNE} steps of warm-up. In
brackets, how many evaluations a step makes, where it is more than one.
"""


def python_density(x):
    return -0.5 * x.dot(x)


def python_gradient(x):
    return -0.5 * x.dot(x), -x


def many_points(X):
    return -0.5 * np.einsum("ij,ij->i", X, X)


def many_gradients(X):
    return many_points(X), -X


class Steps:
    """Chains that make steps on demand, and the time of a step.

    If they do not adapt they begin from the state `learned`, or from that of a run. The run has no
    search, which might choose other units for the coordinates.
    """

    def __init__(self, target, sampler, x0, *, chains=1, schedule=FROZEN, learned=None):
        sampler, d = as_sampler(sampler), len(x0)
        if schedule is FROZEN and learned is None:
            learned = fk.sample(target, x0, sampler=sampler, draws=1, tune=TUNE, chains=1, seed=1,
                               keep_warmup=False, progress=False, search=False).states[0]
        self.chains = [ChainState(sampler.build(x0), np.random.PCG64(k), x0) for k in range(chains)]
        for chain in self.chains:
            if schedule is FROZEN:
                chain.restore(learned)
        self.group = Group(target.bind(), self.chains, schedule)
        self.group.start()
        self.names, self.d, self.learned = sampler.stat_names, d, learned

    def nanoseconds(self):
        """(nanoseconds a step of one chain, evaluations a step): the median of the rounds."""
        n, seconds = 16, 0.0
        while seconds < SECONDS / 4 and n < 200_000:
            n *= 4
            seconds = self.go(n)
        n = max(1, round(n * SECONDS / max(seconds, 1e-9))) if seconds < SECONDS else n
        before = sum(chain.n_evaluations for chain in self.chains)
        found = [self.go(n) / n / len(self.chains) for _ in range(ROUNDS)]
        made = sum(chain.n_evaluations for chain in self.chains) - before
        return 1e9 * np.median(found), made / (ROUNDS * n * len(self.chains))

    def go(self, n):
        trace = Trace(len(self.chains), n, self.d, self.names)
        for array in (trace.x, trace.logp, trace.log_ratio, trace.accepted, trace.extra):
            array[:] = 0    # its pages
        for k, chain in enumerate(self.chains):
            chain.attach(trace.chain(k), n, 1)
        begun = time.thread_time()
        self.group.run(n)
        return time.thread_time() - begun


def built_in(d):
    return fk.targets.Gaussian(np.zeros(d), np.ones(d))


def forms(d, gradient):
    """Label -> (target, chains)."""
    made = fk.Target.from_python
    found = {
        "Python": (made(python_gradient if gradient else python_density, d, gradient=gradient), 1),
        f"Python, {TOGETHER} points": (made(
            many_gradients if gradient else many_points, d, vectorized=True, gradient=gradient),
            TOGETHER),
    }
    if not gradient:
        found = {"C pointer": (fk.as_target(floor.library().normal_density, d), 1)} | found
    return found


def cell(steps):
    ns, evaluations = steps.nanoseconds()
    return f"{ns:,.0f}" + (f" ({evaluations:.1f})" if evaluations > 1.01 else "")


def learning_and_learned(name, d):
    sampler, target, x0 = SAMPLERS[name](), built_in(d), np.zeros(d)
    schedule = Perpetual().compiled(sampler, d, 0)
    return [cell(Steps(target, sampler, x0, schedule=schedule)), cell(Steps(target, sampler, x0))]


def main():
    chosen = options(__file__, __doc__, quick="d = 2 and 8")
    dimensions = DIMENSIONS[:2] if chosen.quick else DIMENSIONS
    text = heading("A step of every sampler", "python -m bench.perf.steps", chosen) + NOTE
    rows = []
    for name in SAMPLERS:
        rows.append([f"`{name}`", *(x for d in dimensions for x in learning_and_learned(name, d))])
        print(*rows[-1], sep=" | ", flush=True)
    columns = [f"d = {d}, {phase}" for d in dimensions for phase in ("learning", "learned")]
    text += "\n## A built-in density\n\n" + table(["", *columns], rows)
    d = 8
    labels = ["C pointer", "Python", f"Python, {TOGETHER} points"]
    rows = []
    for name, cls in SAMPLERS.items():
        found = forms(d, cls().needs_gradient)
        rows.append([f"`{name}`", *(
            cell(Steps(found[label][0], cls(), np.zeros(d), chains=found[label][1]))
            if label in found else "" for label in labels)])
        print(*rows[-1], sep=" | ", flush=True)
    text += f"\n## Other forms, learned, d = {d}\n\n" + table(["", *labels], rows)
    write(Path(__file__).parents[1] / chosen.folder.name / "steps.md", text)


if __name__ == "__main__":
    main()
