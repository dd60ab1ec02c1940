"""Rates of warnings: false alarms on runs without a fault, and planted faults.

    python -m bench.checks [--quick]

Well-behaved targets, adequate runs, samplers that suit them: any finding is a false alarm, but
for those of R-hat and of the effective sample size, which are measurements. Then runs of
one fault each, and how often it is found, or stops the run with an error that says so.
"""

import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import fastkam as fk
from bench.papers.record import heading, options, table, write

MEASURES = {"r_hat", "ess"}
STOPPED = "stopped"  # a run that ended with an error that says what is wrong
WALKS = ("rwm", "ram", "am", "gam", "kam", "dram", "cholam", "arwm", "autorwm", "pt", "jumps")
GRADIENTS = ("mala", "gadrwm", "gadmala", "barker", "hmc", "nuts", "automala")


def gaussian(d):
    return fk.targets.Gaussian(np.zeros(d), np.diag(np.linspace(0.2, 5, d)) ** 2)


def regression():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((100, 5))
    return fk.targets.LogisticRegression(X, rng.random(100) < 1 / (1 + np.exp(-X[:, 0])))


def exponential(x):
    return -x[0] if x[0] >= 0 else -np.inf


def box(x):
    return 0.0 if np.abs(x).max() < 1 else -np.inf


# name: (target, start, samplers, draws, seeds)
WELL = {
    "Gaussian, d = 2": (gaussian(2), np.zeros(2), (*WALKS, *GRADIENTS), 4000, 60),
    "Gaussian, d = 10": (gaussian(10), np.zeros(10), (*WALKS, *GRADIENTS), 10_000, 30),
    "Gaussian, d = 50": (gaussian(50), np.zeros(50), ("am", "ram", "nuts", "hmc", "mala"), 20_000,
                         10),
    "Student t, 5 degrees, d = 3": (fk.targets.StudentT(3, 5.0), np.zeros(3),
                                    ("ram", "am", "kam", "nuts", "jumps", "pt"), 10_000, 40),
    "logistic regression, d = 5": (regression(), np.zeros(5),
                                   (*WALKS[1:], *GRADIENTS), 5000, 20),
    "exponential on a half line": (exponential, np.ones(1), ("ram", "am", "jumps"), 3000, 40),
    "uniform in a box, d = 2": (box, np.zeros(2), ("ram", "am", "jumps"), 3000, 40),
}


def separated(x):
    """A logistic regression of classes that a line divides, without a prior."""
    return -np.logaddexp(0, -3.0 * x[0]) - np.logaddexp(0, -x[0])


def two_modes(x):
    return np.logaddexp(-0.5 * (x[0] + 30) ** 2, -0.5 * (x[0] - 30) ** 2) - 0.5 * x[1] ** 2


def crowded(x):
    """Gamma(0.1, 1), whose density has no bound at 0."""
    return -0.9 * np.log(x[0]) - x[0] if x[0] > 0 else -np.inf


def funnel():
    return fk.targets.Funnel(10, 9.0)


# name: (kind that says so, target, start, how it is run)
PLANTED = {
    "wrong sign of a heavy tail": ("improper", lambda x: 0.5 * np.log1p(x @ x), np.ones(2), {}),
    "wrong sign": ("improper", lambda x: 0.5 * x @ x, np.ones(2), {}),
    "flat on a half line": ("improper", lambda x: 0.0 if x[0] > 0 else -np.inf, np.ones(1), {}),
    "flat along one coordinate": ("improper", lambda x: -0.5 * x[0] ** 2, np.ones(2), {}),
    "no prior: rises towards infinity": ("improper", separated, np.ones(1), {}),
    "does not depend on x": ("constant", lambda x: 3.0, np.ones(2), {}),
    "a density, not its logarithm": ("not_a_logarithm", lambda x: float(np.exp(-0.5 * x @ x)),
                                     np.ones(2), {}),
    "steps far too wide": ("acceptance", gaussian(10), np.zeros(10),
                           {"sampler": fk.RandomWalk(proposal_cov=6.0), "tune": 0}),
    "steps far too narrow": ("acceptance", gaussian(2), np.zeros(2),
                             {"sampler": fk.RobustAdaptiveMetropolis(proposal_cov=1e-8),
                              "tune": 20, "draws": 1000}),
    "a NaN on a part of the space": ("rejected", lambda x: -0.5 * x @ x if x[0] < 1 else np.nan,
                                     np.zeros(2), {}),
    "a wall where the density has no bound": ("boundary", crowded, np.ones(1), {}),
    "two modes, chains in both": ("r_hat", two_modes,
                                  np.array([[-30.0, 0], [30, 0], [-30, 0], [30, 0]]),
                                  {"sampler": "ram"}),
    "far too few draws": ("ess", gaussian(10), np.zeros(10), {"draws": 200}),
    "far too little warm-up": ("adaptation", gaussian(10), np.zeros(10),
                               {"sampler": fk.RobustAdaptiveMetropolis(proposal_cov=1e-10),
                                "tune": 200, "draws": 500}),
    "a funnel, by NUTS": ("divergences", funnel(), np.zeros(10), {"sampler": "nuts"}),
    "still on the way to the mode": ("improper", gaussian(2), np.full(2, 1e4),
                                     {"tune": 0, "draws": 1000,
                                      "sampler": fk.RandomWalk(proposal_cov=1.0)}),
}


def kinds(target, x0, seed, **run):
    """The kinds of the findings of a run; STOPPED if it ended with an error."""
    try:
        result = fk.sample(target, x0, seed=seed, progress=False, diagnose=False, **run)
    except fk.SamplingError:  # such as a density of +inf, where a sign is wrong
        return [STOPPED]
    return [found.kind for found in result.warnings]


def false_alarms(quick):
    """Rows of the table, runs in all, and runs with a false alarm."""
    rows, runs, alarms = [], 0, 0
    for name, (target, x0, samplers, draws, seeds) in WELL.items():
        seen, n, measured, alarmed = Counter(), 0, 0, 0
        for sampler in samplers:
            for seed in range(1 if quick else seeds):
                found = set(kinds(target, x0, seed, sampler=sampler, draws=draws, tune=draws // 2))
                n += 1
                measured += bool(found & MEASURES)
                # what is said besides R-hat and the size of a run that these do not let pass
                alarmed += bool(found - MEASURES - {"adaptation"})
                seen.update(f"{sampler}: {kind}" for kind in found - MEASURES)
        rows.append([name, str(len(samplers)), str(n), str(alarmed), str(measured),
                     ", ".join(f"{k} {v}" for k, v in seen.most_common(4)) or "-"])
        print(*rows[-1], sep=" | ", flush=True)
        runs, alarms = runs + n, alarms + alarmed
    return rows, runs, alarms


def detections(quick):
    rows = []
    for name, (kind, target, x0, run) in PLANTED.items():
        n = 2 if quick else 40
        every = [kinds(target, x0, seed, **run) for seed in range(n)]
        others = Counter(k for found in every for k in set(found) - {kind})
        said = sum(kind in found or STOPPED in found for found in every)
        rows.append([name, kind, f"{said} of {n}", f"{sum(map(bool, every))} of {n}",
                     ", ".join(f"{k} {v}" for k, v in others.most_common(4)) or "-"])
        print(*rows[-1], sep=" | ", flush=True)
    return rows


def main():
    warnings.simplefilter("ignore", RuntimeWarning)
    chosen = options(__file__, __doc__, quick="one or two seeds")
    wells, runs, alarms = false_alarms(chosen.quick)
    planted = detections(chosen.quick)
    text = heading("What runs are warned of", "python -m bench.checks", chosen)
    write(Path(__file__).parent / chosen.folder.name / "checks.md", "\n".join([
        text, "Runs that went well, 4 chains:\n",
        table(["target", "samplers", "runs", "false alarms", "R-hat or size", "which"], wells),
        f"False alarms in all: {alarms} of {runs} runs.\n", "Planted faults:\n",
        table(["fault", "finding", "found", "any finding", "other findings"], planted)]))


if __name__ == "__main__":
    main()
