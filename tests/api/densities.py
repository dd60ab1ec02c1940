"""One density in every form it can be given in, with the same arithmetic in each.

log pi(x) = -(u^2 + v^2) / 2 with u = x0, v = x1 - x0^2 / 2: no function that libraries round
differently, so that every form gives the same bits.
"""

import ctypes
import dataclasses
import subprocess

import numpy as np

import fastkam as fk
from fastkam.samplers import SAMPLERS

D = 2
DOUBLES = ctypes.POINTER(ctypes.c_double)

C_SOURCE = r"""
#include <math.h>
#include <stddef.h>
#include <unistd.h>

static double value(const double *x)
{
    double u = x[0], v = x[1] - 0.5 * u * u;
    return -0.5 * (u * u + v * v);
}

double scipy_form(int n, double *x, void *user_data)
{
    return user_data ? *(double *)user_data * value(x) : value(x);
}

double plain_form(int n, double *x) { return value(x); }

int own_form(size_t n, const double *x, double *logp, void *data)
{
    *logp = value(x);
    return 0;
}

int own_grad(size_t n, const double *x, double *grad, double *logp, void *data)
{
    double u = x[0], v = x[1] - 0.5 * u * u;
    grad[0] = u * v - u;
    grad[1] = -v;
    *logp = value(x);
    return 0;
}

/* beyond x0 > data[0]: the code data[1] and the log density data[2] */
int faulty(size_t n, const double *x, double *logp, void *data)
{
    const double *d = data;
    *logp = x[0] > d[0] ? d[2] : -0.5 * (x[0] * x[0] + x[1] * x[1]);
    return x[0] > d[0] ? (int)d[1] : 0;
}

double slow(int n, double *x)
{
    usleep(200);
    return value(x);
}

/* slow, for a time that depends on x; how many calls there have been at once */
static int inside, most;

static void linger(const double *x)
{
    int now = __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    if (now > most) most = now;
    usleep(50 + (int)(1e4 * fabs(x[0])) % 100);
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

int most_at_once(void)
{
    int answer = most;
    most = 0;
    return answer;
}

double counted(int n, double *x)
{
    linger(x);
    return value(x);
}

int counted_grad(size_t n, const double *x, double *grad, double *logp, void *data)
{
    linger(x);
    return own_grad(n, x, grad, logp, data);
}

int counted_estimate(size_t n, const double *x, size_t k, const double *u, double *logp, void *data)
{
    linger(x);
    *logp = value(x) + 0.3 * u[0] - 0.045;
    return 0;
}

/* the Hessian product of `faulty`; beyond x0 > data[0]: the code data[1] */
int faulty_product(size_t n, const double *x, const double *v, double *product, void *data)
{
    const double *d = data;
    for (size_t i = 0; i < n; i++) product[i] = -v[i];
    return x[0] > d[0] ? (int)d[1] : 0;
}

/* as faulty, in some 100 microseconds */
int slow_and_faulty(size_t n, const double *x, double *logp, void *data)
{
    linger(x);
    return faulty(n, x, logp, data);
}

double nowhere(int n, double *x)
{
    usleep(20000);
    return -INFINITY;
}

int other_form(double x) { return 0; }
"""


def build(folder):
    """The library of C_SOURCE, compiled into `folder`: its path."""
    source, library = folder / "density.c", folder / "density.so"
    source.write_text(C_SOURCE)
    subprocess.run(
        ["cc", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-o", library, source, "-lm"],
        check=True,
    )
    return str(library)


def python(x):
    u, v = float(x[0]), float(x[1])
    v -= 0.5 * u * u
    return -0.5 * (u * u + v * v)


def python_pair(x):
    u, v = float(x[0]), float(x[1])
    v -= 0.5 * u * u
    return -0.5 * (u * u + v * v), np.array([u * v - u, -v])


def vectorized(X):
    u, v = X[:, 0], X[:, 1]
    v = v - 0.5 * u * u
    return -0.5 * (u * u + v * v)


def vectorized_pair(X):
    u, v = X[:, 0], X[:, 1]
    v = v - 0.5 * u * u
    return -0.5 * (u * u + v * v), np.stack([u * v - u, -v], axis=1)


def ctypes_function(path, name):
    f = getattr(ctypes.CDLL(path), name)
    f.restype, f.argtypes = {
        "scipy_form": (ctypes.c_double, [ctypes.c_int, DOUBLES, ctypes.c_void_p]),
        "plain_form": (ctypes.c_double, [ctypes.c_int, DOUBLES]),
        "slow": (ctypes.c_double, [ctypes.c_int, DOUBLES]),
        "nowhere": (ctypes.c_double, [ctypes.c_int, DOUBLES]),
        "counted": (ctypes.c_double, [ctypes.c_int, DOUBLES]),
        "most_at_once": (ctypes.c_int, []),
        "counted_grad": (ctypes.c_int,
                         [ctypes.c_size_t, DOUBLES, DOUBLES, DOUBLES, ctypes.c_void_p]),
        "counted_estimate": (ctypes.c_int, [ctypes.c_size_t, DOUBLES, ctypes.c_size_t, DOUBLES,
                                            DOUBLES, ctypes.c_void_p]),
        "slow_and_faulty": (ctypes.c_int, [ctypes.c_size_t, DOUBLES, DOUBLES, ctypes.c_void_p]),
        "own_form": (ctypes.c_int, [ctypes.c_size_t, DOUBLES, DOUBLES, ctypes.c_void_p]),
        "own_grad": (ctypes.c_int, [ctypes.c_size_t, DOUBLES, DOUBLES, DOUBLES, ctypes.c_void_p]),
        "faulty": (ctypes.c_int, [ctypes.c_size_t, DOUBLES, DOUBLES, ctypes.c_void_p]),
        "other_form": (ctypes.c_int, [ctypes.c_double]),
    }[name]
    return f


class Struct(ctypes.Structure):
    """fk_target, for a provider that uses ctypes alone."""

    _fields_ = (
        [("abi", ctypes.c_uint32), ("flags", ctypes.c_uint32)]
        + [(name, ctypes.c_size_t) for name in ("dim", "n_aux")]
        + [(name, ctypes.c_void_p)
           for name in ("logp", "logp_grad", "batch", "hvp", "noisy", "data")]
    )


class Provider:
    """A package of its own that knows nothing of fastkam but the capsule."""

    def __init__(self, path, *, name=b"fk_target_v1", abi=1, dim=D, logp=True, flags=0):
        self.library = ctypes.CDLL(path)
        self.name = name
        self.struct = Struct(abi=abi, flags=flags, dim=dim)
        if logp:
            self.struct.logp = ctypes.cast(self.library.own_form, ctypes.c_void_p).value
            self.struct.logp_grad = ctypes.cast(self.library.own_grad, ctypes.c_void_p).value

    def __fk_target__(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.struct), self.name, None)


def with_gradient(kind, path):
    """A target with a gradient, for any sampler: "python", "vectorized" or "c"."""
    if kind == "c":
        return fk.as_target(Provider(path), D)
    f = vectorized_pair if kind == "vectorized" else python_pair
    return fk.as_target(f, D, vectorized=kind == "vectorized", gradient=True)


def short(name):
    """The sampler of that name, with cycles that fit into a short run."""
    cls = SAMPLERS[name]
    cycle = {"cycle": 20} if "cycle" in cls.__dataclass_fields__ else {}
    return cls(**cycle)


def replaced(result, **changes):
    """The result with a changed state."""
    return fk.Result(dataclasses.replace(result.state, **changes), result.target)


class Stop(Exception):
    """Exception of a density that stops a run."""


def stopped_at(target, evaluation):
    """A Python twin of the density that raises at one evaluation."""
    calls = 0

    def density(x):
        nonlocal calls
        calls += 1
        if calls == evaluation:
            raise Stop
        return target.function(x)

    return fk.Target.from_python(density, D, vectorized=target.vectorized, gradient=True)


def interrupted_at(f, evaluation):
    """The same function, with Ctrl-C at one evaluation."""
    calls = 0

    def density(x):
        nonlocal calls
        calls += 1
        if calls == evaluation:
            raise KeyboardInterrupt
        return f(x)

    return density
