"""The texts on places that no chain has visited."""

from types import SimpleNamespace

import numpy as np
import pytest

import fastkam as fk
from fastkam.diagnostics.unvisited import placed, unvisited
from fastkam.samplers.delayed import DelayedAcceptance


@pytest.mark.parametrize(("x", "text"), [
    ([2459000.1234, 0.1], "(2459000.1234, 0.1)"), ([0.0, 20.0], "(0, 20)"),
    ([np.pi, -np.pi], "(3.1416, -3.14)"), ([2.46e6, np.inf], "(2460000, inf)")])
def test_a_point_is_written_to_a_part_of_the_standard_deviations(x, text):
    draws = np.random.default_rng(1).normal(size=(4, 100, 2)) * [0.01, 1.0]
    assert placed(np.array(x), draws) == text


def test_of_many_coordinates_the_first_ones_are_written():
    assert placed(np.arange(9.0), np.ones((4, 10, 9)) * np.arange(10)[:, None]) == (
        "(0, 1, 2, 3, 4, 5, 6, 7, ...)")


def test_of_many_parameters_those_farthest_from_the_draws_are_named():
    x = np.full(12, 5.0)
    x[[3, 7]] = 100.0
    draws = np.ones((4, 10, 12)) * np.arange(10)[:, None]
    labels = [f"p{i}" for i in range(12)]
    text = placed(x, draws, labels)
    assert text.startswith("p0 = 5, p1 = 5, p2 = 5, p3 = 100, p4 = 5, p5 = 5, ")
    assert text.endswith("p7 = 100 and 4 more")
    assert placed(x[:2], draws[..., :2], labels[:2]) == "p0 = 5 and p1 = 5"


@pytest.mark.parametrize(("d", "says"), [
    (3, "Start chains there too (x0=), or"),
    (9, "Start chains there too (x0=; all coordinates are in the finding's `point`), or")])
def test_a_finding_has_the_whole_point(d, says):
    point = np.arange(float(d))
    draws = np.random.default_rng(1).normal(size=(4, 100, d))
    names = SimpleNamespace(shapes={f"p{i}": () for i in range(d)})
    state = SimpleNamespace(unvisited=[[*point, 5.0, 3.0]], constrain=lambda z: 2 * z,
                            layout=names, sampler=fk.RandomWalk(), by_gradients=False)
    look = SimpleNamespace(state=state, x=draws, labels=list(names.shapes))
    found, = unvisited(look)
    assert found.point == tuple(2 * point)
    assert says in found.text
    assert f"p{d - 1} = {2 * d - 2}" in found.text
    names.shapes = {"theta": (d,)}
    assert "near (0, 2, 4" in next(unvisited(look)).text
    state.sampler = DelayedAcceptance(sampler=fk.RandomWalk())
    assert next(unvisited(look)).point == tuple(2 * point)


@pytest.mark.parametrize(("place", "remote"), [(40.0, False), (1e6, False), (2.6e75, True),
                                               (-1e12, True), (np.inf, True)])
def test_a_place_where_functions_have_no_digits_is_no_place_to_start(place, remote):
    draws = np.random.default_rng(1).normal(size=(4, 100, 2))
    state = SimpleNamespace(unvisited=[[0.0, place, 5.0, 3.0]], constrain=lambda z: z,
                            layout=SimpleNamespace(shapes={"x": (2,)}),
                            sampler=fk.RandomWalk(), by_gradients=False)
    look = SimpleNamespace(state=state, x=draws, labels=["x[0]", "x[1]"])
    found, = unvisited(look)
    assert found.status == "wrong"
    draws[..., 1] = 1.0     # a coordinate that never moves has no range
    stuck, = unvisited(look)
    assert "may have lost its digits there" not in stuck.text
    assert ("may have lost its digits there" in found.text) == remote
    assert found.text.endswith("tart chains there too (x0=), or let sampler=\"auto\" search from "
                               "there.")
