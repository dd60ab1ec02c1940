"""Nanoseconds of things that are called many times, side by side in one run."""

import time
from dataclasses import dataclass

import numpy as np

ROUNDS = 21
SECONDS = 1e-3      # of one round of one thing, about


@dataclass
class Case:
    """One kernel at one size: functions of a number of calls, and how they compare."""

    label: str
    fastkam: object
    floor: object
    lapack: object = None       # BLAS or LAPACK from C
    scipy: object = None        # numpy or scipy from Python
    answer: object = None       # the results of the last call of fastkam or of the floor

    def measured(self, rounds=ROUNDS):
        """{name: nanoseconds a call} and {name: its time over fastkam's}.

        Medians over rounds in which all take turns, and of the ratios within a round.
        """
        named = {name: f for name in ("fastkam", "floor", "lapack", "scipy")
                 if (f := getattr(self, name))}
        times = {name: calls(f) for name, f in named.items()}
        seconds = np.array([
            [elapsed(f, times[name]) for name, f in named.items()] for _ in range(rounds)
        ])
        ns = dict(zip(named, 1e9 * np.median(seconds, axis=0), strict=True))
        ratios = np.median(seconds / seconds[:, :1], axis=0)
        return ns, dict(zip(named, ratios, strict=True))

    def row(self):
        """The measured figures as texts, for a row of a table."""
        ns, ratios = self.measured()
        beside = [f"{ns[name]:.4g}" if name in ns else "" for name in ("lapack", "scipy")]
        times = [f"{ratios[name]:.3g}" if name in ns else "" for name in ("lapack", "scipy")]
        return [self.label, f"{ns['fastkam']:.4g}", f"{ns['floor']:.4g}",
                f"{1 / ratios['floor']:.2f}", *(x for pair in zip(beside, times, strict=True)
                                               for x in pair)]


COLUMNS = ["", "fastkam, ns", "floor", "fastkam / floor", "BLAS, LAPACK", "times fastkam",
           "numpy, scipy", "times fastkam"]


def same(case, **tolerance):
    """fastkam and the floor compute the same."""
    found = []
    for function in (case.fastkam, case.floor):
        function(1)
        found.append(case.answer())
    np.testing.assert_allclose(*found, **tolerance)


def elapsed(function, times):
    """CPU seconds of this thread for each of a number of calls."""
    begun = time.thread_time()
    function(times)
    return (time.thread_time() - begun) / times


def calls(function):
    """Return the number of calls that take about SECONDS."""
    function(1)     # compiles, and fills the caches
    times = 1
    while (seconds := elapsed(function, times)) * times < SECONDS / 4:
        times *= 4
    return max(1, round(SECONDS / seconds))


def repeated(function):
    """A function of the number of calls, from one of none."""
    def again(times):
        for _ in range(times):
            function()
    return again
