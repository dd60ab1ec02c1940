"""An output of a notebook that is replaced during a run."""

from __future__ import annotations

import sys
from typing import Any

from fastkam.progress import text
from fastkam.progress.snapshot import Progress

WIDTH = 100


def in_notebook() -> bool:
    """Whether this program is the kernel of a notebook."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


class Notebook:
    """Progress in a notebook: one output, which needs no widgets and stays in the file."""

    seconds: float = 0.5  # between two drawings
    cost = 200  # the interval is at least this many times the duration of a drawing

    def __init__(self) -> None:
        self.handle: Any = None

    def __call__(self, progress: Progress) -> None:
        self.draw("\n".join(text.several(progress, plain=False, width=WIDTH)))

    def draw(self, shown: str) -> None:
        """Show a text in the place of the last one."""
        from html import escape

        self.replace({"text/plain": shown, "text/html": f"<pre>{escape(shown)}</pre>"})

    def replace(self, output: dict[str, Any]) -> None:
        """Show an output, {kind: content}, in the place of the last one."""
        from IPython.display import display

        if self.handle is None:
            self.handle = display(output, raw=True, display_id=True)
        else:
            self.handle.update(output, raw=True)

    def close(self) -> None:
        """Leave the last text; the output of the run replaces that of a search."""
