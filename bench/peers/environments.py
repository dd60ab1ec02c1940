"""One virtual environment a package: `python -m bench.peers.environments [names]` builds them.

They stand in the folder FASTKAM_BENCH, by default ~/.cache/fastkam-bench, with the wheel of fastkam
that goes into those that need it, which is built once a commit. What is being done is printed as it
begins, and pip's messages at the end. A package that cannot be installed keeps pip's last line in
`error.txt`, which the tables show.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
OLD = ("numpy<1.24", "scipy<1.11", "setuptools<81")     # for packages that say np.float
OURS = "fastkam's wheel"
REQUIREMENTS = {
    "emcee": ("emcee", "numpy", "scipy"),
    "zeus": ("zeus-mcmc", *OLD),
    "pints": ("pints", "setuptools<81"),
    "pymcmcstat": ("pymcmcstat", *OLD),
    "ptemcee": ("ptemcee", *OLD),
    "blackjax": ("blackjax",),
    "numpyro": ("numpyro",),
    "nutpie": ("nutpie", "numba", OURS),                # it samples fastkam's compiled densities
    "mici": ("mici",),
}
OTHERS = {
    "pymc": ("pymc",),                                  # that `bench.first_answer.peers` runs
    "gpry": ("gpry", "h5py"), "pyvbmc": ("pyvbmc",),    # and `bench.costly.emulators`
}


class BuildError(Exception):
    """A command that has failed; the message is the last line that says why."""


def folder():
    return Path(os.environ.get("FASTKAM_BENCH") or Path.home() / ".cache" / "fastkam-bench")


def python_of(name):
    """The interpreter that has a package; fastkam is where this process runs."""
    if name == "fastkam":
        return sys.executable
    return str(folder() / name / "bin" / "python")


def told(*words):
    """Run a command and print its last output, with a line for each package of pip."""
    lines = []
    with subprocess.Popen(words, cwd=ROOT, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as process:
        for line in process.stdout:
            if line.strip():
                lines.append(line.strip())
            if line.startswith(("Collecting", "Building", "Installing", "Processing")):
                print("   ", line.strip()[:96], flush=True)
    if process.returncode:
        errors = [line for line in lines if line.startswith("ERROR")]
        raise BuildError((errors or lines or ["it has failed without a message"])[-1])
    return lines


def version_of_sources():
    """The commit that is checked out, and whether its files have been changed; None without git."""
    try:
        commit, changes = (subprocess.run(
            ["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
            for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "--", "src")))
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit if not changes else None


def wheel():
    """The path of fastkam's wheel, built here for this interpreter and commit if there is none."""
    version = version_of_sources()
    place = folder() / "wheels" / f"{version}-{sys.implementation.cache_tag}"
    found = sorted(place.glob("fastkam-*.whl")) if version else []
    if not found:
        shutil.rmtree(place, ignore_errors=True)
        print("fastkam: building its wheel", flush=True)
        told(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(place), str(ROOT))
        found = sorted(place.glob("fastkam-*.whl"))
    return str(found[-1])


def build(name):
    """Make the environment again; return None, or the last line of the error."""
    place, begun = folder() / name, time.monotonic()
    print(f"{name}: building", flush=True)
    if place.exists():
        shutil.rmtree(place)
    venv.create(place, with_pip=True)
    try:
        needed = [wheel() if one == OURS else one for one in (REQUIREMENTS | OTHERS)[name]]
        told(python_of(name), "-m", "pip", "install", "--progress-bar", "off", *needed)
    except BuildError as error:
        problem = str(error)
        (place / "error.txt").write_text(problem)
    else:
        problem = None
    print(f"{name}: {problem or 'ready'} ({time.monotonic() - begun:.0f} s)", flush=True)
    return problem


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(REQUIREMENTS)}; all by default")
    names = parser.parse_args().names or list(REQUIREMENTS)
    known = REQUIREMENTS | OTHERS
    if unknown := set(names) - set(known):
        parser.error(f"names must be of {', '.join(known)}, not {', '.join(unknown)}")
    problems = {name: problem for name in names if (problem := build(name))}
    print(f"{len(names) - len(problems)} of {len(names)} are ready"
          + "".join(f"; {name} is not: {problem}" for name, problem in problems.items()))


if __name__ == "__main__":
    main()
