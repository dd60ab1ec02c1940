"""Parts of a step, item by item: `python -m bench.perf.items` writes bench/results/items.md.

Bare loops that do more and more of a step (`floor/items.c`), and fastkam's own step, take turns;
the time above the last of them is the engine's.
"""

import ctypes
import functools
from pathlib import Path

import numpy as np

import fastkam as fk
from bench.papers.record import heading, options, table, write
from bench.perf import floor, test_kernel_gradient, test_normal_density
from bench.perf.measure import elapsed
from bench.perf.steps import FROZEN, Steps, built_in
from fastkam.samplers import as_sampler
from fastkam.schedules import Perpetual

ITEMS = ["random numbers: d normals, an exponential", "the proposal", "the density", "the decision",
         "the gain", "mean and factor", "the draw stored", "its statistics stored",
         "the density by a pointer"]
STORED, LEARNING = 6, (4, 5)    # the bare loop ends there; items of a chain that learns
KINDS = {"`rwm`": ("rwm", 0), "`am`, learned": ("am", 1), "`am`, learning": ("am", 2)}
DIMENSIONS = (2, 8)
N, ROUNDS = 20_000, 41
REST = "the rest of fastkam's step"
NOTE = """
CPU nanoseconds of a step on a standard normal, one thread; medians of {rounds} rounds in which all
take turns, of differences within a round. An item is what a bare loop that has it takes above one
that has not: where the processor does it beside others it costs little, and it may be negative.
*bare loop*: until the draw is stored. *{rest}*: calls of the methods of the sampler, checks of the
density, counters, what ends a run.
"""


class Chain(ctypes.Structure):
    """The struct of `floor/items.c`."""

    _fields_ = [
        ("x", ctypes.c_double * 8), ("mu", ctypes.c_double * 8), ("L", ctypes.c_double * 64),
        ("logp", ctypes.c_double), ("scale", ctypes.c_double), ("gain", ctypes.c_double * 4),
        ("made", ctypes.c_int64), ("rng", ctypes.c_void_p), ("rank_one", ctypes.c_void_p),
        ("draws", ctypes.c_void_p), ("logps", ctypes.c_void_p), ("ratios", ctypes.c_void_p),
        ("accepted", ctypes.c_void_p)]


class BareChain:
    """A chain of the bare loops, which continues at each call."""

    def __init__(self, upto, kind, d, seed=1):
        self.upto, self.kind, self.d = upto, kind, d
        self.generator = np.random.PCG64(seed)
        g = fk.AdaptiveMetropolis().default_gain(d)
        self.c = Chain(scale=2.38 / np.sqrt(d), gain=(g.c, g.k, g.offset, g.cap),
                       rng=floor.capsule_pointer(self.generator.capsule),
                       rank_one=floor.chosen("fastkam._core.linalg.dense", "rank_one").value)
        for i in range(d):
            self.c.L[i * (d + 1)] = 1.0
        self.room(0)
        loops().items(*self.given(0))     # makes tables with bits of the generator
        self.generator.state = np.random.PCG64(seed).state

    def room(self, n):
        """Give the next n draws arrays that have their pages."""
        self.draws, self.logps, self.ratios = np.zeros((n, self.d)), np.zeros(n), np.zeros(n)
        self.accepted = np.zeros(n, np.int8)
        for name in ("draws", "logps", "ratios", "accepted"):
            setattr(self.c, name, getattr(self, name).ctypes.data)

    def given(self, n):
        return [ctypes.c_int64(self.upto), ctypes.c_int64(self.kind), ctypes.c_ssize_t(self.d),
                ctypes.c_int64(n), ctypes.byref(self.c)]

    def go(self, n):
        """n steps."""
        if len(self.draws) != n:
            self.room(n)
        loops().items(*self.given(n))


@functools.cache
def loops():
    return floor.compiled((*floor.NATIVE, *floor.includes(floor.ROOT)), "items.c")


def ours(sampler, kind, d):
    """fastkam's chain of that kind."""
    made, x0 = as_sampler(sampler), np.zeros(d)
    schedule = Perpetual().compiled(made, d, 0) if kind == 2 else FROZEN
    return Steps(built_in(d), made, x0, schedule=schedule)


def column(sampler, kind, d, rounds):
    """[nanoseconds of each item, of the bare loop, of the rest, of fastkam's step; its ratio]."""
    levels = [level for level in range(len(ITEMS)) if kind == 2 or level not in LEARNING]
    chains = [BareChain(level, kind, d) for level in levels]
    mine = ours(sampler, kind, d)
    for chain in chains:
        chain.go(N)
    mine.go(N)
    found = 1e9 * np.array([
        [*(elapsed(lambda n, chain=chain: chain.go(N), 1) / N for chain in chains),
         mine.go(N) / N] for _ in range(rounds)])
    added = dict(zip(levels, np.median(np.diff(found, axis=1, prepend=0), axis=0)[:-1],
                     strict=True))
    bare, step = found[:, levels.index(STORED)], found[:, -1]
    return [*(f"{added[level]:.1f}" if level in added else "" for level in range(len(ITEMS))),
            f"{np.median(step - found[:, -2]):.1f}", f"{np.median(bare):.1f}",
            f"{np.median(step):.1f}", f"{np.median(step / bare):.2f}"]


def kam(rounds, d=8, points=1000, n=1000):
    """Rows of a step of `kam` in microseconds: its pass, its density with the factor, the rest."""
    kernel = fk.kernels.Gaussian(5.0)
    sampler = fk.KernelAdaptiveMetropolis(kernel=kernel, subsample=points)
    found = []
    parts = [test_kernel_gradient.case("Gaussian", d, points).fastkam,
             test_normal_density.case(d).fastkam]
    target, x0 = built_in(d), np.zeros(d)
    learned = fk.sample(target, x0, sampler=sampler, draws=1, tune=20 * points, chains=1, seed=1,
                       keep_warmup=False, progress=False, search=False).states[0]
    for schedule in (FROZEN, Perpetual().compiled(sampler, d, 0)):
        mine = Steps(target, sampler, x0, schedule=schedule, learned=learned)
        mine.go(20 * points)    # until all points are there
        times = np.array([[*(elapsed(part, n) for part in parts), mine.go(n) / n]
                          for _ in range(rounds)])
        rest = times[:, 2] - times[:, 0] - times[:, 1]
        found.append([f"{1e6 * value:.2f}" for value in np.median(
            np.column_stack([times[:, :2], rest, times[:, 2]]), axis=0)])
    names = ["a pass over all points", "a normal log density with its factor",
             "the rest: random numbers, the density, moves, new points", "a step"]
    return [[name, *cells] for name, *cells in zip(names, *found, strict=True)]


def main():
    chosen = options(__file__, __doc__, quick="7 rounds in place of 41")
    rounds = 7 if chosen.quick else ROUNDS
    columns = {f"{label}, d = {d}": column(sampler, kind, d, rounds)
               for label, (sampler, kind) in KINDS.items() for d in DIMENSIONS}
    names = [*ITEMS, REST, "bare loop", "fastkam's step", "fastkam / bare loop"]
    text = heading("What a step is made of", "python -m bench.perf.items", chosen)
    text += NOTE.format(rounds=rounds, rest=REST) + "\n"
    text += table(["", *columns], [[name, *cells] for name, *cells in zip(
        names, *columns.values(), strict=True)])
    text += ("\n## A step of `kam`\n\nMicroseconds, Gaussian kernel, 1000 points, d = 8; the parts "
             "are fastkam's own, called from C.\n\n")
    text += table(["", "learned", "learning"], kam(rounds))
    write(Path(__file__).parents[1] / chosen.folder.name / "items.md", text)


if __name__ == "__main__":
    main()
