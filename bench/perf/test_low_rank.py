"""Steps of KAM with n x n matrices beside steps with d x d matrices, on the same target.

`pytest bench/perf/test_low_rank.py -q` prints microseconds a step of both and where they are equal.
"""

import numpy as np
import pytest

import fastkam as fk
from bench.perf.test_overhead import FROZEN, medians, stepper

LEARNING = (0.5, 0.5, 1.0, 1.0, 0, None, 0.0)
SIZES = [(8, 4), (8, 7), (16, 8), (16, 16), (32, 16), (32, 32), (32, 44), (64, 50), (64, 90),
         (128, 100), (128, 180), (785, 100)]


class InDimensions(fk.KernelAdaptiveMetropolis):
    def few_points(self, d):
        return False


class InPoints(fk.KernelAdaptiveMetropolis):
    def few_points(self, d):
        return True


@pytest.mark.parametrize("phase", ["learning", "learned"])
@pytest.mark.parametrize(("d", "n"), SIZES)
def test_step(d, n, phase, report, benchmark):
    steps = max(20, 400_000 // (d * d))
    target, schedule = fk.targets.Gaussian(np.zeros(d), np.ones(d)), FROZEN
    if phase == "learning":
        schedule = LEARNING
    forms = []
    for cls in (InPoints, InDimensions):
        # the subsample is renewed as rarely as late in a chain
        sampler = cls(subsample=n, history_size=2 * n, renewal=1e-3)
        go, _ = stepper(target, sampler, np.zeros(d), steps, tune=2 * n, schedule=schedule)
        forms.append(go)
    points, dimensions = medians(*forms, rounds=5 if d > 500 else 21)
    report(f"KAM, d {d}, n {n}, {phase}: {points / steps * 1e6:.2f} us a step with n x n matrices, "
           f"{dimensions / steps * 1e6:.2f} with d x d: {dimensions / points:.2f} times faster")
    benchmark(forms[0])
