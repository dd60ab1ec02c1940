"""What every results file begins with: the code, the machine and the command behind its numbers."""

import datetime
import platform
import subprocess
from pathlib import Path

import numpy as np

import fastkam


def heading(title, command):
    """The first lines of a results file, as Markdown."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True,
        cwd=Path(__file__).parent,
    ).stdout.strip()
    return (
        f"# {title}\n\n"
        f"`{command}`, fastkam {fastkam.__version__} at {commit or 'no commit'}, "
        f"{datetime.date.today()}, Python {platform.python_version()}, numpy {np.__version__}, "
        f"{processor()}.\n"
    )


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
