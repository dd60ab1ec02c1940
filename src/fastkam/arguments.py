"""Checks of arguments, and the one style in which a bad one is reported."""

from __future__ import annotations

import numbers
from importlib import import_module
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from types import ModuleType


def check_integer(name: str, value: Any, *, least: int) -> int:
    """`value` as an int, at least `least`; otherwise an error that names the argument."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value!r}")
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """`value` as a bool; otherwise an error that names the argument."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> float:
    """`value` as a finite float within the bounds; otherwise an error that names the argument."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    # float first: to ask for an abstract class takes half a microsecond
    if isinstance(value, bool) or not isinstance(value, (float, numbers.Real)):
        raise TypeError(f"{name} must be a number, not {value!r}")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond 1e308
        number = float("inf")
    for holds, bound in (
        (above is None or number > above, f"above {above}"),
        (least is None or number >= least, f"at least {least}"),
        (below is None or number < below, f"below {below}"),
        (most is None or number <= most, f"at most {most}"),
        (isfinite(number), "finite"),
    ):
        if not holds:
            raise ValueError(f"{name} must be {bound}, not {value!r}")
    return number


def check_numbers(name: str, value: Any, *, above: float | None = None) -> NDArray[np.float64]:
    """`value`, a number or an array of them, as finite floats above the bound."""
    array = real_array(name, value, copy=False)
    if array.ndim == 0 or np.asarray(value).dtype == bool:
        return np.asarray(check_number(name, value, above=above))
    array = check_array(name, array, copy=False)
    if above is not None and not (array > above).all():
        where = tuple(int(i) for i in np.argwhere(~(array > above))[0])
        raise ValueError(f"{name} must be above {above}, not {array[where]} at index {where}")
    return array


def real_array(
    name: str, value: Any, *, copy: bool = True, order: Literal["C", "K"] = "C"
) -> NDArray[np.float64]:
    """`value` as a float array, new where `copy` is true, else only if it must be, in that order.

    A text is no number, and no imaginary part is dropped.
    """
    try:
        array = np.asarray(value)
        if array.dtype.kind in "fiubO" and not isinstance(value, (str, bytes, type(None))):
            return array.astype(float) if copy else np.asarray(array, dtype=float, order=order)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name} must be an array of numbers, not {value!r}")


def check_array(
    name: str, value: Any, *, shape: tuple[int, ...] | None = None, copy: bool = True
) -> NDArray[np.float64]:
    """`value` as a finite float array of that shape; otherwise an error that names the argument."""
    array = real_array(name, value, copy=copy)
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, not {array.shape}")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite, not {array[where]} at index {where}")
    return array


def coordinates(name: str, array: NDArray[Any]) -> int:
    """d of points (..., d); an error that names the argument where there is none."""
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"{name} must have shape (..., d) with d at least 1, not {array.shape}")
    return int(array.shape[-1])


def described(value: Any) -> str:
    """The kind of an array, in words; anything else as it prints."""
    if not isinstance(value, np.ndarray):
        return repr(value)
    kind = "an array" if type(value) is np.ndarray else f"a {type(value).__name__}"
    return (f"{kind} of {value.dtype}, shape {value.shape}"
            + ("" if value.flags.writeable else ", read-only")
            + ("" if value.flags.c_contiguous else ", not contiguous"))


def check_out(out: Any, shape: tuple[int, ...], dtype: type = np.float64) -> NDArray[Any]:
    """A contiguous array for results: `out` where it is given and is one, else a new one."""
    if out is None:
        return np.empty(shape, dtype)
    if (type(out) is np.ndarray and out.shape == shape and out.dtype == dtype
            and out.flags.writeable and out.flags.c_contiguous):
        return out
    raise TypeError(f"out must be a writable, contiguous {np.dtype(dtype)} array of shape {shape}, "
                    f"not {described(out)}")


def apart(out: NDArray[Any] | None, array: NDArray[Any]) -> NDArray[Any]:
    """`array`, or a copy of it where writing to `out` might change it."""
    return array.copy() if out is not None and np.may_share_memory(out, array) else array


def check_covariance(name: str, value: Any, d: int) -> NDArray[Any]:
    """The lower factor of the covariance `value`: a number, (d,) variances or (d, d); ndim kept."""
    array = real_array(name, value)
    if array.ndim == 2:
        array = check_array(name, value, shape=(d, d))
        check_symmetric(name, array)
        try:
            return np.asarray(np.linalg.cholesky(array), dtype=np.float64)
        except np.linalg.LinAlgError:
            least = np.linalg.eigvalsh(array)[0]
            raise ValueError(
                f"{name} must be positive definite; its least eigenvalue is {least:.3g}"
            ) from None
    array = check_array(name, value, shape=(d,) if array.ndim else ())
    if not (array > 0).all():
        raise ValueError(f"{name} must have positive variances, not {float(array.min())!r}")
    return np.asarray(np.sqrt(array), dtype=float)


def check_covariances(name: str, value: Any, K: int, d: int) -> NDArray[np.float64]:
    """Standard deviations (K, d) or lower factors (K, d, d) of K covariances.

    `value` is one variance for all, a variance each (K,), variances (K, d) or matrices (K, d, d).
    """
    array = real_array(name, value)
    shape = array.shape
    if len(shape) > 3 or (shape and shape[0] != K):
        raise ValueError(
            f"{name} must be a number, (K,), (K, d) or (K, d, d) with K = {K}, not {shape}"
        )
    covs = array if shape else [value] * K
    factors = [check_covariance(f"{name}[{k}]", cov, d) for k, cov in enumerate(covs)]
    return np.array([np.full(d, f) if f.ndim == 0 else f for f in factors])


def check_symmetric(name: str, matrix: NDArray[np.float64]) -> None:
    """Refuse a matrix that is not symmetric, up to 1e-8 of the scales on its diagonal."""
    scale = np.sqrt(np.abs(np.diag(matrix)))
    off = np.abs(matrix - matrix.T) > 1e-8 * np.outer(scale, scale)
    if off.any():
        i, j = (int(k) for k in np.argwhere(off)[0])
        raise ValueError(
            f"{name} must be symmetric, not {float(matrix[i, j])!r} at index {(i, j)} and "
            f"{float(matrix[j, i])!r} at {(j, i)}"
        )


def import_extra(module: str, advice: str) -> ModuleType:
    """The optional module of that name; an ImportError that says what to install without it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ImportError(f"this needs {error.name}: {advice}") from None
