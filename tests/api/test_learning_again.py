"""Runs that learn a surrogate: the first one of a process, and those that follow."""

import subprocess
import sys

SCRIPT = """
import warnings
import numpy as np
import fastkam as fk

warnings.simplefilter("ignore")
calls = []
for _ in range(2):
    result = fk.sample(lambda x: -0.5 * ((x[0] / 2) ** 2 + 20 * (x[1] - x[0] ** 2 / 4) ** 2),
                       [1.0, 1.0], surrogate="learn", budget=400, seed=1, progress=False)
    calls.append(np.asarray(result.state.calls).tobytes() + result.draws.tobytes())
assert calls[0] == calls[1]
"""


def test_the_first_run_of_a_process_makes_the_same_calls_as_the_second():
    """The first one loads scipy.linalg, whose BLAS must have one thread in both."""
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, timeout=300)
