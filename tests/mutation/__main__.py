"""Mutants by the hundred: ``PYTHONPATH=tests python -m mutation 400 1`` tries 400 of seed 1.

Further arguments: the seconds for finding out which mutants each test reaches (default 900), for
trying mutants (1800), and for each mutant (60); and tests, of which also those are tried of which
it is not known what they reach. A second call with the same number and seed goes on where the first
one has ended; with no seconds it prints the table again. Arguments that begin with "src/" are files
and folders: the mutants are of these alone.
"""

import os
import subprocess
import sys
from pathlib import Path

from mutation.build import Build
from mutation.table import table

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 2
# what compiles, draws figures or reads the sources says little about the samplers and files
TESTS = ("tests/oracle", "tests/unit", "tests/files", "tests/stat", "tests/api")
LEFT_OUT = ("tests/api/test_demo.py", "tests/api/test_import.py", "tests/unit/test_plots.py",
            "tests/api/test_outside_package.py", "tests/api/test_processors.py")


def main(n=400, seed=1, recording=900.0, trying=1800.0, each=60.0, *names):
    """Build, record, try, and print the table."""
    work = ROOT / "build" / "mutation" / f"{n}-{seed}"
    tests = [name for name in names if not name.startswith("src/")]
    build = Build(ROOT, work, int(n), int(seed), [name for name in names if name not in tests])
    build.make()
    for phase, seconds in (("record", recording), ("attempt", trying), ("control", trying)):
        if float(seconds) > 0:
            run_parts(build, phase, float(seconds), float(each), tests)
    print(table(work))


def run_parts(build, phase, seconds, each, tests):
    """Run pytest with the server in it, in as many processes as there are parts."""
    running = []
    for part in range(PROCESSES):
        command = [build.python, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                   "-p", "no:faulthandler", "-p", "mutation.server",
                   f"--basetemp={build.work / f'temporary-{part}'}",
                   "-o", "tmp_path_retention_policy=none", *(tests or TESTS),
                   *(f"--ignore={test}" for test in LEFT_OUT)]
        with open(build.work / f"output-{phase}-{part}", "w") as output:
            running.append(subprocess.Popen(
                command, cwd=ROOT, env=environment(build, phase, part, seconds, each, tests),
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT))
    for process in running:
        process.wait()


def environment(build, phase, part, seconds, each, tests):
    """Return the environment of a process."""
    switch = build.work / f"switch-{part}"
    switch.write_bytes(bytes(65536))
    return {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "FASTKAM_MUTANT": str(switch),
            "FASTKAM_MUTATION": str(build.work), "FASTKAM_MUTATION_PHASE": phase,
            "FASTKAM_MUTATION_PART": str(part), "FASTKAM_MUTATION_PARTS": str(PROCESSES),
            "FASTKAM_MUTATION_SECONDS": str(seconds), "FASTKAM_MUTATION_EACH": str(each),
            "FASTKAM_MUTATION_NAMED": str(int(bool(tests))), "OPENBLAS_NUM_THREADS": "1",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}


if __name__ == "__main__":
    main(*sys.argv[1:])
