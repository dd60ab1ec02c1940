"""Progress of a run: in a terminal, a notebook, lines of a log, or by a user's function."""

from fastkam.progress.lines import Lines
from fastkam.progress.monitor import Monitor
from fastkam.progress.notebook import Notebook
from fastkam.progress.reporter import (
    CHAINS,
    SECONDS,
    Interval,
    Reporter,
    check_progress,
    interactive,
)
from fastkam.progress.snapshot import Progress
from fastkam.progress.terminal import Terminal

__all__ = ["CHAINS", "SECONDS", "Interval", "Lines", "Monitor", "Notebook", "Progress", "Reporter",
           "Terminal", "check_progress", "interactive"]
