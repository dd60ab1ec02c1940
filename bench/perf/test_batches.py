"""Many densities, covariances and look-ups in one call from Python, compared with scipy.

`pytest bench/perf/test_batches.py -q` prints nanoseconds of one of N, from Python, one thread.
"""

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.stats import multivariate_normal
from threadpoolctl import threadpool_limits

import fastkam as fk
from bench.perf.measure import calls, elapsed

N = 2000


def nanoseconds(*functions, rounds=11):
    """Return the time of one of N, as medians of alternating rounds."""
    runs = [lambda times, f=f: [f() for _ in range(times)] for f in functions]
    times = [calls(run) for run in runs]
    return 1e9 / N * np.median(
        [[elapsed(run, n) for run, n in zip(runs, times, strict=True)] for _ in range(rounds)],
        axis=0)


@pytest.mark.parametrize("d", [2, 8, 32, 128])
def test_one_covariance(d, report):
    rng = np.random.default_rng(1)
    A, mean, x = rng.standard_normal((d, 2 * d)), np.zeros(d), rng.standard_normal((N, d))
    cov, out = A @ A.T, np.empty(N)
    normal = multivariate_normal(mean, cov)
    with threadpool_limits(1, user_api="blas"):
        ours, theirs = nanoseconds(lambda: fk.linalg.mvn_logpdf(x, mean, cov, out=out),
                                   lambda: normal.logpdf(x))
    report(f"d {d}: mvn_logpdf {ours:.1f}, multivariate_normal {theirs:.1f}: {theirs / ours:.1f} x")


@pytest.mark.parametrize("d", [2, 8, 32])
def test_a_covariance_each(d, report):
    rng = np.random.default_rng(1)
    A, mean, x = rng.standard_normal((N, d, 2 * d)), np.zeros(d), rng.standard_normal((N, d))
    cov, out = A @ A.swapaxes(1, 2), np.empty(N)

    def in_numpy():
        L = np.linalg.cholesky(cov)
        u = np.linalg.solve(L, (x - mean)[..., None])[..., 0]
        logs = np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
        return -0.5 * (d * np.log(2 * np.pi) + (u * u).sum(axis=1)) - logs

    with threadpool_limits(1, user_api="blas"):
        ours, theirs = nanoseconds(lambda: fk.linalg.mvn_logpdf(x, mean, cov, out=out), in_numpy)
    report(f"d {d}: a covariance each {ours:.0f}, numpy {theirs:.0f}: {theirs / ours:.1f} x")


@pytest.mark.parametrize("order", ["columns", "rows"])
@pytest.mark.parametrize("d", [2, 8, 32, 128])
def test_updates(d, order, report):
    rng = np.random.default_rng(1)
    A, v = rng.standard_normal((d, 2 * d)), rng.standard_normal((N, d))
    L, out = np.empty((2, N, d, d))
    L[:] = np.linalg.cholesky(A @ A.T)
    if order == "columns":
        L, out = L.swapaxes(1, 2).copy().swapaxes(1, 2), out.swapaxes(1, 2)

    def in_numpy():
        return np.linalg.cholesky(0.9 * L @ L.swapaxes(1, 2) + 0.1 * v[:, :, None] * v[:, None])

    with threadpool_limits(1, user_api="blas"):
        ours, theirs = nanoseconds(
            lambda: fk.linalg.cholupdate(L, v, 0.9, 0.1, out=out), in_numpy,
            rounds=11 if d < 100 else 3)
    report(f"d {d}, by {order}: cholupdate {ours:.0f}, numpy {theirs:.0f}: {theirs / ours:.1f} x")


@pytest.mark.parametrize(("s", "d"), [(2500, 2), (2500, 8), (2500, 42)])
def test_look_up(s, d, report):
    rng = np.random.default_rng(1)
    points, x, out = rng.standard_normal((s, d)), rng.standard_normal((N, d)), np.empty(N, np.int64)
    bank = fk.CholeskyBank(points, np.broadcast_to(np.eye(d), (s, d, d)))
    tree = cKDTree(points)
    ours, theirs = nanoseconds(lambda: bank.lookup(x, out=out), lambda: tree.query(x))
    report(f"s {s}, d {d}: lookup {ours:.0f}, cKDTree.query {theirs:.0f}: {theirs / ours:.1f} x")
