"""Summary: statistics of each coordinate, as columns, a table or a data frame."""

from __future__ import annotations

from textwrap import wrap

import numpy as np

from fastkam.arguments import import_extra, near, no_attribute, shown

MOST_ROWS = 60  # longer tables are printed with a gap
ROWS_BEFORE, ROWS_AFTER = 40, 10
WIDTH = 88  # of the lines of a note
DIGITS = 3  # of twice the sd, which fixes the decimals of its row
LEAST_DIGITS, DIGITS_OF_FLOAT = 4, 17  # of a number that may have an exponent
MOST_FIXED = 1e12  # largest number whose decimals are counted
MOST_MORE = 3  # decimals beyond those by the sd
MOST_PLACES = 9  # of an error without an exponent


class Summary:
    """Columns of statistics with one row per coordinate; prints as a table.

    ``summary["r_hat"]`` is a column, an array (d,), and ``summary.row("mu")`` a row, a dictionary.
    ``dict(summary)`` has all columns; ``len(summary)`` is the number of rows.

    Attributes
    ----------
    labels : list of str
        Names of the rows.
    columns : dict of str to ndarray, shape (d,)
        "mean", "sd", "q5", "q95" (quantiles), "mcse_mean", "mcse_sd" (Monte Carlo standard
        errors), "ess_bulk", "ess_tail" (effective sample sizes), "r_hat".
    notes : list of str
        Findings on the run, and remarks on the draws in the table, printed below it; empty if
        there are none.
    verdict : str
        Whether the draws can be trusted, printed above the notes; empty if there was no check.
    """

    def __init__(self, labels, columns, notes=(), verdict=""):
        self.labels = list(labels)
        self.notes, self.verdict = list(notes), verdict
        self.columns = {name: np.asarray(column) for name, column in columns.items()}

    def __getitem__(self, name):
        """Return the column of that name, (d,)."""
        if name not in self.columns:
            raise KeyError(f"there is no column {name!r}; there are {list(self.columns)}"
                           + (f": summary.row({name!r}) is the row of that name"
                              if name in self.labels else near(name, self.columns)))
        return self.columns[name]

    def __getattr__(self, name):
        """Refuse the name of a column, which is no attribute."""
        columns = self.__dict__.get("columns", ())
        return no_attribute(self, name, {one: f"summary[{one!r}]" for one in columns},
                            columns)

    def keys(self):
        """Return the names of the columns."""
        return self.columns.keys()

    def __iter__(self):
        """Iterate over the names of the columns."""
        return iter(self.columns)

    def __contains__(self, name):
        """Whether there is a column of that name."""
        return isinstance(name, str) and name in self.columns

    def row(self, label):
        """Return the statistics of one coordinate, {column: float}.

        Raises
        ------
        KeyError
            If there is no such row.
        """
        if label not in self.labels:
            raise KeyError(f"there is no row {label!r}; there are {shown(self.labels)}"
                           f"{near(label, self.labels)}")
        i = self.labels.index(label)
        return {name: column[i].item() for name, column in self.columns.items()}

    def __len__(self):
        return len(self.labels)

    def to_dict(self):
        """Return {"label": list of str} and each column as a list."""
        return {"label": list(self.labels)} | {n: c.tolist() for n, c in self.columns.items()}

    def to_pandas(self):
        """Return a pandas DataFrame with the labels as its index."""
        pandas = import_extra("pandas", "pip install pandas")
        return pandas.DataFrame(dict(self.columns), index=self.labels)

    # ---- as text ----

    def cells(self):
        """Return the cells as texts: a header and a row for each coordinate, abridged if long."""
        n = len(self)
        shown = list(range(n))
        if n > MOST_ROWS:
            shown = [*shown[:ROWS_BEFORE], *shown[-ROWS_AFTER:]]
        rows = [[self.labels[i], *self.row_of_cells(i).values()] for i in shown]
        if n > MOST_ROWS:
            gap = f"... {n - ROWS_BEFORE - ROWS_AFTER} more"
            rows.insert(ROWS_BEFORE, [gap] + [""] * len(self.columns))
        return [["", *self.columns], *rows]

    def row_of_cells(self, i):
        """Return the cells of row i as texts, {column: str}, with the digits that are known."""
        sd = self.columns.get("sd")
        places = None if sd is None else decimals(sd[i])
        plain = places is not None and -DIGITS <= places <= 2 * DIGITS
        texts = {}
        for name, column in self.columns.items():
            error = self.columns.get(f"mcse_{name}")
            known = places if error is None else supported(places, error[i])
            texts[name] = cell(name, column[i], known, plain)
        return texts

    def __str__(self):
        below = self.wrapped()
        return "\n".join([aligned(self.cells()), *(["", *below] if below else [])])

    def wrapped(self):
        """Return the verdict and the notes as lines."""
        return wrap(self.verdict, WIDTH) + [
            line for note in self.notes
            for line in wrap(note, WIDTH, initial_indent="- ", subsequent_indent="  ")]

    __repr__ = __str__

    def _repr_html_(self):
        from html import escape

        header, *rows = self.cells()
        head = "".join(f"<th>{escape(text)}</th>" for text in header)
        body = "".join(
            f"<tr><th>{escape(label)}</th>"
            + "".join(f'<td style="text-align: right">{escape(text)}</td>' for text in texts)
            + "</tr>"
            for label, *texts in rows
        )
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return (f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
                + (f"<p>{escape(self.verdict)}</p>" if self.verdict else "")
                + (f"<ul>{notes}</ul>" if notes else ""))


def aligned(rows):
    """Return rows of texts as lines: the first column flush left, the others flush right."""
    widths = [max(len(text) for text in column) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            text.rjust(width) if i else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def decimals(sd):
    """Return the number of decimals that shows DIGITS digits of 2 sd, or None if that is unknown.

    It is negative for a large sd.
    """
    twice = 2 * float(sd)
    if not 0 < twice < np.inf:
        return None
    return DIGITS - 1 - int(np.floor(np.log10(twice)))


def supported(places, error):
    """Return the number of decimals, as near to `places` as the error of a number allows.

    The last one is that of the first digit of the error, or of twice the error; an error that is
    very small, as of weights with controls, adds MOST_MORE decimals.
    """
    if places is None or not 0 < error < np.inf:
        return places
    least, most = (-int(np.floor(np.log10(k * float(error)))) for k in (2, 1))
    return min(max(places, least), most, places + MOST_MORE)


def cell(name, value, places, plain):
    """Return a number as text with these decimals, without an exponent if `plain`."""
    if np.isnan(value):
        return "-"
    if name.startswith("ess"):
        return f"{value:.0f}"
    if name == "r_hat":
        return f"{value:.3f}"
    if name.startswith("mcse"):
        return error_cell(value, plain)
    if places is None or np.isinf(value):
        return f"{value:.4g}"
    if plain:
        places = max(places, 0)
        if abs(value) < MOST_FIXED:
            return f"{value:z.{places}f}"
    whole = int(np.floor(np.log10(abs(value)))) + 1 if value else 0
    return f"{value:.{min(max(LEAST_DIGITS, whole + places), DIGITS_OF_FLOAT)}g}"


def error_cell(value, plain):
    """Return a standard error as text, with two digits."""
    text = f"{value:#.2g}".rstrip(".")
    if not (plain and "e" in text):
        return text
    rounded = float(text)
    if rounded >= 1:
        return f"{rounded:.0f}" if rounded < MOST_FIXED else text
    places = 1 - int(np.floor(np.log10(rounded)))
    return f"{rounded:.{places}f}" if places <= MOST_PLACES else text
