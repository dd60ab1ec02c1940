"""Evaluations until every mode has its share: tempering, mode jumping, Scout, cKAM, a random walk.

    python -m bench.modes [--quick] [--only two_mode]

Each chain starts in one mode. Its occupancy of each mode, over its draws so far, is right from the
evaluation on after which it stays within 10 % of the truth to the end; warm-up counts, and so does
the search for modes where there is one. On the lattice of 5^32 modes the share is that of each
center in each coordinate; of the bunch of bananas that of each axis and sign of the largest
coordinate. Tempering in its classic scheme, random pairs of a geometric ladder, stands beside the
even-odd scheme on the same ladder, on a ladder tuned in warm-up, and with the fitted reference.
"jumps around pt" is mode jumping around five replicas. The log Z of tempering is that of all chains
together, whose truth is 0.
"""


import numpy as np
from scipy.optimize import minimize

import fastkam as fk
from bench.papers.record import heading, options, table, write
from bench.samplers import tempered

CHAINS, TOLERANCE = 20, 0.1
NUMBERS = 1_200_000  # kept of a chain; more draws are thinned
WARMUP = {"two_mode": 20_000, "basis_vectors": 60_000, "banana_bunch": 60_000,
          "mixture_32d": 400_000}
EVALUATIONS = {"two_mode": 600_000, "basis_vectors": 4_000_000, "banana_bunch": 4_000_000,
               "mixture_32d": 16_000_000}
WIDE = {"two_mode": 60.0, "basis_vectors": 50.0, "banana_bunch": 300.0, "mixture_32d": 4.0}
COLUMNS = ["sampler", "right within the run", "median evaluations", "least", "most",
           "acceptance of the moves, or log Z"]


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
    """Label -> (sampler, evaluations a step, about, evaluations before the run)."""
    means, before = find_modes(target, 40, seed)
    search = f"from {len(means)} modes of 40 ascents"
    rungs = 16 if target.dim > 10 else 8

    def flat(**how):
        return fk.ParallelTempering(n_replicas=rungs, reference="flat", min_beta=0.02, **how)

    return {
        f"rwm, steps of variance {WIDE[name]:g}": (fk.RandomWalk(proposal_cov=WIDE[name]), 1, 0),
        "ckam": (fk.CyclicalKernelAdaptiveMetropolis(), 1, 0),
        "scout": (fk.Scout(), 2, 0),
        f"pt, classic, {rungs} rungs": (flat(scheme="random", tune_betas=False), rungs, 0),
        "pt, even-odd": (flat(tune_betas=False), rungs, 0),
        "pt, even-odd, tuned": (flat(), rungs, 0),
        "pt": (fk.ParallelTempering(n_replicas=rungs), rungs, 0),
        "jumps around pt": (tempered(gradient=False), 2.5, 0),
        "jumps": (fk.ModeJumping(), 1, 0),
        f"jumps, {search}": (fk.ModeJumping(means=means), 1, before),
        f"jumps, hops alone, {search}": (fk.ModeJumping(means=means, moves="hop"), 1, before),
    }


def shares(target, draws):
    """(the mode of each draw (n, ..), the modes' weights)."""
    if hasattr(target, "mode_of"):
        return target.mode_of(draws).reshape(len(draws), -1), target.mode_weights
    axis = np.abs(draws).argmax(1)
    sign = np.take_along_axis(draws, axis[:, None], 1)[:, 0] > 0
    return (2 * axis + sign)[:, None], np.full(2 * target.dim, 1 / (2 * target.dim))


def settled(target, draws):
    """The number of draws (n, d) after which each share stays right; n + 1 if it does not."""
    (modes, weights), n = shares(target, draws), len(draws)
    right = np.ones(n, bool)
    for k, weight in enumerate(weights):
        share = np.cumsum(modes == k, axis=0) / np.arange(1, n + 1)[:, None]
        right &= (np.abs(share / weight - 1) < TOLERANCE).all(axis=1)
    wrong = np.flatnonzero(~right)
    return wrong[-1] + 2 if len(wrong) else 1


def row(label, target, setting, budget, warmup, seed):
    """One line of the table."""
    sampler, a_step, before = setting
    steps = int(budget / a_step)
    cycle = getattr(sampler, "cycle", 1)
    kept = 1 - int(sampler.beta * cycle) / cycle if cycle > 1 else 1    # Sampling, of cKAM
    tune = max(1, int(warmup / a_step) // cycle) * cycle
    thin = max(1, int(kept * (steps - tune)) * target.dim // NUMBERS)
    draws = int(kept * (steps - tune)) // thin
    modes = getattr(target, "modes", np.zeros(target.dim))
    start = modes[0] if modes.ndim == 2 else np.zeros(target.dim)
    result = fk.sample(target, start, sampler=sampler, tune=tune, draws=draws, thin=thin,
                       chains=CHAINS, seed=seed, keep_warmup=False, progress=False)
    at = np.array([settled(target, chain) for chain in result.draws])
    a_step = result.evaluations / CHAINS / (tune + draws * thin / kept)
    evaluations = np.where(at <= draws, before + a_step * (tune + at * thin / kept), np.inf)
    moves = ""
    if "move" in result.stats:
        kinds, alpha = result.stats["move"], result.stats["acceptance_rate"]
        moves = ", ".join(f"{kind} {alpha[kinds == i].mean():.2g}"
                          for i, kind in enumerate(("jump", "independent", "hop"), 1)
                          if (kinds == i).any())
    if isinstance(sampler, fk.ParallelTempering) and sampler.reference != "flat":
        report = fk.tempering(result)
        moves = f"{report.log_z:.4f} ± {report.log_z_error:.4f}"
    figures = [f"{value:,.0f}" if np.isfinite(value) else "not reached"
               for value in np.quantile(evaluations, [0.5, 0, 1], method="higher")]
    found = [label, f"{np.isfinite(evaluations).sum()} of {CHAINS}", *figures, moves]
    print(*found, sep=" | ", flush=True)
    return found


def main():
    chosen = options(__file__, __doc__, quick="a tenth of the evaluations", only=EVALUATIONS)
    for name, budget in EVALUATIONS.items():
        if chosen.only not in (None, name):
            continue
        target = fk.targets.TARGETS[name]()
        budget = budget // 10 if chosen.quick else budget
        warmup = min(WARMUP[name], budget // 4)
        rows = [row(label, target, setting, budget, warmup, chosen.seed)
                for label, setting in samplers(name, target, chosen.seed).items()]
        text = heading(f"Separated modes: {name}, d = {target.dim}",
                       f"python -m bench.modes --only {name}", chosen) + (
            f"\n{CHAINS} chains of {budget:,} evaluations, {warmup:,} of warm-up among them, from "
            "one mode. Evaluations until the occupancy of each mode stays within "
            f"{100 * TOLERANCE:g} % of the truth, the median, least and most over chains, warm-up "
            "and search included.\n\n")
        write(chosen.folder / f"modes-{name}.md", text + table(COLUMNS, rows))


if __name__ == "__main__":
    main()
