"""The loops that are compiled for each instruction set give the same bits with every one.

Here are those of built-in densities, mixtures, look-ups and diagnostics. The other tests
of `digest_at` are in the files of the same part, and `test_processors.py` runs every sampler.
"""

import hashlib

import numpy as np
from levels import digest_at, every_level
from threadpoolctl import threadpool_limits

import fastkam as fk
from fastkam._core.diagnostics.convergence import measure
from fastkam._core.numerics import mixture
from fastkam._core.numerics.nearest import NearestIndex
from fastkam.targets import GaussianProcessClassification, LogisticRegression

SAMPLERS = ("barker", "dm", "gadmala", "gadrwm")        # those with loops of their own


def arrays():
    """Return the results of the loops, array by array."""
    rng = np.random.default_rng(1)
    for n in range(1, 100, 9):
        d = 1 + 7 * n % 40
        X, y = rng.standard_normal((n, d)), np.where(rng.random(n) < 0.5, 1, -1)
        A = rng.standard_normal((d, d))
        x = 3 * rng.standard_normal(d)
        for target in (LogisticRegression(X, y), fk.targets.Gaussian(x / 2, A @ A.T + np.eye(d)),
                       fk.targets.Gaussian(x / 2, np.exp(x / 3)), fk.targets.mixture_32d(d)):
            yield from target.logp_grad(x)
            yield target.logp(x)
        yield LogisticRegression(X, y).hvp(x, x[::-1].copy())
        states, *of_mixture = parts(rng, n, d)
        yield mixture.packed(*of_mixture).log_densities(states)
        yield from mixture.expect(*parts(rng, n, d))
        for is_tree in (True, False):
            found = np.empty(n, np.int64)
            NearestIndex(X, is_tree).find_all(rng.standard_normal((n, d)), found)
            yield found
    with threadpool_limits(1, user_api="blas"):
        process = GaussianProcessClassification(X, y, n_importance=5)
        yield process.laplace(np.full(process.dim, 0.3))
    yield measure(np.cumsum(rng.standard_normal((4, 700, 3)), axis=1))
    for name in SAMPLERS:
        for d in (1, 3, 8, 13):
            yield fk.sample(fk.targets.Gaussian(np.zeros(d), np.ones(d)), np.ones(d), sampler=name,
                            tune=100, draws=50, chains=1, seed=1, search=False, diagnose=False,
                            progress=False).draws


def parts(rng, n, d):
    """States and a mixture: weights, means, factors."""
    K = 1 + n % 11
    factors = np.tril(rng.standard_normal((K, d, d)), -1) + np.eye(d) * (1 + rng.random((K, 1, 1)))
    return rng.standard_normal((n, d)), np.full(K, 1 / K), rng.standard_normal((K, d)), factors


def digest():
    """A hash of the bits of all of them."""
    bits = hashlib.sha256()
    for array in arrays():
        bits.update(np.ascontiguousarray(array).tobytes())
    return bits.hexdigest()


@every_level
def test_the_same_bits_with_every_instruction_set(level):
    assert digest_at(level, __name__) == digest()
