"""Chains with a common adaptation equal NumPy references with one, in the same engine."""

import numpy as np
import pytest
from agreement import GRADIENTS, TARGETS, Watch, differ, fields_differ, run, watched

from fastkam.samplers import SAMPLERS
from fastkam.schedules import Finite, IncreasinglyRare, Perpetual
from reference import REFERENCES
from reference.base import power

K = 3
LEARNED = ("rwm", "ram", "am", "rbam", "gam", "arwm", "cholam", "kam", "kpca", "mala", "fishermala",
          "barker", "gadrwm")
OPTIONS = {"rwm": {"target_acceptance": 0.3}, "kam": {"subsample": 40, "history_size": 200},
           "kpca": {"subsample": 20, "n_components": 3, "history_size": 300},
           "cholam": {"scale_gain": 0.01}, "fishermala": {"plain_steps": 0},
           "barker": {"metric": "dense"}, "gadrwm": {"optimizer": "adam"}}


def sampler_of(name):
    return SAMPLERS[name](**OPTIONS.get(name, {}))


def disagreement(name, target="five", *, sampler=None, reference=None, schedule=None, tune=300,
                 draws=200):
    """The first thing in which the run and its references differ, as text; None if there is none.

    `reference` is what the references share by its rules, in place of the right one.
    """
    logp, d = TARGETS[target]
    sampler, reference = sampler or sampler_of(name), reference or REFERENCES[name]
    options = {"x0": 0.3 * np.random.default_rng(4).standard_normal((K, d)), "chains": K,
               "tune": tune, "draws": draws, "seed": 5, "schedule": schedule or Finite(),
               "share": True}
    result, points = run(logp, GRADIENTS[target], sampler=sampler, **options)
    points = [points[k::K] for k in range(K)]
    watch = Watch(K, points if reference.lockstep else None)
    other, _ = run(logp, GRADIENTS[target], sampler=watched(reference, watch)(s=sampler),
                   **options)
    for k, chain in enumerate(watch.chains):
        if found := differ(points[k], np.array(chain.looked)):
            return f"chain {k}, step {found[0]}: y differs by {found[1]}"
        for phase, ours, theirs in (("warm-up", result.warmup, other.warmup),
                                    ("draw", result, other)):
            if found := differ(ours.draws[k], theirs.draws[k]):
                return f"chain {k}, {phase} {found[0]}: x differs by {found[1]}"
        if found := fields_differ(chain, result.states[k]):
            return f"chain {k}, {found}"
    return None


@pytest.mark.parametrize("name", LEARNED)
def test_chains_learn_in_turn(name):
    assert disagreement(name) is None


@pytest.mark.parametrize("schedule", [Perpetual(), IncreasinglyRare(rarity=0.5, start=17)], ids=str)
@pytest.mark.parametrize("name", ["am", "ram", "kam"])
def test_schedules(name, schedule):
    assert disagreement(name, schedule=schedule) is None


@pytest.mark.parametrize("name", ["am", "ram", "kam"])
def test_points_without_a_density(name):
    assert disagreement(name, "holes") is None


# ---- the same with one mistake: the test has to see it ----


@pytest.mark.parametrize("name", ["am", "ram", "kam"])
def test_gains_of_a_single_chain_are_detected(name):
    class Alone(REFERENCES[name]):
        """Each chain counts its own adaptations alone."""

        def adapt(self, x, y, alpha, accepted, gain, rng):
            gain = power(self.default_gain(self.d), self.t + 1)
            super().adapt(x, y, alpha, accepted, gain, rng)

    assert disagreement(name, reference=Alone) is not None


@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")     # what is wrong hardly moves
@pytest.mark.parametrize("name", ["am", "ram", "kam"])
def test_another_order_of_updates_is_detected(name):
    class Late(REFERENCES[name]):
        """Each chain learns from what all knew before the step, and the last one's is kept."""

        def adapt(self, *args):
            for name, value in self.before.items():
                setattr(self, name, value)
            super().adapt(*args)

        def propose(self, x, rng):
            names = [name for name, field in self.FIELDS.items() if field.shared]
            self.before = {name: getattr(self, name) for name in names}
            return super().propose(x, rng)

    assert disagreement(name, reference=Late) is not None


def test_a_stale_kernel_pass_is_detected():
    """A reference whose covariance at x is made before the others have learned."""

    class Stale(REFERENCES["kam"]):
        def adapt(self, x, y, alpha, accepted, gain, rng):
            super().adapt(x, y, alpha, accepted, gain, rng)
            self.R_x = self.R(y if accepted else x)

        def propose(self, x, rng):
            y = super().propose(x, rng)
            stale = self.t > 0 and self.t % 50 == 0
            return x + self.A @ np.linalg.cholesky(self.R_x) @ self.e if stale else y

    assert disagreement("kam", reference=Stale) is not None
