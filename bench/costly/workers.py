"""Points on workers: the part of their time that is used, and the master's time for a point.

    python -m bench.costly.workers [--quick]

On a virtual clock: workers that take the points of `fk.AskTell` in the order in which they are
asked for, and return them in the order in which they end; the time of a call is random, and apart
from it nothing takes any. The barrier is a run whose chains learn as one, step by step. In real
time: a density that takes no time through a pool of processes, and through dask where it is
installed, and a simulator that sleeps, on one process and on two.
"""

import heapq
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import fastkam as fk
from bench.papers.record import heading, options, table, write

FILE = Path(__file__).parents[1] / "samplers.py"  # results are in bench/results


def density(x):
    return -0.5 * float(x @ x)


def simulator(x):
    time.sleep(0.05)
    return density(x)


def lognormal(cv):
    sigma = np.sqrt(np.log1p(cv**2))
    return lambda rng: rng.lognormal(-(sigma**2) / 2, sigma)


def uniform(rng):
    return rng.uniform(2, 4)


def virtual(workers, chains, steps, seconds, share=False):
    """Share of the workers' time used, points, processor seconds a point, the same bits."""
    rng = np.random.default_rng(1)
    run = {"x0": rng.standard_normal((chains, 4)), "sampler": "ram", "search": False,
           "chains": chains, "tune": steps // 2, "draws": steps - steps // 2, "seed": 1,
           "share": share, "diagnose": False, "keep_warmup": False}
    loop = fk.AskTell(**run)
    clock, busy, n, master = 0.0, 0.0, 0, -time.process_time()
    running = []
    while not loop.done:
        for index, x in loop.ask(most=workers - len(running)):
            t = seconds(rng)
            busy += t
            heapq.heappush(running, (clock + t, index, x))
        clock, index, x = heapq.heappop(running)
        loop.tell([index], [density(x)])
        n += 1
    master += time.process_time()
    same = np.array_equal(loop.result.draws, fk.sample(density, **run, progress=False).draws)
    return busy / (workers * clock), n, master / n, same


def virtual_table(quick):
    """The use of workers that return points in random order."""
    cases = [("1 000", 1000, 1000, 40, lognormal(0.5), "cv 0.5", False),
             ("1 000", 1000, 2000, 20, lognormal(0.5), "cv 0.5", False),
             ("1 000", 1000, 4000, 10, lognormal(0.5), "cv 0.5", False),
             ("1 000", 1000, 1000, 100, lognormal(0.5), "cv 0.5", False),
             ("1 000", 1000, 2000, 20, lognormal(1.0), "cv 1", False),
             ("1 000", 1000, 1000, 40, lognormal(0.5), "cv 0.5", True),
             ("56", 56, 56, 40, uniform, "2 to 4 s", False),
             ("56", 56, 112, 40, uniform, "2 to 4 s", False),
             ("56", 56, 112, 200, uniform, "2 to 4 s", False),
             ("56", 56, 56, 40, uniform, "2 to 4 s", True)]
    rows = []
    for label, workers, chains, steps, seconds, times, share in cases:
        if quick and chains * steps > 45_000:
            continue
        used, n, master, same = virtual(workers, chains, steps, seconds, share)
        rows.append([label, times, f"{chains:,}", str(steps), "yes" if share else "no",
                     f"{n:,}", f"{used:.3f}", f"{1e3 * master:.3f}", "yes" if same else "NO"])
        print(*rows[-1], sep=" | ", flush=True)
    return table(["workers", "a call", "chains", "steps", "barrier", "points", "used",
                  "processor ms a point", "same bits as `sample`"], rows)


def cost(executor, points, task_size):
    """(processor time of the master, and time by the clock, in ms a point; points a task)."""
    from fastkam.points.carriers import OverExecutor
    from fastkam.points.pool import PointPool
    from fastkam.run.workers import as_workers

    carrier = OverExecutor(as_workers(executor), fk.as_target(density, 4))
    pool = PointPool(carrier)
    X = np.random.default_rng(1).standard_normal((points + 100, 4))
    pool.evaluate(X[:100])  # workers begin
    if task_size == 1:
        carrier.seconds = 1.0
        carrier.note = lambda replies: None
    cpu, clock = time.process_time(), time.perf_counter()
    pool.evaluate(X[100:])
    cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
    return 1e3 * cpu / points, 1e3 * clock / points, carrier.task_size


def cost_of_run(executor, chains, steps):
    """The same of a whole run of `ram`, its own work included."""
    begun = None

    def seen(progress):
        nonlocal begun
        begun = begun or (time.process_time(), time.perf_counter(), progress.steps)

    result = fk.sample(density, np.zeros(4), sampler="ram", search=False, chains=chains,
                       tune=steps // 2, draws=steps - steps // 2, seed=1, executor=executor,
                       spread="points", diagnose=False, progress=seen)
    n = chains * steps - begun[2]
    return (1e3 * (time.process_time() - begun[0]) / n,
            1e3 * (time.perf_counter() - begun[1]) / n, result.workers.points)


def cost_table(quick):
    """Return the table of the master's cost of a point."""
    points = 2_000 if quick else 4_000
    executors = {"pool of 2 processes": ProcessPoolExecutor(2)}
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        print("dask is not installed")
    else:
        cluster = LocalCluster(2, threads_per_worker=1, dashboard_address=None)
        executors["dask, 2 workers"] = Client(cluster).get_executor()
    rows = []
    for label, executor in executors.items():
        for size in (1, None):
            cpu, clock, size = cost(executor, points, size)
            rows.append([label, "points alone", str(size), f"{cpu:.3f}", f"{clock:.3f}"])
            print(*rows[-1], sep=" | ", flush=True)
        cpu, clock, _ = cost_of_run(executor, 500, points // 100)
        rows.append([label, "a run of 500 chains", "several", f"{cpu:.3f}", f"{clock:.3f}"])
        print(*rows[-1], sep=" | ", flush=True)
    executors["pool of 2 processes"].shutdown()
    return table(["executor", "", "points a task", "processor ms a point", "ms by the clock"], rows)


def speedup(quick):
    """Seconds of a whole run with a simulator of 50 ms, on one process and on two."""
    found = {}
    for processes in (1, 2):
        with ProcessPoolExecutor(processes) as pool:
            begun = time.perf_counter()
            result = fk.sample(simulator, np.zeros(4), sampler="ram", search=False, chains=8,
                               tune=20, draws=20 if quick else 40, seed=1, executor=pool,
                               spread="points", diagnose=False, progress=False)
            found[processes] = time.perf_counter() - begun, result.workers.utilization
    return found


def main():
    chosen = options(FILE, __doc__, quick="fewer points")
    used = virtual_table(chosen.quick)
    costs = cost_table(chosen.quick)
    times = speedup(chosen.quick)
    (one, share_one), (two, share_two) = times[1], times[2]
    line = (f"A run with a simulator of 50 ms: {one:.2f} s on one process, {two:.2f} s on two, a "
            f"ratio of {one / two:.3f}; used {share_one:.3f} and {share_two:.3f} of their time.")
    print(line)
    text = heading("Points on workers", "python -m bench.costly.workers", chosen)
    write(Path(__file__).parents[1] / chosen.folder.name / "costly-workers.md", "\n".join([
        text, "On a virtual clock, the share of the workers' time that is used:\n", used,
        "In real time, what a point costs the master (a density that takes no time):\n", costs,
        line + "\n"]))


if __name__ == "__main__":
    main()
