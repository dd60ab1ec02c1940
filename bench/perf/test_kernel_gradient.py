"""The fused kernel pass of KAM's covariance, beside its floor, BLAS and numpy.

`pytest bench/perf/test_kernel_gradient.py -q` prints nanoseconds of one pass over n points.
"""

from functools import partial

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from bench.perf import floor
from bench.perf.measure import Case, repeated, same
from fastkam._core.linalg.lanes import blocked
from fastkam.kernels import matern_polynomial, matern_table

TITLE = "KAM's covariance: Q and s of M (d, n)"
KERNELS = {"linear": (0, 1.0), "Gaussian": (1, 1.0), "Matern 1.5": (2, 1.5), "Matern 2.3": (3, 2.3)}
SIZES = [(d, n) for d in (2, 4, 8, 16, 32, 64, 128) for n in (50, 100, 1000)]


def in_numpy(kind, y, z, length, order):
    """M M' - s s' / n as numpy writes it; for the Gaussian and linear kernels only."""
    D = z - y
    w = 2 * np.exp(-0.5 / length**2 * np.einsum("ij,ij->i", D, D)) / length**2 if kind else 2.0
    M = D * np.reshape(w, (-1, 1))
    M -= M.mean(axis=0)
    return M.T @ M


def case(name, d, n, repeat=None):
    """A pass over n points; `repeat` has the kernel, as `floor.repeat()` gives it."""
    repeat = repeat or floor.repeat()
    kind, order = KERNELS[name]
    rng = np.random.default_rng([d, n])
    length = np.sqrt(d)
    # whole blocks for the floor, which knows no padding
    y, z = rng.standard_normal(d), rng.standard_normal((-(-n // 8) * 8, d))
    blocks, table, origin = blocked(z), np.zeros((1, 1)), 0.0
    if kind == 2:
        table = matern_polynomial(order)
    elif kind == 3:
        table, origin, _, _ = matern_table(order)
    Q, s, M = np.zeros((d, d)), np.zeros(d), np.empty((n, d))
    work = np.empty(8 * (272 * (d + 8) + 17 * (d + 4) ** 2))
    ours = floor.arguments(
        (0, 1, 3, 2)[kind], length, order,
        table.shape[1] - 1, table, origin, n, d, blocks, y, work, Q, s)
    v = np.sqrt(2 * order) / length
    a, c = (-0.5 / length**2, 2 / length**2) if kind == 1 else (v, 4 * order / length**2)
    bare = floor.arguments(d, kind, float(a), float(c), table, len(z), blocks, y, Q, s)
    beside = {"answer": lambda: np.concatenate([np.tril(Q.T), [s]])}
    if name == "Gaussian":
        dsyrk = floor.function("scipy.linalg.cython_blas", "dsyrk")
        blas = floor.arguments(n, d, length, z[:n].copy(), y, M, Q, s, dsyrk)
        beside["lapack"] = lambda times: floor.lapack().blas_gaussian(
            *floor.arguments(times), *blas)
    if kind < 2:
        beside["scipy"] = repeated(partial(in_numpy, kind, y, z[:n].copy(), length, order))
    return Case(f"{name}, d {d}, n {n}",
                lambda times: repeat.repeat_pass(*floor.arguments(times), *ours),
                lambda times: floor.kernels().floor_pass(*floor.arguments(times), *bare), **beside)


def cases():
    for name in KERNELS:
        for d, n in SIZES:
            yield case(name, d, n)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("d", [2, 8, 64])
def test_the_floor_does_the_same_work(name, d):
    same(case(name, d, 48), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("d", "n"), SIZES)
@pytest.mark.parametrize("name", KERNELS)
def test_pass(name, d, n, report, benchmark):
    measured = case(name, d, n)
    with threadpool_limits(1, user_api="blas"):
        report(" | ".join(measured.row()))
        benchmark(measured.fastkam, 10)
