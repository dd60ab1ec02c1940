"""All experiments, one after the other.

    python -m bench.papers [--quick] [--again] all | name ...

A name is that of a paper, "li2022", or of one part, "li2022.two_mode". What the present commit has
already made is left out, so that an interrupted run continues; --again makes it again.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

from bench.papers import dharamshi2023, li2022, sejdinovic2014, titsias2019
from bench.papers.record import commit

PAPERS = (sejdinovic2014, titsias2019, dharamshi2023, li2022)


def parts():
    """Name -> (arguments of python -m, its results file below the paper's folder of results)."""
    found = {}
    for paper in PAPERS:
        short = paper.__name__.rpartition(".")[2]
        for part in paper.PARTS:
            found[f"{short}.{part}"] = (
                [paper.__name__, "--only", part], Path(paper.__file__).parent, f"{part}.md")
        for module in paper.MODULES:
            found[f"{short}.{module}"] = (
                [f"{paper.__name__}.{module}"], Path(paper.__file__).parent, f"{module}.md")
    return found


def is_made(path):
    """Whether the file was made by the present commit."""
    at = commit()
    return not at.endswith("-dirty") and path.exists() and f" at {at}," in path.read_text()


def main():
    every = parts()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="name", help=f"all, or of {', '.join(every)}")
    parser.add_argument("--quick", action="store_true", help="a small form of each")
    parser.add_argument("--again", action="store_true", help="also what is there already")
    chosen = parser.parse_args()
    for name in chosen.names:
        if name != "all" and not any(part.startswith(name) for part in every):
            parser.error(f"name must be all, or of {', '.join(every)}, not {name!r}")
    failed = []
    for part, (arguments, folder, file) in every.items():
        if not any(name == "all" or part.startswith(name) for name in chosen.names):
            continue
        path = folder / ("results-quick" if chosen.quick else "results") / file
        if not chosen.again and is_made(path):
            print(f"{part}: made already")
            continue
        begun = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", *arguments, *(["--quick"] if chosen.quick else [])],
            stdout=subprocess.DEVNULL, check=False)
        verdict = "done" if done.returncode == 0 else "failed"
        print(f"{part}: {verdict} in {time.perf_counter() - begun:.0f} s", flush=True)
        if done.returncode:
            failed.append(part)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
