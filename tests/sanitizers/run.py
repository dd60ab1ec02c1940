"""The tests with fastkam's C code checked as it runs, by a sanitizer or with every index checked.

    python tests/sanitizers/run.py address [pytest's arguments]
    python tests/sanitizers/run.py thread [pytest's arguments]
    python tests/sanitizers/run.py bounds [pytest's arguments]

builds fastkam below build/sanitizers, into an environment of its own that takes every other package
from the one that runs this, and runs the tests there: those named, or the sanitizer's own choice.
The last lines say what was found, each finding once with how often it came; the exit status is 1
where anything was found or a test failed.

address: AddressSanitizer and UndefinedBehaviorSanitizer, casts of doubles to integers included.
thread:  ThreadSanitizer, with the threads of chains, of evaluations and of the tests themselves.
bounds:  Cython's checks of each index.

Before the tests, the sanitizers must report the mistakes of planted.c.

gcc with its sanitizers' libraries is needed, as Debian's and Ubuntu's gcc packages have them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SUPPRESSIONS = HERE / "thread.supp"
FINDING = re.compile(r"runtime error: |^SUMMARY: ")  # UndefinedBehaviorSanitizer, and the others


@dataclass(frozen=True)
class Check:
    """The build and the run for one kind of check."""

    setup: tuple[str, ...]
    libraries: tuple[str, ...] = ()  # to be loaded before Python's own
    environment: dict[str, str] = field(default_factory=dict)
    planted: tuple[tuple[str, str], ...] = ()  # calls of planted.c, and what must be reported
    tests: tuple[str, ...] = ("tests/unit", "tests/api", "tests/files", "tests/oracle")


# what C code of ours allocates, Python's allocator does not hide in its pools
MEMORY = {"PYTHONMALLOC": "malloc"}
# reports name lines of the source: neither calls nor frame pointers are optimized away
READABLE = ("-Doptimization=1", "-Ddebug=true", "-Db_lundef=false")

CHECKS = {
    "address": Check(
        setup=(*READABLE, "-Db_sanitize=address,undefined",
               # NaN as an index; and all findings of a process, not only its first
               "-Dc_args=-fno-omit-frame-pointer -fsanitize=float-cast-overflow "
               "-fsanitize-recover=address"),
        # libstdc++: extensions in C++ throw exceptions, which the sanitizer must know of before
        libraries=("libasan.so", "libubsan.so", "libstdc++.so"),
        environment={
            **MEMORY,
            # CPython keeps memory to its end: tests/leaks looks for what grows. A request for more
            # than there is returns NULL, as it does without the sanitizer. Vectors of 64 bytes are
            # misaligned by gcc 12 where use of the stack after a return is looked for.
            "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=0:allocator_may_return_null=1:"
                            "detect_stack_use_after_return=0:log_path={log}",
            # its reports go to standard error, whatever is asked for, beside another sanitizer
            "UBSAN_OPTIONS": "print_stacktrace=1"},
        planted=(("beyond_the_end(8)", "heap-buffer-overflow"),
                 ("overflow(1)", "signed integer overflow"),
                 ("not_a_number(c_double(float('nan')))", "outside the range"))),
    "thread": Check(
        setup=(*READABLE, "-Db_sanitize=thread", "-Dc_args=-fno-omit-frame-pointer"),
        libraries=("libtsan.so",),
        environment={
            **MEMORY,
            "TSAN_OPTIONS": f"suppressions={SUPPRESSIONS}:halt_on_error=0:history_size=4:"
                            "exitcode=0:log_path={log}"},
        planted=(("race()", "data race"),),
        # 0.2 s, in which no draw is made here
        tests=("--deselect=tests/api/test_threads.py::test_time", "tests/unit/test_pool.py",
               "tests/api/test_threads.py", "tests/api/test_share.py",
               "tests/api/test_executors.py", "tests/api/test_interrupts.py",
               "tests/api/test_adaptation.py", "tests/api/test_resume.py",
               "tests/api/test_surrogates.py", "tests/api/test_noisy_vectorized.py",
               "tests/oracle/test_sharing.py")),
    "bounds": Check(setup=("-Dbounds_checks=true", "-Doptimization=1")),
}


def build(kind: str, folder: Path) -> Path:
    """Install fastkam for a kind of check; the Python of that environment."""
    python = folder / "env" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "env", symlinks=True, with_pip=True)
    own = folder / "env" / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    # packages beside fastkam; an editable fastkam among them is not, as its .pth file is not read
    (own / "site-packages" / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps",
         "--disable-pip-version-check", f"-Cbuild-dir={folder / 'build'}",
         *(f"-Csetup-args={argument}" for argument in CHECKS[kind].setup), str(ROOT)],
        check=True, env=os.environ | {"PATH": path()})
    return python


def path() -> str:
    """The search path of commands, with those of the environment that runs this."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def prove(kind: str, folder: Path, python: Path) -> None:
    """Stop unless the sanitizer reports each of the mistakes in planted.c."""
    check = CHECKS[kind]
    if not check.planted:
        return
    logs = fresh(folder / "proof")
    sanitizers = next(one for one in check.setup if "b_sanitize" in one).partition("=")[2]
    built = folder / "planted.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-g", "-O1", f"-fsanitize={sanitizers}",
         *(["-fsanitize=float-cast-overflow", "-fsanitize-recover=address"]
           if kind == "address" else []), HERE / "planted.c", "-o", built, "-lpthread"],
        check=True)
    calls = "; ".join(f"planted.{call}" for call, _ in check.planted)
    with (logs / "standard error").open("w") as errors:
        subprocess.run(
            [python, "-c", f"from ctypes import *; planted = CDLL({str(built)!r}); {calls}"],
            env=environment(kind, logs), stderr=errors)
    reported = "".join(log.read_text(errors="replace") for log in logs.iterdir())
    if missing := [word for _, word in check.planted if word not in reported]:
        sys.exit(f"{kind}: the sanitizer does not work here: no report of {missing} in {logs}")


def fresh(folder: Path) -> Path:
    """An empty folder of that name."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def library(name: str) -> str:
    """Return the path of a library of the compiler."""
    found = subprocess.run(["gcc", f"-print-file-name={name}"], check=True, text=True,
                           capture_output=True).stdout.strip()
    if not Path(found).is_absolute():
        sys.exit(f"gcc has no {name}: install its sanitizers' libraries")
    return str(Path(found).resolve())


def environment(kind: str, logs: Path) -> dict[str, str]:
    """The environment in which the tests run; reports go to files in `logs`."""
    check = CHECKS[kind]
    more = {name: value.format(log=logs / "report") for name, value in check.environment.items()}
    if check.libraries:
        more["LD_PRELOAD"] = " ".join(map(library, check.libraries))
        more["FASTKAM_SANITIZER"] = kind  # tests with a limit of address space do without it
    return os.environ | more | {"PATH": path()}


def findings(logs: Path) -> Counter[str]:
    """Return the number of reports of each finding."""
    found: Counter[str] = Counter()
    for log in logs.iterdir():
        for line in log.read_text(errors="replace").splitlines():
            if FINDING.search(line):
                found[line.strip()] += 1
    return found


def run(kind: str, arguments: list[str]) -> int:
    """Build, run the tests, and print what was found; the exit status."""
    folder = ROOT / "build" / "sanitizers" / kind
    folder.mkdir(parents=True, exist_ok=True)
    python = build(kind, folder)
    prove(kind, folder, python)
    logs = fresh(folder / "logs")
    named = [argument for argument in arguments if not argument.startswith("-")]
    tests = [] if named else list(CHECKS[kind].tests)
    # faulthandler would take signals that the sanitizer explains better; -s, so that reports on
    # standard error are not kept with the output of tests that pass
    with (logs / "standard error").open("w") as errors:
        ended = subprocess.run(
            [python, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-p",
             "no:faulthandler", *tests, *arguments],
            cwd=ROOT, env=environment(kind, logs), stderr=errors).returncode
    found = findings(logs)
    for what, times in sorted(found.items()):
        print(f"{times:6} x {what}")
    print(f"{kind}: {len(found)} findings, {found.total()} times, reports in {logs}; "
          f"tests {'passed' if ended == 0 else 'failed'}")
    return int(bool(found) or ended != 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=CHECKS)
    options, arguments = parser.parse_known_args()
    sys.exit(run(options.kind, arguments))


if __name__ == "__main__":
    main()
