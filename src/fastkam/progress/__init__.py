"""Progress of a run: in a terminal, a notebook, lines of a log, or by a user's function."""

from fastkam.progress.lines import Lines
from fastkam.progress.notebook import Notebook
from fastkam.progress.snapshot import Progress
from fastkam.progress.terminal import Terminal

__all__ = ["Lines", "Notebook", "Progress", "Terminal"]
