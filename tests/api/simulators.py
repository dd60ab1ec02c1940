"""Densities that take a while, fail or kill their process, for points on workers."""

import os
import signal
import time
from pathlib import Path

import numpy as np

import fastkam as fk

OPTIONS = {"x0": np.array([1.0, 2.0]), "tune": 30, "draws": 60, "chains": 5, "seed": 3,
           "diagnose": False}


def quick(x):
    return -0.5 * float(x @ x), {"sum": x.sum(), "many": np.arange(3) * x[0], "count": 2}


def slow(x):
    time.sleep(0.03)
    return quick(x)


def noted(x, folder):
    """A call leaves a file behind; its name is unique."""
    handle = os.open(Path(folder) / f"{time.time_ns()}-{os.getpid()}", os.O_CREAT | os.O_EXCL)
    os.close(handle)
    return quick(x)


def dies_once(x, folder):
    """The first call beyond 1.2 kills its process."""
    if x[0] > 1.2:
        try:
            os.close(os.open(Path(folder) / "dead", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return quick(x)


def dies_beyond(x):
    if x[0] > 1.5:
        os.kill(os.getpid(), signal.SIGKILL)
    return -0.5 * float(x @ x)


def raises_beyond(x):
    if x[0] > 1.5:
        raise ValueError("no solution")
    return -0.5 * float(x @ x)


def hangs_beyond(x, seconds=20):
    time.sleep(seconds if x[0] > 1.2 else 0.004)
    return -0.5 * float(x @ x)


def hangs_with_gradient(x):
    time.sleep(20 if abs(x[0]) > 0.9 else 0.004)
    return -0.5 * float(x @ x), -x


def nan_beyond(x):
    return np.nan if x[0] > 1.5 else -0.5 * float(x @ x)


def outside_beyond(x):
    return -np.inf if x[0] > 1.5 else -0.5 * float(x @ x)


def loglike(mu, sigma):
    return -0.5 * ((np.array([1.0, 2.0, 2.5]) - mu) ** 2).sum() / sigma**2 - 3 * np.log(sigma)


def with_gradient(x):
    return -0.5 * float(x @ x), -x


def pid_of(x):
    return -0.5 * float(x @ x), {"process": os.getpid()}


def built_in():
    return fk.targets.two_mode()


class After:
    """A normal density that raises an error from some call on."""

    def __init__(self, after, error):
        self.after, self.error, self.n = after, error, 0

    def __call__(self, x):
        self.n += 1
        if self.n > self.after:
            raise self.error() if callable(self.error) else self.error
        return -0.5 * float(x @ x)
