"""Densities of which a surrogate is learned, and the arguments of short runs."""

import time

QUIET = {"progress": False, "diagnose": False}


class Bent:
    """A bent density of three dimensions, which counts its calls."""

    def __init__(self):
        self.n = 0

    def __call__(self, x):
        self.n += 1
        return float(-0.5 * (x[0] ** 2 + (x[1] - 0.5 * x[0] ** 2) ** 2 + (x[2] - x[1]) ** 2))


def slow(x):
    """A density of 3 ms."""
    time.sleep(3e-3)
    return -0.5 * float(x @ x), {"first": x[0]}


SLOW = {"surrogate": "learn", "budget": 250, "seed": 1} | QUIET
