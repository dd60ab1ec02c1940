"""The fused multiply-add that processors without one compute: the bits of the C library's."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

LINALG = Path(__file__).parents[2] / "src" / "fastkam" / "_core" / "linalg"
PROGRAM = """\
#include <math.h>
#include <stdint.h>
#include <string.h>
#undef __FMA__
#undef __FP_FAST_FMA
#undef __aarch64__
#include "fma.h"

/* where the results have other bits: at most `most` places */
long differences(long n, const double *a, const double *b, const double *c, long most, long *at)
{
    long found = 0;
    for (long i = 0; i < n && found < most; i++) {
        const double ours = fk_fma(a[i], b[i], c[i]), exact = fma(a[i], b[i], c[i]);
        if (memcmp(&ours, &exact, 8) && !(isnan(ours) && isnan(exact))) at[found++] = i;
    }
    return found;
}
"""
SPECIAL = np.array([0.0, 1.0, 1 + 2.0**-52, 2.0**-1074, 2.0**-1022, 2.0**-537, 2.0**511, 2.0**990,
                    1.7976931348623157e308, np.inf, np.nan])


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The header, compiled as for a processor without the instruction."""
    folder = tmp_path_factory.mktemp("fma")
    source, built = folder / "emulated.c", folder / "emulated.so"
    source.write_text(PROGRAM)
    subprocess.run(["cc", "-O2", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
                    f"-I{LINALG}", "-shared", "-fPIC", str(source), "-o", str(built), "-lm"],
                   check=True)
    found = ctypes.CDLL(str(built)).differences
    found.restype = ctypes.c_long
    return found


def differences(library, a, b, c):
    """Up to ten (a, b, c) where the emulation has other bits."""
    a, b, c = (np.ascontiguousarray(v, float) for v in (a, b, c))
    at = np.empty(10, np.int64)
    pointers = [v.ctypes.data_as(ctypes.c_void_p) for v in (a, b, c)]
    n = library(ctypes.c_long(len(a)), *pointers, ctypes.c_long(10),
                at.ctypes.data_as(ctypes.c_void_p))
    return [(a[i].hex(), b[i].hex(), c[i].hex()) for i in at[:n]]


def numbers(rng, n, exponents):
    """Numbers of both signs, of which some have short mantissas."""
    mantissas = 1 + rng.integers(0, 2**52, n) / 2.0**52
    short = 1 + rng.integers(0, 2**26, n) / 2.0**26
    return (np.where(rng.random(n) < 0.3, short, mantissas) * rng.choice([-1.0, 1.0], n)
            * 2.0 ** rng.integers(-exponents, exponents + 1, n))


@pytest.mark.parametrize("exponents", [0, 2, 60, 500, 1020])
def test_products_and_sums_of_any_magnitude(library, exponents):
    rng = np.random.default_rng(exponents)
    a, b, c = (numbers(rng, 200_000, exponents) for _ in range(3))
    assert differences(library, a, b, c) == []


@pytest.mark.parametrize("apart", [0, 1, 53, 54, 106, 107, 160])
def test_sums_that_cancel_or_lie_between_two_numbers(library, apart):
    rng = np.random.default_rng(apart)
    a, b = (numbers(rng, 200_000, 30) for _ in range(2))
    c = -(a * b) * 2.0 ** rng.choice([-apart, apart], len(a))
    c = c.view(np.int64) + rng.integers(-2, 3, len(a))
    assert differences(library, a, b, c.view(float)) == []


def test_zeros_infinities_and_subnormal_numbers(library):
    signed = np.concatenate([SPECIAL, -SPECIAL])
    a, b, c = (v.ravel() for v in np.meshgrid(signed, signed, signed))
    assert differences(library, a, b, c) == []
