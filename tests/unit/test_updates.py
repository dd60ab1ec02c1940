"""Updates of many factors in one call: broadcasting, layouts, out=, threads=, failures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import fastkam as fk
from fastkam._core.engine.chain import ChainState
from fastkam._core.engine.group import Group
from fastkam.linalg import cholupdate
from fastkam.samplers import SAMPLERS
from fastkam.schedules import as_schedule


def factors(rng, *shape):
    """Lower factors of that shape, with NaN above their diagonals."""
    L = np.tril(rng.standard_normal(shape))
    d = shape[-1]
    L[..., range(d), range(d)] = rng.uniform(0.5, 2, shape[:-1])
    L[..., *np.triu_indices(d, 1)] = np.nan
    return L


def by_columns(L):
    return L.swapaxes(-1, -2).copy().swapaxes(-1, -2)


LAYOUTS = {
    "rows": np.copy, "columns": by_columns, "strided": lambda L: np.repeat(L, 2, axis=-1)[..., ::2],
    "Fortran": np.asfortranarray,
}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_broadcasting(data):
    """Each of the factors has the bits of a single call, in every layout and number of threads."""
    parts = data.draw(mutually_broadcastable_shapes(num_shapes=4, max_dims=3, max_side=3))
    d, threads = data.draw(st.integers(1, 10)), data.draw(st.integers(1, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    into = data.draw(st.sampled_from([None, "rows", "columns"]))
    layout = LAYOUTS[data.draw(st.sampled_from(list(LAYOUTS)))]
    total, (of_L, of_v, of_a, of_s) = parts.result_shape, parts.input_shapes
    L, v = factors(rng, *of_L, d, d), rng.standard_normal((*of_v, d))
    a, s = rng.uniform(0.5, 2, of_a), rng.uniform(-0.001, 2, of_s)
    out = None if into is None else LAYOUTS[into](np.full((*total, d, d), np.nan))
    found = cholupdate(layout(L), v, a, s, out=out, threads=threads)
    assert out is None or found is out
    assert found.shape == (*total, d, d)
    every = (np.broadcast_to(L, (*total, d, d)), np.broadcast_to(v, (*total, d)),
             np.broadcast_to(a, total), np.broadcast_to(s, total))
    for i in np.ndindex(total):
        np.testing.assert_array_equal(found[i], cholupdate(*(part[i] for part in every)))


@pytest.mark.parametrize("d", [1, 2, 5, 8, 9, 33])
def test_values(d):
    rng = np.random.default_rng(d)
    L, v = np.tril(factors(rng, 6, d, d)), rng.standard_normal((6, d))
    a, s = rng.uniform(0.5, 2, 6), rng.uniform(0, 2, 6)
    expected = (a[:, None, None] * L @ L.swapaxes(1, 2)
                + s[:, None, None] * v[:, :, None] * v[:, None])
    found = cholupdate(L, v, a, s)
    np.testing.assert_allclose(found @ found.swapaxes(1, 2), expected, rtol=1e-10, atol=1e-12)
    assert not np.triu(found, 1).any()


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("threads", [1, 3])
def test_in_place(layout, threads):
    rng = np.random.default_rng(1)
    L, v = LAYOUTS[layout](factors(rng, 7, 6, 6)), rng.standard_normal((7, 6))
    expected = cholupdate(L, v)
    assert cholupdate(L, v, out=L, threads=threads) is L
    np.testing.assert_array_equal(L, expected)


def test_out_that_overlaps():
    rng = np.random.default_rng(2)
    L, v = np.tril(factors(rng, 5, 3, 3)), rng.standard_normal(3)
    shared = L.copy()
    cholupdate(shared[:-1], v, out=shared[1:])      # the first result lies over the second factor
    np.testing.assert_array_equal(shared[1:], cholupdate(L[:-1], v))
    shared = L.copy()
    cholupdate(shared, shared[0, 2], s=shared[:, 1, 1], out=shared)
    np.testing.assert_array_equal(shared, cholupdate(L, L[0, 2], s=L[:, 1, 1]))
    shared = L.copy()
    cholupdate(shared, v, out=shared.swapaxes(1, 2))
    np.testing.assert_array_equal(shared.swapaxes(1, 2), cholupdate(L, v))


@pytest.mark.parametrize("threads", [1, 3])
def test_a_matrix_that_is_not_positive_definite_is_not_written(threads):
    rng = np.random.default_rng(3)
    L, v = np.tril(factors(rng, 2, 5, 4, 4)), rng.standard_normal(4)
    s = np.ones((2, 5))
    s[0, 3] = s[1, 1] = -1e6
    expected = np.where(s[..., None, None] > 0, cholupdate(L, v), L)
    with pytest.raises(ValueError, match=r"at index \(0, 3\) with a = 1.0, s = -1000000.0"):
        cholupdate(L, v, s=s, out=L, threads=threads)
    np.testing.assert_array_equal(L, expected)


@pytest.mark.parametrize(("change", "error", "words"), [
    ({"L": np.ones((3, 2))}, ValueError,
     r"L must have shape \(\.\.\., 2, 2\), since v has 2 coordinates, not \(3, 2\)"),
    ({"L": [np.eye(2), [[1, 0], [np.nan, 1]]]}, ValueError,
     r"L\[1\] must be finite, not nan at index \(1, 0\)"),
    ({"L": np.array([[np.eye(2)], [-np.eye(2)]])}, ValueError,
     r"L\[1, 0\] must have a positive diagonal, not -1.0"),
    ({"L": np.diag([1, np.inf])}, ValueError, "L must be finite, not inf"),
    ({"v": 1.0}, ValueError, r"v must have shape \(\.\.\., d\) .* not \(\)"),
    ({"v": [[1.0, np.nan]]}, ValueError, r"v must be finite, not nan at index \(0, 1\)"),
    ({"a": [1.0, 0.0]}, ValueError, r"a must be above 0, not 0.0 at index \(1,\)"),
    ({"a": [[1.0], [1.0, 2.0]]}, TypeError, "a must be an array of numbers"),
    ({"s": [1.0, np.inf]}, ValueError, r"s must be finite, not inf at index \(1,\)"),
    ({"a": [1.0, 2.0], "s": [1.0, 2.0, 3.0]}, ValueError,
     r"L, v, a and s must broadcast, not \(\), \(\), \(2,\), \(3,\)"),
    ({"out": np.eye(2)[:, ::-1]}, TypeError, "out must be .* not contiguous"),
    ({"s": [1.0, 2.0], "out": np.eye(2)}, TypeError, r"out must be .* of shape \(2, 2, 2\)"),
])
def test_bad_arguments(change, error, words):
    """Nothing is written where an argument is wrong."""
    given = {"L": np.eye(2), "v": [1.0, 2.0]} | change
    if "out" not in change:
        given["out"] = np.full((2, 2), 7.0)
    before = given["out"].copy()
    with pytest.raises(error, match=words):
        cholupdate(**given)
    np.testing.assert_array_equal(given["out"], before)


def test_empty():
    assert cholupdate(np.empty((0, 3, 3)), np.ones(3)).shape == (0, 3, 3)
    assert cholupdate(np.eye(3), np.empty((4, 0, 3)), threads=2).shape == (4, 0, 3, 3)


# ---- points too far off for doubles ----


@pytest.mark.parametrize("name", ["am", "gam", "rbam", "dram"])
def test_an_update_that_fails_changes_nothing(name):
    """The fifth coordinate overflows when it is squared, after four columns have been updated."""
    mean = np.array([1e80, 0.0, 0.0, 0.0, 1e200, 0.0, 0.0])
    result = fk.sample(lambda x: -0.5 * float(x @ x), np.zeros(7), chains=1, draws=5, tune=3,
                       sampler=SAMPLERS[name](mean=mean, target_cov=1.0), search=False,
                       diagnose=False)
    np.testing.assert_array_equal(result.states[0]["kernel.L"], np.eye(7))
    np.testing.assert_array_equal(result.states[0]["kernel.mu"], mean)


@pytest.mark.parametrize("name", ["barker", "automala", "autorwm"])
def test_a_scale_that_overflows_is_kept(name):
    mean = np.array([1e200, 0.0])
    result = fk.sample(lambda x: (-0.5 * float(x @ x), -x), np.array([0.0, 1.0]), chains=1, draws=5,
                       tune=3, sampler=SAMPLERS[name](metric="diagonal", mean=mean), search=False,
                       diagnose=False)
    assert (result.states[0]["kernel.mu"][0], result.states[0]["kernel.F"][0]) == (1e200, 1.0)
    assert result.states[0]["kernel.mu"][1] != 0


@pytest.mark.parametrize("optimizer", ["rmsprop", "adam", "plain"])
@pytest.mark.parametrize("name", ["gadrwm", "gadmala"])
def test_immense_gradients_do_not_end_adaptation(name, optimizer):
    def steep(x):
        with np.errstate(over="ignore"):
            return (-0.5 * float(x @ x), -x * (1e180 if x[0] > 2 else 1.0))

    result = fk.sample(steep, np.array([3.0, 3.0]), chains=1, draws=5, tune=300, seed=1,
                       sampler=SAMPLERS[name](optimizer=optimizer), search=False, diagnose=False)
    state = result.states[0]
    assert np.isfinite(state["kernel.G"]).all()
    assert (0.01 < np.diag(state["kernel.L"])).all()
    assert (np.diag(state["kernel.L"]) < 100).all()


@pytest.mark.parametrize("name", ["am", "gam", "rbam", "dram"])
def test_an_update_that_fails_at_a_tiny_pivot_changes_nothing(name):
    """The point is near; the fifth pivot is so small that the quotient by it has no square."""
    sampler = SAMPLERS[name]()
    kernel = sampler.build(np.zeros(7))
    L = np.eye(7)
    L[4, 4], L[4, 0] = 1e-160, 1.0
    np.asarray(kernel.L)[...] = L
    np.asarray(kernel.mu)[0] = 1.0
    target = fk.as_target(lambda x: 0.0 if not x.any() else -np.inf, 7)
    chain = ChainState(kernel, np.random.PCG64(1), np.zeros(7))
    engine = Group(target.bind(), [chain], as_schedule("finite").compiled(sampler, 7, 1))
    engine.start()
    engine.run(1)
    assert chain.t == 1
    np.testing.assert_array_equal(kernel.L, L)
    np.testing.assert_array_equal(kernel.mu, np.eye(7)[0])


@pytest.mark.parametrize("name", ["am", "rbam"])
def test_an_update_that_is_not_certain_succeeds(name):
    """Far off, but not too far: the copy of the factor is dropped, and the mean moves."""
    mean = np.array([0.0, 0.0, 0.0, 0.0, 1e120, 0.0, 0.0])
    result = fk.sample(lambda x: -0.5 * float(x @ x), np.zeros(7), chains=1, draws=1, tune=1,
                       sampler=SAMPLERS[name](mean=mean, target_cov=1.0), search=False,
                       diagnose=False)
    gain = 2.0**-0.7
    L, mu = result.states[0]["kernel.L"], result.states[0]["kernel.mu"]
    np.testing.assert_allclose(np.square(L[4]).sum(), gain * 1e240, rtol=1e-12)
    np.testing.assert_allclose(mu[4], (1 - gain) * 1e120, rtol=1e-12)
    assert np.isfinite(L).all()


def test_a_factor_that_shrinks_towards_zero_stays_positive():
    """ram in one point: S is updated until it is too small for doubles, and is kept then."""
    result = fk.sample(lambda x: 0.0 if not x.any() else -np.inf, np.zeros(7), sampler="ram",
                       search=False, draws=60_000, tune=0, chains=1, diagnose=False,
                       schedule=fk.schedules.Perpetual(gain=fk.schedules.constant(0.9)))
    S = result.states[0]["kernel.S"]
    assert np.isfinite(S).all()
    assert (np.diag(S) > 0).all()
