"""numba functions as targets, wrapped so that errors are reported and 1/0 is inf."""

from __future__ import annotations

import numpy as np

from fastkam._core.density.foreign import AddressTarget
from fastkam.arguments import shown
from fastkam.points.digest import Digest

try:
    import numba
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
except ImportError as error:
    raise ImportError(
        "a numba target needs numba: pip install 'fastkam[numba]'"
    ) from error

RAISED, WRONG_SIZE = -100, -101
KEPT = {}  # compiled functions by the digests of what they were compiled from
MOST_KEPT, MOST_BYTES = 32, 100_000  # numba makes arrays up to 1 MB constants
POINTER, VECTOR = types.CPointer(types.float64), types.float64[::1]
LOGP = types.intc(types.uintp, POINTER, POINTER, types.voidptr)
NOISY = types.intc(types.uintp, POINTER, types.uintp, POINTER, POINTER, types.voidptr)
LOGP_GRAD = types.intc(types.uintp, POINTER, POINTER, POINTER, types.voidptr)


class NumbaTarget(AddressTarget):
    """A numba function ``f(x, *args)``; made by `Target.from_numba`, which describes it.

    numba's own cfunc prints an error and returns 0.0, which would be taken as a log density. Here
    the error becomes a fatal code, and calling `f` again at that point gives the exception itself.
    """

    def __new__(cls, f, dim, args=()):
        return super().__new__(cls)

    def __init__(self, f, dim, args=()):
        if not hasattr(f, "py_func"):
            raise TypeError(f"f must be a numba njit function, not {shown(f)}")
        self.f = f
        self.args = tuple(np.array(one, order="C") if isinstance(one, np.ndarray) else one
                          for one in args)
        (logp, grad, parallel), table = wrapped(f, self.args)
        super().__init__(dim, logp.address, 0 if grad is None else grad.address,
                         0 if table is None else table.ctypes.data,
                         owner=(logp, grad, table), copies=True, thread_safe=not parallel)

    def fault(self, rc, x):
        """The exception of `f` at x, from its Python source: that has a traceback."""
        if rc == WRONG_SIZE:
            return TypeError(f"the gradient must be a real array of shape {x.shape}; for extras "
                             "of a numba function give derived=")
        if rc != RAISED:
            return None
        try:
            with np.errstate(all="ignore"):
                self.f.py_func(x, *self.args)
                self.f(x, *self.args)
        except Exception as error:
            return error
        return RuntimeError("the numba function raised, but not when it was called again")

    def made_from(self):
        return NumbaTarget, (self.f, self.dim, self.args)


class GraphTarget(AddressTarget):
    """Compiled functions of a graph, as PyTensor makes them; made by `graph_target`."""

    def __new__(cls, *given):
        return super().__new__(cls)

    def __init__(self, value, pair, dim):
        logp = wrap_logp(from_constants(value, ()), False)
        grad = None if pair is None else wrap_logp_grad(from_constants(pair, ()))
        self.f = value if pair is None else pair
        super().__init__(dim, logp.address, 0 if pair is None else grad.address,
                         owner=(logp, grad))

    def fault(self, rc, x):
        """The exception of the compiled function at x."""
        if rc != RAISED:
            return None
        try:
            self.f(np.array(x))
        except Exception as error:
            return error
        return RuntimeError("the numba function raised, but not when it was called again")


def graph_target(value, pair, dim):
    """The target of numba functions that return tuples of arrays.

    A graph may overflow to +inf far from its mass: this counts as NaN, so that the point is
    rejected.

    Parameters
    ----------
    value : numba dispatcher
        ``value(x) -> (log density,)``, an array without dimensions.
    pair : numba dispatcher or None
        ``pair(x) -> (log density, gradient)``.
    dim : int
    """

    @numba.njit(error_model="numpy")
    def density(x):
        logp = value(x)[0].item()
        return np.nan if logp == np.inf else logp

    if pair is None:
        return GraphTarget(density, None, dim)

    @numba.njit(error_model="numpy")
    def both(x):
        found, gradient = pair(x)
        logp = found.item()
        return np.nan if logp == np.inf else logp, gradient

    return GraphTarget(density, both, dim)


def graph_rows(f, width):
    """A function of X (k, n) that returns ``f(x)[0]`` (width,) of each row, (k, width)."""

    @numba.njit(error_model="numpy", nogil=True)
    def fill(X, out):
        for i in range(len(X)):
            out[i] = f(X[i])[0]

    def rows(X):
        out = np.empty((len(X), width))
        fill(np.ascontiguousarray(X), out)
        return out

    return rows


class NumbaEstimator(AddressTarget):
    """A numba estimator ``f(x, u)``; made by `Target.from_estimator`, which describes it."""

    def __new__(cls, f, dim, n_aux):
        return super().__new__(cls)

    def __init__(self, f, dim, n_aux):
        self.f = f
        inner = with_ieee_division(f)
        if returns_pair(inner, (VECTOR, VECTOR)):
            raise TypeError(f"f must return a number, not a pair: {shown(f)}")
        noisy = wrap_noisy(inner)
        super().__init__(dim, 0, owner=noisy, noisy=noisy.address, n_aux=n_aux, copies=True,
                         thread_safe=not is_parallel(noisy))

    def fault(self, rc, x):
        return RuntimeError(f"the numba estimator {self.f!r} raised") if rc == RAISED else None

    def made_from(self):
        return NumbaEstimator, (self.f, self.dim, self.n_aux)


def wrapped(f, args):
    """The C functions of `f` with these arguments, and the table of the arguments.

    The functions are (log density, log density and gradient or None, whether they start threads).
    They read arrays and numbers from the table, so that they serve for other data of the same
    types; arguments of other kinds, or those that numba can compile only as constants, are
    constants of the code, and the table is None.

    numba never frees compiled code. Therefore those of the last functions are kept, under a digest
    of the function and of the globals and the closure that it refers to, which are constants of the
    code. They are not kept if these are large arrays, which the code reads where they are.
    """
    kinds = tuple(kind_of(one) for one in args)
    if args and all(kinds):
        try:
            return compiled(f, kinds, lambda: from_table(f, kinds)), table_of(args)
        except TypeError:  # if constants are no help, the error that follows says more
            pass
    return compiled(f, args, lambda: from_constants(f, args)), None


def compiled(f, given, make):
    """The C functions of the numba function of (x, data) that `make` returns, or those kept."""
    digest = digest_of_constants((f.py_func, f.targetoptions, given))
    found = KEPT.pop(digest, None)
    if found is None:
        inner = make()
        pair = returns_pair(inner, (VECTOR, types.voidptr))
        logp = wrap_logp(inner, pair)
        found = logp, wrap_logp_grad(inner) if pair else None, is_parallel(logp)
    if digest:
        KEPT[digest] = found
        for oldest in list(KEPT)[:-MOST_KEPT]:
            KEPT.pop(oldest, None)  # another thread may have done it
    return found


def is_parallel(compiled):
    """Whether a C function starts threads of numba, for which some of its layers allow one caller.
    """
    return "numba_parallel_for" in compiled.inspect_llvm()


def digest_of_constants(value):
    """The digest of a function and its data; "" if there is none, or if the data are large."""
    digest = Digest()
    try:
        digest.add(value)
    except Exception:
        return ""
    return digest.whole.hexdigest() if digest.size <= MOST_BYTES else ""


def from_constants(f, args):
    """The numba function of (x, data) that calls ``f(x, *args)``."""
    inner = with_ieee_division(f)

    @numba.njit(error_model="numpy")
    def density(x, data):
        return inner(x, *args)

    return density


def kind_of(value):
    """The kind of an argument in a table: a type, or (type of the elements, ndim) of an array."""
    if isinstance(value, np.ndarray):
        plain = type(value) is np.ndarray and value.ndim and value.dtype.kind in "fiucb"
        return (value.dtype.str, value.ndim) if plain else None
    fits = type(value) in (bool, float) or (type(value) is int and abs(value) < 2**63)
    return type(value).__name__ if fits else None


def table_of(args):
    """The arguments as numbers of 8 bytes: of an array its address and its shape."""
    numbers = []
    for one in args:
        if isinstance(one, np.ndarray):
            numbers += [one.ctypes.data, *one.shape]
        else:
            numbers.append(np.array([one], float if type(one) is float else np.int64).view(
                np.int64)[0])
    return np.array(numbers, np.int64)


def from_table(f, kinds):
    """The numba function of (x, data) that calls f with the arguments in a table at `data`."""
    lines, names, size = [], [], 0
    given = {"inner": with_ieee_division(f), "carray": numba.carray, "at": at_address,
             "read_only": read_only, "int64": np.int64, "float64": np.float64}
    for i, kind in enumerate(kinds):
        name = f"argument_{i}"
        if isinstance(kind, tuple):
            given[f"type_{i}"], ndim = np.dtype(kind[0]), kind[1]
            shape = "".join(f"numbers[{size + 1 + k}], " for k in range(ndim))
            value = f"read_only(carray(at(numbers[{size}]), ({shape}), type_{i}))"
            size += ndim
        else:
            value = {"float": f"floats[{size}]", "int": f"numbers[{size}]",
                     "bool": f"numbers[{size}] != 0"}[kind]
        lines.append(f"    {name} = {value}")
        names.append(name)
        size += 1
    source = "\n".join([
        "def density(x, data):", f"    numbers = carray(data, ({size},), int64)",
        f"    floats = carray(data, ({size},), float64)", *lines,
        f"    return inner(x, {', '.join(names)})"])
    exec(source, given)
    return numba.njit(error_model="numpy")(given["density"])


@intrinsic
def at_address(typing, address):
    """The pointer of an address."""
    def generated(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), generated


@intrinsic
def read_only(typing, array):
    """An array to which numba compiles no assignment."""
    def generated(context, builder, signature, arguments):
        return arguments[0]

    return array.copy(readonly=True)(array), generated


def with_ieee_division(f):
    """The numba function f compiled again, so that 1/0 is inf."""
    options = {key: value for key, value in f.targetoptions.items()
               if key not in ("nopython", "nogil", "cache", "error_model")}
    return numba.njit(error_model="numpy", **options)(f.py_func)


def returns_pair(function, arguments):
    """Whether a function of these types is (number, array), not a number; TypeError if neither."""
    try:
        function.compile(arguments)
    except numba.core.errors.NumbaError as error:
        raise TypeError(f"numba cannot compile f: {error}") from error
    answer = function.overloads[function.signatures[0]].signature.return_type
    number = (types.Float, types.Integer, types.Boolean)
    if isinstance(answer, number):
        return False
    if (isinstance(answer, types.BaseTuple) and len(answer) == 2
            and isinstance(answer[0], number) and isinstance(answer[1], types.Array)):
        return True
    raise TypeError(
        f"f must return a number, or a number and its gradient, not numba's {answer}; for extras "
        "give derived=")


def wrap_logp(density, pair):
    if not pair:
        @numba.cfunc(LOGP, error_model="numpy")
        def logp(n, x, out, data):
            rc = 0
            try:
                out[0] = density(numba.carray(x, n), data)
            except Exception:  # numba supports no narrower class
                rc = RAISED
            return rc

        return logp

    @numba.cfunc(LOGP, error_model="numpy")
    def logp_of_pair(n, x, out, data):
        rc = 0
        try:
            value, gradient = density(numba.carray(x, n), data)
            if gradient.size == n:
                out[0] = value
            else:  # it is no gradient, and would be lost without a word
                rc = WRONG_SIZE
        except Exception:
            rc = RAISED
        return rc

    return logp_of_pair


def wrap_noisy(inner):
    @numba.cfunc(NOISY, error_model="numpy")
    def noisy(n, x, k, u, out, data):
        rc = 0
        try:
            out[0] = inner(numba.carray(x, n), numba.carray(u, k))
        except Exception:
            rc = RAISED
        return rc

    return noisy


def wrap_logp_grad(density):
    @numba.cfunc(LOGP_GRAD, error_model="numpy")
    def logp_grad(n, x, grad, out, data):
        rc = 0
        try:
            value, gradient = density(numba.carray(x, n), data)
            if gradient.size == n:
                out[0] = value
                numba.carray(grad, n)[:] = gradient
            else:
                rc = WRONG_SIZE
        except Exception:
            rc = RAISED
        return rc

    return logp_grad
