"""fastkam beside other packages: `python -m bench.peers`, results in results/peers.md.

`python -m bench.peers.environments` first builds an environment for each package. Each part of the
results is written when it is done, and --part makes some of them again; a run with --only prints
its tables and keeps nothing.
"""

import argparse
import re
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
    path = Path(__file__).parent / ("results-quick" if options.quick else "results") / "peers.md"
    contest = Contest(options.only)
    for part in options.part:
        title, measure = PARTS[part]
        command = f"python -m bench.peers --part {part}"
        text = "\n".join([heading(title, command, options), f"{versions(contest)}\n",
                          measure(contest, options)])
        if problems := contest.problems:
            text += "\nWhat did not run, and the last line of its error:\n\n" + table(
                ["which", "error"], [list(one) for one in problems.items()])
        if options.only:
            print(text)
        else:
            write(path, exchanged(path.read_text() if path.exists() else "", text))


def versions(contest):
    """The packages' and their numpy's."""
    return "; ".join(", ".join(f"{name} {number}" for name, number in found.items())
                     for found in contest.versions.values()) + "."


def exchanged(page, part):
    """The page with this part in the place of its former self; parts begin with "# "."""
    found = {text.partition("\n")[0]: text for text in re.split(r"^(?=# )", page, flags=re.M)}
    found.pop("", None)
    found[part.partition("\n")[0]] = part.rstrip("\n") + "\n\n"
    order = [f"# {title}" for title, _ in PARTS.values()]
    return "".join(found[title] for title in sorted(found, key=order.index))


if __name__ == "__main__":
    main()
