"""One row of the table in which a compiled class declares its state."""

from __future__ import annotations

from typing import NamedTuple


class Field(NamedTuple):
    """An array or a number that an object keeps from step to step.

    Parameters
    ----------
    meaning : str
        Description, for the documentation.
    shape : tuple of str
        Names of sizes; () for a number. A shape ("d", something) is a matrix in column-major order,
        any other array is in row-major order.
    dtype : str
        "f8", "i8", or for arrays any other numpy type.
    shared : bool
        Whether chains with a common adaptation share it.
    learned : bool
        Whether it is recorded through warm-up, for `result.adaptation`.
    stat : str, optional
        The name under which the number is recorded with each draw.
    above, least, below, most : float or str, optional
        The range of the number, or of each element: a file with another value is refused. A name
        is that of a size, or of another number of the table. An integer with `least` and without
        an upper bound is a count: at most 2^53.
    finite : bool
        Whether each element must be finite.
    permutation : bool
        Whether the array must be a permutation of 0, ..., n - 1.
    """

    meaning: str
    shape: tuple[str, ...] = ()
    dtype: str = "f8"
    shared: bool = False
    learned: bool = False
    stat: str | None = None
    above: float | str | None = None
    least: float | str | None = None
    below: float | str | None = None
    most: float | str | None = None
    finite: bool = False
    permutation: bool = False
