"""Results as a pandas DataFrame."""

from __future__ import annotations

import numpy as np

from fastkam.arguments import import_extra

ADVICE = "pip install pandas"


def to_pandas(result):
    """A DataFrame with one row per draw: coordinates, extras and statistics by their labels.

    Parameters
    ----------
    result : Result

    Returns
    -------
    pandas.DataFrame
        Its index has the levels "chain" and "draw". A statistic that has the name of a parameter
        or an extra is in the column "stats.NAME", and an extra that has the label of a coordinate,
        such as "x[0]", in "extras.x[0]".

    Raises
    ------
    ImportError
        Without pandas.
    """
    pandas = import_extra("pandas", ADVICE)
    draws = np.asarray(result.draws)
    chains, rows, d = draws.shape
    columns = dict(zip(result.state.layout.labels, draws.reshape(-1, d).T, strict=True))
    for name, values in result.extras.items():
        array = np.asarray(values)
        labels = result.state.layout.labels_of(name, array.shape[2:])
        for label, index in zip(labels, np.ndindex(*array.shape[2:]), strict=True):
            free = f"extras.{label}" if label in columns else label
            columns[free] = array[(..., *index)].ravel()
    for name, values in result.stats.items():
        columns[f"stats.{name}" if name in columns else name] = np.asarray(values).ravel()
    index = pandas.MultiIndex.from_product([range(chains), range(rows)], names=["chain", "draw"])
    return pandas.DataFrame(columns, index=index)
