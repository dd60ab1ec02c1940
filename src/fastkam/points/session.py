"""A run in a thread of its own, and the points that it proposes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import counted, near, shown
from fastkam.points.asked import Asked, Closed
from fastkam.result import Result
from fastkam.run.blas import exempt
from fastkam.run.shapes import Layout

Array = NDArray[np.float64]


class Points:
    """Points at which the density is to be evaluated; iteration gives pairs (index, x).

    ``points["theta"]`` is the parameter of that name at all points, of shape (k, *shape).

    Attributes
    ----------
    indices : ndarray of int, shape (k,)
        The numbers of the points.
    x : ndarray, shape (k, d)
        The points, in the user's coordinates.
    """

    def __init__(self, indices: NDArray[np.int64], x: Array, layout: Layout) -> None:
        self.indices, self.x, self.layout = indices, x, layout

    @property
    def names(self) -> list[str]:
        """Names of the parameters."""
        return list(self.layout.shapes)

    def __getitem__(self, name: str) -> Array:
        if not isinstance(name, str) or name not in self.layout.shapes:
            raise KeyError(f"there is no parameter {shown(name)}; there are {self.names}"
                           f"{near(name, self.names)}")
        return self.layout.split(self.x)[name]

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[tuple[int, Array]]:
        return zip(self.indices.tolist(), self.x, strict=True)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.x, dtype=dtype)

    def __repr__(self) -> str:
        return (f"<{counted(len(self), 'point')} of dimension {self.x.shape[1]}: "
                f"{self.indices.tolist()[:8]}>")


class Session:
    """A run in a separate thread, which waits whenever a point has no value yet."""

    def __init__(self, call: Callable[..., Result], asked: Asked) -> None:
        self.call, self.asked = call, asked
        self.result: Result | None = None
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self.go, name="fastkam-asktell", daemon=True)
        self.thread.start()

    def go(self) -> None:
        """Run to the end."""
        exempt.now = True  # the user's own code runs at the same time, and may use BLAS
        try:
            result = self.call(executor=self.asked)
            result.target = None  # the function is a placeholder
            self.result = result
        except Closed:
            pass
        except BaseException as error:  # raised again in the user's thread
            self.error = error
        finally:
            self.asked.end()
