"""Chains that make one step at a time, and those that ask for their density; without a package."""

import importlib
import sys

import numpy as np
import pytest
from scipy import stats

from fastkam.hosts.asking import Asking
from fastkam.hosts.steps import Chains

P = np.linalg.inv([[1.0, 0.8], [0.8, 2.0]])
START = np.array([[0.3, -0.2], [1.0, 0.5], [-1.0, 0.0]])


def density(X):
    return -0.5 * np.einsum("ij,jk,ik->i", X, P, X)


def pair(X):
    return density(X), -X @ P


def chains(x=START, *, f=density, sampler="ram", seed=1, **options):
    return Chains(f, x, sampler=sampler, seed=np.random.SeedSequence(seed), **options)


def course(made, steps):
    found = []
    for _ in range(steps):
        made.step()
        found.append(made.x)
    return np.array(found)


@pytest.mark.parametrize("host", ["bilby", "cobaya", "emcee", "emcee_move", "pints", "pymc",
                                  "pymc_step", "pypesto"])
def test_a_missing_package_is_named(host, monkeypatch):
    package = host.partition("_")[0]
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"fastkam.hosts.{host}", raising=False)
    with pytest.raises(ImportError, match=rf"needs {package}: pip install fastkam\[{package}]"):
        importlib.import_module(f"fastkam.hosts.{host}")


@pytest.mark.parametrize("share", [False, True])
def test_statistics_of_the_chains(share):
    made = chains(share=share, sampler="am", scales=[3.0, 0.1])
    before = made.x
    for _ in range(200):
        made.step()
        np.testing.assert_allclose(made.logp, density(made.x), rtol=1e-12)
        np.testing.assert_array_equal(made.moved, (made.x != before).any(axis=1))
        np.testing.assert_array_equal(made.moved, made.accepted)
        before = made.x
    assert made.evaluations == 3 * 200  # that of the start apart


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("sampler", ["am", "ram", "dram"])
def test_the_state_is_all_it_takes(sampler, share):
    made = chains(sampler=sampler, share=share)
    course(made, 50)
    other = chains(sampler=sampler, share=share, seed=2)
    other.restore(made.state())
    np.testing.assert_array_equal(course(made, 50), course(other, 50))


@pytest.mark.parametrize("sampler", ["ram", "mala"])
def test_chains_are_put_elsewhere(sampler):
    """Moved chains keep their adaptation; the density at the new points may be given."""
    seen = []

    def f(X):
        seen.append(X.copy())
        return pair(X) if sampler == "mala" else density(X)
    made = chains(f=f, sampler=sampler)
    course(made, 20)
    learned = made.state()["chains"][0]["t"]
    seen.clear()
    x = START + 5
    made.place(x, density(x))
    np.testing.assert_array_equal(made.x, x)
    made.step()
    assert len(seen) == (2 if sampler == "mala" else 1)  # the gradient is not known
    assert made.state()["chains"][0]["t"] == learned + 1
    np.testing.assert_allclose(made.logp, density(made.x), rtol=1e-12)
    seen.clear()
    made.place(x, [np.nan] * 3)
    made.step()
    np.testing.assert_array_equal(seen[0], x)


@pytest.mark.parametrize("share", [False, True])
def test_frozen_chains_learn_no_more(share):
    made = chains(share=share)
    course(made, 30)
    before = made.state()["chains"]
    made.freeze()
    a = course(made, 30)
    assert (a != a[0]).any()
    for one, other in zip(before, made.state()["chains"], strict=True):
        np.testing.assert_array_equal(one["kernel.S"], other["kernel.S"])


def test_gains_begin_again():
    made, plain = chains(restarts=(20,)), chains()
    np.testing.assert_array_equal(course(made, 20), course(plain, 20))
    assert {int(one["n_adapted"]) for one in made.state()["chains"]} == {0}
    assert not np.array_equal(course(made, 20), course(plain, 20))


def test_errors_of_the_density_come_through_and_the_step_goes_on():
    failing = [True]

    def f(X):
        if failing[0] and len(made.chains) and made.steps == 10:
            raise ZeroDivisionError("of the user")
        return density(X)
    made = chains(f=f)
    with pytest.raises(ZeroDivisionError, match="of the user"):
        course(made, 20)
    failing[0] = False
    after = course(made, 10)
    plain = chains()
    np.testing.assert_array_equal(after, course(plain, 20)[10:])
    with pytest.raises(ValueError, match="not finite at the start"):
        chains(f=lambda X: np.full(len(X), -np.inf)).step()


@pytest.mark.parametrize(("sampler", "f"), [("ram", density), ("dram", density), ("mala", pair)])
def test_asking_makes_the_steps_of_chains(sampler, f):
    asking = Asking(START[0], sampler=sampler, seed=np.random.SeedSequence(1))
    found, points = [], 0
    while len(found) < 100:
        x = asking.ask()
        np.testing.assert_array_equal(x, asking.ask())
        value = f(x.reshape(1, -1))
        points += 1
        told = (value[0][0], value[1][0]) if sampler == "mala" else (value[0],)
        ready = asking.chains is not None
        if asking.tell(*told) and ready:
            found.append(asking.chains.x[0])
    plain = Chains(f, START[:1], sampler=sampler, scales=asking.chains.scales,
                   seed=np.random.SeedSequence(1))
    np.testing.assert_array_equal(np.array(found), course(plain, 100)[:, 0])
    assert points > 100


def shares_of_variance(n=24, steps=1200):
    """Mean squares of the first coordinate, of n chains each of which adapts by itself."""
    made = chains(np.zeros((n, 2)), sampler="ram")
    return (course(made, steps)[200:, :, 0] ** 2).mean(axis=0)


def test_the_distribution_is_the_targets():
    """The variance is 1: a t statistic over 24 chains, at 1e-4."""
    assert stats.ttest_1samp(shares_of_variance(), 1.0).pvalue > 1e-4


def test_a_density_that_is_lost_on_the_way_is_caught(monkeypatch):
    """The planted fault of the test above: after each step chains keep their place, with another
    log density."""
    plain = Chains.step

    def step(self):
        plain(self)
        self.place(self.x, self.logp + 1.0)
    monkeypatch.setattr(Chains, "step", step)
    assert stats.ttest_1samp(shares_of_variance(), 1.0).pvalue < 1e-4


def test_bad_samplers():
    with pytest.raises(TypeError, match="needs the gradient"):
        chains(sampler="mala").step()
    with pytest.raises(ValueError, match="schedule must be Finite or Perpetual"):
        chains(sampler="ckam", schedule="rare")
