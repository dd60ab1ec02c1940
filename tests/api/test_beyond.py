"""Modes that no chain of a default call has visited: evaluations at its end look for them."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import fastkam as fk
from fastkam.diagnostics.checks import findings

HIGH = np.array([0.8, 0.7, 0.5, 0.3])


def lattice(x):
    """Sixteen modes, of weights from 0.02 to 0.2."""
    return np.logaddexp(np.log(HIGH) - 2 * (x - 10) ** 2,
                        np.log(1 - HIGH) - 2 * (x + 10) ** 2).sum()


def half_narrow(d, sd):
    """N(0, I) and N(m, sd^2 I) with equal weights, 8 standard deviations apart."""
    middle = 8 / np.sqrt(d)

    def logp(x):
        return np.logaddexp(-0.5 * x @ x,
                            -0.5 * ((x - middle) / sd) @ ((x - middle) / sd) - d * np.log(sd))

    return logp


def quietly(f, x0, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        return fk.sample(f, x0, progress=False, **options)


@pytest.fixture(scope="module")
def left_out():
    return quietly(lattice, np.zeros(4), seed=2)


def kinds(result):
    return {one.kind for one in result.warnings}


def test_modes_that_are_left_out_are_found(left_out):
    """R-hat and ESS say nothing of modes without draws."""
    visited = {tuple(signs) for signs in np.sign(left_out.draws).reshape(-1, 4)}
    assert len(visited) < 16
    assert not kinds(left_out) & {"r_hat", "ess"}
    assert "unvisited" in kinds(left_out)
    assert left_out.verdict().status == "wrong"
    *place, value, mass = left_out.state.unvisited[0]
    assert tuple(np.sign(place)) not in visited
    assert np.isnan(mass) or mass > 0
    assert value == pytest.approx(lattice(np.array(place)))


def test_a_narrow_mode_that_the_search_has_missed_is_found(monkeypatch):
    """Half of the mass is there, within a small part of the space.

    Gradients lead the search there; without them it has not found the mode. The look after the run
    finds it in few such runs, of which this is one.
    """
    monkeypatch.setattr("fastkam.search.unexplained.MOST_LED", 0)
    result = quietly(half_narrow(5, 0.35), np.zeros(5), seed=10)
    assert "unvisited" in kinds(result)
    *place, _, _ = result.state.unvisited[0]
    np.testing.assert_allclose(place, 8 / np.sqrt(5), atol=0.01)


def test_the_place_is_in_the_coordinates_of_the_user():
    """Chains move in log x."""
    result = quietly(lambda x: lattice(np.log(x)) - np.log(x).sum(), np.ones(4), seed=2,
                     bounds=[(0, None)] * 4)
    found = [one.text for one in result.warnings if one.kind == "unvisited"]
    assert "2.2e+04" in found[0] or "4.54e-05" in found[0]


def test_more_mass_than_that_of_the_draws_is_a_number_of_times(left_out):
    for mass, says in [(0.07, ": 7 % of what"), (1.0, ": 1 times"), (9.96, ": 10 times what")]:
        place = np.append(left_out.state.unvisited[0, :-1], mass)
        state = replace(left_out.state, unvisited=place[None])
        found = [one.text for one in findings(state) if one.kind == "unvisited"]
        assert says in found[0]


def test_the_finding_is_kept_in_files(left_out, tmp_path):
    left_out.save(tmp_path / "run.fk")
    again = fk.load(tmp_path / "run.fk")
    np.testing.assert_array_equal(again.state.unvisited, left_out.state.unvisited)
    assert again.warnings == left_out.warnings


@pytest.mark.parametrize("wrong", [
    np.zeros((2, 6)), np.zeros((1, 5)), np.zeros(6), [[np.nan] + [0.0] * 5],
    [[0.0] * 4 + [np.inf, 1]]])
def test_a_file_with_another_place_is_refused(left_out, tmp_path, wrong):
    path = tmp_path / "run.npz"
    left_out.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | {"unvisited": np.array(wrong)})
    with pytest.raises(ValueError, match="unvisited"):
        fk.load(path)


def test_chains_that_go_on_have_the_finding_until_they_visit_the_place(left_out):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        more = left_out.resume(10, progress=False)
    assert "unvisited" in kinds(more)
    np.testing.assert_array_equal(more.state.unvisited, left_out.state.unvisited)


def test_evaluations_are_few_and_counted():
    calls = [0]

    def normal(x):
        calls[0] += 1
        return -0.5 * x @ x

    without = quietly(normal, np.zeros(2), seed=1, draws=1000)
    before, calls[0] = calls[0], 0
    result = quietly(normal, np.zeros(2), seed=1)
    np.testing.assert_array_equal(result.draws, without.draws)
    assert 0 < calls[0] - before <= 0.05 * before
    assert result.evaluations - without.evaluations == calls[0] - before
    assert result.warnings == []


class FailsAtTheEnd:
    """A normal density that raises an error at the last 20 evaluations of its default call."""

    def __init__(self, error, gradient, total):
        self.error, self.gradient, self.left = error, gradient, total - 20

    def __call__(self, x):
        self.left -= 1
        if self.left < 0:
            raise self.error
        return (-0.5 * x @ x, -x) if self.gradient else -0.5 * x @ x


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("error", [OSError("gone"), TypeError("odd"), MemoryError(),
                                   ValueError("bad"), KeyboardInterrupt()], ids=repr)
def test_an_error_during_the_look_leaves_the_run(gradient, error):
    def run(total):
        f = FailsAtTheEnd(error, gradient, total)
        return quietly(fk.Target.from_python(f, 2, gradient=gradient), np.zeros(2), seed=1)

    result = run(run(10**9).evaluations)
    assert result.draws.shape == (4, 1000, 2)
    assert result.status == "complete"
    assert len(result.state.unvisited) == 0


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("left", [20, 900])  # evaluations: in the look, and in the checks before
def test_an_exit_during_a_check_ends_the_call_and_keeps_the_run(gradient, left, tmp_path):
    """SIGTERM is often made a SystemExit."""
    path, f = tmp_path / "run.fk", None

    def run(total, **options):
        nonlocal f
        f = FailsAtTheEnd(SystemExit(3), gradient, total)
        return quietly(fk.Target.from_python(f, 2, gradient=gradient), np.zeros(2), seed=1,
                       **options)

    whole = run(10**9)
    with pytest.raises(SystemExit) as caught:
        run(whole.evaluations - left, checkpoint=path)
    assert caught.value.result.trace.rows > 0
    assert f.left == -1  # no further check has called it
    kept = fk.load(path)
    assert kept.trace.rows == 1000 or kept.status != "complete"
    np.testing.assert_array_equal(kept.draws, whole.draws[:, :kept.draws.shape[1]])


def test_a_density_of_many_modes_of_equal_weight_is_looked_at():
    """No component of the fitted mixture has a twentieth of the weight."""
    middles = 4.0 * np.array([(i, j) for i in range(5) for j in range(5)])

    def grid(x):
        return np.logaddexp.reduce(-0.5 * ((x - middles) ** 2).sum(axis=1))

    result = quietly(grid, np.zeros(2), seed=1)
    found = result.log_evidence()
    assert abs(found.value - np.log(25 * 2 * np.pi)) < 5 * found.error


@pytest.mark.parametrize("width", [0.01, 0.03])
def test_a_ring_is_one_mode(width):
    """The look took parts of it, which all chains had visited, for modes that none had."""
    for seed in range(3):
        result = fk.sample(lambda x: -0.5 * ((np.hypot(*x) - 1) / width) ** 2, [1.0, 0.0],
                           seed=seed, progress=False, diagnose=False)
        assert "unvisited" not in {found.kind for found in result.verdict().reasons}
        np.testing.assert_allclose(result.draws.std(axis=(0, 1)), np.sqrt(0.5), rtol=0.1)
