"""Runs of other packages, from the side of fastkam."""

import json
import tempfile
from pathlib import Path

import numpy as np

from bench.peers.environments import python_of
from bench.peers.launch import command
from bench.posteriors import references
from bench.posteriors.runs import ASKED, least_ess

PACKAGES = {False: "emcee", True: "nutpie"}


def run(package, name, seed, most, timeout):
    """A row of the results, as `runs.run` returns it."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "draws.npy")
        said = command(python_of(package), "-m", "bench.posteriors.peer", json.dumps({
            "package": package, "posterior": name, "seed": seed, "most": most, "file": file,
            "reference": references.load()[name]}), timeout=timeout)
        draws = np.load(file)
    row = json.loads(said.splitlines()[-1]) | {"told": []}
    if package == "nutpie":
        ess = row["ess"] = least_ess(draws)
        spent = row["total"] - row["before"]
        row["evaluations"] = row["before"] + spent * ASKED / ess if ess >= ASKED else None
        four = references.moments(draws)
    else:
        # walkers depend on each other: errors are by the autocorrelation time
        sd = draws.std((0, 1))
        four = np.array([draws.mean((0, 1)), sd, *[sd / np.sqrt(row["ess"])] * 2])
    return row | {"moments": references.rounded(four)}
