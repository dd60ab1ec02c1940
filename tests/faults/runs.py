"""The runs that faults happen to, as processes: ``python runs.py '{"case": "pt", ...}'``.

A process prints "ready" when it has imported all, and how its run has ended: as "returned", with
the status of the result that it has saved, as "error", or as "KeyboardInterrupt".
"""

import errno
import json
import random
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import fastkam as fk
from fastkam.run import executors, files

D = 3


def logp(x):
    """A curved density in some 100 microseconds, with its gradient."""
    time.sleep(2e-5)
    r = x[1] - 0.5 * x[0] ** 2
    return (-0.5 * float(x[0] ** 2 + r**2 + x[2] ** 2),
            np.array([-x[0] + r * x[0], -r, -x[2]]))


def logps(X):
    """The same at many points."""
    time.sleep(2e-5)
    r = X[:, 1] - 0.5 * X[:, 0] ** 2
    return -0.5 * (X[:, 0] ** 2 + r**2 + X[:, 2] ** 2)


PLAIN = {"search": False, "tune": 300, "draws": 1500, "chains": 2, "check_gradient": False}
CASES = {
    "ram": PLAIN | {"sampler": "ram"},
    "pt": PLAIN | {"sampler": "pt", "tune": 100, "draws": 200, "threads": 2},
    "shared nuts": PLAIN | {"sampler": "nuts", "share": True, "tune": 100, "draws": 200},
    "vectorized kam": PLAIN | {"sampler": "kam", "vectorized": True},
    "jumps in a thread pool": PLAIN | {"sampler": "jumps", "pool": "threads", "draws": 800},
    "ram in forked processes": PLAIN | {"sampler": "ram", "pool": "fork"},
    "ram in new processes": PLAIN | {"sampler": "ram", "pool": "spawn"},
    "auto, with a search": {"tune": 300, "draws": 600, "chains": 2},
    "until the draws suffice": {"chains": 2, "vectorized": True},
    "ram with a store": PLAIN | {"sampler": "ram", "store": True},
    "ram in processes of its own": PLAIN | {"sampler": "ram", "executor": 2},
}


def target_of(case):
    """The density of a case; from this module by its name, which worker processes can import."""
    if "executor" in CASES[case]:
        from faults import runs

        return runs.logp
    return logps if CASES[case].get("vectorized") else logp


def pool_of(kind):
    if kind is None:
        return nullcontext()
    if kind == "threads":
        return ThreadPoolExecutor(2)
    return ProcessPoolExecutor(2, mp_context=get_context(kind))


def carry_out(case, checkpoint):
    """The run of a case."""
    options = dict(CASES[case])
    store = store_of(case, checkpoint) if options.pop("store", False) else None
    own = options.pop("executor", None)
    with pool_of(options.pop("pool", None)) as pool:
        return fk.sample(target_of(case), np.ones(D), seed=1, executor=pool or own,
                         checkpoint=checkpoint, checkpoint_interval=0.05, store=store,
                         progress=False, diagnose=False, **options)


def store_of(case, checkpoint):
    """The store of a case, beside its checkpoint; it is there for some cases alone."""
    return Path(checkpoint).with_name("store")


class FullDisk:
    """Files on a disk that is full after some bytes, for some of the files that are written."""

    def __init__(self, seed):
        self.random, self.unfinished = random.Random(seed), files.unfinished

    def __call__(self, place):
        temporary, file = self.unfinished(place)
        if self.random.random() < 0.5:
            file = FullFile(file, int(10 ** self.random.uniform(0, 5)))
        return temporary, file


class FullFile:
    """A file with room for some bytes."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, data):
        self.room -= memoryview(data).nbytes
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.file.write(data)

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()


def main(case, checkpoint, out, full=None):
    warnings.simplefilter("ignore")
    executors.TASK_SECONDS = 0.1
    if full is not None:
        files.unfinished = FullDisk(full)
    try:
        print("ready", flush=True)
        result, how = carry_out(case, checkpoint), "returned"
    except fk.SamplingError as error:
        result, how = error.result, f"error {error}"
    except KeyboardInterrupt:
        print("KeyboardInterrupt", flush=True)
        return
    except OSError as error:  # of a store that cannot be begun
        print(f"OSError {error}", flush=True)
        return
    if full is not None:
        files.unfinished = files.unfinished.unfinished
    while True:
        try:
            result.save(out)
            print(how, result.status, flush=True)
            break
        except KeyboardInterrupt:  # a late one
            pass


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
