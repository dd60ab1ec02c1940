"""Files of calls are refused for another function, other data, extras or gradients."""

import types

import numpy as np
import pytest
from runs import sample
from simulators import OPTIONS, quick

import fastkam as fk
from fastkam.points.digest import digest_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "calls.fk"


def test_calls_of_another_density_are_refused(path):
    sample(quick, evaluations=path, **OPTIONS)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"has the calls of another density: at x = .* give an"):
        sample(lambda x: -0.6 * x @ x, evaluations=path, **OPTIONS)
    with pytest.raises(ValueError, match=r"has points of 2 coordinates, and those .* have 3"):
        sample(lambda x: -0.5 * x @ x, evaluations=path, **OPTIONS | {"x0": np.zeros(3)})
    with pytest.raises(ValueError, match=r"has points with the coordinates .* are \['a', 'b'\]"):
        sample(quick, evaluations=path, names=["a", "b"], **OPTIONS)
    assert path.read_bytes() == before


def plain(x):
    return -0.5 * float(x @ x)


def one_extra(x):
    return plain(x), {"a": x[0]}


def sloped(x):
    return plain(x), -x


OTHERS = {
    "new extra": (one_extra, lambda x: (plain(x), {"a": x[0], "b": 1.0}),
                  r"the extras were \['a'\], and are now \['a', 'b'\]"),
    "other extra": (one_extra, lambda x: (plain(x), {"a": 2 * x[0]}), "extra 'a' was .*, and is"),
    "other shape": (one_extra, lambda x: (plain(x), {"a": x}), "extra 'a' was .*, and is now arr"),
    "no extras": (one_extra, plain, r"the extras were \['a'\], and are now \[\]"),
    "far out": (plain, lambda x: plain(x) - (x @ x > 4), "it was .*, and is now"),
    "in a part": (plain, lambda x: plain(x) if x[0] < 1 else -np.inf, "it was .*, and is now -inf"),
    "new gradient": (plain, sloped, "there is no gradient in the file"),
    "other gradient": (sloped, lambda x: (plain(x), -2 * x), r"the gradient was \["),
    "failing": (sloped, lambda x: 1 / 0, "the function now raises ZeroDivisionError")}


@pytest.mark.parametrize("change", OTHERS)
def test_functions_that_differ_in_part_are_others(path, change):
    """The gradient, the extras, and the value in a part of the space count."""
    first, second, match = OTHERS[change]
    options = OPTIONS | {"check_gradient": False}
    if first is sloped:
        options["sampler"] = "mala"
    for f in (first, lambda x: first(x)):       # the digest of the second is another
        result = sample(f, evaluations=path, **options)
    if first is one_extra:
        np.testing.assert_array_equal(result.extras["a"], result.draws[..., 0])
    if second is sloped:
        options["sampler"] = "mala"
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"of another density: at x = .* {match}"):
        sample(second, evaluations=path, **options)
    assert path.read_bytes() == before


@pytest.mark.parametrize(("change", "most"), [
    (lambda x: 1.0 * (x @ x > 6), 0), (lambda x: 1.0 * (x @ x < 0.05), 0),
    (lambda x: 1.0 * (0.4 < x[0] < 0.8), 100)])
def test_few_points_show_changes_far_out_and_many_show_narrow_ones(path, change, most, monkeypatch):
    """Only five are compared where a call is slow."""
    sample(plain, evaluations=path, **OPTIONS)
    monkeypatch.setattr("fastkam.points.opening.MOST_COMPARED", most)
    with pytest.raises(ValueError, match="of another density: at x = "):
        sample(lambda x: plain(x) - change(x), evaluations=path, **OPTIONS)


class Rows:
    """Data in an object."""

    def __init__(self, y):
        self.y = y

    def __array__(self, dtype=None, copy=None):
        return np.array(self.y, dtype)


class Unpickled(Rows):
    """Data for which it is unknown whether they have changed."""

    def __reduce_ex__(self, protocol):
        raise TypeError("no")


CHANGES = {
    "array": (np.arange(3.0) + 1, 1.0, lambda m: m), "constant": (np.arange(3.0), 2.0, lambda m: m),
    "integer": (np.arange(3.0), 2, lambda m: m), "helper": (np.arange(3.0), 1.0, lambda m: m + 1),
    "list": ([0.0, 1.0, 3.0], 1.0, lambda m: m), "long list": ([0.5] * 200, 1.0, lambda m: m),
    "masked": (np.ma.masked_equal(np.arange(3.0), 2.0), 1.0, lambda m: m),
    "object": (Rows([0.0, 1.0, 3.0]), 1.0, lambda m: m),
    "unpickled": (Unpickled([0.0, 1.0, 3.0]), 1.0, lambda m: m)}


@pytest.mark.parametrize("change", CHANGES)
def test_other_data_are_other_densities(path, change):
    """The digest of the function sees its data, so that calls are compared."""
    def density(y, scale, helper):
        return lambda x: -0.5 * ((np.ma.asarray(y) - helper(x[0])) ** 2).sum() * scale

    new = CHANGES[change]
    kind = {"list": list, "long list": list, "object": Rows, "unpickled": Unpickled}.get(
        change, np.array)
    first = density(kind([0.0] * 200 if change == "long list" else [0.0, 1.0, 2.0]),
                    type(new[1])(1), lambda m: m)
    second = density(*new)
    options = OPTIONS | {"x0": np.zeros(1)}
    sample(first, evaluations=path, **options)
    with pytest.raises(ValueError, match="another density"):
        sample(second, evaluations=path, **options)
    sample(first, evaluations=path, **options)


@pytest.mark.parametrize("where", ["module", "method", "base", "dict", "cached"])
def test_other_code_is_another_density(path, where):
    """Changes in the user's own modules and classes count."""
    text = {
        "module": "m = types.ModuleType('m')\nexec('def g(x): return SCALE * (x @ x)', vars(m))\n"
                  "def f(x): return m.g(x)",
        "method": "class F:\n def g(self, x): return SCALE * (x @ x)\n"
                  " def __call__(self, x): return self.g(x)\nf = F()",
        "base": "class G:\n def g(self, x): return SCALE * (x @ x)\n"
                "class F(G):\n def __call__(self, x): return self.g(x)\nf = F().__call__",
        "dict": "table = {'g': lambda x: SCALE * (x @ x)}\ndef f(x): return table['g'](x)",
        "cached": "import functools\ng = functools.cache(lambda v: SCALE * v)\n"
                  "def f(x): return g(float(x @ x))"}[where]

    def density(scale):
        named = {"__name__": "user", "types": types}
        exec(text.replace("SCALE", str(scale)), named)
        return named["f"]

    sample(density(-0.5), evaluations=path, **OPTIONS)
    first = digest_of(fk.as_target(density(-0.5), 2))
    assert first == digest_of(fk.as_target(density(-0.5), 2)) != ""
    with pytest.raises(ValueError, match="another density"):
        sample(density(-0.6), evaluations=path, **OPTIONS)


def test_endless_references_have_no_digest():
    deep = []
    for _ in range(3000):
        deep = [deep]
    many = [[i] for i in range(30000)]
    for data in (deep, many):
        assert digest_of(fk.as_target(lambda x, data=data: -0.5 * x @ x, 2)) == ""
