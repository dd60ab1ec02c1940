"""Vectorized estimators: one call for all points that wait, each with its own noise."""

import numpy as np
import pytest
from densities import D
from runs import sample
from same import assert_same
from test_noisy import OPTIONS, K, estimate, estimates, noisy

import fastkam as fk


@pytest.mark.parametrize("sampler", [
    fk.ParallelTempering(n_replicas=3, sampler="autorwm"), fk.ParallelTempering(n_replicas=3,
                                                                                sampler="dram"),
    fk.ParallelTempering(n_replicas=3, scheme="random"), fk.Scout(main="kam", swap_interval=2),
], ids=["autorwm", "dram", "random", "kam"])
@pytest.mark.parametrize("refresh", [{}, {"correlation": 0.9}], ids=["fresh", "correlated"])
def test_replicas_that_need_different_numbers_of_evaluations(sampler, refresh):
    """Held noise, moved noise and rungs that have finished their step, in the same call."""
    whole = sample(noisy(**refresh), np.ones(D), sampler=sampler, draws=80, **OPTIONS)
    assert_same(sample(noisy(vectorized=True, **refresh), np.ones(D), sampler=sampler, draws=80,
                       **OPTIONS), whole)


@pytest.mark.parametrize(("sampler", "rows"), [("ram", 5), (fk.ParallelTempering(n_replicas=3), 15),
                                               ("scout", 10)])
def test_all_points_of_a_step_are_in_one_call(sampler, rows):
    sizes = []

    def f(X, U):
        assert X.shape == (len(U), D)
        assert U.shape == (len(X), K)
        sizes.append(len(X))
        return estimates(X, U)

    target = fk.Target.from_estimator(f, D, K, vectorized=True)
    sample(target, np.ones(D), sampler=sampler, draws=30, tune=0, chains=5, seed=1)
    assert sizes == [5] + 30 * [rows]


def test_a_vectorized_estimator():
    target = noisy(vectorized=True)
    assert (target.is_estimate, target.batched, target.abilities) == (True, True, ("noisy",))
    assert repr(target) == "<Target of dimension 2, vectorized Python estimator: noisy>"
    x, u = np.random.default_rng(1).standard_normal((2, K))
    assert target.estimate(x[:D], u) == estimate(x, u)
    assert fk.check_noise(target, np.ones(D), 50, seed=1).variance == (
        fk.check_noise(noisy(), np.ones(D), 50, seed=1).variance)
    assert fk.as_target(target, D) is target
    again = fk.Target.from_estimator(target, D, blocks=2)
    assert again.batched
    assert_same(sample(again, np.ones(D), draws=60, **OPTIONS),
                sample(noisy(blocks=2), np.ones(D), draws=60, **OPTIONS))


@pytest.mark.parametrize(("answer", "kind"), [(np.nan, "nan"), (-np.inf, "outside")])
def test_rows_without_an_estimate(answer, kind):
    """They are rejected and counted, and nothing else is changed."""
    def f(x, u):
        return answer if float(x[0]) > 1.1 else estimate(x, u)

    def many(X, U):
        return np.array([f(x, u) for x, u in zip(X, U, strict=True)])

    one, all_rows = (fk.Target.from_estimator(g, D, K, vectorized=g is many) for g in (f, many))
    whole = sample(one, np.ones(D), draws=60, **OPTIONS)
    assert whole.rejected[kind].sum() > 5
    assert_same(sample(all_rows, np.ones(D), draws=60, **OPTIONS), whole)


def test_a_row_of_infinity_stops_the_run():
    """No draw is lost: with a corrected function the run resumes as if it had never failed."""
    def f(X, U):
        return np.where(X[:, 0] > 2, np.inf, estimates(X, U))

    target = fk.Target.from_estimator(f, D, K, vectorized=True)
    with pytest.raises(fk.SamplingError, match=r"the log density is \+inf") as caught:
        sample(target, np.ones(D), draws=300, **OPTIONS)
    assert caught.value.x[0] > 2
    assert_same(caught.value.result.resume(target=noisy(vectorized=True)),
                sample(noisy(), np.ones(D), draws=300, **OPTIONS))
