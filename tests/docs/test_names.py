"""The table of docs/names.md has the parameters and statistics of the code."""

import dataclasses
import re
from pathlib import Path

import numpy as np
from runs import sample

from fastkam.samplers import SAMPLERS

PAGE = Path(__file__).parents[2] / "docs" / "names.md"
ROW = re.compile(r"^\| `(\w+)` \| (parameter|statistic) \| (.*) \|$")


def rows():
    """[(name, kind, meaning)] of the page; every line of its table is one."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")][2:]
    found = [ROW.match(line) for line in lines]
    assert all(found), [line for line, row in zip(lines, found, strict=True) if not row]
    return [row.groups() for row in found]


def statistics_of_every_sampler():
    """Names of statistics besides those of a sampler, from two short runs."""
    def logp(x):
        return -0.5 * (x @ x)

    runs = [sample(logp, np.zeros(1), sampler="rwm", draws=2, tune=2, chains=1, seed=1,
                   progress=False, surrogate=surrogate) for surrogate in (None, logp)]
    return {name for run in runs for name in run.stats} - set(SAMPLERS["rwm"]().stat_names)


def names_in_the_code():
    """{(name, kind)}"""
    found = {(name, "statistic") for name in statistics_of_every_sampler()}
    for cls in SAMPLERS.values():
        found |= {(field.name, "parameter") for field in dataclasses.fields(cls)}
        found |= {(name, "statistic") for name in cls().stat_names}
    return found


def test_table_has_the_names_of_the_code():
    listed, code = {row[:2] for row in rows()}, names_in_the_code()
    assert not code - listed, "not in docs/names.md"
    assert not listed - code, "not in the code"


def test_each_name_is_listed_once_in_alphabetical_order():
    keys = [(name, kind) for name, kind, _ in rows()]
    assert keys == sorted(set(keys))


def test_each_name_has_a_meaning():
    for name, _, meaning in rows():
        assert len(meaning.split()) >= 2, name
        assert re.sub(r"[^a-z]", "", meaning.lower()) != name.replace("_", ""), name
