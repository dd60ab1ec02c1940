"""One call with odd arguments, from a seed and a number, and what became of it."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import numpy as np

import fastkam as fk
from fuzz import values
from fuzz.entries import ENTRIES
from fuzz.entry import Calls, TooManyCalls

WORKS, REFUSED, STOPPED = "works", "refused", "stopped with an error"
LONGEST = 3000  # characters of a message that anybody reads
# in messages that list the names of parameters, which may be long
LISTED = {"names", "shapes", "dims", "coords", "prior", "bounds", "transforms"}


def made(seed, number, only=None):
    """The entry, the arguments, and the names of those that are odd."""
    rng = np.random.default_rng([seed, number])
    names = [name for name in ENTRIES if only in (None, name)]
    weights = np.array([ENTRIES[name].weight for name in names], dtype=float)
    name = names[rng.choice(len(names), p=weights / weights.sum())]
    entry = ENTRIES[name]
    arguments = entry.good()
    among = [one for one in (*entry.optional, *arguments) if one not in entry.fixed]
    changed = list(rng.choice(among, size=min(len(among), 1 + rng.geometric(0.75) - 1 or 1),
                              replace=False))
    for one in changed:
        good = one in arguments and arguments[one] is not None
        arguments[one] = (values.near(rng, arguments[one]) if good and rng.random() < 0.6
                          else values.odd(rng))
    return name, arguments, [str(one) for one in changed]


def outcome(seed, number, only=None):
    """Return the outcome of a call: one of the good ends, or a text about the fault."""
    name, arguments, changed = made(seed, number, only)
    entry = ENTRIES[name]
    Calls.number = 0
    try:
        result = entry.call(**arguments)
        entry.check(result)
    except (values.Planted, TooManyCalls):
        return name, WORKS  # what the argument raises itself
    except MemoryError:
        return name, REFUSED
    except (TypeError, ValueError, *entry.raises) as error:
        if isinstance(error, UnicodeError) and UnicodeError not in entry.raises:
            return name, wrong(changed, error)
        return name, judged(entry, changed, error)
    except fk.SamplingError as error:
        return name, STOPPED if str(error) else wrong(changed, error)
    except BaseException as error:
        return name, wrong(changed, error)
    return name, WORKS


def judged(entry, changed, error):
    """Whether the message of an error names an argument, and is short enough to be read."""
    try:
        message = "\n".join([str(error), *getattr(error, "__notes__", [])])
    except Exception:
        return wrong(changed, error)
    if isinstance(error, OSError):  # the system's, which tells the whole path
        return REFUSED
    if len(message) > LONGEST and not LISTED & set(changed):
        return wrong(changed, error, f"{len(message)} characters")
    if isinstance(error.__cause__, values.Planted):
        return REFUSED
    # "plain_steps" or "plain steps": a word of the message, or a part of a dotted or indexed name
    words = [re.escape(word) for word in (*changed, *entry.words)]
    if re.search(rf"(?<![A-Za-z])({'|'.join(words)})(?![A-Za-z])", message):
        return REFUSED
    return wrong(changed, error, "no argument named")


def wrong(changed, error, why=""):
    """Return what is wrong with an error, and where it was raised."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if "fuzz" not in Path(frame.filename).parts]
    place = " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
                       for frame in reversed(frames[-3:]))
    try:
        message = str(error)[:300]
    except Exception as other:
        message = f"(no message: {type(other).__name__})"
    return f"{type(error).__name__}: {message!r} {why} [{', '.join(changed)}] at {place}"
