"""Checks of arguments, and the one style in which a bad one is reported."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from functools import wraps
from importlib import import_module
from math import inf, isfinite, log10, sqrt
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastkam._core.density.extras import is_masked
from fastkam._core.linalg.decomposition import cholesky

if TYPE_CHECKING:
    from types import ModuleType

MOST_COUNT = 2**48  # steps, rows or points: more than fit into memory or years of computing
MOST_CHAINS = 2**20  # each is an object, and each of a thread has a stack
MOST_THREADS = 2**16
NEAR, NEAR_SHORT = 0.7, 0.65  # similarity of a suggested name; to one of at most four letters
MOST_SHOWN = 300  # characters of a value in a message
MOST_TOLD = 10_000  # characters of the message of another exception
NO_NUMBERS = (bool, np.timedelta64)  # though Python and numpy count them among the integers

# names that other packages use -> ours
ELSEWHERE = {
    "burn": "tune", "burnin": "tune", "burn_in": "tune", "warmup": "tune", "num_warmup": "tune",
    "n_warmup": "tune", "iter_warmup": "tune", "n_tune": "tune", "samples": "draws",
    "n_samples": "draws", "num_samples": "draws", "nsamples": "draws", "n_draws": "draws",
    "num_draws": "draws", "iter_sampling": "draws", "iterations": "draws", "n_iter": "draws",
    "steps": "draws", "n_steps": "draws", "nsteps": "draws", "n": "draws", "n_chains": "chains",
    "num_chains": "chains", "nchains": "chains", "nwalkers": "chains", "n_walkers": "chains",
    "walkers": "chains", "n_jobs": "threads", "cores": "threads", "n_threads": "threads",
    "nthreads": "threads", "num_threads": "threads", "workers": "executor", "pool": "executor",
    "client": "executor", "random_state": "seed", "random_seed": "seed", "rng": "seed",
    "key": "seed", "rng_key": "seed", "init": "x0", "initial": "x0", "inits": "x0", "start": "x0",
    "initvals": "x0", "init_params": "x0", "initial_state": "x0", "p0": "x0", "theta0": "x0",
    "logp": "target", "log_prob": "target", "logpdf": "target", "log_prob_fn": "target",
    "log_density": "target", "model": "target", "fun": "target", "func": "target",
    "method": "sampler", "kernel": "sampler", "algorithm": "sampler", "step": "sampler",
    "thinning": "thin", "n_thin": "thin", "progressbar": "progress", "progress_bar": "progress",
    "verbose": "progress", "param_names": "names", "var_names": "names", "labels": "names",
    "parameters": "names", "vectorize": "vectorized", "target_accept": "target_acceptance",
    "adapt_delta": "target_acceptance", "target_accept_prob": "target_acceptance",
    "cov": "proposal_cov", "covariance": "proposal_cov", "max_treedepth": "max_tree_depth",
    "max_depth": "max_tree_depth", "stepsize": "step_size", "epsilon": "step_size",
    "n_temps": "n_replicas", "ntemps": "n_replicas", "prior_transform": "prior", "ptform": "prior",
    "log_prior": "prior", "log_likelihood": "target", "loglikelihood": "target",
    "loglike": "target", "metropolis": "rwm", "mh": "rwm", "metropolis-hastings": "rwm",
    "metropolis_hastings": "rwm", "random_walk": "rwm", "random walk": "rwm", "rw": "rwm",
    "adaptive_metropolis": "am", "adaptive metropolis": "am", "haario": "am", "hamiltonian": "hmc",
    "langevin": "mala", "tempering": "pt", "parallel_tempering": "pt", "parallel tempering": "pt",
}

# names of arguments by which the random numbers of an estimate go into it, or that ask for it
OF_NOISE = {"rng", "u", "noise", "generator", "noisy", "n_aux", "estimator", "pseudo_marginal"}
AN_ESTIMATE = ("a density that is estimated with random numbers is passed as "
               "fastkam.Target.from_estimator(f), with an argument rng of f")

# names of arguments by which other packages take the gradient
OF_GRADIENT = {"gradient", "grad", "jac", "dlogp", "grad_log_prob", "logp_grad", "gradient_fn"}
A_GRADIENT = "the gradient is returned by the function itself, as the pair (log density, gradient)"

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


def near(name: Any, known: Iterable[str]) -> str:
    """The text ": did you mean 'ram'?" with the nearest name in `known`, or "" if none is near."""
    if not isinstance(name, str):
        return ""
    from difflib import get_close_matches  # needed only here

    by_lower = {one.lower(): one for one in known}
    other = ELSEWHERE.get(name.lower(), "")
    least = NEAR if len(name) > 4 else NEAR_SHORT
    found = [other] if other in by_lower else get_close_matches(name.lower(), by_lower, 1, least)
    return f": did you mean {by_lower[found[0]]!r}?" if found else ""


def no_attribute(
    made: Any, name: str, elsewhere: Mapping[str, str], more: Iterable[str] = ()
) -> Any:
    """Raise AttributeError, and name an attribute of ours: that by `elsewhere`, or a near one.

    Near names are looked for among the attributes, and `more`. The error of a property of that name
    is raised as it is.
    """
    kind = f"a {type(made).__name__} has no {name!r}"
    if name in elsewhere:
        raise AttributeError(f"{kind}: use {elsewhere[name]}", name=name)
    if not name.startswith("_") and not hasattr(type(made), name):
        raise AttributeError(f"{kind}{near(name, [*dir(made), *more])}", name=name)
    return object.__getattribute__(made, name)


def check_call(
    who: str, signature: inspect.Signature, places: tuple[Any, ...], named: Mapping[str, Any]
) -> None:
    """Refuse arguments that a function does not have, with the nearest names that it has."""
    parameters = signature.parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    for name in named:
        if name not in parameters:
            of_gradient = name in OF_GRADIENT and "target" in parameters
            near_one = "" if of_gradient else near(name, parameters)
            others = [one for one in parameters if one != "self"]
            known = "" if near_one else f"; it has {', '.join(others) or 'none'}"
            if known and "sampler" in parameters:
                known += (". Those of a sampler are given to it, as in "
                          "sampler=fk.NUTS(max_tree_depth=8)")
            if name in OF_NOISE and "target" in parameters and not near_one:
                known = f"; {AN_ESTIMATE}"
            if of_gradient:
                known = f"; {A_GRADIENT}"
            raise TypeError(f"{who} has no argument {name!r}{near_one}{known}")
    by_place = [p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    own = "self" in by_place
    if len(places) > len(by_place) and not any(
            p.kind is p.VAR_POSITIONAL for p in parameters.values()):
        rest = [name for name in parameters if name not in by_place and name not in named]
        example = f", as {rest[0]}={places[len(by_place)]!r}" if rest else ""
        what = " and ".join(by_place[own:])
        what = f"only {what} as positional arguments" if what else "no positional arguments"
        raise TypeError(f"{who} takes {what}, not {len(places) - own}: name the others"
                        f"{example}")


def check_takes(function: Callable[..., Any], value: Any, must_be: str) -> None:
    """Refuse a function that cannot be called with a value; `must_be` begins the message."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a function in C
        return
    try:
        signature.bind(value)
    except TypeError as error:
        raise TypeError(f"{must_be}, not one of {signature}: {error}") from None


def checked_names(function: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
    """Decorate a function so that an unknown argument is reported with the nearest known one."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*places: Arguments.args, **named: Arguments.kwargs) -> Value:
        who = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
        check_call(f"{who}()", signature, places, named)
        return function(*places, **named)

    return call


def counted(n: Any, noun: str) -> str:
    """A number with its noun: "1 chain", "4 chains"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def shown(value: Any) -> str:
    """The repr of a value, abridged if it is long; for a long integer, its number of digits.

    A value that cannot be printed (a list nested too deeply, an object with a faulty repr) is
    named by its type, so that an error about a bad argument is never hidden by an error of repr.
    """
    if isinstance(value, int) and abs(value) >= 10**30:
        return f"an integer of {int(value.bit_length() * log10(2)) + 1} digits"
    try:
        # cut a list before it is printed, not after
        text = repr(value[:MOST_SHOWN]) if type(value) in (list, tuple, str, bytes) else repr(value)
    except Exception:
        return f"an object of {type(value).__name__} that cannot be printed"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]} ..."


def told(error: BaseException | None) -> str:
    """The type of an exception and its message, abridged if it is long, as text for a message.

    If the exception cannot produce its message, a remark takes its place.
    """
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be made)"
    text = text if len(text) <= MOST_TOLD else f"{text[:MOST_TOLD]} ..."
    return f"{type(error).__name__}: {text}"


def check_integer(name: str, value: Any, *, least: int, most: int = MOST_COUNT) -> int:
    """`value` as an int from `least` to `most`; otherwise an error that names the argument."""
    if isinstance(value, NO_NUMBERS) or not isinstance(value, numbers.Integral):
        whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
        raise TypeError(f"{name} must be an integer, not {shown(value)}"
                        + (f": write {shown(int(value))}" if whole else ""))
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {shown(value)}")
    if int(value) > most:
        raise ValueError(f"{name} must be at most {most}, not {shown(value)}")
    return int(value)


def check_threads(value: Any) -> int:
    """A number of threads; otherwise an error."""
    return check_integer("threads", value, least=1, most=MOST_THREADS)


def check_choice(name: str, value: Any, known: Iterable[str]) -> str:
    """`value`, if it is one of the texts in `known`; otherwise an error that names the argument."""
    known = list(known)
    if isinstance(value, str) and value in known:
        return value
    raise ValueError(f"{name} must be one of {known}, not {shown(value)}{near(value, known)}")


def check_generator(name: str, seed: Any) -> np.random.Generator:
    """The numpy generator of a seed, or the given one; otherwise an error that names the argument.
    """
    try:
        return np.random.default_rng(plain_seed(seed))
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be an integer from 0 on, None, or a numpy seed or generator, "
                        f"not {shown(seed)}") from None


def plain_seed(seed: Any) -> Any:
    """A seed that numpy takes; a TypeError for other values.

    For a list that contains itself, or a np.matrix, whose rows are matrices, numpy would recurse
    until the stack overflows and the process crashes.
    """
    if isinstance(seed, np.ndarray):
        return np.asarray(seed)
    if isinstance(seed, Sequence) and not isinstance(seed, (str, bytes)):
        seed = list(seed)
        if all(isinstance(one, numbers.Integral) for one in seed):
            return seed
    elif seed is None or isinstance(seed, (
            numbers.Integral, np.random.bit_generator.ISeedSequence, np.random.BitGenerator,
            np.random.Generator, np.random.RandomState)):
        return seed
    raise TypeError


def check_flag(name: str, value: Any) -> bool:
    """`value` as a bool; otherwise an error that names the argument."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, not {shown(value)}")
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
    # float first: isinstance of an abstract class takes half a microsecond
    if isinstance(value, NO_NUMBERS) or not isinstance(value, (float, numbers.Real)):
        raise TypeError(f"{name} must be a number, not {shown(value)}")
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
            raise ValueError(f"{name} must be {bound}, not {shown(value)}")
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
    """`value` as a float array in memory order `order`; without `copy` it is copied only if needed.

    Texts, complex numbers and masked arrays are refused.
    """
    if is_masked(value):
        raise TypeError(f"{name} must be an array without masked elements, not {shown(value)}")
    try:
        array = np.asarray(value)
        if array.dtype.kind in "fiubO" and not isinstance(value, (str, bytes, type(None))):
            return array.astype(float) if copy else np.asarray(array, dtype=float, order=order)
    except (TypeError, ValueError):
        pass
    except OverflowError:
        raise ValueError(f"{name} must be finite, not with an integer beyond 1.8e308") from None
    raise TypeError(f"{name} must be an array of numbers, not "
                    f"{shown(value)}{numbers_instead(value)}")


def numbers_instead(value: Any) -> str:
    """Suggest, as the end of a message, what to pass in place of a value that is no array."""
    if isinstance(value, Mapping):
        return ": give a list of its values"
    if isinstance(value, (list, tuple)) and len({len(row) for row in value
                                                 if isinstance(row, (list, tuple))}) > 1:
        return ": its rows have different lengths"
    if isinstance(value, (set, frozenset)) or inspect.isgenerator(value):
        return ": give a list"
    if callable(value):
        return ": the density comes first, then the starting point"
    return ""


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


def check_vector(name: str, value: Any) -> NDArray[np.float64]:
    """`value` as a finite vector of at least one number."""
    array = real_array(name, value)
    return check_array(name, array, shape=(max(1, array.size),))


def check_list(name: str, value: Any) -> list[Any]:
    """The elements of a sized iterable that is no text; otherwise an error that names the argument.
    """
    listed: Any = value
    try:
        if isinstance(value, Sized) and not isinstance(value, (str, bytes)):
            return list(listed)
    except TypeError:  # an array of dimension 0
        pass
    raise TypeError(f"{name} must be a list, not {shown(value)}")


def coordinates(name: str, array: NDArray[Any]) -> int:
    """d of points (..., d); an error that names the argument if d is missing or 0."""
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"{name} must have shape (..., d) with d at least 1, not {array.shape}")
    return int(array.shape[-1])


def described(value: Any) -> str:
    """Describe an array's type, dtype, shape and flags; the repr of anything else."""
    if not isinstance(value, np.ndarray):
        return shown(value)
    kind = "an array" if type(value) is np.ndarray else f"a {type(value).__name__}"
    return (f"{kind} of {value.dtype}, shape {value.shape}"
            + ("" if value.flags.writeable else ", read-only")
            + ("" if value.flags.c_contiguous else ", not contiguous"))


def check_out(out: Any, shape: tuple[int, ...], dtype: type = np.float64) -> NDArray[Any]:
    """A contiguous array for results: `out` if it is given and fits, else a new one."""
    if out is None:
        return np.empty(shape, dtype)
    if (type(out) is np.ndarray and out.shape == shape and out.dtype == dtype
            and out.flags.writeable and out.flags.c_contiguous):
        return out
    raise TypeError(f"out must be a writable, contiguous {np.dtype(dtype)} array of shape {shape}, "
                    f"not {described(out)}")


def apart(out: NDArray[Any] | None, array: NDArray[Any]) -> NDArray[Any]:
    """`array`, or a copy of it if writing to `out` might change it."""
    return array.copy() if out is not None and np.may_share_memory(out, array) else array


def check_covariance(name: str, value: Any, d: int) -> NDArray[Any]:
    """The lower factor of the covariance `value`: a number, (d,) variances or (d, d); ndim kept."""
    if type(value) is float and 0 < value < inf:  # a shortcut for thousands of chains
        return np.asarray(sqrt(value))
    array = real_array(name, value)
    if array.ndim == 2:
        array = check_array(name, value, shape=(d, d))
        check_symmetric(name, array)
        try:
            return cholesky(array)
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
            f"{name} must be a number, (K,), (K, d) or (K, d, d), for means of shape {(K, d)}, "
            f"not {shape}"
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
    """Import an optional module; if it is missing, the ImportError says what to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ImportError(f"this needs {error.name}: {advice}") from None
