"""One virtual environment a package: `python -m bench.peers.environments [names]` builds them.

They stand in the folder FASTKAM_BENCH, by default ~/.cache/fastkam-bench. A package that cannot be
installed keeps pip's last line in `error.txt`, which the tables show.
"""

import argparse
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
OLD = ("numpy<1.24", "scipy<1.11", "setuptools<81")     # for packages that say np.float
REQUIREMENTS = {
    "emcee": ("emcee", "numpy", "scipy"),
    "zeus": ("zeus-mcmc", *OLD),
    "pints": ("pints", "setuptools<81"),
    "pymcmcstat": ("pymcmcstat", *OLD),
    "ptemcee": ("ptemcee", *OLD),
    "blackjax": ("blackjax",),
    "numpyro": ("numpyro",),
    "nutpie": ("nutpie", "numba", str(ROOT)),           # it samples fastkam's compiled densities
    "mici": ("mici",),
}
OTHERS = {"pymc": ("pymc",)}                            # that `bench.first_answer.peers` runs


def folder():
    return Path(os.environ.get("FASTKAM_BENCH") or Path.home() / ".cache" / "fastkam-bench")


def python_of(name):
    """The interpreter that has a package; fastkam is where this process runs."""
    if name == "fastkam":
        return sys.executable
    return str(folder() / name / "bin" / "python")


def build(name):
    """Make the environment anew; None, or the last line of what went wrong."""
    place = folder() / name
    if place.exists():
        shutil.rmtree(place)
    venv.create(place, with_pip=True)
    needed = (REQUIREMENTS | OTHERS)[name]
    done = subprocess.run([python_of(name), "-m", "pip", "install", "-q", *needed],
                          capture_output=True, text=True)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip()] or ["pip failed"]
    errors = [line for line in lines if line.startswith("ERROR")]
    problem = (errors or lines)[-1]
    (place / "error.txt").write_text(problem)
    return problem


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(REQUIREMENTS)}; all by default")
    names = parser.parse_args().names or list(REQUIREMENTS)
    known = REQUIREMENTS | OTHERS
    if unknown := set(names) - set(known):
        parser.error(f"names must be of {', '.join(known)}, not {', '.join(unknown)}")
    for name in names:
        print(f"{name}: {build(name) or 'ready'}", flush=True)


if __name__ == "__main__":
    main()
