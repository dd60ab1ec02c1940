"""Costs of runs beside their steps: many chains, the first run, summary, stop rules, batches.

    python -m bench.perf.costs [--quick] [--only PART]

Seconds of processor time of this process and its threads, medians of rounds. The parts:

- chains: `ram`, 100 + 100 steps of a compiled density, d = 2, one thread; per chain. Then steps
  alone, learned, 100 or 1000 of each chain in turn, draws stored.
- fresh: a new process until it has 1000 draws by default, and their summary, unless the
  install is editable.
- summary: `Result.summary` of 4 x 250 000 draws.
- stop: the part of a run that its stop rule takes, a Python density of about a microsecond.
- extras: `rwm`, d = 2, a Python density that returns (log density, extras), beside the call alone,
  in turns: in units of that call, a step whose draw is recorded, and one of a hundred that are not.
- batches: `rwm`, d = 2, one call of the density for all chains, beside six lines of NumPy: steps
  above what the density takes, in turns, into memory that has its pages; and whole calls.
"""

import subprocess
import sys
import time

import numpy as np

import fastkam as fk
from bench.perf.parts import main
from bench.perf.steps import Steps

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


def in_chunks(runs, chunk, total=2_000_000):
    """Nanoseconds a step of chains that are run in turn, a chunk of steps each."""
    rounds = max(1, total // (chunk * len(runs)))
    return 1e9 * sum(one.go(chunk) for _ in range(rounds) for one in runs) / (
        rounds * len(runs) * chunk)


def chains(rounds):
    """Rows of milliseconds a chain, and of nanoseconds a step of one."""
    target = fk.targets.Gaussian(np.zeros(2))

    def run(n):
        fk.sample(target, np.zeros(2), sampler="ram", draws=100, tune=100, chains=n, threads=1,
                  **QUIET)

    run(2)
    for n in (10, 100, 1000, 10_000):
        found = [seconds(lambda n=n: run(n)) / n for _ in range(rounds)]
        yield [f"{n} chains", f"{1e3 * np.median(found):.2f} ms a chain"]
    learned = Steps(target, "ram", np.zeros(2)).learned
    runs = [[Steps(target, "ram", np.zeros(2), learned=learned) for _ in range(n)]
            for n in (10, 10_000)]
    for chunk in (100, 1000):
        found = np.array([[in_chunks(some, chunk) for some in runs] for _ in range(2 * rounds)])
        few, many = np.median(found, axis=0)
        yield [f"a step of one of 10 chains, of 10 000, {chunk} steps of each in turn",
               f"{few:.1f} ns, {many:.1f}: {np.median(found[:, 1] / found[:, 0]):.2f} times as "
               "long"]


# ---- the first run, and summaries ----


def fresh(rounds):
    if "site-packages" not in fk.__file__:
        yield ["new process, 1000 draws, summary", "not measured: an editable install looks for "
                                                   "changed files, which takes longer"]
        return
    for label, given in (("1000 draws, summary, default", ", draws=1000"),
                         ("1000 draws, summary, `ram`", NAMED + ", draws=1000"),
                         ("a call without further arguments, summary", "")):
        script = FRESH.format(options=given)
        found = [float(subprocess.run([sys.executable, "-c", script], check=True, text=True,
                                      capture_output=True).stdout) for _ in range(2 * rounds)]
        numpy = [float(subprocess.run(
            [sys.executable, "-c", "import numpy, time; print(time.process_time())"], check=True,
            text=True, capture_output=True).stdout) for _ in range(2 * rounds)]
        yield [f"new process, {label}",
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


# ---- extras ----

VECTOR = np.arange(50.0)
RETURNED = {
    "none": lambda x: -0.5 * x[0] * x[0] - 0.5 * x[1] * x[1],
    "a number": lambda x: (-0.5 * x[0] * x[0] - 0.5 * x[1] * x[1], {"y": x[0]}),
    "2 numbers, 50 values": lambda x: (
        -0.5 * x[0] * x[0] - 0.5 * x[1] * x[1], {"y": x[0], "low": x[1] < 0, "v": VECTOR}),
}


def extras(rounds, n=20_000):
    def calls(f):
        x = np.zeros(2)
        for _ in range(n):
            f(x)

    def steps(f, thin, n):
        fk.sample(f, np.zeros(2), sampler="rwm", draws=n // thin, tune=0, chains=1, thin=thin,
                  **QUIET)

    for label, f in RETURNED.items():
        steps(f, 1, 100)
        for what, thin in (("each recorded", 1), ("one of 100 recorded", 100)):
            found = [(seconds(lambda f=f: calls(f)),
                      seconds(lambda f=f, thin=thin: steps(f, thin, 2 * n))
                      - seconds(lambda f=f, thin=thin: steps(f, thin, n)))
                     for _ in range(4 * rounds)]
            bare, whole = np.median(found, axis=0)
            yield [f"extras: {label}; {what}",
                   f"{1e6 * bare / n:.2f} µs a call, {whole / bare:.1f} calls a step"]


# ---- one call for all chains ----


def batch_density(x):
    return -0.5 * np.einsum("ij,ij->i", x, x)


def by_numpy(k, n, out=None):
    """The six lines; CPU seconds without those of the pages of `out`, where that is given."""
    out = np.empty((n, k, 2)) if out is None else out
    begun = time.thread_time()
    rng = np.random.default_rng(1)
    x = np.zeros((k, 2))
    logp = batch_density(x)
    for i in range(n):
        y = x + 1.7 * rng.standard_normal((k, 2))
        logq = batch_density(y)
        accepted = np.log(rng.random(k)) < logq - logp
        out[i] = x = np.where(accepted[:, None], y, x)
        logp = np.where(accepted, logq, logp)
    return time.thread_time() - begun


def by_density(k, n):
    x = np.zeros((k, 2))
    begun = time.thread_time()
    for _ in range(n):
        batch_density(x)
    return time.thread_time() - begun


def by_fastkam(k, n):
    fk.sample(batch_density, np.zeros(2), sampler=fk.RandomWalk(proposal_cov=2.89), tune=0, draws=n,
              chains=k, vectorized=True, **QUIET)


def batches(rounds):
    target = fk.Target.from_python(batch_density, 2, vectorized=True)
    for k in (64, 512, 4000):
        n = 4 * STEPS // k
        out = np.zeros((n, k, 2))
        both, bare = (Steps(target, fk.RandomWalk(proposal_cov=2.89), np.zeros(2), chains=k)
                      for _ in range(2))
        bare.names = None
        works = {"fastkam": lambda n, one=both: one.go(n),
                 "states alone (keep_stats=False)": lambda n, one=bare: one.go(n),
                 "NumPy": lambda n, k=k, out=out: by_numpy(k, n, out),
                 "density": lambda n, k=k: by_density(k, n)}
        found = {name: [] for name in works}
        for _ in range(2 * rounds):
            for name, work in works.items():
                found[name].append(1e9 * work(n) / n / k)
        above = {name: np.median(np.subtract(values, found["density"]))
                 for name, values in found.items() if name != "density"}
        texts = [f"{name} {value:.1f}" for name, value in above.items()]
        yield [f"{k} chains, ns a step of a chain above the density", ", ".join(texts)]
        whole = [np.median([seconds(lambda k=k, f=f: f(k, 1000)) for _ in range(rounds)])
                 for f in (by_fastkam, by_numpy)]
        yield [f"{k} chains, a call of 1000 draws, from nothing",
               "fastkam {:.0f} ms, NumPy {:.0f} ms".format(*(1e3 * value for value in whole))]


PARTS = {"chains": chains, "fresh": fresh, "summary": summaries, "stop": stops, "extras": extras,
         "batches": batches}


if __name__ == "__main__":
    main(__file__, __doc__, "Beside the steps", PARTS, 5)
