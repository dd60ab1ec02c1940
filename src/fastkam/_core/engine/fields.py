"""One row of the table in which a compiled class declares what it keeps."""

from __future__ import annotations

from typing import NamedTuple


class Field(NamedTuple):
    """An array or a number that an object keeps from step to step.

    Parameters
    ----------
    meaning : str
        What it is, for the documentation.
    shape : tuple of str
        Names of sizes; () for a number. A shape ("d", something) is a matrix in column-major order,
        any other array is in row-major order.
    dtype : str
        "f8", "i8", or for arrays any other of numpy.
    shared : bool
        Chains that learn as one have it in common.
    learnt : bool
        Its course through warm-up is kept in the result.
    stat : str, optional
        The name under which the number is recorded with each draw.
    above, least, below, most : float or str, optional
        The range of the number, or of each element: a file with another value is refused. A name
        is that of a size, or of another number of the table. An integer with `least` and without
        an upper bound is a count: at most 2^53.
    finite : bool
        Each element is finite.
    permutation : bool
        The array is a permutation of 0, ..., n - 1.
    """

    meaning: str
    shape: tuple[str, ...] = ()
    dtype: str = "f8"
    shared: bool = False
    learnt: bool = False
    stat: str | None = None
    above: float | str | None = None
    least: float | str | None = None
    below: float | str | None = None
    most: float | str | None = None
    finite: bool = False
    permutation: bool = False
