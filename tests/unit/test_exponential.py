"""The exponential of the vector loops: its accuracy, and what becomes of extreme arguments."""

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
            x[i] = i % 2 ? LOW + (HIGH - LOW) * u : (HIGH > 1 ? 2 * u - 1 : -u);
        }
        for (int i = 0; i < 1000; i++) y[i] = EXP(x[i]);
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
FORMS = {"fk_exp": ("-708", "709", 1.0), "fk_exp_below_0": ("-708", "0", 1.1)}


def output(folder, source, *options):
    """What the program prints."""
    file, program = folder / "exponential.c", folder / "exponential"
    file.write_text(source)
    subprocess.run(["cc", *FLAGS, *options, file, "-o", program, "-lm"], check=True,
                   capture_output=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", FORMS)
def test_the_error_is_about_one_unit_of_the_last_place_at_most(tmp_path, name):
    low, high, most = FORMS[name]
    given = [f"-DEXP={name}", f"-DLOW={low}", f"-DHIGH={high}"]
    found = {output(tmp_path, ACCURACY, *given), output(tmp_path, ACCURACY, *given, "-O1")}
    cpu = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    if platform.machine() == "x86_64":
        for flags, needs in ((["-mavx2", "-mfma"], " avx2 "), (["-mavx512f"], " avx512f ")):
            if needs in cpu:
                found.add(output(tmp_path, ACCURACY, *given, *flags))
    assert len(found) == 1, "the bits depend on the instruction set"
    worst = float(found.pop().split()[0])
    assert 0.5 < worst <= most


EXTREMES = r"""
#include "vector.h"

int main(void)
{
    const double far[] = {-1e4, -1e150, -1e300, -HUGE_VAL};
    for (int i = 0; i < 4; i++) {
        if (fk_exp_below_0(far[i]) != 0) return 1;
        if (!(fk_exp(far[i]) < 1e-300) || !(fk_exp(-far[i]) > 1e307)) return 2;
    }
    if (!isnan(fk_exp(NAN)) || !isnan(fk_exp_below_0(NAN))) return 3;
    return fk_exp(0) == 1 && fk_exp_below_0(0) == 1 && fk_exp_below_0(-0.0) == 1 ? 0 : 4;
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
