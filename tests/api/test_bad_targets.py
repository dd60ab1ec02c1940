"""`bad_targets`: correct samplers pass, and planted mistakes are named."""

from functools import partial

import numpy as np
import pytest

import fastkam as fk
from fastkam.samplers import Field
from fastkam.testing.bad_targets import TARGETS

bad_targets = partial(fk.testing.bad_targets, draws=1500, tune=500, chains=2)


class Walk(fk.PythonSampler):
    """A random walk whose scale is learned."""

    FIELDS = {"log_s": Field("log of the scale", learned=True)}

    def start(self, x0):
        self.log_s = 0.0

    def propose(self, x, rng):
        return x + np.exp(self.log_s) * rng.standard_normal(self.d)

    def adapt(self, x, y, alpha, accepted, gain, rng):
        self.log_s += gain * (alpha - 0.3)

    def default_gain(self, d):
        return fk.schedules.Power(k=0.6)


class WithoutRatio(Walk):
    """A proposal drawn towards 0, accepted as if it were symmetric."""

    def propose(self, x, rng):
        return 0.3 * x + 0.4 * rng.standard_normal(self.d)


class Forgetful(Walk):
    """A sampler whose number of steps is missing from FIELDS."""

    def start(self, x0):
        super().start(x0)
        self.seen = []

    def propose(self, x, rng):
        self.seen.append(0)
        return x + (1 + 0.5 * (len(self.seen) % 3)) * rng.standard_normal(self.d)


class Singular(Walk):
    """A sampler that raises an error where the scale is small."""

    def adapt(self, x, y, alpha, accepted, gain, rng):
        super().adapt(x, y, alpha, accepted, gain, rng)
        if self.log_s < -3:
            raise np.linalg.LinAlgError("singular")


class Careless(Walk):
    """A sampler that accepts every proposal, whatever its density."""

    def step(self, x, rng):
        point = yield self.propose(x, rng)
        return fk.samplers.Decision(point, alpha=1.0, accepted=True)


class Inventive(Walk):
    """A sampler that accepts every proposal, with a log density of its own."""

    def step(self, x, rng):
        point = yield self.propose(x, rng)
        return fk.samplers.Decision(fk.samplers.Point(point.x, 0.0), alpha=1.0, accepted=True)


class Still(Walk):
    def propose(self, x, rng):
        return x.copy()


@pytest.mark.parametrize("sampler", ["ram", "barker", Walk()], ids=str)
@pytest.mark.parametrize("seed", [1, 2])
def test_correct_samplers_pass(sampler, seed):
    """8 or 10 targets, each with a false-alarm rate of 1e-6."""
    found = bad_targets(sampler, seed=seed)
    assert found.ok, found
    assert sum(trial.verdict == "right" for trial in found.trials) >= 6, found


@pytest.mark.parametrize(
    ("sampler", "where", "says"),
    [
        (WithoutRatio(), "NaN in a half-space", "standard errors from"),
        (Singular(), "narrow", "LinAlgError: singular"),
        (Careless(), "flat in a small box, -inf outside", "to a finite point with a finite log"),
        (Inventive(), "flat in a small box, -inf outside", "draws where the density is 0"),
        (Forgetful(), "raises", "is all state in FIELDS?"),
        (Still(), "NaN in a half-space", "no chain has moved"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Walk) else "",
)
def test_mistakes_are_named(sampler, where, says):
    found = bad_targets(sampler)
    assert not found.ok
    (trial,) = [trial for trial in found.wrong if trial.name == where]
    assert says in trial.happened
    assert f"{where}: expected" in str(found)


def test_truth_of_the_targets():
    """The stated means, by sums over a grid of the density, and gradients by differences."""
    for one in TARGETS:
        center, scale = (1.0, 1e-3) if one.name == "narrow" else (0.0, 1.0)
        u = np.linspace(-12, 12, 24_001) if one.name != "heavy tails" else np.tan(
            np.linspace(-np.pi / 2, np.pi / 2, 40_003)[1:-1])
        if "box" in one.name:
            u = np.linspace(-0.0101, 0.0101, 2001)
        x = (center + scale * u)[:, None]
        logp = np.array([one.density(row)[0] for row in x])
        gradient = np.array([one.density(row)[1] for row in x])
        weights = np.gradient(u) * np.exp(np.nan_to_num(logp, nan=-np.inf))
        if one.gradient and "NaN" in one.name:
            weights = weights * np.isfinite(gradient[:, 0])
        mean = (weights * one.statistic(x)).sum() / weights.sum()
        assert mean == pytest.approx(one.mean, abs=1e-3), one.name
        assert one.inside(x[weights > 0]).all()


@pytest.mark.parametrize("bad", [{"d": 0}, {"draws": 3}, {"draw": 500}, {"sampler": "rwmm"}])
def test_bad_arguments(bad):
    with pytest.raises((TypeError, ValueError), match=r"must be|did you mean"):
        fk.testing.bad_targets(**({"sampler": "ram"} | bad))
