"""What runs cost beside their steps: many chains, the first run, the summary, stop rules, batches.

    python -m bench.perf.costs [--quick] [--only PART]

Seconds of processor time of this process and its threads, medians of rounds. The parts:

- chains: `ram`, 100 + 100 steps of a compiled density, d = 2, one thread; per chain.
- fresh: a new process until it has 1000 draws by default, and their summary.
- summary: `Result.summary` of 4 x 250 000 draws.
- stop: the part of a run that its stop rule takes, a Python density of about a microsecond.
- batches: `rwm`, d = 2, one call of the density for all chains, beside six lines of NumPy; above
  what the density takes, by the difference of a long run and a short one.
"""

import subprocess
import sys
import time

import numpy as np

import fastkam as fk
from bench.perf.parts import main

QUIET = {"seed": 1, "progress": False, "search": False, "diagnose": False}
FRESH = """
import time
import fastkam as fk
result = fk.sample(lambda x: -0.5 * float(x @ x), [0.0, 0.0]{options}, seed=1, progress=False)
str(result.summary())
print(time.process_time())
"""
NAMED = ', sampler="ram", search=False'
STEPS = 1_000_000  # of all chains of a batch, together


def seconds(work):
    begun = time.process_time()
    work()
    return time.process_time() - begun


# ---- many chains ----


def chains(rounds):
    """Rows of milliseconds a chain."""
    target = fk.targets.Gaussian(np.zeros(2))

    def run(n):
        fk.sample(target, np.zeros(2), sampler="ram", draws=100, tune=100, chains=n, threads=1,
                  **QUIET)

    run(2)
    for n in (10, 100, 1000, 10_000):
        found = [seconds(lambda n=n: run(n)) / n for _ in range(rounds)]
        yield [f"{n} chains", f"{1e3 * np.median(found):.2f} ms a chain"]


# ---- the first run, and summaries ----


def fresh(rounds):
    for label, given in (("default", ", draws=1000"), ("`ram`", NAMED + ", draws=1000")):
        script = FRESH.format(options=given)
        found = [float(subprocess.run([sys.executable, "-c", script], check=True, text=True,
                                      capture_output=True).stdout) for _ in range(2 * rounds)]
        numpy = [float(subprocess.run(
            [sys.executable, "-c", "import numpy, time; print(time.process_time())"], check=True,
            text=True, capture_output=True).stdout) for _ in range(2 * rounds)]
        yield [f"new process, 1000 draws, summary, {label}",
               f"{1e3 * np.median(found):.0f} ms, of which numpy's import "
               f"{1e3 * np.median(numpy):.0f}"]


def summaries(rounds):
    for d in (1, 10):
        draws = np.random.default_rng(1).standard_normal((4, 250_000, d)).cumsum(axis=1)
        draws -= 0.99 * np.roll(draws, 1, axis=1)
        found = [seconds(lambda draws=draws: fk.diagnostics.summary(draws)) for _ in range(rounds)]
        yield [f"summary of 4 x 250 000 draws, d = {d}", f"{1e3 * np.median(found):.0f} ms"]


# ---- stop rules ----


class Timed(fk.stop.StopRule):
    """Another rule, and the time that it takes."""

    def __init__(self, rule):
        self.rule, self.seconds = rule, 0.0

    def met(self, run):
        begun = time.process_time()
        answer = self.rule.met(run)
        self.seconds += time.process_time() - begun
        return answer


def stops(rounds):
    def density(x):
        return -0.5 * float(x @ x)

    for label, rule in (("ESS(400)", fk.stop.ESS(400)), ("Rhat(1.0001)", fk.stop.Rhat(1.0001))):
        parts = []
        for _ in range(rounds):
            timed = Timed(rule)
            whole = seconds(lambda timed=timed: fk.sample(
                density, np.zeros(2), sampler=fk.RandomWalk(proposal_cov=1e-4), tune=1000,
                draws=100_000, stop=timed, **QUIET))
            parts.append(timed.seconds / whole)
        yield [f"stop={label}, not met in 4 x 100 000 draws",
               f"{100 * np.median(parts):.1f} % of the run"]


# ---- one call for all chains ----


def batch_density(x):
    return -0.5 * np.einsum("ij,ij->i", x, x)


def by_numpy(k, n):
    """The six lines."""
    rng = np.random.default_rng(1)
    x, out = np.zeros((k, 2)), np.empty((n, k, 2))
    logp = batch_density(x)
    for i in range(n):
        y = x + 1.7 * rng.standard_normal((k, 2))
        logq = batch_density(y)
        accepted = np.log(rng.random(k)) < logq - logp
        out[i] = x = np.where(accepted[:, None], y, x)
        logp = np.where(accepted, logq, logp)


def by_fastkam(k, n, **more):
    fk.sample(batch_density, np.zeros(2), sampler=fk.RandomWalk(proposal_cov=2.89), tune=0, draws=n,
              chains=k, vectorized=True, **QUIET, **more)


def by_density(k, n):
    x = np.zeros((k, 2))
    for _ in range(n):
        batch_density(x)


def per_step(work, k):
    """Nanoseconds a step of a chain, without what a run takes at its beginning."""
    n = 4 * STEPS // k
    return 1e9 * (seconds(lambda: work(k, n)) - seconds(lambda: work(k, n // 4))) / (n - n // 4) / k


def batches(rounds):
    works = {"fastkam": by_fastkam,
             "states alone (keep_stats=False)": lambda k, n: by_fastkam(k, n, keep_stats=False),
             "NumPy": by_numpy, "density": by_density}
    for k in (64, 512, 4000):
        found = {name: [] for name in works}
        for _ in range(rounds):
            for name, work in works.items():
                found[name].append(per_step(work, k))
        middle = {name: np.median(values) for name, values in found.items()}
        above = {name: f"{value - middle['density']:.0f}" for name, value in middle.items()}
        texts = [f"{name} {above[name]}" for name in works if name != "density"]
        yield [f"{k} chains, ns a step of a chain above the density", ", ".join(texts)]


PARTS = {"chains": chains, "fresh": fresh, "summary": summaries, "stop": stops, "batches": batches}


if __name__ == "__main__":
    main(__file__, __doc__, "Beside the steps", PARTS, 5)
