"""Gain from a shared adaptation: the shape learned, and effective draws after a short warm-up.

    python -m bench.share [--quick]

Eight chains on a Gaussian, d = 20, correlations 0.9^|i-j|, scales from 0.3 to 3, from exact draws.
The error is |C - I| / sqrt(d), C the learned covariance in coordinates in which the target's is I,
with mean trace 1: 0 is right. ESS is the least over the coordinates, in 1000 evaluations while
draws are made. Medians over seeds.

And `jumps` on eight modes, d = 4: to how many modes a chain comes.
"""

import numpy as np

import fastkam as fk
from bench.papers.record import heading, options, table, write

D, K, DRAWS = 20, 8, 4000
COV = 0.9 ** np.abs(np.subtract.outer(range(D), range(D))) * np.outer(
    *[np.geomspace(0.3, 3, D)] * 2)
TARGET = fk.targets.Gaussian(np.zeros(D), COV)
WHITEN = np.linalg.inv(np.linalg.cholesky(COV))
FACTORS = {"ram": "S", "am": "L", "gam": "L", "arwm": "L"}


def figures(name, tune, share, seed):
    """(error, ESS) of one run."""
    result = fk.sample(TARGET, TARGET.sample(K, seed), sampler=name, chains=K, tune=tune,
                       draws=DRAWS, seed=seed, share=share, keep_warmup=False, progress=False)
    ess = fk.diagnostics.ess_bulk(result.draws).min() / (K * DRAWS) * 1000
    F = WHITEN @ result.states[0][f"kernel.{FACTORS[name]}"]
    C = F @ F.T
    return np.linalg.norm(C / (np.trace(C) / D) - np.eye(D)) / np.sqrt(D), ess


def modes_seen(share, seed, chains=8, steps=3000):
    """Modes among the draws of a chain, their mean over chains that start in all modes."""
    target = fk.targets.basis_vectors()
    result = fk.sample(target, target.sample(chains, seed), sampler="jumps", chains=chains,
                       tune=steps, draws=steps, seed=seed, share=share, progress=False)
    return np.mean([len(set(target.mode_of(x))) for x in result.draws])


def main():
    chosen = options(__file__, __doc__, quick="three seeds in place of ten")
    seeds = range(chosen.seed, chosen.seed + (3 if chosen.quick else 10))
    rows = []
    for name in FACTORS:
        for tune in (500, 2000, 8000):
            apart, shared = (np.median([figures(name, tune, share, s) for s in seeds], axis=0)
                             for share in (False, True))
            rows.append([f"`{name}`", str(tune), f"{apart[0]:.2f}", f"{shared[0]:.2f}",
                         f"{apart[1]:.1f}", f"{shared[1]:.1f}"])
            print(*rows[-1], flush=True)
    names = ["", "warm-up", "error, apart", "error, shared", "ESS, apart", "ESS, shared"]
    text = heading("Chains that learn as one", "python -m bench.share", chosen)
    seen = [np.median([modes_seen(share, s) for s in seeds]) for share in (False, True)]
    text += (f"\n{table(names, rows)}\nA chain of `jumps` comes to {seen[0]:.1f} of eight modes in "
             f"3000 draws, to {seen[1]:.1f} where chains share.\n")
    write(chosen.folder / "share.md", text)


if __name__ == "__main__":
    main()
