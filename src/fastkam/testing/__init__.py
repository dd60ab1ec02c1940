"""Tests of samplers, of likelihoods, and of both together.

`invariance` tests a sampler on a target with exact draws; `calibration` tests a likelihood, its
prior and the sampler by data simulated from them; `bad_targets` tests a sampler on targets with
invalid values. `fastkam.check_gradient` and `fastkam.check_noise` test gradients and estimates.
"""

from fastkam.testing.bad_targets import BadTargets, Trial, bad_targets
from fastkam.testing.calibration import calibration
from fastkam.testing.invariance import (
    Invariance,
    compare,
    features,
    invariance,
    invariance_as_published,
    learned_state,
    replicate,
)
from fastkam.testing.ranks import uniformity
from fastkam.testing.report import Calibration

__all__ = [
    "BadTargets",
    "Calibration",
    "Invariance",
    "Trial",
    "bad_targets",
    "calibration",
    "compare",
    "features",
    "invariance",
    "invariance_as_published",
    "learned_state",
    "replicate",
    "uniformity",
]
