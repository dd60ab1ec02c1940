"""The update of a Cholesky factor, beside its floor, LAPACK and numpy.

`pytest bench/perf/test_rank_one.py -q` prints nanoseconds of one: updates by v v' / 2 and downdates
by the same follow each other, so that the factor stays what it is.
"""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from bench.perf import floor
from bench.perf.measure import Case, repeated, same
from fastkam._core.engine.state import zeros

TITLE = "Rank-one update and downdate of a factor"
SIZES = [2, 8, 32, 128, 512]


def case(d, repeat=None):
    """Updates in d dimensions; `repeat` has the kernel, as `floor.repeat()` gives it."""
    repeat = repeat or floor.repeat()
    rng = np.random.default_rng(d)
    a, s, v, w = 1.0, 0.5, rng.standard_normal(d), zeros(d + 8)
    u = zeros(d + 8)
    u[:d] = v
    L, ld = zeros((d, d)), d + (d > 2) * (10 - d % 2)     # as a chain has it
    padded, A = zeros(d * ld + 16), np.eye(d)
    work, kept = np.empty((d, d)), [L]

    def start():
        """Both sides begin at the identity, the floor in columns of ld numbers."""
        L[...] = np.eye(d)
        padded[:] = 0
        padded[:d * ld:ld + 1] = 1

    def ours(times):
        kept[0] = L
        repeat.repeat_update(*floor.arguments(times, d, L, a, s, v, w))

    def bare(times):
        kept[0] = padded[:d * ld].reshape(d, ld)[:, :d]
        floor.kernels().floor_update(*floor.arguments(times, d, ld, padded, a, s, u, w))

    lapack = floor.arguments(d, A, work, s, v)
    lapack += [floor.function("scipy.linalg.cython_lapack", "dpotrf"),
               floor.function("scipy.linalg.cython_blas", "dsyr")]
    start()
    return Case(f"d {d}", ours, bare,
                lambda times: floor.lapack().lapack_update(*floor.arguments(times), *lapack),
                repeated(lambda: np.linalg.cholesky(a * A + s * np.outer(v, v))),
                lambda: np.tril(kept[0].T))


def cases():
    for d in SIZES:
        yield case(d)


@pytest.mark.parametrize("d", SIZES)
def test_the_floor_does_the_same_work(d):
    same(case(d), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("d", SIZES)
def test_update(d, report, benchmark):
    measured = case(d)
    with threadpool_limits(1, user_api="blas"):
        report(" | ".join(measured.row()))
        benchmark(measured.fastkam, 10)
