"""The files of posteriordb, and the registry of the posteriors that are written here.

Magnusson, M., Torgander, J., Buerkner, P.-C., Zhang, L., Carpenter, B. and Vehtari, A. (2025).
posteriordb: testing, benchmarking and developing Bayesian inference algorithms. AISTATS.
"""

import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Posterior:
    """A posterior as a user of `fk.sample` has it.

    Attributes
    ----------
    make : callable
        make(data) returns (log likelihood, options of `fk.sample`), such as its prior.
    data, draws : str
        Names of the data and of the reference draws.
    """

    make: Callable[[dict[str, Any]], Any]
    data: str
    draws: str


POSTERIORS: dict[str, Posterior] = {}


def posterior(name, draws=None):
    """Register the function below as a posterior, by its name in the database."""

    def register(make):
        POSTERIORS[name] = Posterior(make, name.split("-")[0], draws or name)
        return make

    return register


class Database:
    """A checkout of posteriordb, or its folder posterior_database."""

    def __init__(self, folder):
        self.folder = Path(folder)
        if (self.folder / "posterior_database").is_dir():
            self.folder /= "posterior_database"
        if not (self.folder / "data" / "data").is_dir():
            raise SystemExit(f"{folder} is no checkout of posteriordb: it has no data/data")

    def read(self, *parts):
        """The content of a zipped file of JSON."""
        path = self.folder.joinpath(*parts[:-1], parts[-1] + ".json.zip")
        with zipfile.ZipFile(path) as file:
            return json.loads(file.read(file.namelist()[0]))

    def data(self, name):
        """The data by name, with lists as arrays of floats."""
        return {key: np.array(value, float) if isinstance(value, list) else value
                for key, value in self.read("data", "data", name).items()}

    def draws(self, name):
        """(names of parameters, reference draws (chains, n, d))."""
        chains = self.read("reference_posteriors", "draws", "draws", name)
        names = list(chains[0])
        return names, np.array([[chain[key] for key in names] for chain in chains]).swapaxes(1, 2)
