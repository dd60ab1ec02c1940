"""Evaluations: the calls of a density that a file has, read while it grows."""

from __future__ import annotations

import os
import stat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.extras import packed, unpacked, width
from fastkam.arguments import check_integer, counted
from fastkam.points.records import (
    MAGIC,
    Fields,
    Form,
    blank,
    check_end,
    read_header,
    read_records,
)
from fastkam.run.files import check_place

Array = NDArray[np.float64]
Section = tuple[Form, NDArray[Any]]
PIECE = 2**30  # bytes: the system reads no more than 2^31 at once


class Evaluations:
    """The calls of a density in a file that ``evaluations=`` of `fastkam.sample` has written.

    As ``x0`` of another run of the same function it gives the best points, and its calls to a
    surrogate that is learned. The file may be read during the run. An incomplete record at its end,
    which a killed process leaves, is ignored.

    Parameters
    ----------
    path : path
        The file.

    Raises
    ------
    ValueError
        If it is not such a file, or is damaged; the message names it.

    Examples
    --------
    >>> import os, tempfile
    >>> import fastkam as fk
    >>> path = os.path.join(tempfile.mkdtemp(), "calls.fk")
    >>> res = fk.sample(lambda x: -0.5 * x @ x, [1.0, 2.0], sampler="ram", draws=100, tune=100,
    ...                 seed=1, evaluations=path, diagnose=False)
    >>> calls = fk.Evaluations(path)
    >>> calls.x.shape[1], float(calls.values.max()) <= 0
    (2, True)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_place("path", path)
        self.path = path
        self.refresh()

    def refresh(self) -> int:
        """Read the file again; return the number of new calls."""
        before = getattr(self, "n", 0)
        self.sections, _ = read_sections(self.path)
        self.n = sum(len(rows) for _, rows in self.sections)
        return self.n - before

    def __len__(self) -> int:
        return self.n

    @property
    def d(self) -> int:
        """Number of coordinates of a point."""
        return self.sections[-1][0].d

    @property
    def names(self) -> list[str]:
        """Labels of the coordinates; empty if they have none."""
        return list(self.sections[-1][0].names)

    @property
    def x(self) -> Array:
        """The points, (n, d), in the coordinates of the user's function."""
        return self.column("x")

    @property
    def values(self) -> Array:
        """The values that the function returned, (n,); NaN where it failed.

        For a `Problem`, these are log likelihoods.
        """
        return self.column("value")

    @property
    def seconds(self) -> Array:
        """Seconds that each call took, (n,)."""
        return self.column("seconds")

    @property
    def times(self) -> Array:
        """Time at which each call ended, in seconds since 1970, (n,)."""
        return self.column("time")

    @property
    def workers(self) -> list[str]:
        """The process that made each call, "host:process"."""
        return self.texts("worker")

    @property
    def errors(self) -> list[str]:
        """The error that each call raised, as a text; "" where it did not fail."""
        return self.texts("error")

    @property
    def extras(self) -> dict[str, NDArray[Any]]:
        """Extras that the function returned, {name: (n, *shape)}; NaN or 0 where it gave none."""
        fields = self.sections[-1][0].extras
        if not width(fields):
            return unpacked(np.empty((self.n, 0)), fields)
        parts = [rows["extras"] if form.extras
                 else np.tile(packed(blank(fields), fields), (len(rows), 1))
                 for form, rows in self.sections if len(rows) or form.extras]
        return unpacked(np.concatenate(parts), fields)

    @property
    def gradients(self) -> Array | None:
        """Gradients, (n, d), NaN where there was none; None if there are none at all."""
        if not self.sections[-1][0].gradient:
            return None
        return np.concatenate([
            rows["gradient"] if form.gradient else np.full_like(rows["x"], np.nan)
            for form, rows in self.sections])

    def best(self, n: int = 1) -> Array:
        """The n distinct points with the largest log density, (n, d), the best first.

        They can be the start of another run: ``fk.sample(f, calls.best(4), chains=4)``.

        Raises
        ------
        ValueError
            If fewer points have a density.
        """
        n, rows = check_integer("n", n, least=1), self.best_rows()
        if len(rows) < n:
            raise ValueError(f"n must be at most {len(rows)}, the distinct points with a density "
                             f"in {os.fspath(self.path)!r}, not {n}")
        return self.x[rows[:n]]

    def best_rows(self) -> list[int]:
        """The rows of the distinct points with a density, the best first."""
        values, x = self.values, self.x
        order = np.argsort(-np.where(np.isfinite(values), values, -np.inf), kind="stable")
        order = order[: int(np.isfinite(values).sum())]
        first: dict[bytes, int] = {}
        for i in order.tolist():
            first.setdefault((x[i] + 0.0).tobytes(), i)  # the same for -0.0
        return list(first.values())

    def column(self, name: str) -> Any:
        return np.concatenate([rows[name] for _, rows in self.sections])

    def texts(self, name: str) -> list[str]:
        return [text.decode("utf-8", "replace") for text in self.column(name).tolist()]

    def __repr__(self) -> str:
        return (f"<Evaluations in {os.fspath(self.path)!r}: {counted(self.n, 'call')}, "
                f"{counted(self.d, 'coordinate')}>")


def read_sections(
    path: str | os.PathLike[str], data: bytes | None = None
) -> tuple[list[Section], int]:
    """The sections of a file, or of its bytes, and the number of valid bytes.

    ValueError if it is not such a file; its last record may be incomplete.
    """
    if data is None:
        data = contents(path)
    sections: list[Section] = []
    extras: Fields = {}
    at = 0
    try:
        while at < len(data) or not sections:
            found = read_header(data, at)
            if found is None:
                if not sections:
                    raise ValueError("it ends within its header" if data else "it is empty")
                check_end(data, at)
                break
            form, begin = found
            if sections and form.d != sections[0][0].d:
                raise ValueError("its parts have points of different dimensions")
            if extras and form.extras != extras:
                raise ValueError("its parts have different extras")
            extras = form.extras
            rows, at = read_records(data, begin, form)
            sections.append((form, rows))
            if not data.startswith(MAGIC, at):  # the rest, if any, is incomplete
                break
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)!r} is not a whole file of evaluations: {error}"
                         ) from None
    return sections, at


def contents(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file; ValueError for a device or a pipe, which may have no end."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # without this, a pipe would block
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError(f"{os.fspath(path)!r} is not a plain file")
        return all_of(file)
    finally:
        os.close(file)


def all_of(file: int) -> bytes:
    """The bytes of an open file, whose position is not changed."""
    parts, at = [], 0
    while part := os.pread(file, PIECE, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)
