"""Targets from compiled code: a C function, an address, a capsule of another package."""
from cpython.pycapsule cimport (
    PyCapsule_GetContext, PyCapsule_GetName, PyCapsule_GetPointer, PyCapsule_IsValid,
)
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from fastkam._core.density.target cimport Target
from fastkam.target cimport (
    FK_SERIAL, FK_TARGET_ABI, FK_TARGET_CAPSULE, fk_logp_fn, fk_logp_grad_fn, fk_noisy_fn,
    fk_target,
)

import ctypes

SIGNATURES = (
    "double (int n, double *x, void *user_data)", "double (int n, double *x)",
    "int (size_t n, const double *x, double *logp, void *data)",
    "int (size_t n, const double *x, double *grad, double *logp, void *data)",
)
ESTIMATOR = ("int (size_t n, const double *x, size_t n_aux, const double *u, double *logp, "
             "void *data)")
ESTIMATOR_TYPES = ["double*", "double*", "double*", "void*"]     # besides the two sizes
# the names of size_t in ctypes, cffi and numba; ctypes only has the type of which it is an alias
SIZE_T = {"size_t", "uintptr_t", ctypes.c_size_t.__name__.removeprefix("c_"),
          {4: "uint32_t", 8: "uint64_t"}[sizeof(size_t)],
          {4: "unsignedint", 8: "unsignedlong"}[sizeof(size_t)]}

ctypedef double (*scipy_fn)(int, double *, void *) noexcept nogil
ctypedef double (*plain_fn)(int, double *) noexcept nogil

cdef struct Foreign:
    void *function
    void *user_data


# ---- functions that may write to their arguments, which belong to the chain, get copies ----

cdef enum:
    ROOM = 64       # numbers that need no memory from elsewhere
cdef int NO_MEMORY = -102


cdef struct Functions:
    fk_logp_fn logp
    fk_logp_grad_fn logp_grad
    fk_noisy_fn noisy
    void *data


cdef inline double *copied(size_t n, const double *x, double *room) noexcept nogil:
    """Copy x to `room` or, if it is longer, to memory that `leave` frees; NULL if there is none."""
    cdef double *copy = room if n <= ROOM else <double *>malloc(n * sizeof(double))
    if copy != NULL:
        memcpy(copy, x, n * sizeof(double))
    return copy


cdef inline void leave(double *copy, const double *room) noexcept nogil:
    if copy != room:
        free(copy)


cdef int call_scipy(size_t n, const double *x, double *logp, void *data) noexcept nogil:
    cdef double room[ROOM]
    cdef double *copy = copied(n, x, room)
    cdef Foreign *f = <Foreign *>data
    if copy == NULL:
        return NO_MEMORY
    logp[0] = (<scipy_fn>f.function)(<int>n, copy, f.user_data)
    leave(copy, room)
    return 0


cdef int call_plain(size_t n, const double *x, double *logp, void *data) noexcept nogil:
    cdef double room[ROOM]
    cdef double *copy = copied(n, x, room)
    if copy == NULL:
        return NO_MEMORY
    logp[0] = (<plain_fn>(<Foreign *>data).function)(<int>n, copy)
    leave(copy, room)
    return 0


cdef int call_logp(size_t n, const double *x, double *logp, void *data) noexcept nogil:
    cdef double room[ROOM]
    cdef double *copy = copied(n, x, room)
    cdef Functions *f = <Functions *>data
    cdef int rc = NO_MEMORY
    if copy != NULL:
        rc = f.logp(n, copy, logp, f.data)
        leave(copy, room)
    return rc


cdef int call_logp_grad(
        size_t n, const double *x, double *grad, double *logp, void *data) noexcept nogil:
    cdef double room[ROOM]
    cdef double *copy = copied(n, x, room)
    cdef Functions *f = <Functions *>data
    cdef int rc = NO_MEMORY
    if copy != NULL:
        rc = f.logp_grad(n, copy, grad, logp, f.data)
        leave(copy, room)
    return rc


cdef int call_noisy(size_t n, const double *x, size_t n_aux, const double *u, double *logp,
                    void *data) noexcept nogil:
    cdef double room[ROOM]
    cdef double noise_room[ROOM]
    cdef double *copy = copied(n, x, room)
    cdef double *noise = copied(n_aux, u, noise_room)
    cdef Functions *f = <Functions *>data
    cdef int rc = NO_MEMORY
    if copy != NULL and noise != NULL:
        rc = f.noisy(n, copy, n_aux, noise, logp, f.data)
    leave(copy, room)
    leave(noise, noise_room)
    return rc


cdef class CFunctionTarget(Target):
    """A pointer to a C function, of SciPy's signature or of `fastkam/target.h`."""
    cdef Foreign foreign

    def __init__(self, function, size_t dim, user_data, thread_safe, size_t n_aux=0):
        callback = low_level(function, user_data)
        capsule = tuple.__getitem__(callback, 0)
        cdef const char *name = PyCapsule_GetName(capsule)
        self.foreign.function = PyCapsule_GetPointer(capsule, name)
        self.foreign.user_data = PyCapsule_GetContext(capsule)
        self.owner = (function, callback, user_data)
        self.kind = "C function"
        self.c.dim = dim
        self.c.flags = 0 if thread_safe else FK_SERIAL
        self.c.data = &self.foreign
        signature = name.decode()
        form = signature.replace(" const", "").replace("const ", "").replace(" ", "")
        result, _, arguments = form.rstrip(")").partition("(")
        first, _, others = arguments.partition(",")
        if n_aux:
            types = arguments.split(",")
            sizes = {types.pop(0), types.pop(1)} if len(types) > 2 else set()
            if result != "int" or not sizes <= SIZE_T or types != ESTIMATOR_TYPES:
                raise TypeError(f"the C function is a {signature!r}; it must be {ESTIMATOR!r}")
            self.c.noisy = <fk_noisy_fn>self.foreign.function
            self.c.data, self.c.n_aux = self.foreign.user_data, n_aux
        elif form == "double(int,double*,void*)":
            self.c.logp = call_scipy
        elif form == "double(int,double*)":
            self.c.logp = call_plain
        elif result == "int" and first in SIZE_T and others == "double*,double*,void*":
            self.c.logp = <fk_logp_fn>self.foreign.function
            self.c.data = self.foreign.user_data
        elif result == "int" and first in SIZE_T and others == "double*,double*,double*,void*":
            self.c.logp_grad = <fk_logp_grad_fn>self.foreign.function
            self.c.data = self.foreign.user_data
        else:
            raise TypeError(f"the C function is a {signature!r}; it must be one of "
                            + ", ".join(map(repr, SIGNATURES)))


def low_level(function, user_data):
    """Return a SciPy LowLevelCallable for a pointer of ctypes, cffi or numba."""
    from scipy import LowLevelCallable

    if isinstance(function, LowLevelCallable):
        if user_data is not None:
            raise TypeError("user_data must be given to the LowLevelCallable, not beside it")
        return function
    if isinstance(user_data, (ctypes._Pointer, type(ctypes.byref(ctypes.c_int())))):
        user_data = ctypes.cast(user_data, ctypes.c_void_p)
    if hasattr(function, "native_name") and hasattr(function, "ctypes"):    # a numba cfunc
        function = function.ctypes
    if isinstance(function, ctypes._CFuncPtr) and (
            function.argtypes is None or function.restype is None):
        raise TypeError(
            f"the ctypes function {function!r} must have its argtypes and restype set, such as\n"
            "    f.restype = ctypes.c_double\n"
            "    f.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p]")
    try:
        return (LowLevelCallable(function) if user_data is None
                else LowLevelCallable(function, user_data))
    except (TypeError, ValueError) as error:
        raise TypeError(
            "function must be a pointer to a C function (of ctypes, cffi, numba or a SciPy "
            f"LowLevelCallable) and user_data a void pointer: {error}") from error


cdef class AddressTarget(Target):
    """Functions with the signatures of `fastkam/target.h`, given by their addresses.

    Parameters
    ----------
    dim : int
    logp, logp_grad, noisy : int
        Addresses of an fk_logp_fn, an fk_logp_grad_fn and an fk_noisy_fn; 0 if there is none.
    data : int
        The functions' argument `data`.
    owner : object
        The owner of the memory at these addresses, kept alive with the target.
    n_aux : int
        Number of standard normals that `noisy` takes.
    copies : bool
        Whether the functions may write to their arguments, and therefore get copies of them.
    thread_safe : bool
        Whether several threads may call the functions at a time.
    """
    cdef Functions functions

    def __init__(self, size_t dim, uintptr_t logp, uintptr_t logp_grad=0, uintptr_t data=0,
                 owner=None, uintptr_t noisy=0, size_t n_aux=0, bint copies=False,
                 bint thread_safe=True):
        self.kind = "compiled function"
        self.owner = owner
        self.c.dim = dim
        self.c.flags = 0 if thread_safe else FK_SERIAL
        self.c.logp = <fk_logp_fn><void *>logp
        self.c.logp_grad = <fk_logp_grad_fn><void *>logp_grad
        self.c.noisy, self.c.n_aux = <fk_noisy_fn><void *>noisy, n_aux
        self.c.data = <void *>data
        if copies:
            self.functions = Functions(self.c.logp, self.c.logp_grad, self.c.noisy, self.c.data)
            if logp:
                self.c.logp = call_logp
            if logp_grad:
                self.c.logp_grad = call_logp_grad
            if noisy:
                self.c.noisy = call_noisy
            self.c.data = &self.functions


cdef class CapsuleTarget(Target):
    """Another package's struct, used as it is."""

    def __init__(self, provider):
        method = getattr(provider, "__fk_target__", None)
        if method is None or isinstance(provider, type):
            raise TypeError("provider must have a method __fk_target__, and "
                            f"{type(provider).__name__} has none")
        capsule = method()
        if not PyCapsule_IsValid(capsule, FK_TARGET_CAPSULE):
            raise TypeError(f"__fk_target__() must return a capsule named "
                            f"{FK_TARGET_CAPSULE.decode()!r}, not {capsule!r}")
        cdef fk_target *other = <fk_target *>PyCapsule_GetPointer(capsule, FK_TARGET_CAPSULE)
        if other.abi != FK_TARGET_ABI:
            raise TypeError(f"{provider!r} has a target of abi {other.abi}; "
                            f"this version of fastkam knows abi {FK_TARGET_ABI}")
        if other.dim < 1:
            raise ValueError(f"the target of {provider!r} has dimension 0")
        if other.logp == NULL and other.logp_grad == NULL and other.batch == NULL and (
                other.noisy == NULL or other.n_aux == 0):
            raise ValueError(
                f"the target of {provider!r} has none of logp, logp_grad, batch and noisy")
        self.c = other[0]
        self.owner = (provider, capsule)
        self.kind = "capsule"
