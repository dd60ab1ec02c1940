"""The generator's normals, uniforms and exponentials, beside a floor and numpy's Generator.

`pytest bench/perf/test_random.py -q` prints nanoseconds of one number, drawn n at once from PCG64.
The floor is free to choose its generator and its method, which fastkam is not: a chain's stream is
numpy's.
"""

import ctypes

import numpy as np
import pytest

from bench.perf import floor
from bench.perf.measure import Case, repeated

TITLE = "Random numbers, n at once"
KINDS = ["standard_normal", "random", "standard_exponential"]


class PerNumber(Case):
    n = 1

    def measured(self, **options):
        ns, ratios = super().measured(**options)
        return {name: value / self.n for name, value in ns.items()}, ratios


def case(kind, n):
    rng = np.random.Generator(np.random.PCG64(1))
    bits = ctypes.c_void_p(floor.capsule_pointer(rng.bit_generator.capsule))
    out, state = np.empty(n), np.random.default_rng(1).integers(2**63, size=32, dtype=np.uint64)
    blocks = np.empty(-(-n // 16) * 16)
    normals = floor.function("fastkam._core.engine.rng", "normals")
    draw = getattr(rng, kind)
    found = PerNumber(
        f"{kind}, n {n}",
        lambda times: floor.lapack().repeat_random(
            *floor.arguments(KINDS.index(kind), times, n), bits, *floor.arguments(out), normals),
        lambda times: floor.kernels().floor_random(
            *floor.arguments(KINDS.index(kind), max(1, times * n // len(blocks)), len(blocks),
                             state, blocks)),
        scipy=repeated(lambda: draw(out=out)), answer=lambda: blocks)
    found.n = n
    return found


def cases():
    for kind in KINDS:
        for n in (2, 8, 32, 1024):
            yield case(kind, n)


@pytest.mark.parametrize("kind", KINDS)
def test_the_floor_draws_from_the_right_distribution(kind):
    """The mean and the mean square of 1.6 million, within 5 standard errors (1 in a million)."""
    drawn = case(kind, 1_600_000)
    drawn.floor(1)
    x = drawn.answer()
    for value, mean, variance in {
        "standard_normal": ((x, 0, 1), (x**2, 1, 2)), "random": ((x, 1 / 2, 1 / 12),
                                                                (x**2, 1 / 3, 4 / 45)),
        "standard_exponential": ((x, 1, 1), (x**2, 2, 20)),
    }[kind]:
        assert abs(value.mean() - mean) < 5 * np.sqrt(variance / len(x))


@pytest.mark.parametrize("n", [2, 8, 32, 1024])
@pytest.mark.parametrize("kind", KINDS)
def test_random(kind, n, report, benchmark):
    measured = case(kind, n)
    report(" | ".join(measured.row()))
    benchmark(measured.fastkam, 10)
