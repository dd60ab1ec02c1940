"""Sources of the numbers on the replication pages.

A page's claims are pairs (text, sources): the text stands in the page once, and each number in it
has one source, in the same order. A source is a `Cell` of a table of results, a `Text` of a results
file, a function without arguments that computes the number from such, or a `Stated`: a fact of
the paper or of its program, which no results file of ours can confirm.
"""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

PAPERS = Path(__file__).parents[3] / "bench" / "papers"
NUMBER = re.compile(r"(?<![\w.,])[+-]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?(?: million)?(?!\w)")


class Cell(NamedTuple):
    """A number of a table: of several in one cell, "0.72 (0.03)", say, the `nth`.

    The file is "paper/file", with "#section" where the file has several tables.
    """

    file: str
    row: str
    column: str
    nth: int = 0

    def __call__(self):
        text = tables(self.file)[self.row][self.column]
        return value(NUMBER.findall(text)[self.nth])


class Text(NamedTuple):
    """A number of the text of a results file: the group of the regular expression `pattern`."""

    file: str
    pattern: str

    def __call__(self):
        found = re.findall(self.pattern, section(self.file))
        assert len(found) == 1, f"{self.file} has {self.pattern!r} {len(found)} times"
        return value(found[0])


class Stated(NamedTuple):
    """A number of the paper, of the authors' program or of a definition: it says where it is."""

    where: str


def value(text):
    """The number that is written so: "1,453", "2 million", "6.02e+03"."""
    text = text.replace(",", "")
    return float(text.removesuffix(" million")) * (1e6 if text.endswith(" million") else 1)


def half_unit(text):
    """Half of one unit of the last digit of a number as it is written."""
    digits, _, exponent = text.removesuffix(" million").replace(",", "").partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return unit / 2 * (1e6 if text.endswith(" million") else 1)


@cache
def section(file):
    """The text of a results file, or of the section that the part after # names."""
    name, _, title = file.partition("#")
    paper, _, stem = name.partition("/")
    text = (PAPERS / paper / "results" / f"{stem}.md").read_text()
    if not title:
        return text
    (found,) = [part for part in text.split("\n## ") if part.startswith(title)]
    return found


@cache
def tables(file):
    """Row -> column -> text of the cell, of the one table of a results file or of a section.

    The first columns are ours; those from the first "paper: ..." on have that before their name.
    """
    lines = [line.strip("|").split("|") for line in section(file).splitlines() if line[:1] == "|"]
    head, _, *rows = [[cell.strip() for cell in line] for line in lines]
    first = next((i for i, name in enumerate(head) if name.startswith("paper: ")), len(head))
    names = head[:first] + [f"paper: {name.removeprefix('paper: ')}" for name in head[first:]]
    assert len(set(names)) == len(names), file
    return {row[0]: dict(zip(names, row, strict=True)) for row in rows}


def cells(file, rows, columns, nths=(0,)):
    """The numbers of several cells: by column, of each by row, of each by place in the cell."""
    rows, columns = ([x] if isinstance(x, str) else x for x in (rows, columns))
    return [Cell(file, row, column, n) for column in columns for row in rows for n in nths]


MEAN_AND_SPREAD = (0, 1)
