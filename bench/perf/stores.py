"""Cost of a store: the part of a run that writing takes, by its length, and its memory.

    python -m bench.perf.stores [--quick] [--only PART]

The parts:

- part: `rwm` with a Python density of about a microsecond, d = 2, one chain, by default settings:
  processor time within the functions that write, as a part of that of the run.
- quick: the same of a compiled density, nanoseconds a draw, for every kind of store.
- state: the file of the state, which a checkpoint writes.
- memory: the most memory that a process takes, and the time a draw, of 10^6 to 10^8 draws of a
  compiled density, two chains; Linux.
- billion: the same of 10^9 draws, only by `--only billion`: 33 GB of disk, and some minutes.
"""

import functools
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import fastkam as fk
from bench.perf.parts import main
from fastkam.run.groups import ChainGroup
from fastkam.run.writer import CheckpointWriter
from fastkam.stores import Npy, Zarr

QUIET = {"sampler": fk.RandomWalk(proposal_cov=2.0), "search": False, "seed": 1, "tune": 10,
         "progress": False, "diagnose": False, "threads": 1}
WRITING = ((ChainGroup, "settle"), (ChainGroup, "flush"), (ChainGroup, "attach"),
           (CheckpointWriter, "write_store"))
MEMORY = """
import sys, time
import numpy as np
import fastkam as fk
def peak():  # megabytes; what getrusage says begins with that of the process that has forked this
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1e3
path, draws = sys.argv[1], int(sys.argv[2])
begun = time.process_time()
result = fk.sample(fk.targets.Gaussian(np.zeros(2)), np.zeros(2), draws=draws // 2, chains=2,
                   sampler=fk.RandomWalk(proposal_cov=2.0), search=False, seed=1, tune=10,
                   progress=False, diagnose=False, threads=1, store=path, checkpoint_interval=5)
took = time.process_time() - begun
most = peak()
result.summary()
later = peak()
print(took / draws * 1e9, most, later)
"""


def stores():
    """Kinds of store by their names."""
    return {
        ".npy": Npy, "zarr": Zarr,
        "zarr, zstd": functools.partial(Zarr, compression="zstd"),
        "zarr, lz4": functools.partial(Zarr, compression="lz4"),
    }


@contextmanager
def timed():
    """A list to which the seconds within the functions that write are added."""
    found, depth, originals = [0.0], [0], []
    for cls, name in WRITING:
        original = getattr(cls, name)
        originals.append((cls, name, original))

        def wrapper(*args, original=original, **named):
            depth[0] += 1
            begun = time.process_time()
            try:
                return original(*args, **named)
            finally:
                depth[0] -= 1
                if not depth[0]:
                    found[0] += time.process_time() - begun

        setattr(cls, name, wrapper)
    try:
        yield found
    finally:
        for cls, name, original in originals:
            setattr(cls, name, original)


def density(x):
    return -0.5 * float(x @ x)


def run(target, kind, draws):
    """Return the seconds of the run, and those spent on writing."""
    with tempfile.TemporaryDirectory() as folder, timed() as within:
        begun = time.process_time()
        fk.sample(target, np.zeros(2), draws=draws, chains=1, store=kind(Path(folder, "run")),
                  **QUIET)
        return time.process_time() - begun, within[0]


def parts(rounds):
    for label in (".npy", "zarr"):
        for draws in (1_000_000, 2_000_000, 4_000_000):
            found = [run(density, stores()[label], draws) for _ in range(rounds)]
            whole, part = np.median([whole for whole, _ in found]), [b / a for a, b in found]
            yield [f"{label}, {draws} draws of a Python density",
                   f"{100 * np.median(part):.1f} % of {1e9 * whole / draws:.0f} ns a draw"]


def quick(rounds):
    target, draws = fk.targets.Gaussian(np.zeros(2)), 4_000_000
    for label, kind in stores().items():
        found = [run(target, kind, draws)[1] for _ in range(rounds)]
        yield [f"{label}, 4 000 000 draws of a compiled density",
               f"{1e9 * np.median(found) / draws:.0f} ns a draw to write"]


def state(rounds):
    for draws in (10_000, 10_000_000):
        with tempfile.TemporaryDirectory() as folder:
            result = fk.sample(fk.targets.Gaussian(np.zeros(2)), np.zeros(2), draws=draws, chains=1,
                               store=Path(folder, "run"), **QUIET)
            size = result.trace.store.state_path.stat().st_size
        yield [f"the state after {draws} draws", f"{size} bytes"]


def memory(rounds):
    return in_a_process((10**6, 10**7, 10**8)[: 2 if rounds == 1 else 3], ("run", "run.zarr"))


def billion(rounds):
    return in_a_process((10**9,), ("run",))


def in_a_process(numbers, paths):
    for draws in numbers:
        for path in paths:
            folder = tempfile.mkdtemp()
            try:
                text = subprocess.run(
                    [sys.executable, "-c", MEMORY, f"{folder}/{path}", str(draws)],
                    check=True, text=True, capture_output=True).stdout
            finally:
                shutil.rmtree(folder)
            took, most, later = map(float, text.split())
            yield [f"{draws} draws, {path}", f"{took:.0f} ns a draw, {most:.0f} MB at most; "
                                             f"{later:.0f} MB with the summary"]


PARTS = {"part": parts, "quick": quick, "state": state, "memory": memory, "billion": billion}


if __name__ == "__main__":
    main(__file__, __doc__, "Draws in a store", PARTS, 3, apart=("billion",))
