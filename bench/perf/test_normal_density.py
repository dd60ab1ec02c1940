"""Log density of a normal distribution from its covariance, beside its floor, LAPACK and scipy.

`pytest bench/perf/test_normal_density.py -q` prints nanoseconds of one density: factor, solve,
log determinant.
"""

import numpy as np
import pytest
from scipy.linalg import cho_factor, solve_triangular
from threadpoolctl import threadpool_limits

from bench.perf import floor
from bench.perf.measure import Case, repeated, same
from fastkam._core.engine.state import zeros

TITLE = "Normal log density: factor, solve, log determinant"
SIZES = [2, 4, 8, 16, 32, 64, 128, 512]


def case(d, repeat=None):
    """The density in d dimensions; `repeat` has the kernel, as `floor.repeat()` gives it."""
    repeat = repeat or floor.repeat()
    rng = np.random.default_rng(d)
    B = rng.standard_normal((d, 2 * d))
    A, mean, x = B @ B.T / d, rng.standard_normal(d), rng.standard_normal(d)
    L, v, values = zeros((d, d)), zeros(d), [0.0]     # as a chain has them

    def keep(value):
        values[0] = value

    given = floor.arguments(d, A, mean, x, L, v)
    lapack = [*given, floor.function("scipy.linalg.cython_lapack", "dpotrf"),
              floor.function("scipy.linalg.cython_blas", "dtrsv")]
    bare = floor.arguments(d, A, mean, x)

    def scipy():
        factor, _ = cho_factor(A, lower=True, check_finite=False)
        u = solve_triangular(factor, x - mean, lower=True, check_finite=False)
        return -0.5 * (d * np.log(2 * np.pi) + u @ u) - np.log(np.diag(factor)).sum()

    return Case(
        f"d {d}",
        lambda times: keep(repeat.repeat_density(*floor.arguments(times), *given)),
        lambda times: keep(floor.kernels().floor_density(*floor.arguments(times), *bare)),
        lambda times: floor.lapack().lapack_density(*floor.arguments(times), *lapack),
        repeated(scipy), lambda: values[0])


def cases():
    for d in SIZES:
        yield case(d)


@pytest.mark.parametrize("d", SIZES)
def test_the_floor_does_the_same_work(d):
    same(case(d), rtol=1e-9)


@pytest.mark.parametrize("d", SIZES)
def test_density(d, report, benchmark):
    measured = case(d)
    with threadpool_limits(1, user_api="blas"):
        report(" | ".join(measured.row()))
        benchmark(measured.fastkam, 10)
