"""Data sets of the papers, read from a folder, from a cache, or from OpenML; none is shipped."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fastkam.arguments import check_choice

FOLDER = "FASTKAM_DATA"  # the environment variable that names the folder


@dataclass(frozen=True)
class DataSet:
    """Expected shape of a data set, and its name in OpenML, if OpenML has it."""

    rows: int
    features: int
    counts: tuple[int, int]  # numbers of labels 0 (or -1) and 1
    openml: int | None = None
    positive: tuple[str, ...] = ()  # OpenML's names of the class 1
    labels: tuple[int, int] = (0, 1)


DATASETS = {
    "australian": DataSet(690, 14, (383, 307), 40981, ("1",)),
    "heart": DataSet(270, 13, (150, 120), 53, ("present",)),
    "pima": DataSet(532, 7, (355, 177)),
    "ripley": DataSet(250, 2, (125, 125), 464, ("1",)),
    "german": DataSet(1000, 24, (700, 300)),
    "caravan": DataSet(5822, 85, (5474, 348)),
    "glass": DataSet(214, 9, (51, 163), 41,
                     ("build wind float", "build wind non-float", "vehic wind float",
                      "vehic wind non-float"), (-1, 1)),
}


def load_dataset(name):
    """Features and labels of a data set, as they are: neither scaled nor with an intercept.

    It is looked for in this order: ``NAME.csv`` in the folder that the environment variable
    FASTKAM_DATA names; ``NAME.csv`` in the user's cache (``~/.cache/fastkam``); OpenML, where it
    has the same data and scikit-learn is installed, and then kept in the cache. A file has one
    header line and a column ``y``; a column ``type`` is left out.

    Parameters
    ----------
    name : str
        australian, heart, pima (532 complete rows), ripley, german (numeric), caravan or glass.

    Returns
    -------
    X : ndarray (n, d)
    y : ndarray (n,)
        0 and 1; for glass -1 and 1 (window glass).

    Raises
    ------
    ValueError
        If the name is unknown, or the data that were found are not this data set.
    FileNotFoundError
        If it is not found: the message lists the ways to provide it.
    """
    check_choice("name", name, sorted(DATASETS))
    folders = [Path(os.environ[FOLDER])] if os.environ.get(FOLDER) else []
    for folder in [*folders, cache_folder()]:
        path = folder / f"{name}.csv"
        if path.is_file():
            X, y = read_csv(path)
            return check_dataset(name, X, y, str(path))
    X, y = fetch(name)
    check_dataset(name, X, y, "OpenML")
    path = cache_folder() / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [f"x{j + 1}" for j in range(X.shape[1])]
    np.savetxt(path, np.column_stack([X, y]), fmt="%.17g", delimiter=",",
               header=",".join([*columns, "y"]), comments="")
    return X, y


def cache_folder():
    """The user's cache, where the operating system has it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fastkam"


def read_csv(path):
    """Features and labels of a file."""
    with open(path) as file:
        header = file.readline().strip().split(",")
        table = np.loadtxt(file, delimiter=",", ndmin=2)
    if "y" not in header:
        raise ValueError(f"{path} must have a column y, not only {header}")
    features = [j for j, column in enumerate(header) if column not in ("y", "type")]
    return table[:, features], table[:, header.index("y")]


def fetch(name):
    """Features and labels from OpenML."""
    expected = DATASETS[name]
    ways = (f"the data set {name!r} is not here. Either name a folder with {name}.csv by the "
            f"environment variable {FOLDER}; or put that file into {cache_folder()}; or ")
    if expected.openml is None:
        raise FileNotFoundError(ways + "load it from OpenML, which does not have this one.")
    ways += "let it be loaded from OpenML, which needs scikit-learn and a network"
    try:
        from sklearn.datasets import fetch_openml

        found = fetch_openml(data_id=expected.openml, as_frame=False, parser="liac-arff")
    except (ImportError, OSError) as error:
        raise FileNotFoundError(f"{ways} ({error}).") from error
    low, high = expected.labels
    y = np.where(np.isin(found.target.astype(str), expected.positive), high, low)
    return np.asarray(found.data, dtype=float), y.astype(float)


def check_dataset(name, X, y, where):
    """X and y, if they are the data set of that name."""
    expected = DATASETS[name]
    if X.shape != (expected.rows, expected.features):
        raise ValueError(f"{where} has features of shape {X.shape}, but {name} has "
                         f"{(expected.rows, expected.features)}")
    counts = tuple(int((y == label).sum()) for label in expected.labels)
    if counts != expected.counts:
        raise ValueError(f"{where} has {counts} labels {expected.labels}, but {name} has "
                         f"{expected.counts}")
    return X, y
