"""Overhead of a call of a density above the model's own cost, for each form.

    python -m bench.models [--quick]

Nanoseconds of a call, medians of alternating rounds: the model's own function in a loop without
fastkam (in C, numba or Python), and the same model through fastkam's target, in the loop that
chains use. Forms whose package is missing are left out. The C and Stan forms are one compiled
density, of eight schools (`tests/interop/stan_model.c`, d = 16).
"""

import ctypes
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import fastkam as fk
from bench.papers.record import heading, options, table, write
from fastkam._core.density.stan import StanTarget

SOURCE = Path(__file__).parents[1] / "tests" / "interop" / "stan_model.c"
# a loop that calls a model's own function, and one that calls a struct's, compiled alike
LOOPS = """
#include <stdbool.h>
#include <stddef.h>
typedef int (*stan_fn)(const void *, bool, bool, const double *, double *, double *, char **);
typedef int (*grad_fn)(size_t, const double *, double *, double *, void *);
typedef int (*logp_fn)(size_t, const double *, double *, void *);

double through_stan(stan_fn f, void *model, size_t n, const double *x, double *grad, size_t calls)
{
    double logp = 0, sum = 0;
    char *error = NULL;
    for (size_t i = 0; i < calls; i++, sum += logp)
        f(model, false, true, x, &logp, grad, &error);
    return sum;
}

double through_gradient(grad_fn f, void *data, size_t n, const double *x, double *grad,
                        size_t calls)
{
    double logp = 0, sum = 0;
    for (size_t i = 0; i < calls; i++, sum += logp)
        f(n, x, grad, &logp, data);
    return sum;
}

double normal(int n, double *x, void *data)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    return -0.5 * sum;
}

double through_scipy(double (*f)(int, double *, void *), void *data, size_t n, double *x,
                     double *grad, size_t calls)
{
    double sum = 0;
    for (size_t i = 0; i < calls; i++)
        sum += f((int)n, x, data);
    return sum;
}

double through_value(logp_fn f, void *data, size_t n, const double *x, double *grad, size_t calls)
{
    double logp = 0, sum = 0;
    for (size_t i = 0; i < calls; i++, sum += logp)
        f(n, x, &logp, data);
    return sum;
}
"""


class FkTarget(ctypes.Structure):
    """The struct of fastkam/target.h."""

    _fields_ = [("abi", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("dim", ctypes.c_size_t),
                ("n_aux", ctypes.c_size_t), ("logp", ctypes.c_void_p),
                ("logp_grad", ctypes.c_void_p), ("batch", ctypes.c_void_p),
                ("hvp", ctypes.c_void_p), ("noisy", ctypes.c_void_p), ("data", ctypes.c_void_p)]


def struct_of(target):
    """The struct in the capsule of a target."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = target.__fk_target__()
    return FkTarget.from_address(pointer(capsule, b"fk_target_v1")), (target, capsule)


class Loops:
    """The compiled loops, and the library with the model."""

    def __init__(self, folder):
        source = Path(folder, "loops.c")
        source.write_text(LOOPS)
        self.library = self.built(source, Path(folder, "loops.so"))
        self.model = Path(folder, "model.so")
        self.built(SOURCE, self.model)

    @staticmethod
    def built(source, path):
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", path, source, "-lm"], check=True)
        return ctypes.CDLL(str(path))

    def through(self, name, function, data, x):
        """A function of a number of calls."""
        loop = getattr(self.library, "through_" + name)
        loop.restype = ctypes.c_double
        loop.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p,
                         ctypes.c_void_p, ctypes.c_size_t]
        grad = np.empty(len(x))

        def run(calls):
            loop(function, data, len(x), x.ctypes.data, grad.ctypes.data, calls)

        return run

    def of_target(self, target, x, *, gradient):
        """The loop over the functions of a target."""
        struct, keep = struct_of(target)
        name = "gradient" if gradient else "value"
        run = self.through(name, struct.logp_grad if gradient else struct.logp, struct.data, x)
        return lambda calls, keep=keep: run(calls)  # `keep` owns the called objects


def c_and_stan(loops):
    model = fk.from_bridgestan(loops.model, quantities=False)
    assert isinstance(model.stan, StanTarget)
    x = np.full(16, 0.1)
    own = loops.through("stan", model.library.address("log_density_gradient"), model.model, x)
    yield "BridgeStan, gradient", own, loops.of_target(model.target(), x, gradient=True)


def c_pointer(loops):
    x = np.full(8, 0.1)
    function = loops.library.normal
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p]
    own = loops.through("scipy", ctypes.cast(function, ctypes.c_void_p), None, x)
    yield "C pointer", own, loops.of_target(fk.as_target(function, 8), x, gradient=False)


def numba_forms(loops):
    numba = __import__("numba")
    x = np.full(8, 0.1)

    @numba.njit(error_model="numpy")
    def normal(x):
        return -0.5 * (x * x).sum()

    @numba.njit
    def own(x, calls):
        total = 0.0
        for _ in range(calls):
            total += normal(x)
        return total

    own(x, 1)
    yield ("numba", lambda calls: own(x, calls),
           loops.of_target(fk.as_target(normal, 8), x, gradient=False))


def pymc_forms(loops):
    import numba
    import pymc as pm

    with pm.Model() as schools:
        mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
        theta = pm.Normal("theta", mu, tau, shape=8)
        pm.Normal("y", theta, np.arange(9.0, 17.0), observed=np.arange(8.0))
    model = fk.from_pymc(schools)
    x = np.full(10, 0.1)
    from fastkam.interop.pymc_graph import jitted

    logp, gradient, z = model.graph.density
    for label, outputs in (("value", [logp]), ("gradient", [logp, gradient])):
        f = jitted([z], outputs)

        @numba.njit
        def own(x, calls, f=f):
            total = 0.0
            for _ in range(calls):
                total += f(x)[0].item()
            return total

        own(x, 1)
        yield (f"PyMC, numba, {label}", lambda calls, own=own: own(x, calls),
               loops.of_target(model.target(), x, gradient=label == "gradient"))


def jax_forms(loops):
    jax = __import__("jax")
    jax.config.update("jax_enable_x64", True)
    x = np.full((64, 4), 0.1)
    density = fk.from_jax(lambda x: -0.5 * (x**2).sum())

    def own():
        logp, gradient = density.of_pair(x)
        return np.asarray(logp), np.asarray(gradient)

    yield ("JAX, gradients of 64 points", lambda calls: [own() for _ in range(calls)],
           lambda calls: [density.pair(x) for _ in range(calls)])


def torch_forms(loops):
    torch = __import__("torch")
    x = np.full((64, 4), 0.1)
    density = fk.from_torch(lambda x: -0.5 * (x**2).sum())

    def own():
        gradient, logp = density.of_pair(torch.tensor(x))
        return logp.numpy(), gradient.numpy()

    yield ("PyTorch, gradients of 64 points", lambda calls: [own() for _ in range(calls)],
           lambda calls: [density.pair(x) for _ in range(calls)])


FORMS = (c_pointer, c_and_stan, numba_forms, pymc_forms, jax_forms, torch_forms)


def nanoseconds(own, ours, rounds):
    """Medians of the two, and of their differences, in alternating rounds of about 10 ms."""
    own(1)
    ours(1)
    calls = 1
    while (seconds := timed(own, calls)) < 0.005:
        calls *= 4
    calls = max(1, round(calls * 0.01 / seconds))
    found = np.array([[timed(own, calls), timed(ours, calls)] for _ in range(rounds)]) / calls
    return (*(1e9 * np.median(found, axis=0)), 1e9 * np.median(found[:, 1] - found[:, 0]))


def timed(work, calls):
    begun = time.thread_time()
    work(calls)
    return time.thread_time() - begun


def main():
    warnings.simplefilter("ignore")
    chosen = options(__file__, __doc__, quick="7 rounds in place of 101")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        loops = Loops(folder)
        for form in FORMS:
            try:
                found = list(form(loops))
            except ImportError as error:
                print(f"left out: {error}", flush=True)
                continue
            for label, own, ours in found:
                numbers = nanoseconds(own, ours, 7 if chosen.quick else 101)
                rows.append([label, *(f"{one:.4g}" for one in numbers)])
                print(*rows[-1], sep=" | ", flush=True)
    text = heading("Models of other packages", "python -m bench.models", chosen)
    write(Path(__file__).parent / chosen.folder.name / "models.md",
          f"{text}\n{table(['', 'own, ns', 'through fastkam, ns', 'above, ns'], rows)}")


if __name__ == "__main__":
    main()
