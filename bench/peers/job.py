"""Jobs in a package's own process: `python -m bench.peers.job PACKAGE JOB ARGUMENTS`.

The last line of its output is the result, as JSON. Times are of the CPU, all threads, and there is
one processor; imports and compilation are left out of them.
"""

import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import NamedTuple

import numpy as np

from bench.peers.densities import DENSITIES

PILOT = 0.15        # share of the time that finds out how many steps to make
ROUNDS = 7          # of the bare call, next to the sampler
MOST = 400_000    # draws that are handed over, of all chains together


class Contestant(NamedTuple):
    """A sampler of a package.

    prepare(density, x0 (chains, d), tune, draws, thin, seed) returns a function that runs it
    and returns (draws (chains, at most `draws`, d), evaluations or None).
    """

    prepare: Callable[..., Callable[[], tuple[np.ndarray, int | None]]]
    kind: str                   # of density: see `densities`
    chains: int = 4
    at_once: bool = False       # the chains' points are evaluated in one call
    ensemble: bool = False      # its chains are walkers, which depend on each other
    parts: tuple[str, ...] = ("overhead", "banana")
    first: int = 200            # steps of the pilot run
    thins: bool = False         # whether it can leave draws out; else they are left out afterwards


class Counting:
    """A density that counts its evaluations."""

    def __init__(self, f, kind):
        self.f, self.kind, self.n = f, kind, 0

    def __call__(self, x):
        self.n += len(x) if self.kind == "many" else 1
        return self.f(x)


def start(d, chains, seed):
    """Return a starting point from N(0, I)."""
    return np.random.default_rng(seed).standard_normal((chains, d))


def timed(go):
    """Return the result of go() and CPU seconds."""
    begun = time.process_time()
    found = go()
    return found, time.process_time() - begun


def density_of(name, kind):
    made = getattr(DENSITIES[name], kind)
    return made() if kind == "compiled" else made


def counted(contestant, name, n, seed):
    """(evaluations, CPU seconds) of n steps of warm-up and n draws: a first run."""
    f, chains = density_of(name, contestant.kind), contestant.chains
    if contestant.kind in ("python", "many", "gradient"):
        f = Counting(f, contestant.kind)
    x0 = start(DENSITIES[name].d, chains, seed)
    go = contestant.prepare(f, x0, n, n, 1, seed)
    (_, evaluations), seconds = timed(go)
    return (getattr(f, "n", None) or evaluations), seconds


def steps_for(contestant, name, budget, seed):
    """Return the numbers of steps of warm-up and of draws for `budget` seconds; evaluations a step.

    The second of two pilot runs is four times as long: the common cost cancels.
    """
    n, before = contestant.first, 0.0
    while True:
        evaluations, seconds = counted(contestant, name, n, seed)
        if (before and seconds > PILOT * budget) or n > 1e7:
            break
        n, before = 4 * n, seconds
    a_step = max(seconds - before, seconds / 20) / (1.5 * n)
    once = max(0.0, seconds - 2 * n * a_step)
    return max(n // 4, int((budget - once) / (2 * a_step))), evaluations / (2 * n)


def overhead(contestant, budget, seed):
    """Return the cost of an evaluation above a bare call, alternating with it in this process.

    above, bare: nanoseconds; calls: how many bare calls take as long as what is above one.
    """
    f = density_of("normal", contestant.kind)
    d, chains = DENSITIES["normal"].d, contestant.chains
    n, _ = steps_for(contestant, "normal", budget / ROUNDS, seed)
    evaluations, _ = counted(contestant, "normal", n, seed)
    go = contestant.prepare(f, start(d, chains, seed), n, n, 1, seed)
    point = start(d, chains, seed) if contestant.at_once else np.zeros(d)
    points = chains if contestant.at_once else 1
    calls = min(200_000, evaluations) // points

    def bare():
        for _ in range(calls):
            f(point)

    ours, alone = [], []
    for _ in range(ROUNDS):
        ours.append(timed(go)[1] / evaluations)
        alone.append(timed(bare)[1] / (calls * points))
    above = np.array(ours) - alone
    return {"above": 1e9 * np.median(above), "bare": 1e9 * np.median(alone),
            "calls": np.median(above / alone)}


def sampling(contestant, name, budget, seed, path):
    """Draws into a file; CPU seconds, steps of each chain, and evaluations."""
    n, rate = steps_for(contestant, name, budget, seed)
    x0 = start(DENSITIES[name].d, contestant.chains, seed)
    thin = max(1, n * len(x0) // MOST)
    draws = -(-n // thin) * thin
    f = density_of(name, contestant.kind)
    go = contestant.prepare(f, x0, n, draws, thin if contestant.thins else 1, seed)
    (x, evaluations), seconds = timed(go)
    np.save(path, x if contestant.thins else np.asarray(x)[:, ::thin])
    return {"seconds": seconds, "steps": n + draws, "evaluations": evaluations or rate * 2 * n}


def describe(package):
    return {
        "versions": {name: version(name) for name in package.NAMES},
        "samplers": {name: {"kind": one.kind, "chains": one.chains, "parts": one.parts,
                            "ensemble": one.ensemble}
                     for name, one in package.SAMPLERS.items()},
    }


def main():
    name, job, arguments = sys.argv[1:]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    warnings.simplefilter("ignore")
    package = importlib.import_module(f"bench.peers.packages.{name}")
    given = json.loads(arguments)
    if job == "describe":
        answer = describe(package)
    else:
        contestant = package.SAMPLERS[given.pop("sampler")]
        answer = {"overhead": overhead, "sampling": sampling}[job](contestant, **given)
    print("\n" + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
