"""Chains that learn as one equal NumPy references that hand on what they learn, in turn."""

import numpy as np
import pytest
from agreement import GRADIENTS, TARGETS, differ, field, generator

import fastkam as fk
from fastkam.samplers import SAMPLERS
from fastkam.schedules import Finite, IncreasinglyRare, Perpetual
from reference import REFERENCES
from reference.chain import Calendar

K = 3
LEARNT = {  # of each reference, what the chains have in common
    "rwm": ("scale",), "ram": ("Sigma", "refused"), "am": ("mu", "Sigma"), "rbam": ("mu", "Sigma"),
    "gam": ("mu", "Sigma", "scale"), "arwm": ("mu", "Sigma"), "cholam": ("mu", "L", "delta"),
    "kam": ("z", "length", "log_nu", "age", "history"),
    "kpca": ("z", "length", "log_nu", "age", "history", "Ha", "p", "used"),
    "mala": ("log_s",), "fishermala": ("signals", "n", "R", "log_s"),
    "barker": ("mu", "Sigma", "log_s"), "gadrwm": ("L", "G", "M", "beta", "age"),
}
OPTIONS = {"rwm": {"target_acceptance": 0.3}, "kam": {"subsample": 40, "history": 200},
           "kpca": {"subsample": 20, "components": 3, "history": 300},
           "cholam": {"scale_gain": 0.01}, "fishermala": {"plain_steps": 0},
           "barker": {"metric": "dense"}, "gadrwm": {"optimizer": "adam"}}


def sampler_of(name):
    return SAMPLERS[name](**OPTIONS.get(name, {}))


def disagreement(name, target="five", *, sampler=None, reference=None, calendars=None,
                 backwards=False, schedule=None, tune=300, draws=200):
    """The first thing in which the run and its references differ, as text; None if there is none.

    `calendars` are those of the chains: one that all turn over, as it should be, or another.
    """
    (logp, d), schedule = TARGETS[target], schedule or Finite()
    sampler = sampler or sampler_of(name)
    x0 = 0.3 * np.random.default_rng(4).standard_normal((K, d))
    points = []

    def recording(x):
        points.append(x.copy())
        return logp(x), GRADIENTS[target](x)

    result = fk.sample(recording, x0, sampler=sampler, chains=K, tune=tune, draws=draws, seed=5,
                       schedule=schedule, share=True, check_gradient=False, progress=False)
    points = np.array(points[K:])
    make = reference or REFERENCES[name]
    others = [make(sampler, x0.mean(axis=0)) for _ in range(K)]
    for k, other in enumerate(others):
        other.logp, other.grad, other.looked = logp, GRADIENTS[target], []
        other.points = points[k::K] if other.lockstep else None
    calendar = Calendar(schedule.gain or sampler.default_gain(d), schedule.start, schedule.rarity)
    stop = tune if isinstance(schedule, Finite) else np.inf
    rows = step_together(others, x0, tune + draws, calendars or [calendar] * K, stop,
                         LEARNT[name], order=range(K)[::-1] if backwards else range(K))
    for k, other in enumerate(others):
        if found := differ(points[k::K], np.array(other.looked)):
            return f"chain {k}, step {found[0]}: y differs by {found[1]}"
        x = np.concatenate([result.warmup.draws[k], result.draws[k]])
        if found := differ(x, np.array(rows[k])):
            return f"chain {k}, step {found[0]}: x differs by {found[1]}"
        for what, value in other.fields().items():
            if found := differ(field(what, result.states[k]), value):
                return f"chain {k}, at the end: {what} differs by {found[1]}"
    return None


def step_together(others, x0, steps, calendars, stop, learnt, order):
    """The states of each chain, [(steps, d)]: all move, then each learns in its turn."""
    rngs = [generator(5, k, K) for k in range(K)]
    x, lp = list(x0), [others[k].logp(x0[k]) for k in range(K)]
    rows = [[] for _ in others]
    for t in range(steps):
        moves = []
        for k, other in enumerate(others):
            other.t, other.stop = t, stop
            moves.append(other.step(x[k], lp[k], rngs[k]))
        last = others[order[-1]]
        for k in order:
            other, (y, lp_y, log_ratio, accepted) = others[k], moves[k]
            hand_on(learnt, last, other)
            gain = calendars[k].gain_at(t) if t < stop else None
            if gain is not None:
                alpha = np.exp(min(0.0, log_ratio))
                other.adapt(x[k], y, alpha, accepted, gain, rngs[k])
            if accepted:
                x[k], lp[k] = y, lp_y
            rows[k].append(x[k])
            last = other
        for other in others:
            hand_on(learnt, last, other)
    return rows


def hand_on(learnt, one, other):
    for name in learnt:
        setattr(other, name, getattr(one, name))


@pytest.mark.parametrize("name", LEARNT)
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
def test_gains_of_a_single_chain_are_seen(name):
    gain = sampler_of(name).default_gain(5)
    assert disagreement(name, calendars=[Calendar(gain) for _ in range(K)]) is not None


@pytest.mark.parametrize("name", ["am", "ram", "kam"])
def test_another_order_is_seen(name):
    assert disagreement(name, backwards=True) is not None


def test_a_stale_pass_is_seen():
    """A reference whose covariance at x is made before the others have learnt."""

    class Stale(REFERENCES["kam"]):
        def adapt(self, x, y, alpha, accepted, gain, rng):
            super().adapt(x, y, alpha, accepted, gain, rng)
            self.R_x = self.R(y if accepted else x)

        def propose(self, x, rng):
            self.e = rng.standard_normal(self.d)
            stale = self.t > 0 and self.t % 50 == 0
            return x + np.linalg.cholesky(self.R_x if stale else self.R(x)) @ self.e

    assert disagreement("kam", reference=Stale) is not None
