"""Recognize compiled functions of other packages."""

from __future__ import annotations

import ctypes
from typing import Any

from fastkam.arguments import shown


def is_numba_dispatcher(target: Any) -> bool:
    """Whether an object is a numba njit function."""
    return hasattr(target, "py_func") and hasattr(target, "nopython_signatures")


def is_pointer(target: Any) -> bool:
    """Whether an object is a LowLevelCallable, a ctypes or cffi function, or a numba cfunc."""
    kind = type(target)
    if type(getattr(target, "__self__", None)).__name__ == "Lib":  # of a cffi module, API mode
        raise TypeError(f"target must be ffi.addressof(lib, {target.__name__!r}), not "
                        f"{shown(target)}")
    return (
        isinstance(target, ctypes._CFuncPtr)  # type: ignore[attr-defined]
        or kind.__module__ == "_cffi_backend"
        or (hasattr(target, "native_name") and hasattr(target, "ctypes"))
        or (kind.__name__ == "LowLevelCallable" and kind.__module__.startswith("scipy"))
    )
