"""The compiled proposals of walkers, against the same in numpy with the same Generator."""

import numpy as np
import pytest

from fastkam._core.numerics.walkers import INDEPENDENT, SCOUT, WALK, Walkers
from fastkam.samplers import modes
from fastkam.search.mixture import Mixture

OPTIMAL, SCOUTS = 2.38, 0.07


def scouts(rng, x, scales):
    """Steps of lengths between 0.3 and 1000, half of them along one coordinate."""
    n, d = x.shape
    if not n:
        return x
    length = np.exp(rng.uniform(np.log(0.3), np.log(1000), n))
    direction = rng.standard_normal((n, d))
    one = np.flatnonzero(rng.random(n) < 0.5)
    if len(one):
        direction[one] *= np.eye(d)[rng.integers(d, size=len(one))]
    return x + length[:, None] * scales * direction


def propose(rng, x, others, scales, lengths, shares, q):
    """Proposals, the ratios of their densities, and their kinds."""
    n, d = x.shape
    u = rng.random(n)
    a = rng.integers(n, size=n)
    b = (a + 1 + rng.integers(n - 1, size=n)) % n
    g = np.where(rng.random(n) < 0.1, 1.0, OPTIMAL / np.sqrt(2 * d))
    g *= 1 + 0.05 * rng.standard_normal(n)
    y = x + g[:, None] * (others[a] - others[b]) + 1e-3 * scales * rng.standard_normal((n, d))
    ratio = np.zeros(n)
    kind = np.select([u >= 1 - SCOUTS, u < shares[0], u < shares[1]], [SCOUT, INDEPENDENT, WALK])
    some = kind == INDEPENDENT
    if q is not None and some.any():
        y[some] = q.draw(some.sum(), rng)
        ratio[some] = q.log_density(x[some]) - q.log_density(y[some])
    walks = kind == WALK
    z = rng.standard_normal((walks.sum(), d))
    if q is None:
        z *= scales
    else:
        z = (q.factors[q.nearest(x[walks])[1]] @ z[:, :, None])[:, :, 0]
    y[walks] = x[walks] + lengths[walks, None] * z
    y[kind == SCOUT] = scouts(rng, x[kind == SCOUT], scales)
    return y, ratio, kind


def mixture(rng, K, d):
    """A mixture of K components besides the wide one, or None."""
    if K == 0:
        return None
    C = rng.standard_normal((K, d, d))
    factors = np.linalg.cholesky(C @ C.transpose(0, 2, 1) + np.eye(d))
    weights, means = rng.dirichlet(np.ones(K)), rng.standard_normal((K, d))
    return Mixture(*modes.with_wide(weights, means, factors))


@pytest.mark.parametrize("K", [0, 1, 9])
@pytest.mark.parametrize("d", [1, 2, 7])
@pytest.mark.parametrize("n", [2, 3, 20])
def test_proposals_are_those_of_numpy(n, d, K):
    made = np.random.default_rng(K)
    q, scales = mixture(made, K, d), made.uniform(0.1, 10, d)
    ours, theirs = np.random.default_rng(5), np.random.default_rng(5)
    walkers = Walkers(ours, scales, n, OPTIMAL, SCOUTS)
    shares = (0.3 if K else 0.0), 0.7
    for _ in range(40):
        x, others, lengths = made.normal(size=(n, d)), made.normal(size=(n, d)), made.random(n)
        found = walkers.propose(x, others, lengths, *shares, q)
        expected = propose(theirs, x, others, scales, lengths, shares, q)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    assert ours.random() == theirs.random()


@pytest.mark.parametrize("d", [1, 2, 7])
def test_steps_of_single_walkers_are_those_of_numpy(d):
    scales = np.linspace(0.5, 2, d)
    ours, theirs = np.random.default_rng(5), np.random.default_rng(5)
    walkers = Walkers(ours, scales, 20, OPTIMAL, SCOUTS)
    for n in range(1, 21):
        x, lengths = np.ones((n, d)), np.linspace(1, 2, n)
        found, kind = walkers.alone(x, lengths)
        expected = x + lengths[:, None] * scales * theirs.standard_normal((n, d))
        some = theirs.random(n) < SCOUTS
        expected[some] = scouts(theirs, x[some], scales)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        np.testing.assert_array_equal(kind, np.where(some, SCOUT, WALK))
    assert ours.random() == theirs.random()


def test_arrays_that_do_not_fit_are_refused():
    walkers = Walkers(np.random.default_rng(0), np.ones(2), 4, OPTIMAL, SCOUTS)
    with pytest.raises(ValueError, match="must fit"):
        walkers.alone(np.ones((5, 2)), np.ones(5))
    with pytest.raises(ValueError, match="must fit"):
        walkers.propose(np.ones((4, 2)), np.ones((4, 3)), np.ones(4), 0.0, 0.5, None)
