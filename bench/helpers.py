"""Threads that help a group with its evaluations: the speed of two against that of one.

    python -m bench.helpers [--quick]

Logistic regressions of more and more rows, d = 8: `pt` with eight replicas in one chain, and eight
chains of `ram` that share. Ratios of wall-clock times, one thread over two, alternating; their
median and range. For a machine of two processors with nothing else to do.
"""

import time
import warnings
from pathlib import Path

import numpy as np

import fastkam as fk
from bench.papers.record import heading, options, table, write

D = 8
RUNS = {
    "`pt`, 8 replicas": {"sampler": "pt", "chains": 1},
    "`ram`, 8 chains that share": {"sampler": "ram", "chains": 8, "share": True},
}


def regression(rows):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((rows, D))
    return fk.targets.LogisticRegression(X, rng.random(rows) < 1 / (1 + np.exp(-X[:, 0])))


def seconds(target, threads, steps, **run):
    begun = time.perf_counter()
    fk.sample(target, np.zeros(D), tune=steps // 2, draws=steps // 2, seed=1, threads=threads,
              keep_warmup=False, progress=False, **run)
    return time.perf_counter() - begun


def seconds_a_point(target):
    begun = time.perf_counter()
    for _ in range(200):
        target.logp(np.zeros(D))
    return (time.perf_counter() - begun) / 200


def main():
    warnings.simplefilter("ignore", fk.SamplingWarning)     # runs too short to move are timed too
    chosen = options(__file__, __doc__, quick="three repeats in place of eleven")
    found = []
    for rows in (10, 1000, 5000, 20_000, 100_000):
        target = regression(rows)
        cost = seconds_a_point(target)
        steps = int(np.clip(0.05 / cost, 50, 20_000))
        for label, run in RUNS.items():
            ratios = [seconds(target, 1, steps, **run) / seconds(target, 2, steps, **run)
                      for _ in range(3 if chosen.quick else 11)]
            found.append([f"{1e6 * cost:.1f}", label, f"{np.median(ratios):.2f}",
                          f"{min(ratios):.2f} to {max(ratios):.2f}"])
            print(*found[-1], flush=True)
    names = ["microseconds a point", "", "one thread / two", "range"]
    text = heading("Threads that help with evaluations", "python -m bench.helpers", chosen)
    write(Path(__file__).parent / chosen.folder.name / "helpers.md",
          f"{text}\n{table(names, found)}")


if __name__ == "__main__":
    main()
