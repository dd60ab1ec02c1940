"""Periodic and reflected coordinates."""

import numpy as np
import pytest
from runs import sample
from scipy import special, stats

import fastkam as fk


def run(f, x0, **options):
    return sample(f, x0, tune=1000, chains=4, seed=3, progress=False, **options)


@pytest.mark.parametrize("kappa", [0.5, 4.0])
def test_the_default_call_on_a_circle(kappa):
    """Chains that drift around it stay fine: the circular mean and variance are those known."""
    result = fk.sample(lambda angle, a: -0.5 * a * a, seed=1, prior={
        "angle": stats.vonmises(kappa), "a": stats.norm(0, 3)})
    exact = special.i1(kappa) / special.i0(kappa)
    assert abs(np.cos(result["angle"]).mean() - exact) < 0.06
    assert abs(np.sin(result["angle"]).mean()) < 0.08


@pytest.mark.parametrize("d", [1, 2])
def test_the_default_call_on_circles_with_two_modes(d):
    """Modes of unequal weight and width, in each of d angles: 30 % are in the narrow one."""
    def von_mises(x, kappa):
        return kappa * (np.cos(x) - 1) - np.log(special.i0e(kappa))

    def f(angle):
        return np.logaddexp(np.log(0.3) + von_mises(angle - 3, 400.0),
                            np.log(0.7) + von_mises(angle - 0.5, 20.0)).sum()

    result = fk.sample(f, seed=2, prior={"angle": (stats.uniform(-np.pi, 2 * np.pi), d)},
                       transforms={"angle": "periodic"})
    share = (np.cos(result["angle"] - 3) > 0.8).mean(axis=(0, 1))
    assert np.abs(share - 0.3).max() < 0.08
    assert result.verdict().status == "ok"


ANGLE = stats.uniform(-np.pi, 2 * np.pi)


def torsions(a, b, c):
    """A density of three angles with several modes, some of them across the ends."""
    return 3 * np.cos(a - b) + 2 * np.cos(2 * a) + 1.5 * np.cos(b - c) + np.cos(3 * c)


def with_gradient(x):
    a, b, c = x
    return torsions(a, b, c), np.array([-3 * np.sin(a - b) - 4 * np.sin(2 * a),
                                        3 * np.sin(a - b) - 1.5 * np.sin(b - c),
                                        1.5 * np.sin(b - c) - 3 * np.sin(3 * c)])


def of_torsions(a, b, c):
    return np.stack([np.cos(a - b), np.cos(2 * a), np.cos(b - c), np.cos(3 * c), np.cos(a)], -1)


@pytest.mark.parametrize("gradient", [False, True])
def test_the_default_call_on_three_circles(gradient):
    """Means of 5 functions and the evidence, within 5 errors of those on a grid; few evaluations.

    Chains that wander through all periods take 250,000.
    """
    ends = np.linspace(-np.pi, np.pi, 64, endpoint=False)
    grid = np.meshgrid(ends, ends, ends, indexing="ij")
    weights = np.exp(torsions(*grid))
    exact = np.average(of_torsions(*grid), weights=weights, axis=(0, 1, 2))
    for seed in range(3):
        if gradient:
            result = fk.sample(with_gradient, prior={"x": (ANGLE, 3)}, seed=seed,
                               transforms={"x": "periodic"}, progress=False)
            angles = np.moveaxis(result["x"], -1, 0)
        else:
            result = fk.sample(torsions, prior=dict.fromkeys("abc", ANGLE), seed=seed,
                               transforms=dict.fromkeys("abc", "periodic"), progress=False)
            angles = result["a"], result["b"], result["c"]
        found = fk.diagnostics.summary(of_torsions(*angles), list("12345"))
        assert (np.abs(found["mean"] - exact) < 5 * found["mcse_mean"]).all()
        evidence = result.log_evidence()
        assert abs(evidence.value - np.log(weights.mean())) < 5 * evidence.error < 0.15
        assert result.verdict().status == "ok"
        assert result.evaluations < 120_000


def test_the_default_call_on_a_narrow_circle_costs_no_more_than_on_a_line():
    """The mode is at the end of the period."""
    def f(angle, x):
        return 30 * np.cos(angle) - 0.5 * (x - 5 * np.sin(angle)) ** 2

    result = fk.sample(f, prior={"angle": stats.uniform(0, 2 * np.pi), "x": stats.norm(0, 5)},
                       transforms={"angle": "periodic"}, seed=1, progress=False)
    assert result.evaluations < 25_000
    assert result.verdict().status == "ok"
    assert [one.kind for one in result.verdict().reasons] == ["ends"]
    share = (result["angle"] < np.pi).mean()
    assert abs(share - 0.5) < 0.08
    assert np.abs(np.cos(result["angle"]).mean() - special.ive(1, 30) / special.ive(0, 30)) < 0.01


@pytest.mark.parametrize(("center", "low", "begin"), [
    (0.0, 0.0, "begin near 3.1"),           # half of the draws on each side of the ends
    (0.25, 0.0, "begin near 3.39"),          # 0.6 % beyond
    (-3.0, -np.pi, "begin near 0.1"), (1.0, -np.pi, None), (3.0, 0.0, None)])
def test_draws_around_the_ends_of_a_period(center, low, begin):
    """Such an angle is named, and nothing else: it has no tails. Half a turn away all is well."""
    for moved in ([0.0, np.pi] if begin else [0.0]):
        prior = {"angle": stats.uniform(low + moved, 2 * np.pi), "b": stats.norm(0, 1)}
        result = fk.sample(lambda angle, b: 100 * np.cos(angle - center), prior=prior, seed=1,
                           transforms={"angle": "periodic"}, progress=False)
        reasons = result.verdict().reasons
        assert result.verdict().status == "ok"
        if begin is None or moved:
            assert not reasons
        else:
            assert [(one.kind, one.coordinates) for one in reasons] == [("ends", ("angle",))]
            assert begin in reasons[0].text
            assert "in place of" in reasons[0].text


def test_angles_that_are_nearly_everywhere_have_no_better_ends():
    result = fk.sample(lambda angle: 0.8 * np.cos(angle), prior={"angle": ANGLE},
                       transforms={"angle": "periodic"}, seed=1, progress=False)
    assert not result.verdict().reasons


def test_the_default_call_on_a_reflected_coordinate_with_two_modes():
    def f(x):
        return np.logaddexp(np.log(0.3 / 0.05) - 0.5 * ((x - 0.05) / 0.05) ** 2,
                            np.log(0.7 / 0.02) - 0.5 * ((x - 0.8) / 0.02) ** 2)

    low = 0.3 * stats.norm.cdf(1)
    for seed in range(3):
        result = fk.sample(f, bounds={"x": (0, 1)}, transforms={"x": "reflect"}, seed=seed,
                           progress=False)
        x = result["x"]
        assert ((x >= 0) & (x <= 1)).all()
        share = fk.diagnostics.summary(1.0 * (x < 0.5)[..., None], ["share"])
        assert abs(share["mean"][0] - low / (low + 0.7)) < 5 * share["mcse_mean"][0]
        evidence = result.log_evidence()
        exact = np.log((low + 0.7) * np.sqrt(2 * np.pi))
        assert abs(evidence.value - exact) < 5 * evidence.error < 0.1
        assert result.evaluations < 40_000


def test_a_climb_around_a_circle_keeps_its_digits():
    """The phase hardly matters at the prior draws: a climb from there may go round often."""
    rng = np.random.default_rng(1)
    t = np.linspace(0, 10, 40)
    y = 2 * np.sin(2.1 * t + 0.3) + rng.normal(size=40)

    def f(A, w, phase, sd):
        return -0.5 * ((y - A * np.sin(w * t + phase)) ** 2).sum() / sd**2 - 40 * np.log(sd)

    prior = {"A": stats.uniform(0, 10), "w": stats.uniform(0.5, 4.5),
             "phase": stats.uniform(0, 2 * np.pi), "sd": stats.halfnorm(scale=2)}
    for seed in range(1, 4):
        result = fk.sample(f, prior=prior, transforms={"phase": "periodic"}, seed=seed,
                           progress=False)
        assert not any("random" in line or "not agree" in line for line in result.search)
        assert result.verdict().status == "ok"
        assert abs(result["w"].mean() - 2.084) < 0.01
        assert result.evaluations < 80_000


def test_the_sampler_of_circles_is_resumed(tmp_path):
    problem = fk.Problem(torsions, prior=dict.fromkeys("abc", ANGLE),
                         transforms=dict.fromkeys("abc", "periodic"))
    sampler = fk.choose_sampler(problem, seed=1).sampler
    assert isinstance(sampler, fk.ModeJumping)
    assert sampler.periods.shape == (3, 6)
    options = {"sampler": sampler, "tune": 100, "seed": 1, "progress": False}
    whole = fk.sample(problem, draws=400, **options)
    fk.sample(problem, draws=150, **options).save(tmp_path / "run.fk")
    again = fk.resume(tmp_path / "run.fk", target=problem, draws=250, progress=False)
    np.testing.assert_array_equal(again.draws, whole.draws)


@pytest.mark.parametrize("sampler", [
    "rwm", "am", "rbam", "gam", "ram", "arwm", "cholam", "kam", "dram", "autorwm", "pt", "jumps"])
def test_periodic_and_reflected_coordinates(sampler):
    """The draws are within, and have the density: means of 16,000 draws within 6 errors."""
    def f(angle, x):
        return 2 * np.cos(angle) - x

    result = run(f, {"angle": 0.1, "x": 0.5}, sampler=sampler, draws=4000,
                 bounds={"angle": (-np.pi, np.pi), "x": (0, 2)},
                 transforms={"angle": "periodic", "x": "reflect"})
    assert ((result["angle"] >= -np.pi) & (result["angle"] < np.pi)).all()
    assert ((result["x"] >= 0) & (result["x"] <= 2)).all()
    known = fk.diagnostics.summary(
        np.stack([np.cos(result["angle"]), result["x"]], axis=-1), ["cos", "x"])
    exact = [0.697774657964008, 1 - 2 * np.exp(-2) / (1 - np.exp(-2))]  # I1(2) / I0(2)
    assert (np.abs(known["mean"] - exact) < 6 * known["mcse_mean"]).all()


@pytest.mark.parametrize("sampler", ["auto", "am", "gam", "rbam", "dram", "nuts"])
def test_a_flat_circle(sampler):
    """A chain goes round as often as it likes, and what it learns stays finite."""
    def f(angle, a):
        value = 1e-3 * np.cos(angle) - 0.5 * a**2
        return (value, {"angle": -1e-3 * np.sin(angle), "a": -a}) if sampler == "nuts" else value

    result = run(f, {"angle": 0.1, "a": 0.5}, sampler=sampler, draws=2000,
                 bounds={"angle": (-np.pi, np.pi)}, transforms={"angle": "periodic"})
    angle = result["angle"]
    assert not {"stuck", "boundary", "improper", "rejected"} & {w.kind for w in result.warnings}
    known = fk.diagnostics.summary(
        np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)], axis=-1), list("123"))
    assert (known["ess_bulk"] > 100).all()
    assert (np.abs(known["mean"]) < 6 * known["mcse_mean"] + 1e-3).all()
    assert np.abs(result.trace.draws).max() < 100
    assert abs(result["a"].std() - 1) < 0.15


@pytest.mark.parametrize("transform", ["periodic", "reflect"])
def test_a_constant_between_two_bounds_is_a_density(transform):
    result = fk.sample(lambda angle: 0.0, bounds={"angle": (-np.pi, np.pi)}, seed=1,
                       transforms={"angle": transform}, progress=False)
    assert result.verdict().status == "ok"
    assert abs(result["angle"].std() - np.pi / np.sqrt(3)) < 0.1


def test_a_prior_on_a_circle_is_normalized():
    problem = fk.Problem(lambda x: 0.0, prior={"a": stats.vonmises(2.0, 1.0)})
    z = np.linspace(-80, 80, 200_001)
    density = np.exp(problem.log_prior_z(z[:, None]))
    assert density.sum() * (z[1] - z[0]) == pytest.approx(1, abs=1e-10)


def test_von_mises_is_periodic():
    problem = fk.Problem(lambda x: 0.0, prior={"a": stats.vonmises(2.0, 1.0)})
    assert problem.coordinates.rows[0][0] == "periodic"
    x = problem.constrain(problem.sample_prior(1000, 1))
    assert ((x >= 1 - np.pi) & (x < 1 + np.pi)).all()


def test_how_often_chains_go_round_is_no_matter():
    """Thinning and stop rules look at angles within one period, whose draws are nearly free."""
    prior = {"angle": stats.vonmises(4.0), "a": stats.norm(0, 3)}

    def f(angle, a):
        return -0.5 * a * a

    for seed in range(3):
        result = fk.sample(f, seed=seed, prior=prior)
        assert len(np.unique(np.floor(result.trace.draws[..., 0] / (2 * np.pi) + 0.5))) > 1
        assert result.state.thin < 20, seed
        expected = (f(result["angle"], result["a"]) + stats.vonmises(4.0).logpdf(result["angle"])
                    + stats.norm(0, 3).logpdf(result["a"]))
        np.testing.assert_allclose(result.state.lp(), expected, rtol=1e-9, atol=1e-9)
        result = fk.sample(f, seed=seed, prior=prior, sampler="ram", draws=50_000,
                           stop=fk.stop.Rhat(1.02) & fk.stop.ESS(400))
        assert result.status == "stopped"
        assert result.trace.rows < 10_000, seed
