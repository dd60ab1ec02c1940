"""cKAM on its own example: the published form is biased, the exact form is not.

    python -m bench.papers.li2022.bias [--quick]

The two-mode target of the paper, weights 1/2 and 1/2; noise gamma_t = 10 (1 + t)^-0.25 within a
cycle, cycles of 1000 steps of which 0.4 Exploration, Matern kernel of order 4 and length 2, 50
points, from (-8, 0); 400 runs of 2 000 000 steps. The published form adapts in every cycle; the
exact form adapts for 100 000 steps more beforehand, which fill its bank, and not thereafter. Beside
them a plain random walk with as many steps. Draws are the states of Sampling.
"""

import numpy as np

import fastkam as fk
from bench.papers.record import heading, options, table, write

STEPS, RUNS, TUNE = 2_000_000, 400, 100_000


def forms(steps):
    """name -> (sampler, schedule, draws, warm-up): each makes `steps` steps besides warm-up."""
    ckam = fk.CyclicalKernelAdaptiveMetropolis(
        metric="identity", kernel=fk.kernels.Matern(2.0, 4.0), subsample=50, cycle=1000,
        exploration_fraction=0.4, gamma=fk.schedules.Power(c=10.0, k=0.25, offset=0.0))
    sampling = int(steps * 0.6)
    return {
        "published, draws of Sampling": (ckam, "perpetual", sampling, 0),
        "exact, draws of Sampling": (ckam, "finite", sampling, TUNE),
        "random walk, sd 10": (fk.RandomWalk(proposal_cov=100.0), "finite", steps, 0),
    }


def measure(sampler, schedule, draws, tune, runs, seed):
    """Fraction of draws in the left mode and mode switches, a run; seconds in all."""
    left, switches, seconds = [], [], 0.0
    for block in range(0, runs, 8):
        result = fk.sample(
            fk.targets.two_mode(), [-8.0, 0.0], sampler=sampler, schedule=schedule, draws=draws,
            tune=tune, chains=min(8, runs - block), keep_warmup=False, progress=False,
            search=False,
            seed=np.random.SeedSequence(seed, spawn_key=(block,)),
        )
        at_left = result.draws[:, :, 0] < 0
        left += at_left.mean(axis=1).tolist()
        switches += (at_left[:, 1:] != at_left[:, :-1]).sum(axis=1).tolist()
        seconds += result.seconds
    return np.array(left), np.array(switches), seconds


def main():
    chosen = options(__file__, __doc__, quick="8 runs of 200 000 steps")
    runs, steps = (8, 200_000) if chosen.quick else (RUNS, STEPS)
    rows = []
    for name, form in forms(steps).items():
        left, switches, seconds = measure(*form, runs, chosen.seed)
        error = left.std(ddof=1) / np.sqrt(runs)
        rows.append([
            name, f"{left.mean():.4f} ± {error:.4f}", f"{(left.mean() - 0.5) / error:+.1f}",
            f"{switches.mean():.0f} ± {switches.std(ddof=1) / np.sqrt(runs):.0f}", f"{seconds:.0f}",
        ])
        print(rows[-1], flush=True)
    text = heading("cKAM on the two-mode target: fraction of draws in the left mode",
                   "python -m bench.papers.li2022.bias", chosen)
    text += f"\n{runs} runs of {steps} steps; the truth is 0.5. ± is one standard error.\n\n"
    text += table(["", "left mode", "standard errors from 1/2", "mode switches a run",
                   "seconds, all runs"], rows)
    write(chosen.folder / "bias.md", text)


if __name__ == "__main__":
    main()
