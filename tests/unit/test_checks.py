"""Findings at the end of a run: planted faults are found, and good runs have none.

Seeds are fixed; each fault is tried with several. Good runs have no findings but those of R-hat and
of the effective sample size, which are measurements (see bench/checks.py for the rates).
"""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam.diagnostics import Finding, Summary
from fastkam.diagnostics.adaptation import drifts
from fastkam.diagnostics.agreement import of_columns
from fastkam.diagnostics.checks import convergence, findings
from fastkam.errors import ConvergenceWarning

SEEDS = range(4, 8)
MEASURES = {"r_hat", "ess", "adaptation"}   # of these, that a run was too short


def normal(x):
    return -0.5 * x @ x


def gaussian(d):
    return fk.targets.Gaussian(np.zeros(d), np.diag(np.linspace(0.2, 5, d)) ** 2)


def kinds(target, x0, *, seed, **options):
    result = sample(target, x0, seed=seed, progress=False, diagnose=False, **options)
    return [found.kind for found in result.warnings]


# ---- good runs ----


@pytest.mark.parametrize(("target", "d", "samplers", "draws"), [
    (gaussian(2), 2, ["ram", "am", "kam", "jumps", "pt", "mala", "nuts", "hmc", "barker"], 4000),
    (gaussian(10), 10, ["ram", "am", "gam", "nuts", "hmc"], 10_000),
    (gaussian(50), 50, ["nuts"], 2000),
    # with 5 degrees one of 30 runs has a standard deviation known to 11 %, and says so
    (fk.targets.StudentT(3, 8.0), 3, ["ram", "am", "nuts"], 5000),
    (lambda x: -x[0] if x[0] >= 0 else -np.inf, 1, ["ram", "am"], 2000),
    (lambda x: 0.0 if np.abs(x - 0.5).max() < 1 else -np.inf, 2, ["ram", "am"], 2000),
], ids=["d=2", "d=10", "d=50", "heavy tails", "half line", "box"])
def test_adequate_runs_cause_no_warning(target, d, samplers, draws):
    """220 runs without a false alarm; were the rate 1 %, one of them would have it in 9 of 10."""
    found = [set(kinds(target, np.full(d, 0.5), seed=seed, sampler=sampler, draws=draws,
                       tune=draws // 2)) - MEASURES
             for sampler in samplers for seed in range(10)]
    assert not any(found), found


def test_an_adequate_run_has_no_finding():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = sample(gaussian(3), np.zeros(3), sampler="am", draws=10_000, seed=1)
    assert result.warnings == []
    assert result.summary().notes == []
    assert result.summary().verdict.startswith("Verdict: ok. The chains agree: R-hat is at most 1")
    assert str(result.summary()).count("\n") == 6
    assert result.verdict().status == "ok"
    assert convergence(result.summary()).startswith("The chains agree: R-hat is at most 1.0")


# ---- planted faults ----


def separated(x):
    """A logistic regression of classes that a line divides, without a prior."""
    return -np.logaddexp(0, -3.0 * x[0]) - np.logaddexp(0, -x[0])


def two_modes(x):
    return np.logaddexp(-0.5 * (x[0] + 30) ** 2, -0.5 * (x[0] - 30) ** 2) - 0.5 * x[1] ** 2


def crowded(x):
    """Gamma(0.1, 1), whose density has no bound at 0; the negative of it, at the other edge."""
    return -0.9 * np.log(x[0]) - x[0] if x[0] > 0 else -np.inf


FAULTS = {
    "wrong sign": ("improper", lambda x: 0.5 * x @ x, np.ones(2), {}),
    "wrong sign of a heavy tail": ("improper", lambda x: 0.5 * np.log1p(x @ x), np.ones(2), {}),
    "flat on a half line": ("improper", lambda x: 0.0 if x[0] > 0 else -np.inf, np.ones(1), {}),
    "flat along one coordinate": ("improper", lambda x: -0.5 * x[0] ** 2, np.ones(2), {}),
    "no prior": ("improper", separated, np.ones(1), {}),
    "on the way to the mode": ("improper", gaussian(2), np.full(2, 1e4),
                               {"tune": 0, "sampler": fk.RandomWalk(proposal_cov=1.0)}),
    "does not depend on x": ("constant", lambda x: 3.0, np.ones(2), {}),
    "no logarithm": ("not_a_logarithm", lambda x: float(np.exp(-0.5 * x @ x)), np.ones(2), {}),
    "too wide": ("acceptance", gaussian(10), np.zeros(10),
                 {"sampler": fk.RandomWalk(proposal_cov=6.0), "tune": 0, "draws": 3000}),
    "too narrow": ("acceptance", gaussian(2), np.zeros(2),
                   {"sampler": fk.RobustAdaptiveMetropolis(proposal_cov=1e-8, windows=False),
                    "tune": 20}),
    "NaN": ("rejected", lambda x: normal(x) if x[0] < 1 else np.nan, np.zeros(2), {}),
    "edge": ("boundary", crowded, np.ones(1), {}),
    "other edge": ("boundary", lambda x: crowded(-x), -np.ones(1), {}),
    "no mean": ("tails", lambda x: -np.log1p(x[0] ** 2), np.zeros(1),
                {"sampler": "auto", "search": True}),
    "no integral": ("improper", lambda x: -0.3 * np.log1p(x[0] ** 2), np.zeros(1),
                    {"sampler": "auto", "search": True}),
    "1 / x, bounded below": ("improper", lambda x: -np.log(x[0]), np.ones(1), {
        "sampler": "auto", "search": True, "bounds": [(0, np.inf)]}),
    "two modes": ("r_hat", two_modes, np.array([[-30.0, 0], [30, 0], [-30, 0], [30, 0]]),
                  {"draws": 5000}),
    "few draws": ("ess", gaussian(10), np.zeros(10), {"draws": 200}),
    "little warm-up": ("adaptation", gaussian(10), np.zeros(10),
                       {"sampler": fk.RobustAdaptiveMetropolis(proposal_cov=1e-10, windows=False),
                        "tune": 200, "draws": 500}),
    "funnel": ("divergences", fk.targets.Funnel(10, 9.0), np.zeros(10), {"sampler": "nuts"}),
    "stuck": ("stuck", lambda x: 0.0 if not x.any() else -np.inf, np.zeros(2),
              {"sampler": "rwm"}),
}


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name):
    """In every run; draws at an edge, whose sampler is slow there, in three of four."""
    kind, target, x0, options = FAULTS[name]
    found = [kinds(target, x0, seed=seed, **options) for seed in SEEDS]
    # far out, the density of "no prior" rounds to 1
    said = [kind in one or (name == "no prior" and "constant" in one) for one in found]
    assert sum(said) >= (3 if kind == "boundary" else 4), found
    # the good run of the same form does not have that finding
    d = np.shape(x0)[-1]
    good = {key: value for key, value in options.items() if key == "draws"}
    if kind != "ess":
        assert kind not in kinds(gaussian(d), np.zeros(d), seed=1, **good)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_narrow_mode_far_from_the_edges_is_not_crowded(sign):
    """Proposals fall outside because of the other coordinate."""
    def logp(x):
        f = sign * x[0]
        if not (0.05 < f < 3 and 0 <= x[1] < 6):
            return -np.inf
        return np.logaddexp(np.log(0.15) - 0.5 * ((f - 0.3) / 0.001) ** 2,
                            np.log(0.85) - 0.5 * ((f - 0.7) / 0.001) ** 2)

    for seed in SEEDS:
        start = np.array([[0.3, 3], [0.7, 3], [0.7, 2], [0.7, 4]]) * [sign, 1]
        result = sample(logp, start, sampler=fk.ModeJumping(means=start[:2],
                                                            covs=[np.diag([1e-6, 3.0])] * 2),
                        draws=4000, seed=seed, diagnose=False)
        assert (sign * result.draws[..., 0] < 0.5).mean() > 0.06
        assert result.rejected["outside"].sum() > 0.01 * result.evaluations
        assert "boundary" not in {one.kind for one in result.warnings}


@pytest.mark.parametrize("unit", [1.0, 1e6, 1e-5])
def test_an_upper_edge_is_detected_in_any_unit(unit):
    """The points beyond it are kept in units of the scales."""
    def below(x):
        gap = 5 - x[0] / unit
        return -0.8 * np.log(gap) - gap if gap > 0 else -np.inf

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fk.SamplingWarning)
        result = fk.sample(below, [4 * unit], sampler="rwm", draws=2000, seed=1, progress=False)
    assert "boundary" in {one.kind for one in result.warnings}


def of(result):
    return {found.kind: found for found in findings(result.state)}


@pytest.fixture
def good():
    return sample(gaussian(2), np.zeros(2), sampler="am", draws=3000, seed=1, names=["a", "b"])


def test_draws_that_are_not_finite(good):
    good.trace.x[1, 7, 1] = np.inf
    found = of(good)
    assert list(found) == ["not_finite"]
    assert found["not_finite"].coordinates == ("b",)


def test_a_chain_and_a_coordinate_that_never_move(good):
    good.trace.x[2] = good.trace.x[2, 0]
    assert of(good)["stuck"].chains == (2,)
    good.trace.x[...] = np.random.default_rng(1).standard_normal(good.trace.x.shape)
    good.trace.x[:, :, 0] = 3.0
    assert of(good)["stuck"].coordinates == ("a",)


@pytest.mark.parametrize("bad", ["2 of 3000", "1 of 30"])
def test_divergences_within_a_composite(bad):
    """A share of divergences of the chain at beta = 1 is a finding; a few are not."""
    result = sample(lambda x: (normal(x), -x), np.zeros(2), seed=1, draws=1000, diagnose=False,
                    sampler=fk.ParallelTempering(sampler="nuts", n_replicas=3))
    assert "divergences" not in of(result)
    column = result.sampler.stat_names.index("diverging")
    result.trace.extra[:, :: 2000 if bad == "2 of 3000" else 30, column] = 1
    assert ("divergences" in of(result)) == (bad == "1 of 30")


def test_the_worst_coordinates_are_named_first():
    x0 = np.zeros((4, 6))
    x0[:, 3] = [-50, 50, -50, 50]
    x0[:, 1] = [-20, 20, -20, 20]

    def modes(x):
        return (np.logaddexp(-0.5 * (x[3] + 50) ** 2, -0.5 * (x[3] - 50) ** 2)
                + np.logaddexp(-0.5 * (x[1] + 20) ** 2, -0.5 * (x[1] - 20) ** 2)
                - 0.5 * (x[[0, 2, 4, 5]] ** 2).sum())

    result = sample(modes, x0, seed=1, draws=2000, shapes={"a": (2, 3)}, diagnose=False)
    found = {one.kind: one for one in result.warnings}["r_hat"]
    assert set(found.coordinates[:2]) == {"a[1, 0]", "a[0, 1]"}
    assert "for a[1, 0]" in found.text
    assert len(found.text) < 400


# ---- warnings and notes ----


def test_one_warning_lists_all():
    with pytest.warns(fk.SamplingWarning) as caught:
        result = sample(*FAULTS["NaN"][1:3], draws=150, tune=150, seed=1)
    assert len(caught) == 1
    assert caught[0].category is fk.SamplingWarning
    assert caught[0].filename == __file__
    assert caught[0].message.result is result
    found = result.warnings
    assert len(found) > 1
    assert all(isinstance(one, Finding) and one.text in str(caught[0].message) for one in found)
    table = result.summary()
    assert table.notes == [one.text for one in found]
    for one in found:
        assert one.text.split(":")[0].split(",")[0][:40] in str(table)
        assert str(one) == one.text
    assert "<li>" in table._repr_html_()


def test_the_warning_of_a_short_run_has_its_own_class():
    with pytest.warns(ConvergenceWarning, match="effective sample size is below 400"):
        sample(normal, [0.0, 0.0], draws=150, seed=1)


def test_the_smaller_effective_sample_size_is_named():
    columns = {"r_hat": np.ones(3), "ess_bulk": np.array([381.0, 90.0, 500.0]),
               "ess_tail": np.array([255.4, 300.0, 500.0])}
    found, = of_columns(["a", "b", "c"], columns)
    assert "is below 400: 90 for b and 255 in the tails of a. Means" in found.text
    assert found.coordinates == ("b", "a")


def test_diagnose_can_be_switched_off():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = sample(normal, [0.0, 0.0], draws=150, seed=1, diagnose=False)
        result.resume(50, diagnose=False)
    assert result.warnings
    with pytest.warns(ConvergenceWarning) as caught:
        result.resume(50)
    assert caught[0].filename == __file__ or "result.py" in caught[0].filename


def test_no_convergence_warning_for_few_draws():
    for draws, silent in ((24, True), (25, False), (99, False), (100, False)):
        assert (kinds(normal, np.zeros(2), seed=1, draws=draws, tune=0) == []) == silent


def test_diagnosis_without_kept_warm_up():
    options = {"seed": 1, "draws": 150, "diagnose": False}
    assert sample(normal, [0.0], keep_stats=False, keep_warmup=False, **options).warnings
    assert sample(normal, [0.0], chains=1, **options).warnings
    assert sample(normal, [0.0], share=True, **options).warnings


def test_the_same_from_a_file_and_after_pickling(tmp_path):
    result = sample(normal, [0.0, 0.0], draws=150, seed=1)
    result.save(tmp_path / "run.fk")
    assert fk.load(tmp_path / "run.fk").warnings == result.warnings
    assert pickle.loads(pickle.dumps(result)).warnings == result.warnings


def test_diagnosis_uses_a_limited_number_of_draws():
    from fastkam.diagnostics.look import Look

    result = sample(gaussian(2), np.zeros(2), draws=200_000, chains=2, seed=1, sampler="am")
    look = Look(result.state)
    assert 10_000 < look.x.shape[0] * look.x.shape[1] <= 20_000
    assert np.shares_memory(look.x, result.trace.x)
    wide = sample(gaussian(60), np.zeros(60), draws=3000, seed=1, sampler="am", diagnose=False)
    assert Look(wide.state).x.shape[1] <= 1000
    assert wide.warnings


def test_the_notes_have_the_numbers_of_the_table():
    """The numbers are those of all draws, not of the draws that were checked."""
    result = sample(gaussian(2), np.zeros(2), draws=40_000, chains=2, seed=1, diagnose=False,
                    sampler=fk.RandomWalk(proposal_cov=1e-3))
    table = result.summary()
    assert f"{table['r_hat'].max():.4g} for " in table.notes[0]
    assert f"{np.fmin(table['ess_bulk'], table['ess_tail']).min():.0f} for " in table.notes[1]
    assert [one.kind for one in result.warnings] == ["r_hat", "ess"]


def test_many_chains():
    """Each keeps enough rows for a trend to be seen."""
    result = sample(gaussian(2), np.zeros(2), draws=100, tune=100, chains=1500, seed=1,
                    sampler="am", keep_warmup=False, diagnose=False)
    assert set(of(result)) <= MEASURES


@pytest.mark.parametrize(("chains", "draws"), [(32, 600), (40, 1000), (100, 300), (200, 200)])
def test_many_chains_worth_few_draws_each_cause_no_warning(chains, draws):
    """R-hat is above 1.01 since a chain has some 15 to 40 effective draws; none of 5 runs warns."""
    for seed in range(5):
        result = sample(lambda X: -0.5 * np.square(X).sum(axis=1), np.zeros(2), vectorized=True,
                        sampler="ram", chains=chains, draws=draws, tune=500, seed=seed)
        assert result.warnings == [], (seed, result.warnings)
        assert result.summary().notes == []


def test_many_chains_that_remember_where_they_began_are_found():
    """64 chains that began in one of two modes, between which each changes some ten times."""
    def two(X):
        return np.logaddexp(-0.5 * (X[:, 0] + 2.6) ** 2, -0.5 * (X[:, 0] - 2.6) ** 2)

    x0 = np.where(np.arange(64) < 32, -2.6, 2.6)[:, None]
    for seed in range(3):
        result = sample(two, x0, vectorized=True, sampler=fk.RandomWalk(proposal_cov=1.0), tune=0,
                        chains=64, draws=1000, seed=seed, diagnose=False)
        assert "r_hat" in of(result), seed


def test_consequences_of_a_finding_are_not_reported_too():
    """Chains on an improper density disagree; this is not a second finding."""
    improper = sample(lambda x: -0.5 * x[0] ** 2, np.zeros(2), sampler="am", draws=3000, tune=1000,
                      seed=1, diagnose=False)
    assert improper.summary()["r_hat"].max() > 1.1
    assert set(of(improper)) == {"improper"}
    assert {one.kind for one in improper.verdict(evaluations=400).reasons} == {"improper"}
    assert improper.verdict().status == "wrong"


def test_the_worst_of_many_coordinates_is_measured():
    """One of 60 whose chains disagree is among those that are."""
    result = sample(gaussian(60), np.zeros(60), draws=3000, seed=1, sampler="nuts")
    assert "r_hat" not in of(result)
    result.trace.x[0, :, 41] += 25.0
    assert of(result)["r_hat"].coordinates[0] == "x[41]"


def test_a_verdict_of_a_table_alone():
    columns = {"sd": [1.0], "r_hat": [1.3], "ess_bulk": [900.0], "ess_tail": [120.0]}
    said = convergence(Summary(["x"], columns))
    assert "R-hat is above 1.01: 1.3 for x" in said
    assert "below 400: 120 in the tails of x" in said


# ---- adaptation ----


def course(rng, drift, chains=4, n=50, k=3):
    """Logarithms of scales that wander a little and drift in all of warm-up."""
    noise = 0.1 * rng.standard_normal((chains, n, k)).cumsum(axis=1) / 3
    return noise + drift * np.arange(n)[:, None] / n


@pytest.mark.parametrize("chains", [1, 2, 4])
def test_drift_of_learned_quantities(chains):
    """No drift is found in 400 series without one, and the drift of each of 100 with one is."""
    rng = np.random.default_rng(chains)
    assert not any(drifts(course(rng, 0.0, chains), False) for _ in range(400))
    found = [drifts(np.exp(course(rng, 6.0, chains)), False) for _ in range(100)]
    assert np.mean(found) > 0.95


def test_forms_of_learned_quantities():
    rng = np.random.default_rng(0)
    scales = np.exp(course(rng, 8.0))
    matrices = np.zeros((4, 50, 3, 3))
    matrices[:, :, range(3), range(3)] = scales
    for values in (scales, scales[:, :, 0], np.log(scales[:, :, 0]), matrices, -matrices):
        assert drifts(values, False)
    assert not drifts(scales - 5, False)                # a vector of signs: a location
    assert not drifts(matrices[:, :, :, :2], False)     # of low rank
    assert not drifts(scales[:, :8], False)             # too few snapshots
    scales[0, 3] = np.nan
    assert not drifts(scales, False)


# ---- going on with another density ----


def test_resume_refuses_another_density():
    result = sample(normal, np.zeros(2), draws=50, seed=1)
    for other in (lambda x: normal(x) + 1e-6, lambda x: 2 * normal(x), lambda x: np.nan):
        with pytest.raises(ValueError, match=r"target must be the density of the run, not another "
                                             r"one: .* chain 0 it returns .*check_target=False"):
            result.resume(10, target=other)
    same = result.resume(10)
    for right in (normal, lambda x: normal(x) * (1 + 1e-12), fk.as_target(normal, 2)):
        result.resume(10, target=right)
    np.testing.assert_array_equal(result.resume(10, target=normal).draws, same.draws)
    with pytest.warns(fk.SamplingWarning, match="is another density .* larger by 1 to 1 at"):
        result.resume(10, target=lambda x: normal(x) + 1, check_target=False, diagnose=False)


@pytest.mark.parametrize("shift", [-300.0, 300.0])
@pytest.mark.parametrize("sampler", ["ram", "pt", "scout", "jumps", "nuts", "kam", "mala", "dm"])
def test_a_density_up_to_a_constant_goes_on(sampler, shift, tmp_path):
    """A chain with the old value at its point would stay there; with the new one it does not."""
    def pair(x):
        return normal(x), -x

    options = {"draws": 60, "tune": 60, "seed": 1, "diagnose": False, "check_gradient": False}
    result = sample(pair, np.zeros(2), sampler=sampler, **options)
    result.save(tmp_path / "run.fk")
    with pytest.warns(fk.SamplingWarning, match="is another density"):
        on = fk.resume(tmp_path / "run.fk", 100, target=lambda x: (normal(x) + shift, -x),
                       check_target=False, diagnose=False)
    new = on.draws[:, 60:]
    np.testing.assert_allclose(on.draws, result.resume(100).draws, rtol=1e-7)
    np.testing.assert_allclose(on.stats["lp"][:, 60:], -0.5 * (new**2).sum(axis=2) + shift,
                               atol=1e-9)
    names = [name for name in on.states[0] if name.endswith(".log_pi_x")]
    for state in on.states:  # of the replicas too
        for name in names:
            x = state[name.removesuffix("log_pi_x") + "x"] * on.scales
            assert abs(state[name] - normal(x) - shift) < 1e-9


def test_resuming_where_the_new_density_is_zero():
    result = sample(normal, np.zeros(2), draws=50, seed=1)
    with pytest.raises(ValueError, match="must have a density where the run goes on, and returns "
                                         "-inf at the point of chain 0"):
        result.resume(10, target=lambda x: -np.inf, check_target=False)


def test_the_same_density_keeps_its_bits_without_the_check():
    result = sample(normal, np.zeros(2), draws=50, seed=1)
    same = result.resume(10, target=normal, check_target=False)
    np.testing.assert_array_equal(same.draws, result.resume(10).draws)


@pytest.mark.parametrize("sampler", ["pt", "scout", "jumps", "nuts", "ckam"])
def test_resume_checks_the_density_itself_of_composites(sampler, tmp_path):
    def density(x):
        return -0.5 * x @ x, -x

    result = sample(density, np.zeros(2), sampler=sampler, draws=120, seed=1, diagnose=False)
    result.save(tmp_path / "run.fk")
    fk.resume(tmp_path / "run.fk", 10, target=density, diagnose=False)
    with pytest.raises(ValueError, match="target must be the density of the run"):
        fk.resume(tmp_path / "run.fk", 10, target=lambda x: (-0.6 * x @ x, -1.2 * x))


@pytest.mark.parametrize("sampler", ["ram", "pt", "jumps"])
def test_resume_checks_estimates_with_the_noise_of_the_run(sampler):
    def estimate(x, u, shift=0.0):
        return -0.5 * x @ x + 0.1 * u.sum() + shift

    make = fk.Target.from_estimator
    result = sample(make(estimate, 2, 3), np.zeros(2), sampler=sampler, draws=50, seed=1)
    result.resume(10, target=make(estimate, 2, 3))
    with pytest.raises(ValueError, match="target must be the density of the run"):
        result.resume(10, target=make(lambda x, u: estimate(x, u, 1.0), 2, 3))


def test_resume_checks_estimates_that_draw_their_own_noise():
    def estimate(x, rng, shift=0.0):
        return normal(x) + 0.1 * rng.standard_normal() + shift

    make = fk.Target.from_estimator
    result = sample(make(estimate, 2), np.zeros(2), draws=50, seed=1)
    result.resume(10, target=make(estimate, 2))
    with pytest.raises(ValueError, match="target must be the density of the run"):
        result.resume(10, target=make(lambda x, rng: estimate(x, rng, 1.0), 2))


def test_resume_checks_every_chain():
    result = sample(normal, np.zeros(2), draws=50, seed=1)
    worst = result.states[3]["x"]
    with pytest.raises(ValueError, match="at the point of chain 3 it returns nan"):
        result.resume(10, target=lambda x: np.nan if (x == worst).all() else normal(x))
    # a run that has not begun has no density to compare
    fresh = fk.Result(replace(result.state, states=[], generators=[]), result.target)
    fresh.resume(10, target=lambda x: normal(x) + 1)
