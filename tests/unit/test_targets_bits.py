"""The vector loops give the same bits for every instruction set, compiled for one at a time."""

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

HEADERS = Path(__file__).parents[2] / "src" / "fastkam" / "_core"
INCLUDES = [f"-I{HEADERS / folder}" for folder in ("linalg", "targets")]
FLAGS = ["-O3", "-std=c11", "-fopenmp-simd", "-ffp-contract=off", "-fno-math-errno",
         "-fno-trapping-math"]

PROGRAM = r"""
#include "gaussian_process.h"
#include "lattice.h"
#include "rows.h"
#include <stdio.h>

static uint64_t hash = 1469598103934665603u, state = 1;

static void add(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, 8);
    hash = (hash ^ bits) * 1099511628211u;
}

static double uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53 - 0.5;
}

int main(void)
{
    static double X[104 * 64], rows[64 * 64], w[64], v[64], g[64], fall[5];
    for (int k = 0; k < 5; k++) fall[k] = exp(-15.0 * k);
    const fk_lattice lattice = {5, -30, 15, 15, -0.3, fall};
    for (int n = 1; n <= 100; n += 3) {
        const int d = 1 + (7 * n) % 63;
        for (int i = 0; i < (n + 7) / 8 * 8 * d; i++) X[i] = 4 * uniform();
        for (int i = 0; i < d * d; i++) rows[i] = uniform();
        for (int j = 0; j < d; j++) w[j] = 90 * uniform(), v[j] = uniform(), g[j] = 0;
        add(fk_lattice_value(&lattice, d, w));
        add(fk_lattice_grad(&lattice, d, w, g));
        for (int j = 0; j < d; j++) add(g[j]), add(fk_exp(10 * w[j])), w[j] /= 30;
        add(fk_log_sigmoid(n, d, X, w));
        add(fk_log_sigmoid_grad(n, d, X, w, g));
        fk_log_sigmoid_hvp(n, d, X, w, v, g);
        add(fk_lower_grad(d, rows, rows, w, v, 0.3, g));
        add(fk_weighted_square(d, v, v, w));
        for (int j = 0; j < d; j++) add(g[j]);
        fk_squared_exponential(d, 2, X, rows);
        fk_logistic_curvature(d, w, v, g, w);
        fk_scale_and_add_one(d, w, rows, X);
        fk_posterior_covariance(d, 0.1, w, X);
        for (int j = 0; j < d; j++) add(g[j]), add(w[j]), add(rows[j]), add(X[j]);
    }
    printf("%016llx\n", (unsigned long long)hash);
    return 0;
}
"""


def run(folder, name, *options):
    source, program = folder / "bits.c", folder / name
    source.write_text(PROGRAM)
    subprocess.run(["cc", *FLAGS, *options, *INCLUDES, source, "-o", program, "-lm"],
                   check=True, capture_output=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(shutil.which("cc") is None or not HEADERS.is_dir(),
                    reason="needs a C compiler and the sources")
def test_the_bits_do_not_depend_on_the_instruction_set(tmp_path):
    bits = {run(tmp_path, "clones"), run(tmp_path, "plain", "-DFK_CLONES=")}
    cpu = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    if platform.machine() == "x86_64":
        for level, needs in (("x86-64-v3", " avx2 "), ("x86-64-v4", " avx512vl ")):
            if needs in cpu:
                bits.add(run(tmp_path, level, "-DFK_CLONES=", f"-march={level}"))
    assert len(bits) == 1


OVERFLOW = r"""
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "simd.h"

int main(void)
{
    static double x[8] = {0, -1e-300, -1, -700, -1e4, -1e150, -1e300, -HUGE_VAL};
    for (int i = 0; i < 8; i += FK_WIDTH) fk_store(x + i, fk_exp_below_0(fk_load(x + i)));
    for (int i = 4; i < 8; i++) if (x[i] != 0) return 2;
    return fabs(x[2] / exp(-1) - 1) < 1e-15 && fabs(x[3] / exp(-700) - 1) < 1e-15 ? 0 : 3;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None or not HEADERS.is_dir(),
                    reason="needs a C compiler and the sources")
def test_no_exponential_overflows(tmp_path):
    """Undefined behavior ends the program, where the compiler can tell."""
    source, program = tmp_path / "overflow.c", tmp_path / "overflow"
    source.write_text(OVERFLOW)
    for extra in (["-fsanitize=undefined", "-fno-sanitize-recover=undefined"], []):
        built = subprocess.run(
            ["cc", *FLAGS, "-Wno-psabi", *INCLUDES, *extra, "-o", program, source, "-lm"],
            capture_output=True, text=True, check=False)
        if extra and built.returncode:
            continue        # no run time of the sanitizer
        assert built.returncode == 0, built.stderr
        subprocess.run([program], check=True, capture_output=True)
