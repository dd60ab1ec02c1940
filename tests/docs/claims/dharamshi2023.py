"""The numbers of docs/replication-dharamshi2023.md."""

from math import sqrt

from claims import Cell, Stated, Text, cells, tables

BANANA, DOUBLE, BASIS, BUNCH, HORSESHOE = (
    f"dharamshi2023/{name}" for name in ("banana", "double_banana", "basis_vectors", "banana_bunch",
                                         "horseshoe"))
THREE = (DOUBLE, BASIS, BUNCH)
ACCEPTANCE, ESJD, MEAN, SECOND = (
    "acceptance", "ESJD", "distance of the mean", "of the second moment")
CHAINS = Text(DOUBLE, r"Means over (\d+) chains")


def both(name):
    """The column of ours and that of the paper."""
    return [name, f"paper: {name}"]


def on(files, rows, column, nths=(0,)):
    """The numbers of one column: by row, of each by target."""
    rows = [rows] if isinstance(rows, str) else rows
    return [Cell(file, row, column, n) for row in rows for file in files for n in nths]


def compared():
    """Whether the paper's distance lies below our mean, of each row of two targets."""
    return [Cell(file, row, "paper: distances")() < Cell(file, row, MEAN)()
            for file in (DOUBLE, BUNCH) for row, cell in tables(file).items()
            if cell["paper: distances"]]


def standard_errors(file, row, other, column=MEAN):
    """Between the means over chains of two rows."""
    def difference():
        (one, spread), (two, spread_of_two) = (
            [source() for source in cells(file, name, column, (0, 1))] for name in (row, other))
        return (one - two) / sqrt((spread**2 + spread_of_two**2) / CHAINS())
    return difference
