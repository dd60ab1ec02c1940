"""The verdict on a run: its status and reasons, its text, and the search beyond the draws."""

import json
import warnings

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam.diagnostics import Finding, Verdict
from fastkam.diagnostics.agreement import WRONG_OF_FEW
from fastkam.errors import ConvergenceWarning


def normal(x):
    return -0.5 * x @ x


def two(distance, d):
    middle = np.full(d, distance / 2 / np.sqrt(d))
    return fk.targets.GaussianMixture([-middle, middle])


def missed(d, sampler="ram", distance=15):
    """A run in one of two modes, which R-hat does not detect."""
    return sample(two(distance, d), np.full(d, -distance / 2 / np.sqrt(d)), sampler=sampler,
                  draws=10_000 if sampler != "nuts" else 1000, tune=2000, seed=1, search=False,
                  diagnose=False)


@pytest.fixture(scope="module")
def good():
    return sample(normal, np.zeros(2), sampler="am", draws=5000, seed=1)


# ---- the status ----


def test_a_good_run_is_ok(good):
    verdict = good.verdict()
    assert verdict.status == "ok"
    assert verdict.reasons == ()
    assert str(verdict).startswith("Verdict: ok. The chains agree: R-hat is at most 1.0")
    assert "No check of the draws can find a mode" in " ".join(str(verdict).split())


def test_it_is_determined_by_the_findings():
    """The warning and the verdict have the same findings."""
    with pytest.warns(fk.SamplingWarning) as caught:
        result = fk.sample(lambda x: 0.5 * np.log1p(x @ x), np.ones(2), sampler="ram", draws=500,
                           seed=1, progress=False)
    assert len(caught) == 1
    verdict = result.verdict()
    assert list(verdict.reasons) == result.warnings
    assert verdict.status == "wrong"
    assert "do not use them" in str(verdict)


def test_too_few_draws_are_doubtful_not_wrong():
    with pytest.warns(ConvergenceWarning):
        result = fk.sample(normal, np.zeros(2), sampler="ram", draws=300, seed=1, progress=False)
    assert result.verdict().status == "doubtful"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        short = fk.sample(normal, np.zeros(2), sampler="ram", draws=20, seed=1, progress=False)
    assert short.warnings == []
    assert short.verdict().status == "doubtful"
    assert "There are 20 draws a chain" in str(short.summary())


def test_chains_far_apart_are_wrong_though_their_draws_are_few():
    with pytest.warns(ConvergenceWarning, match="R-hat is above 1.01"):
        result = fk.sample(normal, [[0.0], [100.0], [200.0], [300.0]], sampler="rwm", draws=50,
                           tune=1, search=False, seed=1, progress=False)
    assert result.verdict().status == "wrong"


@pytest.mark.parametrize("n", [25, 99])
def test_few_good_draws_are_not_wrong(n):
    """The largest R-hat of 20 000 coordinates with independent draws is well below the limit."""
    x = np.random.default_rng(1).standard_normal((2, n, 20_000))
    assert fk.diagnostics.r_hat(x).max() < 0.75 * WRONG_OF_FEW


def test_the_draws_of_a_short_run_are_doubtful():
    with pytest.warns(ConvergenceWarning, match="effective sample size"):
        result = fk.sample(lambda x: -0.5 * float(x @ x), np.zeros(5), draws=25, seed=1,
                           progress=False)
    assert result.summary()["r_hat"].max() > 1.1
    assert result.verdict().status == "doubtful"


def test_of_a_run_that_a_rule_has_ended_early_only_that_is_said():
    with pytest.warns(ConvergenceWarning, match="ended after 50 draws"):
        result = fk.sample(normal, [0.0], sampler="ram", tune=50, draws=2000, seed=1, search=False,
                           stop=fk.stop.Evaluations(400), progress=False)
    assert [one.kind for one in result.warnings] == ["short"]


def test_few_draws_at_one_point_are_wrong():
    with pytest.warns(fk.SamplingWarning, match="No chain ever moved"):
        result = fk.sample(lambda x: 0.0 if x[0] == 1 else -np.inf, [1.0], sampler="am", draws=25,
                           search=False, seed=1, progress=False)
    assert result.verdict().status == "wrong"


def test_the_gravest_reason_decides():
    light, grave = Finding("ess", "few"), Finding("stuck", "never moved", status="wrong")
    from fastkam.diagnostics.verdict import status_of
    assert status_of(()) == "ok"
    assert status_of((light,)) == "doubtful"
    assert status_of((light, grave)) == "wrong"


def test_many_short_chains_are_judged():
    result = sample(normal, np.zeros(2), sampler="rwm", chains=64, draws=50, tune=300, seed=1)
    assert result.verdict().status == "ok"
    x0 = 100 * np.random.default_rng(1).standard_normal((64, 2))
    far = sample(normal, x0, sampler=fk.RandomWalk(proposal_cov=0.01), chains=64, draws=50, tune=0,
                 seed=1, diagnose=False)
    assert [one.kind for one in far.verdict().reasons] == ["nested_r_hat"]


# ---- its text ----


def test_it_can_be_printed_and_kept(good):
    bad = missed(2).verdict(1000)
    assert len(bad.reasons[0].point) == 2
    for verdict in (good.verdict(), bad):
        kept = json.loads(json.dumps(verdict.to_dict()))
        assert kept["status"] == verdict.status
        assert [one["text"] for one in kept["reasons"]] == [one.text for one in verdict.reasons]
        assert [tuple(one["point"]) for one in kept["reasons"]] == [
            one.point for one in verdict.reasons]
        html = verdict._repr_html_()
        assert verdict.status in html
        assert max(map(len, str(verdict).splitlines())) <= 88
        assert repr(verdict) == str(verdict)
    assert "<script>" not in Verdict("wrong", (Finding("ess", "<script>"),))._repr_html_()


def test_the_summary_ends_with_it(good):
    text = str(good.summary())
    assert text.index("Verdict: ok.") > text.index("x[1]")
    assert good.verdict().heading in good.summary()._repr_html_()
    assert fk.diagnostics.summary(good.draws).verdict == ""


def test_the_report_has_it(good, tmp_path):
    good.report(tmp_path / "run.html")
    assert good.verdict().heading in (tmp_path / "run.html").read_text()


# ---- signs of samplers ----


def test_steps_that_do_not_fit_everywhere():
    """A walk that has learned the middle of a funnel hardly enters its neck."""
    result = sample(fk.targets.Funnel(2, 9.0), np.zeros(2), sampler="kam", draws=20_000, tune=4000,
                    seed=32, diagnose=False)
    assert "place" in {one.kind for one in result.warnings}


def test_a_ladder_without_swaps():
    result = sample(two(30, 2), np.full(2, -10.0), draws=4000, tune=500, seed=1, diagnose=False,
                    sampler=fk.ParallelTempering(sampler="ram", n_replicas=2, betas=[1.0, 1e-5],
                                                 tune_betas=False))
    assert "swaps" in {one.kind for one in result.warnings}


# ---- the search beyond the draws ----


@pytest.mark.parametrize(("d", "sampler"), [(1, "ram"), (2, "ram"), (5, "am"), (10, "nuts")])
def test_a_mode_without_draws_is_found(d, sampler):
    result = missed(d, sampler, 30 if d == 1 else 15)
    assert result.verdict().status == "ok"
    verdict = result.verdict(1000)
    assert verdict.status == "wrong"
    assert [one.kind for one in verdict.reasons] == ["unvisited"]


def lattice(x):
    """36 narrow modes on a lattice in a square."""
    return 40 * (np.cos(x[0]) * np.cos(x[1])) ** 2


def test_a_mode_of_a_lattice_is_found():
    """A chain in each mode but one, whose coordinates occur in the draws, but not together."""
    places = np.pi * np.array([(i, j) for i in range(1, 5) for j in range(1, 5)
                               if (i, j) != (2, 3)])
    for seed in range(3):
        result = sample(lattice, places, sampler=fk.RandomWalk(proposal_cov=1e-3), chains=15,
                        draws=500, seed=seed, diagnose=False, bounds=[(1.5, 14.2)] * 2)
        assert "unvisited" in {one.kind for one in result.verdict(2000).reasons}


def test_mass_far_out_is_found():
    target = fk.targets.GaussianMixture(np.zeros((2, 4)), [1.0, 900.0], [0.7, 0.3])
    result = sample(target, np.zeros(4), sampler="ram", draws=10_000, seed=1, search=False,
                    diagnose=False)
    assert "mass that no chain has visited" in " ".join(str(result.verdict(1000)).split())


def test_heavy_tails_are_found():
    result = sample(fk.targets.StudentT(2, 2.0), np.zeros(2), sampler="ram", draws=5000, seed=1,
                    search=False, diagnose=False)
    assert "tails" in {one.kind for one in result.verdict(1000).reasons}


def test_a_wall_that_random_segments_miss_is_known_from_points_outside():
    """Gradients imply no moments there; the segments of this seed cross no wall."""
    result = fk.sample(lambda x: -x.sum() if x.min() >= 0 else -np.inf, np.ones(2), seed=1)
    assert result.verdict(1000).status == "ok"


@pytest.mark.parametrize("target", [
    fk.targets.Gaussian(np.zeros(3), np.diag([0.01, 1, 100.0])),
    fk.targets.correlated_gaussian(), fk.targets.StudentT(2, 8.0), fk.targets.banana(0.03, 10.0, 3),
    two(4, 2), lambda x: -x.sum() if x.min() > 0 else -np.inf,
    lambda x: 0.0 if np.abs(x).max() < 1 else -np.inf,
], ids=["scales", "correlated", "student", "banana", "two modes", "exponential", "box"])
def test_a_good_run_stays_ok(target):
    """6 runs each of 7 densities: at most one false alarm in 42, where its rate is 1 %."""
    d = getattr(target, "dim", 2)
    said = [sample(target, np.full(d, 0.5), sampler="am", draws=20_000, tune=4000, seed=seed,
                   diagnose=False).verdict(1000) for seed in range(6)]
    assert sum(one.status != "ok" for one in said) <= (1 if d == 2 else 0), said


def test_the_number_of_evaluations_is_kept():
    for n in (1, 7, 50, 333, 1000):
        calls = 0

        def counted(x):
            nonlocal calls
            calls += 1
            return normal(x)

        result = sample(counted, np.zeros(3), sampler="am", draws=2000, seed=1, diagnose=False)
        before = calls
        verdict = result.verdict(n)
        assert verdict.evaluations <= n
        assert calls - before <= n + 2  # whether the function returns a gradient is tried
    assert calls - before == pytest.approx(verdict.evaluations, abs=2)


def test_the_same_seed_finds_the_same():
    result = missed(3)
    assert str(result.verdict(500)) == str(result.verdict(500))
    assert str(result.verdict(500, seed=1)) == str(result.verdict(500, seed=1))


def test_a_result_from_a_file_needs_its_density(tmp_path):
    missed(2).save(tmp_path / "run.fk")
    loaded = fk.load(tmp_path / "run.fk")
    assert loaded.verdict().status == "ok"
    with pytest.raises(ValueError, match="target must be given"):
        loaded.verdict(1000)
    assert loaded.verdict(1000, target=two(15, 2)).status == "wrong"
    with pytest.raises(ValueError, match="target"):
        loaded.verdict(1000, target=two(12, 2))


@pytest.mark.parametrize("later", ["raises", "is NaN", "has changed"])
def test_a_density_that_fails_after_the_run_vouches_for_nothing(later):
    """All further evaluations would count as points without a density."""
    done = False

    def f(x):
        if done and later == "raises":
            raise ValueError("the licence has expired")
        return np.nan if done and later == "is NaN" else normal(x) - 3 * done

    result = sample(f, np.zeros(2), draws=500, seed=1)
    done = True
    with pytest.raises(ValueError, match="target must be given: the density that the result holds"):
        result.verdict(500)


def test_a_result_of_an_asktell_needs_its_density():
    loop = fk.AskTell([0.0, 0.0], sampler="am", draws=1500, tune=500, search=False, seed=1,
                      diagnose=False)
    while points := loop.ask():
        loop.tell(points, [normal(x) for x in points.x])
    for ask in (lambda result: result.verdict(500), lambda result: result.log_evidence(),
                lambda result: result.resume(10)):
        with pytest.raises(ValueError, match="target must be given"):
            ask(loop.result)
    assert loop.result.verdict(500, target=normal).status == "ok"


def test_bad_arguments_are_refused(good):
    with pytest.raises(ValueError, match="evaluations must be"):
        good.verdict(-1)
    with pytest.raises(TypeError, match="evaluations must be"):
        good.verdict("many")
    with pytest.raises(TypeError, match="vectorized"):
        good.verdict(10, vectorized="yes")
    with pytest.raises(TypeError, match="evaluation"):
        good.verdict(evaluation=10)


def test_a_problem_with_priors_and_periodic_coordinates():
    from scipy import stats

    result = sample(lambda rate: 3 * np.log(rate) - 4 * rate, prior={"rate": stats.gamma(2)},
                    sampler="am", draws=5000, seed=1, diagnose=False)
    assert result.verdict(800).status == "ok"
    angle = sample(lambda angle: 2 * np.cos(angle), {"angle": 0.1}, sampler="am", draws=5000,
                   bounds={"angle": (-np.pi, np.pi)}, transforms={"angle": "periodic"}, seed=1,
                   diagnose=False)
    assert angle.verdict(800).status == "ok"


def test_an_estimated_density():
    def estimate(x, u):
        return normal(x) + 0.3 * u[0]

    result = sample(fk.Target.from_estimator(estimate, 2, 1), np.zeros(2), sampler="ram",
                    draws=20_000, tune=3000, seed=1, diagnose=False)
    assert result.verdict(500).status == "ok"
