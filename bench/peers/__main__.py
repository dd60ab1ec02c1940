"""fastkam beside other packages: `python -m bench.peers`, results in results/peers.md.

`python -m bench.peers.environments` first builds an environment for each package. A run with
--only or --part prints its tables and keeps nothing.
"""

import argparse
from pathlib import Path

from bench.papers.record import heading, table, write
from bench.peers import overhead, resources, sampling
from bench.peers.environments import REQUIREMENTS
from bench.peers.rounds import Contest

PARTS = {
    "overhead": ("A Python density: overhead", overhead.measure),
    "banana": ("A strongly bent banana, d = 8", sampling.banana),
    "resources": ("Memory, cores, start", resources.measure),
    "neal": ("Compiled densities with gradients", sampling.neal),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shorter runs, one round")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=["fastkam", *REQUIREMENTS], default=[])
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    contest = Contest(options.only)
    texts = [f"## {title}\n\n{part(contest, options)}"
             for name, (title, part) in PARTS.items() if name in options.part]
    versions = [[package, ", ".join(f"{name} {number}" for name, number in found.items())]
                for package, found in contest.versions.items()]
    if contest.problems:
        texts.append("## What did not run\n\n" + table(
            ["which", "the error's last line"], [list(one) for one in contest.problems.items()]))
    text = "\n".join([heading("Beside other packages", "python -m bench.peers", options),
                      table(["package", "versions"], versions), *texts])
    if options.only or options.part != list(PARTS):
        print(text)
    else:
        folder = "results-quick" if options.quick else "results"
        write(Path(__file__).parent / folder / "peers.md", text)


if __name__ == "__main__":
    main()
