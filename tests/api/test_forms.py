"""Every form in which a density may come, and the errors for those in which it may not."""

import ctypes
import pickle

import densities
import numpy as np
import pytest
from densities import D, Provider, ctypes_function, python, short
from runs import sample
from same import assert_same
from scipy import LowLevelCallable

import fastkam as fk
from fastkam.samplers import SAMPLERS

cffi = pytest.importorskip("cffi")
POINT = [0.3, -1.7]


def cffi_pointer(library, declaration, name):
    ffi = cffi.FFI()
    ffi.cdef(declaration)
    return ffi, ffi.addressof(ffi.dlopen(library), name)


def low_level_with_data(library):
    one = ctypes.c_double(1.0)
    pointer = ctypes.cast(ctypes.pointer(one), ctypes.c_void_p)
    return LowLevelCallable(ctypes_function(library, "scipy_form"), pointer)


def with_pointer_to(library, make):
    """user_data as `make` returns it, of a number that nothing else keeps."""
    f = ctypes_function(library, "scipy_form")
    return fk.Target.from_c(f, D, user_data=make(ctypes.c_double(1.0)))


def cffi_with_data(library):
    ffi, f = cffi_pointer(library, "double scipy_form(int, double *, void *);", "scipy_form")
    one = ffi.new("double *", 1.0)
    return fk.Target.from_c(f, D, user_data=ffi.cast("void *", one)), one


@pytest.fixture(scope="session")
def api_module(tmp_path_factory):
    """A module that cffi has compiled (API mode)."""
    import importlib.util

    folder = tmp_path_factory.mktemp("cffi")
    ffi = cffi.FFI()
    ffi.cdef("double scipy_form(int n, double *x, void *user_data);")
    ffi.set_source("density_api", densities.C_SOURCE, extra_compile_args=["-ffp-contract=off"])
    spec = importlib.util.spec_from_file_location("density_api", ffi.compile(tmpdir=str(folder)))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def numba_forms():
    """The density as an njit function, and as numba's own cfuncs."""
    numba = pytest.importorskip("numba")
    types = numba.types
    doubles = types.CPointer(types.float64)
    f = numba.njit(python)
    g = numba.njit(densities.python_pair)

    @numba.cfunc(types.float64(types.intc, doubles, types.voidptr))
    def scipy_form(n, x, data):
        return f(numba.carray(x, n))

    @numba.cfunc(types.intc(types.uintp, doubles, doubles, types.voidptr))
    def own_form(n, x, logp, data):
        logp[0] = f(numba.carray(x, n))
        return 0

    return {"njit": f, "njit pair": g, "cfunc": scipy_form, "own cfunc": own_form}


C_FORMS = {
    "ctypes": lambda so: ctypes_function(so, "scipy_form"),
    "ctypes without user_data": lambda so: ctypes_function(so, "plain_form"),
    "ctypes, own signature": lambda so: ctypes_function(so, "own_form"),
    "ctypes round Python": lambda so: ctypes.CFUNCTYPE(
        ctypes.c_double, ctypes.c_int, densities.DOUBLES)(lambda n, x: python(x[:n])),
    "LowLevelCallable": lambda so: LowLevelCallable(ctypes_function(so, "scipy_form")),
    "LowLevelCallable with user_data": low_level_with_data,
    "ctypes.pointer": lambda so: with_pointer_to(so, ctypes.pointer),
    "ctypes.byref": lambda so: with_pointer_to(so, ctypes.byref),
    "cffi": lambda so: cffi_pointer(
        so, "double scipy_form(int, double *, void *);", "scipy_form")[1],
    "cffi, const": lambda so: cffi_pointer(
        so, "double plain_form(int, const double *);", "plain_form")[1],
    "cffi, own signature": lambda so: cffi_pointer(
        so, "int own_form(size_t, const double *, double *, void *);", "own_form")[1],
    "capsule": Provider,
}


@pytest.mark.parametrize("form", C_FORMS)
def test_compiled_forms_are_recognized_and_need_no_gil(library, form):
    target = fk.as_target(C_FORMS[form](library), D)
    assert not target.needs_gil
    assert target.logp(POINT) == python(POINT)


def test_cffi_module_with_user_data(library, api_module):
    target, _alive = cffi_with_data(library)
    assert target.logp(POINT) == python(POINT)
    pointer = api_module.ffi.addressof(api_module.lib, "scipy_form")
    assert fk.as_target(pointer, D).logp(POINT) == python(POINT)
    with pytest.raises(TypeError, match=r"addressof\(lib, 'scipy_form'\)"):
        fk.as_target(api_module.lib.scipy_form, D)


@pytest.mark.parametrize("form", ["njit", "njit pair", "cfunc", "own cfunc"])
def test_numba_forms(numba_forms, form):
    target = fk.as_target(numba_forms[form], D)
    assert not target.needs_gil
    assert target.logp(POINT) == python(POINT)
    if form == "njit pair":
        logp, grad = target.logp_grad(POINT)
        assert (logp, grad.tolist()) == (python(POINT), densities.python_pair(POINT)[1].tolist())


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_same_seed_gives_the_same_chain_whatever_the_form(
        library, api_module, numba_forms, name):
    def run(target, **options):
        return sample(target, POINT, sampler=short(name), draws=60, tune=40, chains=2, seed=5,
                      **options)

    pairs = {kind: densities.with_gradient(kind, library) for kind in ("python", "vectorized", "c")}
    expected = run(pairs["python"])
    forms = {"vectorized pair": pairs["vectorized"], "capsule": pairs["c"],
             "njit pair": numba_forms["njit pair"]}
    if not SAMPLERS[name]().needs_gradient:
        forms |= {form: make(library) for form, make in C_FORMS.items()}
        forms |= {"python": python, "python pair": densities.python_pair, **numba_forms,
                  "cffi api": api_module.ffi.addressof(api_module.lib, "scipy_form"),
                  "recipe": fk.TargetRecipe("densities:ctypes_function", library, "scipy_form")}
        assert_same(run(densities.vectorized, vectorized=True), expected)
    assert expected.trace.accepted.any()
    for form, target in forms.items():
        try:
            assert_same(run(target), expected)
        except AssertionError as error:
            raise AssertionError(f"another chain for the form {form!r}") from error


# ---- what is refused ----


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"name": b"something else"}, TypeError, "a capsule named 'fk_target_v1'"),
        ({"abi": 7}, TypeError, "abi 7; this version of fastkam knows abi 1"),
        ({"dim": 3}, ValueError, "target has dimension 3, but x0 has 2 coordinates"),
        ({"dim": 0}, ValueError, "dimension 0"),
        ({"logp": False}, ValueError, "none of logp, logp_grad, batch and noisy"),
    ],
)
def test_capsules_that_are_refused(library, options, error, says):
    with pytest.raises(error, match=says):
        fk.as_target(Provider(library, **options), D)


def test_a_class_does_not_provide_a_capsule():
    with pytest.raises(TypeError, match=r"not the class Provider: write Provider\(\.\.\.\)"):
        fk.as_target(Provider, D)


def test_ctypes_without_types_or_of_another_signature(library):
    f = ctypes.CDLL(library).scipy_form
    with pytest.raises(TypeError, match="must have its argtypes and restype set"):
        fk.as_target(f, D)
    with pytest.raises(TypeError, match=r"'int \(double\)'; it must be one of 'double \(int n"):
        fk.as_target(ctypes_function(library, "other_form"), D)


def test_user_data_of_a_wrong_kind(library):
    f = ctypes_function(library, "scipy_form")
    with pytest.raises(TypeError, match="user_data a void pointer"):
        fk.Target.from_c(f, D, user_data=3.0)
    with pytest.raises(TypeError, match="given to the LowLevelCallable"):
        fk.Target.from_c(LowLevelCallable(f), D, user_data=ctypes.c_void_p(0))
    with pytest.raises(TypeError, match="function must be a pointer to a C function"):
        fk.Target.from_c(python, D)


@pytest.mark.parametrize("target", [None, 3, "mymodel:f", np.eye(2)])
def test_objects_that_are_not_targets_are_refused(target):
    with pytest.raises(TypeError, match="target must be a function, a pointer or a Target"):
        fk.as_target(target, D)


@pytest.mark.parametrize("factory", ["module", ":f", "module:", ""])
def test_recipes_that_are_refused(factory):
    with pytest.raises(ValueError, match="factory must be like"):
        fk.TargetRecipe(factory)


def test_targets_are_made_by_factories():
    with pytest.raises(TypeError, match="abstract class Target"):
        fk.Target()
    for target in (fk.as_target(python, D), fk.targets.banana(d=2)):
        assert isinstance(target, fk.Target)
    assert not isinstance(python, fk.Target)


# ---- numba ----


def plain(x):
    return -0.5 * np.sum(x * x)


def writes(x):
    x *= 2
    return -0.125 * np.sum(x * x)


def sets_an_element(x):
    square = x[0] ** 2
    x[0] = 5.0
    return -0.5 * (square + np.sum(x[1:] ** 2))


def writes_through_another_name(x):
    same = np.ascontiguousarray(x)
    square = np.sum(same * same)
    same[:] = 7.0
    return -0.5 * square


def plain_pair(x):
    return -0.5 * np.sum(x * x), -x


def writes_pair(x):
    x *= -1
    return -0.5 * np.sum(x * x), x


def plain_estimate(x, u):
    return -0.5 * np.sum(x * x) + 0.5 * u[0] - 0.125


def writes_estimate(x, u):
    u *= 0.5
    return -0.5 * np.sum(x * x) + u[0] - 0.125


@pytest.mark.parametrize(("f", "same"), [
    (writes, plain), (sets_an_element, plain), (writes_through_another_name, plain),
    (writes_pair, plain_pair), (writes_estimate, plain_estimate)])
@pytest.mark.parametrize("d", [2, 70])
def test_numba_functions_that_write_to_their_arguments(f, same, d):
    """The point and its noise belong to the chain: the function gets copies."""
    numba = pytest.importorskip("numba")

    def draws(f):
        njit = numba.njit(f)
        target = (fk.Target.from_estimator(njit, d, n_aux=d + 1, correlation=0.9)
                  if f in (plain_estimate, writes_estimate) else njit)
        sampler = "nuts" if f in (plain_pair, writes_pair) else "ram"
        return sample(target, np.zeros(d), sampler=sampler, tune=50, draws=50, seed=1).draws

    np.testing.assert_allclose(draws(f), draws(same), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("d", [2, 70])
@pytest.mark.parametrize("user_data", [None, ctypes.c_void_p(0)])
def test_c_functions_that_write_to_their_argument(d, user_data):
    """SciPy's signature does not say that x is constant."""
    arguments = [ctypes.c_int, densities.DOUBLES] + [ctypes.c_void_p] * (user_data is not None)

    def writing(n, x, *data):
        value = -0.5 * sum(v * v for v in x[:n])
        x[0] = 7.0
        return value

    callback = ctypes.CFUNCTYPE(ctypes.c_double, *arguments)(writing)
    options = {"sampler": "ram", "tune": 50, "draws": 50, "seed": 1}
    found = sample(fk.Target.from_c(callback, d), np.zeros(d), **options)
    other = sample(lambda x: -0.5 * sum(v * v for v in x.tolist()), np.zeros(d), **options)
    np.testing.assert_array_equal(found.draws, other.draws)


def test_numba_arguments_division_and_exceptions():
    numba = pytest.importorskip("numba")

    @numba.njit
    def f(x, scales, power):
        if x[0] > 5:
            raise ValueError("beyond five")
        return -((x / scales) ** power).sum() + 1 / (x[0] - 1)

    scales = np.array([1.0, 2.0])
    target = fk.Target.from_numba(f, D, args=(scales, 2))
    assert target.logp([2.0, 2.0]) == f.py_func(np.array([2.0, 2.0]), scales, 2)
    assert target.logp([1.0, 0.0]) == np.inf
    with pytest.raises(ValueError, match="beyond five"):
        target.logp([6.0, 0.0])
    with pytest.raises(fk.SamplingError, match="raised ValueError: beyond five") as caught:
        sample(target, [6.0, 0.0], chains=1)
    assert isinstance(caught.value.__cause__, ValueError)


def test_numba_functions_that_are_refused():
    numba = pytest.importorskip("numba")
    target = fk.as_target(numba.njit(lambda x: (0.0, np.zeros(3))), D)
    with pytest.raises(TypeError, match=r"the gradient must be a real array of shape \(2,\)"):
        target.logp_grad(np.zeros(D))
    with pytest.raises(TypeError, match="must return a number"):
        fk.as_target(numba.njit(lambda x: x), D)
    with pytest.raises(TypeError, match="numba cannot compile"):
        fk.as_target(numba.njit(lambda x: x.nothing()), D)
    with pytest.raises(TypeError, match="f must be a numba njit function"):
        fk.Target.from_numba(python, D)


def test_a_missing_numba_is_named_in_the_error(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "numba", None)
    monkeypatch.delitem(__import__("sys").modules, "fastkam.density.numba", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'fastkam\[numba\]'"):
        fk.Target.from_numba(python, D)


def test_what_a_numba_function_returns_beside_the_density_is_not_dropped():
    """Extras in place of a gradient, with a sampler that needs none."""
    numba = pytest.importorskip("numba")

    @numba.njit
    def f(x):
        return -0.5 * (x @ x), np.array([1.0, 2.0, 3.0])

    with pytest.raises(fk.SamplingError, match="for extras of a numba function give derived="):
        fk.sample(f, np.zeros(2), sampler="am", draws=10, tune=10, progress=False)


def test_a_numba_function_is_compiled_once(monkeypatch):
    """And again if data that it refers to have changed, which are constants of compiled code."""
    numba = pytest.importorskip("numba")
    from fastkam.density import numba as wrapping

    data, compiled = [np.zeros(3)], []
    wrap = wrapping.wrap_logp
    monkeypatch.setattr(wrapping, "wrap_logp", lambda *args: compiled.append(1) or wrap(*args))
    monkeypatch.setattr(wrapping, "KEPT", {})

    def density(shift):
        held = data[0]

        @numba.njit
        def f(x):
            return -0.5 * ((held - shift - x[0]) ** 2).sum()

        return f

    f, options = density(0.0), {"draws": 200, "tune": 100, "seed": 1, "sampler": "am"}
    first = fk.sample(f, [0.0], **options)
    np.testing.assert_array_equal(fk.sample(f, [0.0], **options).draws, first.draws)
    fk.sample(density(0.0), [0.0], **options)
    assert len(compiled) == 1
    fk.sample(density(2.0), [0.0], **options)
    data[0] = np.full(3, 5.0)
    assert fk.sample(density(0.0), [0.0], **options).draws.mean() > 3
    assert len(compiled) == 3


def test_a_numba_function_with_large_data_is_not_kept(monkeypatch):
    """Its code reads the array where it is, so that code for equal numbers may be another one."""
    numba = pytest.importorskip("numba")
    from fastkam.density import numba as wrapping

    monkeypatch.setattr(wrapping, "KEPT", {})

    def density(data):
        @numba.njit
        def f(x):
            return -0.5 * (data[0] - x[0]) ** 2

        return f

    data = np.zeros(200_000)
    equal = data.copy()
    fk.Target.from_numba(density(data), 1)
    data += 10
    assert fk.Target.from_numba(density(equal), 1).logp([0.0]) == 0
    assert not wrapping.KEPT


def test_numba_functions_of_one_factory_in_a_package_are_different(tmp_path, monkeypatch):
    numba = pytest.importorskip("numba")
    assert numba is not None
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "package_of_a_user.py").write_text(
        "import numba\n\ndef make(mu):\n    @numba.njit\n    def f(x):\n"
        "        return -0.5 * (x[0] - mu) ** 2\n    return f\n")
    monkeypatch.syspath_prepend(folder)
    from package_of_a_user import make

    assert [fk.Target.from_numba(make(mu), 1).logp([0.0]) for mu in (0.0, 2.0)] == [0.0, -2.0]


def weighted(x, A, y, n, on, scale):
    residual = y[:n] - A[:n] @ x
    value = -0.5 * (residual * residual).sum() / scale
    return value if on else 2 * value


def test_data_of_a_numba_function_are_no_constants_of_its_code(monkeypatch):
    """Many data sets of the same types share the code, which numba never frees."""
    numba = pytest.importorskip("numba")
    from fastkam.density import numba as wrapping

    compiled, wrap = [], wrapping.wrap_logp
    monkeypatch.setattr(wrapping, "wrap_logp", lambda *args: compiled.append(1) or wrap(*args))
    f, rng, targets = numba.njit(weighted), np.random.default_rng(1), []
    for size in (5, 20, 300):
        for order, step in (("C", 1), ("F", 1), ("C", 2)):
            A, y = np.array(rng.normal(size=(size, D)), order=order)[::step], rng.normal(size=size)
            args = (A, y[::step], len(A) - 1, size > 5, 0.1 * size)
            whole = (A, np.arange(len(A)), len(A) - 1, size > 5, size)      # other types
            targets += [(fk.Target.from_numba(f, D, args=one), one) for one in (args, whole)]
    for target, args in targets:        # after all of them have been made
        for one in (target, pickle.loads(pickle.dumps(target))):
            assert one.logp([0.3, -0.7]) == pytest.approx(
                weighted(np.array([0.3, -0.7]), *args), rel=1e-13)
    assert len(compiled) == 2


def test_data_of_a_numba_function_are_fixed():
    numba = pytest.importorskip("numba")

    @numba.njit
    def f(x, y):
        return -((x - y) ** 2).sum()

    @numba.njit
    def writes(x, y):
        y[0] = x[0]
        return -((x - y) ** 2).sum()

    y = np.zeros(2)
    target = fk.Target.from_numba(f, D, args=(y,))
    y += 1
    assert target.logp([0.0, 0.0]) == 0
    with pytest.raises(TypeError, match=r"(?s)numba cannot compile f: .*readonly"):
        fk.Target.from_numba(writes, D, args=(y,))


@pytest.mark.parametrize("data", [
    ("ab", 2.0), (np.float32(2.0), 2.0), (np.array(2.0), 2.0), (None, 2.0), ((1, 2.0), 2.0),
    (2**70, 2.0)], ids=str)
def test_other_data_of_a_numba_function_are_constants(data):
    numba = pytest.importorskip("numba")

    @numba.njit
    def f(x, odd, scale):
        return -(x * x).sum() * scale

    if data[0] == 2**70:
        with pytest.raises(TypeError, match="numba cannot compile f"):
            fk.Target.from_numba(f, D, args=data)
        return
    assert fk.Target.from_numba(f, D, args=data).logp([1.0, 2.0]) == -10
