"""Figures of results: draws, their mixing, their modes, and what the sampler has learned.

`LiveFigure` follows a run; all others are of a result.

Each function returns a matplotlib Figure, to show in a notebook or to save with
``figure.savefig(path)``; pyplot and its state are never touched. `ax` draws into axes of your own,
`figsize` sets width and height in inches, and `var_names` chooses parameters ("theta") or single
coordinates ("theta[0]"). Needs matplotlib (``pip install fastkam[plot]``).
"""

from fastkam.plots.adaptation import plot_adaptation
from fastkam.plots.ladder import plot_ladder
from fastkam.plots.live import LiveFigure
from fastkam.plots.mixing import plot_autocorr, plot_ess
from fastkam.plots.modes import plot_modes
from fastkam.plots.pair import plot_2d, plot_pair
from fastkam.plots.proposals import plot_proposals
from fastkam.plots.trace import plot_rank, plot_trace

__all__ = [
    "LiveFigure",
    "plot_2d",
    "plot_adaptation",
    "plot_autocorr",
    "plot_ess",
    "plot_ladder",
    "plot_modes",
    "plot_pair",
    "plot_proposals",
    "plot_rank",
    "plot_trace",
]
