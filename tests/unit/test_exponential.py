"""The exponential of the vector loops: its accuracy, and its values at extreme arguments."""

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

HEADERS = Path(__file__).parents[2] / "src" / "fastkam" / "_core" / "linalg"
FLAGS = ["-O3", "-std=c11", "-fopenmp-simd", "-ffp-contract=off", "-fno-math-errno",
         "-fno-trapping-math", "-Wno-psabi", f"-I{HEADERS}"]

pytestmark = pytest.mark.skipif(shutil.which("cc") is None or not HEADERS.is_dir(),
                                reason="needs a C compiler and the sources")

# the largest error in units of the last place, and a hash of the bits, of 2 000 000 exponentials
ACCURACY = r"""
#include "vector.h"
#include <float.h>
#include <stdio.h>

static double x[1000], y[1000];

int main(void)
{
    uint64_t state = 1, hash = 1469598103934665603u;
    double worst = 0;
    for (int round = 0; round < 2000; round++) {
        for (int i = 0; i < 1000; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const double u = (double)(state >> 11) * 0x1p-53;
            x[i] = i % 2 ? 1417 * u - 708 : 2 * u - 1;
        }
        for (int i = 0; i < 1000; i++) y[i] = fk_exp(x[i]);
        for (int i = 0; i < 1000; i++) {
            const long double exact = expl((long double)x[i]);
            const double ulp = nextafter((double)exact, HUGE_VAL) - (double)exact;
            const double error = (double)fabsl(y[i] - exact) / ulp;
            worst = error > worst ? error : worst;
            uint64_t bits;
            memcpy(&bits, y + i, 8);
            hash = (hash ^ bits) * 1099511628211u;
        }
    }
    printf("%.4f %016llx\n", worst, (unsigned long long)hash);
    return 0;
}
"""


def output(folder, source, *options):
    """Return the output of the program."""
    file, program = folder / "exponential.c", folder / "exponential"
    file.write_text(source)
    subprocess.run(["cc", *FLAGS, *options, file, "-o", program, "-lm"], check=True,
                   capture_output=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout


def test_the_error_is_about_one_unit_of_the_last_place_at_most(tmp_path):
    found = {output(tmp_path, ACCURACY), output(tmp_path, ACCURACY, "-O1")}
    cpu = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    if platform.machine() == "x86_64":
        for flags, needs in ((["-mavx2", "-mfma"], " avx2 "), (["-mavx512f"], " avx512f ")):
            if needs in cpu:
                found.add(output(tmp_path, ACCURACY, *flags))
    assert len(found) == 1, "the bits depend on the instruction set"
    worst = float(found.pop().split()[0])
    assert 0.5 < worst < 1.1


EXTREMES = r"""
#include "vector.h"

int main(void)
{
    const double far[] = {-708.1, -1e4, -1e150, -1e300, -HUGE_VAL};
    for (int i = 0; i < 5; i++)
        if (fk_exp(far[i]) != 0) return 1;
    if (!(fabs(fk_exp(709) / exp(709) - 1) < 1e-15)) return 2;
    if (!(fabs(fk_exp(-708) / exp(-708) - 1) < 1e-15)) return 3;
    if (!isnan(fk_exp(NAN)) || !isnan(fk_exp(-NAN))) return 4;
    return fk_exp(0) == 1 && fk_exp(-0.0) == 1 ? 0 : 5;
}
"""


def test_extreme_arguments_do_not_overflow(tmp_path):
    """Undefined behavior ends the program, where the compiler can tell."""
    source, program = tmp_path / "extremes.c", tmp_path / "extremes"
    source.write_text(EXTREMES)
    for extra in (["-fsanitize=undefined", "-fno-sanitize-recover=undefined"], []):
        built = subprocess.run(["cc", *FLAGS, *extra, "-o", program, source, "-lm"],
                               capture_output=True, text=True, check=False)
        if extra and built.returncode:
            continue        # no run time of the sanitizer
        assert built.returncode == 0, built.stderr
        subprocess.run([program], check=True, capture_output=True)
