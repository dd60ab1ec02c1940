"""Options and results files of the experiments, with a record of how they were made."""

import argparse
import datetime
import platform
import subprocess
from pathlib import Path

import numpy as np

import fastkam


def options(file, doc, *, quick, only=(), seeds=None):
    """The experiment's options; `folder` is where its results go.

    `quick` describes --quick; `only` are the parts that --only can name; `seeds` is the number of
    seeds there are, where --seeds can say it, and --seconds end them sooner.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--quick", action="store_true",
                        help=f"{quick}; results go to results-quick")
    parser.add_argument("--seed", type=int, default=1)
    if only:
        parser.add_argument("--only", choices=only, help="one of the parts")
    if seeds:
        parser.add_argument("--seeds", type=int, default=seeds, help="how many seeds")
        parser.add_argument("--seconds", type=float, default=float("inf"),
                            help="CPU time after which no further seed of a part is begun")
    found = parser.parse_args()
    found.all_seeds, found.seeds = seeds, getattr(found, "seeds", seeds)
    found.folder = Path(file).parent / ("results-quick" if found.quick else "results")
    return found


def heading(title, command, chosen):
    """The first lines of a results file, as Markdown."""
    if chosen.quick:
        command += " --quick"
    if chosen.seed != 1:
        command += f" --seed {chosen.seed}"
    if getattr(chosen, "seeds", None) != getattr(chosen, "all_seeds", None):
        command += f" --seeds {chosen.seeds}"
    if getattr(chosen, "seconds", float("inf")) < float("inf"):
        command += f" --seconds {chosen.seconds:g}"
    return (
        f"# {title}\n\n"
        f"`{command}`, fastkam {fastkam.__version__} at {commit() or 'no commit'}, "
        f"{datetime.date.today()}, Python {platform.python_version()}, numpy {np.__version__}, "
        f"{processor()}.\n"
    )


def commit():
    """The code's, as git describes it; results and their folders do not make it dirty."""
    described = subprocess.run(
        ["git", "describe", "--always"], capture_output=True, text=True, cwd=Path(__file__).parent,
    ).stdout.strip()
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=no", ":/src", ":/bench/*.py"],
        capture_output=True, text=True, cwd=Path(__file__).parent,
    ).stdout.strip()
    return described + ("-dirty" if changed else "")


def processor():
    """The name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def table(columns, rows):
    """A Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def write(path, text):
    """Print the text, and keep it in the file."""
    print(text)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    print(f"written to {path}")
