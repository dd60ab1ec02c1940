"""The tables of docs/names.md have the parameters, statistics and learned fields of the code."""

import dataclasses
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from runs import sample

from fastkam.samplers import SAMPLERS

PAGE = Path(__file__).parents[2] / "docs" / "names.md"
ROW = re.compile(r"^\| `(\w+)` \| (parameter|statistic) \| (.*) \| (.*) \|$")
LEARNED, LEARNED_ROW = "## Learned fields", re.compile(r"^\| `(\w+)` \| (.*) \| (.*) \|$")
ALL, BEHIND_A_SURROGATE = "all", "any, with `surrogate=`"


def rows():
    """[(name, kind, meaning, samplers)] of the page; every line of its first table is one."""
    return parsed(ROW, PAGE.read_text().partition(LEARNED)[0])


def parsed(pattern, text):
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    found = [pattern.match(line) for line in lines]
    assert all(found), [line for line, row in zip(lines, found, strict=True) if not row]
    return [row.groups() for row in found]


def samplers_of(cell):
    """The set of samplers in a cell, each named once; the text itself where it names none."""
    names = re.findall(r"`(\w+)`", cell)
    if cell in (ALL, BEHIND_A_SURROGATE):
        return cell
    assert cell == ", ".join(f"`{name}`" for name in names), cell
    assert len(names) == len(set(names)), cell
    return frozenset(names)


def statistics_of_every_sampler():
    """{name: ALL or BEHIND_A_SURROGATE}, from two short runs."""
    def logp(x):
        return -0.5 * (x @ x)

    runs = [sample(logp, np.zeros(1), sampler="rwm", draws=2, tune=2, chains=1, seed=1,
                   progress=False, surrogate=surrogate) for surrogate in (None, logp)]
    own = set(SAMPLERS["rwm"]().stat_names)
    plain, delayed = (set(run.stats) - own for run in runs)
    return dict.fromkeys(plain, ALL) | dict.fromkeys(delayed - plain, BEHIND_A_SURROGATE)


def names_in_the_code():
    """{(name, kind): samplers}"""
    found = defaultdict(set)
    for sampler, cls in SAMPLERS.items():
        for field in dataclasses.fields(cls):
            found[field.name, "parameter"].add(sampler)
        for name in cls().stat_names:
            found[name, "statistic"].add(sampler)
    general = statistics_of_every_sampler()
    return ({key: frozenset(names) for key, names in found.items()}
            | {(name, "statistic"): where for name, where in general.items()})


def test_table_has_the_names_of_the_code():
    listed = {(name, kind): samplers_of(cell) for name, kind, _, cell in rows()}
    code = names_in_the_code()
    assert not set(code) - set(listed), "not in docs/names.md"
    assert not set(listed) - set(code), "not in the code"
    assert listed == code


def test_each_name_is_listed_once_in_alphabetical_order():
    keys = [(name, kind) for name, kind, *_ in rows()]
    assert keys == sorted(set(keys))


def test_each_name_has_a_meaning():
    for name, _, meaning, _ in rows():
        assert len(meaning.split()) >= 2, name
        assert re.sub(r"[^a-z]", "", meaning.lower()) != name.replace("_", ""), name


@pytest.mark.parametrize("name", SAMPLERS)
def test_sampler_is_listed_with_its_names(name):
    listed = {(row, kind) for row, kind, _, cell in rows() if f"`{name}`" in cell}
    fields = {(field.name, "parameter") for field in dataclasses.fields(SAMPLERS[name])}
    assert listed == fields | {(stat, "statistic") for stat in SAMPLERS[name]().stat_names}


def test_learned_fields_have_their_meanings():
    found = defaultdict(set)
    for sampler, cls in SAMPLERS.items():
        for name, field in cls().kernel_class().FIELDS.items():
            if field.learned:
                found[name, field.meaning].add(sampler)
    table = parsed(LEARNED_ROW, PAGE.read_text().partition(LEARNED)[2])
    listed = {(name, meaning): samplers_of(cell) for name, meaning, cell in table}
    assert listed == dict(found)
    assert [row[:2] for row in table] == sorted(listed, key=lambda key: (key[0].lower(), key))
