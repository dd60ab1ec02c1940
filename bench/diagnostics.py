"""The summary of draws and that of arviz-stats: processor time, and whether both agree.

    python -m bench.diagnostics [--quick]

AR(1) chains of several coefficients: the slower they mix, the more autocovariances are needed. Both
compute the same columns of the same draws, one after the other in one process; best of the repeats.
"""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bench.papers.record import heading, options, table, write
from fastkam.diagnostics import summary

SHAPES = ((4, 1000, 5), (4, 10_000, 5), (1, 100_000, 5), (4, 250_000, 5))
FRESH = """
import time
import fastkam
import numpy as np
x = np.random.default_rng(1).standard_normal((4, 1000, 5))
begun = time.perf_counter()
{work}
print(time.perf_counter() - begun)
"""
OURS = "from fastkam.diagnostics import summary; summary(x)"
THEIRS = """from arviz_stats.base import array_stats as stats
for i in range(5):
    stats.ess(x[:, :, i], method="bulk"), stats.rhat(x[:, :, i], method="rank")"""


def chains(phi, shape):
    from scipy.signal import lfilter

    noise = np.random.default_rng(1).standard_normal(shape)
    return lfilter([1.0], [1.0, -phi], noise, axis=1)


def by_arviz(draws):
    """{column: (d,)}"""
    from arviz_stats.base import array_stats as stats

    columns = [draws[:, :, i] for i in range(draws.shape[2])]
    flat = draws.reshape(-1, draws.shape[2])
    q5, q95 = np.quantile(flat, [0.05, 0.95], axis=0)
    return {
        "mean": flat.mean(axis=0), "sd": flat.std(axis=0, ddof=1), "q5": q5, "q95": q95,
        "mcse_mean": [stats.mcse(x, method="mean") for x in columns],
        "mcse_sd": [stats.mcse(x, method="sd") for x in columns],
        "ess_bulk": [stats.ess(x, method="bulk") for x in columns],
        "ess_tail": [stats.ess(x, method="tail", prob=(0.05, 0.95)) for x in columns],
        "r_hat": [stats.rhat(x, method="rank") for x in columns] if len(draws) > 1 else np.nan,
    }


def seconds(work, draws, repeats):
    """Return the processor time of a call, and its result."""
    best = np.inf
    for _ in range(repeats):
        begun = time.process_time()
        found = work(draws)
        best = min(best, time.process_time() - begun)
    return best, found


def difference(one, other, name, sd):
    """The largest difference of a column: of means and quantiles in sd, of others relative."""
    scale = sd if name in ("mean", "q5", "q95") else np.abs(other)
    return np.nanmax(np.abs(one - np.asarray(other, float)) / scale, initial=0)


def in_a_fresh_process(work):
    """Seconds of wall-clock time, imports included."""
    return min(float(subprocess.run([sys.executable, "-c", FRESH.format(work=work)], check=True,
                                    capture_output=True, text=True).stdout) for _ in range(5))


def main():
    chosen = options(__file__, __doc__, quick="one repeat, and no long chains")
    found = []
    by_arviz(chains(0.0, SHAPES[0]))    # its imports
    for shape in SHAPES[:1] if chosen.quick else SHAPES:
        for phi in (0.0, 0.9, 0.999):
            draws = chains(phi, shape)
            ours, one = seconds(lambda draws: summary(draws).columns, draws, 3)
            theirs, other = seconds(by_arviz, draws, 3 if draws.size < 1e5 else 1)
            apart = max(difference(one[name], other[name], name, one["sd"]) for name in one)
            found.append([" x ".join(map(str, shape)), str(phi), f"{1e3 * ours:.1f}",
                          f"{1e3 * theirs:.1f}", f"{theirs / ours:.0f}", f"{apart:.0e}"])
            print(*found[-1], flush=True)
    names = ["chains x draws x d", "AR(1) coefficient", "fastkam, ms", "arviz-stats, ms", "ratio",
             "largest difference"]
    text = heading("The summary of draws", "python -m bench.diagnostics", chosen)
    fresh = (f"The first summary of a fresh process, 4 x 1000 x 5, imports included: "
             f"{1e3 * in_a_fresh_process(OURS):.0f} ms; two of its columns by arviz-stats: "
             f"{1e3 * in_a_fresh_process(THEIRS):.0f} ms.\n")
    write(Path(__file__).parent / chosen.folder.name / "diagnostics.md",
          f"{text}\n{table(names, found)}\n{fresh}")


if __name__ == "__main__":
    main()
