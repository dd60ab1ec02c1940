"""The JSON header in a file of a run, and each of its entries, checked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.generators import check_generator
from fastkam._core.engine.ranges import MOST_COUNT, BadField, check_names
from fastkam.parameters import revived
from fastkam.run.records import Fields
from fastkam.run.state import BIT_GENERATORS, STATUSES, check_bit_generator

# fields of RunState
OWN = ("sampler", "schedule", "tune", "thin", "keep_warmup", "share", "requested", "undecided",
       "budget", "budget_from", "reserved", "by_gradients", "may_tune", "bit_generator",
       "generators", "search", "searched", "is_density", "seconds", "status")
REQUIRED = (*OWN, "stat_names", "seed", "shapes", "dims")
TEXTS = ("stopped_by", "wrong_gradient")  # written if they are not empty
OPTIONAL = ("coordinates", "extras", "n_extras", "store", *TEXTS)
SEED = ("entropy", "spawn_key", "pool_size", "n_children_spawned")
LEAST_POOL, MOST_MIXED = 4, 10**7  # words of a SeedSequence's pool; its product with the entropy's
EXTRA_TYPES = ("f8", "i8", "b1")


def decoded(text: NDArray[Any]) -> dict[str, Any]:
    """Parse a header; BadField if it is not a JSON dict."""
    try:
        header = json.loads(text.tobytes(), object_pairs_hook=once)
    except BadField:
        raise
    except RecursionError as error:
        raise BadField("header", "is nested too deeply") from error
    except ValueError as error:
        raise BadField("header", f"is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise BadField("header", "must be a dict")
    return header


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the dict of these pairs; BadField for a name that is given twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadField(twice, "is given twice")
    return found


def check_header(header: dict[str, Any]) -> None:
    """Refuse a header with a missing, an unknown or an invalid entry."""
    check_names(REQUIRED, [name for name in header if name not in OPTIONAL])
    for name, least in (("tune", 0), ("thin", 1), ("requested", 0), ("searched", 0),
                        ("budget", 0), ("budget_from", 0), ("reserved", 0)):
        integer(name, header[name], least)
    integer("undecided", header["undecided"], 0, header["requested"])
    for name in ("keep_warmup", "share", "is_density", "by_gradients", "may_tune"):
        if not isinstance(header[name], bool):
            raise BadField(name, f"must be true or false, not {header[name]!r:.100}")
    seconds = header["seconds"]
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or (
            not 0 <= seconds <= MOST_COUNT):
        raise BadField("seconds", f"must be a number from 0 to {MOST_COUNT}, not {seconds!r:.100}")
    if header["status"] not in STATUSES:
        raise BadField("status", f"must be one of {list(STATUSES)}, not {header['status']!r:.100}")
    for name in TEXTS:
        if not isinstance(header.get(name, ""), str):
            raise BadField(name, f"must be a string, not {header[name]!r:.100}")
    if header["bit_generator"] not in BIT_GENERATORS:
        check_bit_generator(header["bit_generator"])
    strings("search", header["search"])
    if header["stat_names"] is not None:
        strings("stat_names", header["stat_names"])


def integer(name: str, value: Any, least: int, most: int = MOST_COUNT) -> int:
    """Return `value` if it is an integer in this range."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadField(name, f"must be an integer from {least} to {most}, not {value!r:.100}")
    return value


def strings(name: str, value: Any) -> list[str]:
    """Return `value` if it is a list of strings."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadField(name, f"must be a list of strings, not {value!r:.100}")
    return value


def mapping(name: str, value: Any, expected: Iterable[str] | None = None) -> dict[str, Any]:
    """Return `value` if it is a dict, with the keys `expected` if these are given."""
    if not isinstance(value, dict):
        raise BadField(name, f"must be a dict, not {value!r:.100}")
    if expected is not None:
        try:
            check_names(expected, value)
        except BadField as error:
            raise error.within(name) from None
    return value


def shape_of(name: str, value: Any) -> tuple[int, ...]:
    """A shape, from a list of integers."""
    if not isinstance(value, list):
        raise BadField(name, f"must be a shape, not {value!r:.100}")
    return tuple(integer(name, n, 0) for n in value)


def shapes_of(value: Any) -> dict[str, tuple[int, ...]]:
    """The shapes of parameters by their names."""
    return {name: shape_of(f"shapes.{name}", shape)
            for name, shape in mapping("shapes", value).items()}


def dims_of(value: Any) -> dict[str, list[str]]:
    """The names of dimensions by the names of parameters."""
    return {name: strings(f"dims.{name}", some) for name, some in mapping("dims", value).items()}


def seed_of(value: Any) -> np.random.SeedSequence:
    """The SeedSequence that the header describes."""
    seed = {name: revived(one) for name, one in mapping("seed", value, SEED).items()}
    integer("seed.n_children_spawned", seed["n_children_spawned"], 0)
    pool = integer("seed.pool_size", seed["pool_size"], LEAST_POOL)
    try:
        words = sum(n_words(one) for name in ("entropy", "spawn_key") for one in listed(seed[name]))
    except (TypeError, ValueError) as error:
        raise BadField("seed", "must be made of integers from 0 on") from error
    if pool * max(pool, words) > MOST_MIXED:  # seeding takes time in proportion to it
        raise BadField("seed", f"must not have {words} words for a pool of {pool}")
    return np.random.SeedSequence(**seed)


def listed(value: Any) -> list[Any]:
    """A number, a list or an array of them, as a list."""
    return list(value) if isinstance(value, (list, np.ndarray)) else [value]


def n_words(value: Any) -> int:
    """Number of 32-bit words of an integer, or of the text of one."""
    number = int(value, 0) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 0:
        raise ValueError(f"not an integer from 0 on: {value!r:.100}")
    return max(1, -(-int(number).bit_length() // 32))


def generators_of(value: Any, kind: str, chains: int) -> list[dict[str, Any]]:
    """The states of the chains' bit generators; [] for a run that has not begun."""
    states = revived(value)
    if not isinstance(states, list) or len(states) not in (0, chains):
        raise BadField("generators", f"must be a list of {chains} states")
    for k, state in enumerate(states):
        check_generator(f"generators[{k}]", kind, state)
    return states


def fields_of_extras(value: Any, n_extras: Any) -> tuple[Fields | None, int]:
    """Columns recorded with each draw, {name: (shape, type)}, and the number that are extras."""
    if value is None:
        return None, integer("n_extras", n_extras, 0, 0)
    fields: Fields = {}
    for name, field in mapping("extras", revived(value)).items():
        if not isinstance(field, list) or len(field) != 2 or field[1] not in EXTRA_TYPES:
            raise BadField(f"extras.{name}", f"must be a shape and one of {list(EXTRA_TYPES)}, not "
                                             f"{field!r:.100}")
        fields[name] = (shape_of(f"extras.{name}", field[0]), field[1])
    return fields, integer("n_extras", n_extras, 0, len(fields))
