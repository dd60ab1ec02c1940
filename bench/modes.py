"""Evaluations until every mode has its share: mode jumping beside tempering and a wide random walk.

    python -m bench.modes [--quick]

Each chain starts in one mode. Its occupancy of each mode, over its draws so far, is right from the
evaluation on after which it stays within 10 % of the truth to the end; warm-up counts, and so does
the search for modes where there is one. On the lattice of 5^32 modes the share is that of each
centre in each coordinate.
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import fastkam as fk
from bench.papers.record import heading, table, write

CHAINS, TOLERANCE = 20, 0.1
NUMBERS = 1_200_000  # kept of a chain; more draws are thinned
EVALUATIONS = {"two_mode": 400_000, "basis_vectors": 1_200_000, "mixture_32d": 400_000}
WIDE = {"two_mode": 60.0, "basis_vectors": 50.0, "mixture_32d": 4.0}  # variance of the random walk
COLUMNS = ["sampler", "right within the run", "median evaluations", "least", "most",
           "acceptance of the moves"]


def find_modes(target, starts, seed):
    """(modes (K, d), evaluations): where ascents from N(0, 15^2) end, closer than 1 being one."""
    rng, found, evaluations = np.random.default_rng(seed), [], 0
    for start in 15 * rng.standard_normal((starts, target.dim)):
        end = minimize(lambda x: -target.logp(x), start, method="L-BFGS-B")
        evaluations += end.nfev
        if all(np.linalg.norm(end.x - mode) > 1 for mode in found):
            found.append(end.x)
    return np.array(found), evaluations


def samplers(name, target, seed):
    """Label -> (sampler, evaluations a step, evaluations before the run)."""
    means, before = find_modes(target, 40, seed)
    search = f"from {len(means)} modes of 40 ascents"
    return {
        f"rwm, steps of variance {WIDE[name]:g}": (fk.RandomWalk(cov=WIDE[name]), 1, 0),
        "scout": (fk.Scout(), 2, 0),
        "pt": (fk.ParallelTempering(), 8, 0),
        "jumps": (fk.ModeJumping(), 1, 0),
        f"jumps, {search}": (fk.ModeJumping(means=means), 1, before),
        f"jumps, hops alone, {search}": (fk.ModeJumping(means=means, moves="hop"), 1, before),
    }


def settled(target, draws):
    """The number of draws (n, d) after which each share stays right; n + 1 if it does not."""
    modes, n = target.mode_of(draws).reshape(len(draws), -1), len(draws)
    right = np.ones(n, bool)
    for k, weight in enumerate(target.mode_weights):
        share = np.cumsum(modes == k, axis=0) / np.arange(1, n + 1)[:, None]
        right &= (np.abs(share / weight - 1) < TOLERANCE).all(axis=1)
    wrong = np.flatnonzero(~right)
    return wrong[-1] + 2 if len(wrong) else 1


def row(label, target, setting, budget, seed):
    """One line of the table."""
    sampler, a_step, before = setting
    steps = budget // a_step
    tune = steps // 20
    thin = max(1, (steps - tune) * target.dim // NUMBERS)
    draws = (steps - tune) // thin
    start = target.modes[0] if target.modes.ndim == 2 else np.zeros(target.dim)
    result = fk.sample(target, start, sampler=sampler, tune=tune, draws=draws, thin=thin,
                       chains=CHAINS, seed=seed, keep_warmup=False, progress=False)
    at = np.array([settled(target, chain) for chain in result.draws])
    evaluations = np.where(at <= draws, before + a_step * (tune + at * thin), np.inf)
    moves = ""
    if "move" in result.stats:
        kinds, alpha = result.stats["move"], result.stats["acceptance_rate"]
        moves = ", ".join(f"{kind} {alpha[kinds == i].mean():.2g}"
                          for i, kind in enumerate(("jump", "independent", "hop"), 1)
                          if (kinds == i).any())
    figures = [f"{value:,.0f}" if np.isfinite(value) else "not reached"
               for value in np.quantile(evaluations, [0.5, 0, 1], method="higher")]
    found = [label, f"{np.isfinite(evaluations).sum()} of {CHAINS}", *figures, moves]
    print(*found, sep=" | ", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the evaluations")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    text = heading("Separated modes", "python -m bench.modes") + (
        f"\n{CHAINS} chains from one mode, a twentieth of each run warm-up. Evaluations until the "
        f"occupancy of each mode stays within {100 * TOLERANCE:g} % of the truth, the median, "
        "least and most over chains, warm-up and search included.\n")
    for name, budget in EVALUATIONS.items():
        target = fk.targets.TARGETS[name]()
        budget = budget // 10 if options.quick else budget
        rows = [row(label, target, setting, budget, options.seed)
                for label, setting in samplers(name, target, options.seed).items()]
        text += f"\n## {name}, d = {target.dim}, {budget:,} evaluations a chain\n\n"
        text += table(COLUMNS, rows)
    if options.quick:
        print(text)
    else:
        write(Path(__file__).parent / "results" / "modes.md", text)


if __name__ == "__main__":
    main()
