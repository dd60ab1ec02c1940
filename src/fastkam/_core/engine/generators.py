"""Checks of the states of numpy's bit generators, made before they are set.

numpy's setters do not check them: with a position beyond the buffer they read beyond it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastkam._core.engine.ranges import BadField, check_form

MT19937_WORDS = 624
PHILOX_WORDS = 4


def check_generator(name: str, kind: str, state: Any) -> None:
    """Raise BadField, with the name, unless `state` is one of a bit generator of class `kind`.

    The states of a generator are dicts, as returned by its attribute ``state``.
    """
    keys(name, state, ("bit_generator", "state", *OTHERS[kind]))
    if state["bit_generator"] != kind:
        raise BadField(f"{name}.bit_generator", f"must be {kind!r}, not "
                                                f"{state['bit_generator']!r:.100}")
    INNER[kind](f"{name}.state", state["state"])
    if "has_uint32" in state:
        integer(f"{name}.has_uint32", state["has_uint32"], 1)
        integer(f"{name}.uinteger", state["uinteger"], 2**32 - 1)
    if kind == "Philox":
        words(f"{name}.buffer", state["buffer"], PHILOX_WORDS, np.uint64)
        integer(f"{name}.buffer_pos", state["buffer_pos"], PHILOX_WORDS)


def keys(name: str, value: Any, expected: tuple[str, ...]) -> None:
    """Raise BadField unless `value` is a dict with these keys."""
    if not isinstance(value, dict) or set(value) != set(expected):
        found = list(value) if isinstance(value, dict) else value
        raise BadField(name, f"must have {list(expected)}, not {found!r:.100}")


def integer(name: str, value: Any, most: int) -> None:
    """Raise BadField unless `value` is an integer from 0 to `most`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or (
            not 0 <= value <= most):
        raise BadField(name, f"must be an integer from 0 to {most}, not {value!r:.100}")


def words(name: str, value: Any, n: int, dtype: type) -> None:
    """Raise BadField unless `value` is an array of n words."""
    check_form(name, value, (n,), dtype)


def pcg(name: str, state: Any) -> None:
    keys(name, state, ("state", "inc"))
    for part in ("state", "inc"):
        integer(f"{name}.{part}", state[part], 2**128 - 1)
    if state["inc"] % 2 == 0:
        raise BadField(f"{name}.inc", f"must be odd, not {state['inc']}")


def mt19937(name: str, state: Any) -> None:
    keys(name, state, ("key", "pos"))
    words(f"{name}.key", state["key"], MT19937_WORDS, np.uint32)
    integer(f"{name}.pos", state["pos"], MT19937_WORDS)
    if not state["key"].any():
        raise BadField(f"{name}.key", "must not be all zeros")


def philox(name: str, state: Any) -> None:
    keys(name, state, ("counter", "key"))
    words(f"{name}.counter", state["counter"], PHILOX_WORDS, np.uint64)
    words(f"{name}.key", state["key"], 2, np.uint64)


def sfc64(name: str, state: Any) -> None:
    keys(name, state, ("state",))
    words(f"{name}.state", state["state"], 4, np.uint64)


HALF = ("has_uint32", "uinteger")  # the unused half of a word
INNER = {"PCG64": pcg, "PCG64DXSM": pcg, "MT19937": mt19937, "Philox": philox, "SFC64": sfc64}
OTHERS = {"PCG64": HALF, "PCG64DXSM": HALF, "MT19937": (), "SFC64": HALF,
          "Philox": ("buffer", "buffer_pos", *HALF)}
