"""Resources of a run besides its density: cores, memory, long chains, and the start."""

import os

import numpy as np

from bench.papers.record import table
from bench.peers.environments import python_of
from bench.peers.launch import PeerError, command, cost

IMPORTS = {"fastkam": "fastkam; fastkam.sample", "pymcmcstat": "pymcmcstat.MCMC",
           "nutpie": "nutpie, numba"}

SCALING = """
import time
import numpy as np, fastkam as fk
wall, cpu = {{1: [], 2: []}}, {{1: [], 2: []}}
for threads in (1, 2) * {rounds}:
    begun, used = time.perf_counter(), time.process_time()
    fk.sample(fk.targets.two_mode(), [-8.0, 0.0], sampler={sampler!r}, draws={steps} // 10,
              thin=10, tune=1000, chains=4, seed=1, threads=threads, progress=False)
    wall[threads].append(time.perf_counter() - begun)
    cpu[threads].append(time.process_time() - used)
print(min(wall[1]), min(wall[2]), np.median(cpu[1]), np.median(cpu[2]))
"""

PEAK = """
def peak():
    with open("/proc/self/status") as status:
        return 1024 * int(next(line for line in status if line.startswith("VmHWM")).split()[1])
"""

MEMORY = {
    "fastkam": PEAK + """
import fastkam as fk
def run(n, thin):
    return fk.sample(fk.targets.banana(d=2), [0.0, 0.0], chains=1, draws=n // thin, thin=thin,
                     seed=1, progress=False, keep_stats={stats})
run(1000, 1)
before = peak()
result = run({n}, {thin})
print(before, peak(), result.draws.nbytes)
""",
    "emcee": PEAK + """
import emcee, numpy as np
def run(n, thin):
    sampler = emcee.EnsembleSampler(64, 2, lambda x: -0.5 * np.einsum("ij,ij->i", x, x),
                                    vectorize=True)
    sampler.run_mcmc(np.random.standard_normal((64, 2)), n // 64 // thin, thin_by=thin)
    return sampler
run(6400, 1)
before = peak()
sampler = run({n}, {thin})
print(before, peak(), sampler.get_chain().nbytes)
""",
}

LONG = {
    "fastkam": """
import time
import fastkam as fk
fk.sample, fk.targets       # imported before the clock starts
for n in {lengths}:
    begun = time.process_time()
    fk.sample({target}, [0.0, 0.0], sampler="ram", chains=1, draws=n, tune=0,
              schedule="diminishing", seed=1, progress=False)
    print(1e9 * (time.process_time() - begun) / n)
""",
    "emcee": """
import time
import emcee, numpy as np
for n in {lengths}:
    sampler = emcee.EnsembleSampler(10, 2, lambda x: -0.5 * x.dot(x))
    begun = time.process_time()
    sampler.run_mcmc(np.random.standard_normal((10, 2)), n // 10)
    print(1e9 * (time.process_time() - begun) / n)
""",
}
LONG_TARGETS = {"compiled": "fk.targets.banana(d=2)", "Python": "lambda x: -0.5 * x.dot(x)"}

FIRST = {
    "fastkam": """
import fastkam as fk
fk.sample(lambda x: -0.5 * x.dot(x), [0.0, 0.0], chains=1, draws=1000, progress=False)
""",
    "emcee": """
import emcee, numpy as np
sampler = emcee.EnsembleSampler(10, 2, lambda x: -0.5 * x.dot(x))
state = sampler.run_mcmc(np.random.standard_normal((10, 2)), 100)
sampler.reset()
sampler.run_mcmc(state, 100)
""",
}

def measure(contest, options):
    here = [name for name in ("fastkam", "emcee") if name in contest.samplers]
    tables = [cores(options)] if "fastkam" in here else []
    tables += [memory(here, options), long_chains(here, options), start(contest, options)]
    return "\n".join(tables)


def printed(package, script, **values):
    """The numbers that a script prints."""
    said = command(python_of(package), "-c", script.format(**values), timeout=1200)
    return [float(number) for number in said.split()]


def cores(options):
    rows = []
    for sampler in ("rwm", "ram"):
        one, two, cpu_one, cpu_two = printed(
            "fastkam", SCALING, sampler=sampler, rounds=3 if options.quick else 9,
            steps=10**6 if options.quick else 4 * 10**6)
        rows.append([sampler, f"{one:.2f}", f"{two:.2f}", f"{one / two:.2f}", f"{cpu_one:.2f}",
                     f"{cpu_two:.2f}", f"{2 * cpu_one / cpu_two:.2f}"])
    return (
        "**From one core to two.** Four chains of a compiled density of two modes, one step in ten "
        "stored. Wall seconds are the least of the rounds; on a machine that does other work "
        f"(processes that wanted to run, after it: {os.getloadavg()[0]:.1f}, of {os.cpu_count()} "
        "processors) they say little, and twice the CPU seconds with one thread over those with "
        "two says what the second thread would give on a free one.\n\n"
    ) + table(["fastkam", "1 thread, wall", "2 threads, wall", "ratio", "1 thread, CPU",
               "2 threads, CPU", "twice the ratio of CPU"], rows)


def memory(here, options):
    n, rows = 10**6 if options.quick else 10**7, []
    for package in here:
        for thin, stats in ((1, True), (10, True), (1, False))[:3 if package == "fastkam" else 2]:
            before, after, draws = printed(package, MEMORY[package], n=n, thin=thin, stats=stats)
            rows.append([package if stats else f"{package}, keep_stats=False", f"{thin}",
                         f"{draws / 1e6:,.0f}", f"{before / 1e6:,.0f}",
                         f"{after / 1e6:,.0f}", f"{(after - before) / draws:.2f}"])
    return (
        f"**Memory.** Peak of a process that makes {n:.0e} draws in two dimensions, MB; the start "
        "has run a thousand.\n\n"
    ) + table(["package", "thin", "the draws' own bytes", "start", "peak",
               "(peak - start) / draws"], rows)


def long_chains(here, options):
    lengths = [10**k for k in range(3, 7 if options.quick else 8)]
    rows = []
    for package in here:
        targets = LONG_TARGETS if package == "fastkam" else {"Python": ""}
        for kind, target in targets.items():
            mine = lengths if kind == "compiled" else lengths[:4]
            found = [printed(package, LONG[package], lengths=mine, target=target)
                     for _ in range(1 if options.quick else 3)]
            cells = [f"{value:,.0f}" for value in np.median(found, axis=0)]
            rows.append([package, kind, *cells, *[""] * (len(lengths) - len(mine))])
    return (
        "**Long chains.** CPU nanoseconds an evaluation, by the number of evaluations of a run, "
        "start and storing included; fastkam's `ram` adapts all the while, emcee has ten "
        "walkers.\n\n"
    ) + table(["package", "density", *(f"{n:.0e}" for n in lengths)], rows)


def start(contest, options):
    """Import and first draws, fresh processes, in turn."""
    rounds = 3 if options.quick else 11
    spent = {}
    for _ in range(rounds):
        for package in contest.samplers:
            scripts = {"base": "import numpy", "import": f"import {IMPORTS.get(package, package)}"}
            if package in FIRST:
                scripts["first"] = FIRST[package]
            for what, script in scripts.items():
                try:
                    spent.setdefault((package, what), []).append(cost(package, script))
                except PeerError as error:
                    contest.tell(f"{package}, {what}", error)
    rows = []
    for package in contest.samplers:
        if (package, "import") not in spent:
            continue
        base, loaded = (np.array(spent[package, what]) for what in ("base", "import"))
        first = spent.get((package, "first"))
        rows.append([
            package, *(f"{1e3 * value:.0f}" for value in np.median(base, axis=0)),
            *(f"{1e3 * value:.0f}" for value in np.median(loaded, axis=0)),
            f"{np.median(loaded[:, 1] / base[:, 1]):.2f}",
            *([""] * 2 if first is None else [f"{1e3 * v:.0f}" for v in np.median(first, axis=0)])])
    return (
        "**Start.** Milliseconds of a fresh process, wall and CPU: interpreter and numpy, the "
        "package, and the first 1000 draws of a Python density after as many steps of warm-up "
        "(emcee: ten walkers). fastkam's import is that of `fastkam.sample` with all it needs: "
        f"`import fastkam` alone loads next to nothing. Medians (rounds: {rounds}).\n\n"
    ) + table(["package", "numpy, wall", "CPU", "import, wall", "CPU", "ratio of CPU",
               "1000 draws, wall", "CPU"], rows)
