"""Batches of points for functions that are compiled for each number of points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.errors import SamplingWarning, warn


def padded(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """X (k, d) with its last row repeated until k is a power of two.

    The search, and a likelihood whose prior is 0 at some points, ask for any number of points.
    """
    k = len(X)
    size = 1 << (k - 1).bit_length()
    return X if size == k else np.concatenate([X, np.repeat(X[-1:], size - k, axis=0)])


def warn_single(what: str, mend: str) -> None:
    """Warn of a density in single precision."""
    warn(SamplingWarning(f"the {what} density is computed in single precision, so that differences "
                         f"of its logarithm are rounded to about 1e-7 of it: {mend}"))


def is_single(value: Any) -> bool:
    """Whether an array or a tensor is in single or half precision."""
    return any(kind in str(value.dtype) for kind in ("float32", "float16", "bfloat16"))
