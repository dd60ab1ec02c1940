"""Figures that a notebook shows as the value of a cell; imported where matplotlib is there."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A matplotlib Figure with a picture of itself for IPython.

    IPython knows how to show a Figure only after pyplot has made one. Those of fastkam are made
    without pyplot, which keeps global state.
    """

    def _repr_png_(self) -> bytes:
        """The figure as a PNG."""
        picture = BytesIO()
        self.savefig(picture, format="png")
        return picture.getvalue()
