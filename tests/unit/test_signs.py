"""Signs that draws are wrong: each is found where it was planted, and rarely elsewhere.

The limits let draws of a density pass: 400 sets of draws have at most two findings in all, which
happens with probability 0.95 where the rate is 0.2 %, and with 0.003 where it is 2 %.
"""

from types import SimpleNamespace

import numpy as np
import pytest

import fastkam as fk
from fastkam._core.diagnostics.convergence import COLUMNS, measure
from fastkam.diagnostics import doubts, signs

LABELS = list("abcdefgh")


def columns(x):
    return dict(zip(COLUMNS, measure(x), strict=True))


def autoregressive(rng, phi, shape):
    """Chains of unit variance with the correlation phi between neighbors, (chains, n, d)."""
    x = rng.standard_normal(shape)
    for i in range(1, shape[1]):
        x[:, i] = phi * x[:, i - 1] + np.sqrt(1 - phi**2) * x[:, i]
    return x


def found(x, circles=(), **known):
    """The kinds of findings about draws (chains, n, d), without those about a sampler's steps."""
    look = SimpleNamespace(x=x, labels=LABELS, is_estimate=False, log_ratio=None, lp=None,
                           circles=circles, named=lambda where: tuple(LABELS[i] for i in where),
                           state=SimpleNamespace(tails=np.zeros((0, 2)), coordinates=None, **known))
    return [one.kind for one in doubts.doubts(look, np.arange(x.shape[2]), columns(x))]


def test_draws_of_a_density_have_no_sign():
    rng, kinds = np.random.default_rng(1), []
    for seed in range(400):
        x = autoregressive(rng, [0.0, 0.5, 0.8][seed % 3], (4, 1000, 3))
        if seed % 2:
            x = x @ np.array([[1, 0, 0], [0.9, 0.3, 0], [0, 0, 20.0]]) + 5
        elif seed % 5 == 0:
            x = np.exp(0.3 * x)
        kinds += found(x)
    assert len(kinds) <= 2, kinds


def test_a_drift_of_all_chains_is_detected():
    """Mean and spread of one coordinate drift by half a standard deviation in all."""
    x = np.random.default_rng(2).standard_normal((4, 2000, 3))
    moved = x.copy()
    moved[:, :, 1] += np.linspace(0, 0.5, 2000)
    assert "drift" in found(moved)
    wider = x.copy()
    wider[:, :, 2] *= np.linspace(0.8, 1.2, 2000)
    assert "drift" in found(wider)
    means, sds = signs.drifts(signs.Standardized(moved), columns(moved))
    assert means.argmax() == 1
    assert means[1] > 5 > means[[0, 2]].max()
    assert sds.max() < 5


def test_drifts_are_standard_errors():
    """Without a drift, their root mean square is that of a half normal variable: 1."""
    rng, sizes = np.random.default_rng(3), []
    for _ in range(100):
        x = autoregressive(rng, 0.5, (4, 1200, 3))
        sizes += [*signs.drifts(signs.Standardized(x), columns(x))]
    # 600 values; the standard error of their mean square is about sqrt(2 / 600) = 0.06
    assert np.mean(np.square(sizes)) == pytest.approx(1, abs=0.25)


def test_a_long_stay_is_detected():
    x = autoregressive(np.random.default_rng(4), 0.3, (4, 2000, 2))
    x[2, 500:560] = x[2, 500]
    assert "stay" in found(x)
    longest, mean = signs.longest_stays(signs.Standardized(x))
    assert longest.tolist() == [1, 1, 60, 1]
    assert mean[2] == pytest.approx(2000 / 1941)
    # stays of a chain that accepts one proposal in ten are no sign
    rng = np.random.default_rng(5)
    kept = np.maximum.accumulate(np.where(rng.random((4, 5000)) < 0.1, np.arange(5000), 0), axis=1)
    slow = rng.standard_normal((4, 5000, 2))[np.arange(4)[:, None], kept]
    assert "stay" not in found(slow)


def test_a_chain_in_a_tail_is_detected():
    x = np.random.default_rng(6).standard_normal((4, 3200, 2))
    x[1, 1000:1150] += 6
    assert "excursion" in found(x)
    squares = signs.Standardized(x).squares()
    assert signs.excursions(squares).argmax() == 1
    [one] = doubts.excursion(squares, 8000.0)
    share = 100 * signs.excursions(squares).max()
    assert one.text.startswith(
        f"Chain 1 made a long excursion into the tails: in one of {signs.PARTS} equal parts of its "
        f"draws, {share:.2g} % of them are farther from the center than 98 % of all draws are.")


def test_chains_that_differ_in_radius_alone():
    """Each coordinate has the same distribution in all chains, up to its correlation."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((4, 4000, 8))
    assert found(x) == []
    size = np.abs(rng.standard_normal((2, 4000, 1)))  # all coordinates far out at once
    x[2:] = np.sign(x[2:]) * size
    assert columns(x)["r_hat"].max() < 1.01
    assert "functionals" in found(x)


def test_tails_by_the_draws():
    """k-hat of Student draws is near 1 / df; of normal ones nothing is fitted."""
    rng = np.random.default_rng(8)
    heavy = signs.Standardized(rng.standard_t(1.5, (4, 5000, 2)))
    shapes, m = signs.tail_shapes(heavy)
    assert shapes == pytest.approx([2 / 3, 2 / 3], abs=0.25)
    assert m == 424
    assert np.isnan(signs.tail_shapes(signs.Standardized(rng.standard_normal((4, 5000, 1))))[0][0])
    assert "tails" in found(rng.standard_t(1.5, (4, 5000, 2)))
    light = [found(rng.standard_t(6, (4, 2000, 2))) for _ in range(40)]
    assert sum("tails" in one for one in light) <= 1


@pytest.mark.parametrize("share", [0.05, 0.1])
def test_a_wide_component_is_no_heavy_tail(share):
    """Its own tails are normal: of 40 sets of draws at most three have a finding."""
    rng = np.random.default_rng(9)
    kinds = []
    for _ in range(40):
        wide = rng.random((4, 2000, 1)) < share
        kinds += found(rng.standard_normal(wide.shape) * np.where(wide, 10, 1))
    assert kinds.count("tails") <= 3
    cauchy = [found(rng.standard_t(1.2, (4, 1000, 1))) for _ in range(40)]
    assert sum("tails" in one for one in cauchy) >= 36


def test_tails_of_a_funnel_whose_standard_deviation_is_uncertain():
    """Few of its draws have most of the variance; the other two have a fourth moment."""
    rng, shape = np.random.default_rng(10), (4, 400, 1)
    funnel = [found(np.exp(1.5 * rng.standard_normal(shape)) * rng.standard_normal(shape))
              for _ in range(200)]
    assert sum(bool({"tails", "mcse_sd"} & set(one)) for one in funnel) >= 190
    skewed = [found(rng.gamma(0.3, size=shape)) for _ in range(200)]
    assert sum("tails" in one for one in skewed) <= 2
    with_fourth_moment = [found(rng.standard_t(5, shape)) for _ in range(200)]
    assert sum("tails" in one for one in with_fourth_moment) <= 6


def test_angles_have_no_tails():
    """A few of these are beyond the end of the period."""
    x = np.mod(np.random.default_rng(1).vonmises(0.7, 20, (200, 4, 1000, 1)), 2 * np.pi)
    across = [one for one in x if 1 < (one > 3.5).sum() < 20]
    assert len(across) > 20
    assert sum("tails" in found(one) for one in across) > len(across) / 2
    for one in across:
        assert not {"tails", "mcse_sd"} & set(found(one, [(0, 0.0, 2 * np.pi)]))


def elliptical(rng, df, d, n=4000):
    """Correlated Student draws (4, n / 4, d), and their log densities; df None for a normal one."""
    L = np.linalg.cholesky(0.3 * np.eye(d) + 0.7) * np.linspace(1, 5, d)[:, None]
    z = rng.standard_normal((n, d))
    if df is None:
        x, lp = z, -0.5 * np.square(z).sum(axis=1)
    else:
        x = z * np.sqrt(df / rng.chisquare(df, (n, 1)))
        lp = -0.5 * (df + d) * np.log1p(np.square(x).sum(axis=1) / df)
    return (x @ L.T + 3).reshape(4, -1, d), lp.reshape(4, -1)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("df", [2.1, 2.5, 3.0])
def test_the_power_of_heavy_tails(df, d):
    """The power is found within a sixth in 20 sets of draws, the error of the scatter."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        power = signs.power_of_tails(*elliptical(rng, df, d))
        assert power == pytest.approx(df, rel=1 / 6)


def test_densities_without_heavy_tails_have_no_small_power():
    """30 sets each: normal, Student of 8 degrees, Laplace, log-normal, two modes, a bend."""
    rng = np.random.default_rng(9)

    def power(x, lp):
        found = signs.power_of_tails(x.reshape(4, -1, x.shape[-1]), lp.reshape(4, -1))
        return np.inf if found is None or found <= 0 else found

    for _ in range(30):
        for df in (None, 8.0):
            assert power(*elliptical(rng, df, 3)) > 6
        x = rng.laplace(size=(4000, 2))
        assert power(x, -np.abs(x).sum(axis=1)) > 4
        z = rng.standard_normal((4000, 2))
        assert power(np.exp(z), -0.5 * np.square(z).sum(axis=1) - z.sum(axis=1)) > 4
        y = z + 10 * rng.integers(2, size=(4000, 1))
        assert power(y, np.logaddexp(-0.5 * np.square(y).sum(axis=1),
                                     -0.5 * np.square(y - 10).sum(axis=1))) > 4
        bent = np.column_stack([3 * z[:, 0], z[:, 1] + z[:, 0] ** 2])
        assert power(bent, -0.5 * np.square(z).sum(axis=1)) > 4


def test_odd_values_have_no_power():
    rng = np.random.default_rng(10)
    x, lp = elliptical(rng, 2.5, 2)
    assert signs.power_of_tails(x * [0, 1], lp) is None
    assert signs.power_of_tails(x[:, :, [0, 0]], lp) is None
    assert signs.power_of_tails(x, np.where(lp < -10, np.inf, lp)) is None
    assert signs.power_of_tails(x[:, :50], lp[:, :50]) is None
    assert signs.power_of_tails(x, np.zeros_like(lp)) in (None, -2.0)


def test_a_standard_deviation_that_few_draws_make():
    """Log-normal draws of which one, far out, stays for a while; and without it."""
    rng = np.random.default_rng(8)
    x = np.exp(0.6 * rng.standard_normal((4, 1000, 2)))
    assert "mcse_sd" not in found(x)
    x[1, 500:503, 0] = 60.0
    assert "mcse_sd" in found(x)


def test_modes_with_few_changes():
    """Three chains that change eight times, and chains that change all the time."""
    rng = np.random.default_rng(9)
    side = (np.arange(4000) // 500 % 2)[None] * np.ones((4, 1))
    x = rng.standard_normal((4, 4000, 2))
    x[:, :, 0] += 20 * side
    series = signs.Standardized(x).suspects()[0]
    gap, middle = signs.gap_of(series.reshape(-1))
    assert gap > 5
    assert signs.changes_of_side(series, middle) == (28, 0.5)
    rare = rng.standard_normal((4, 4000, 2))
    rare[0, 1000:1400, 0] += 20  # two changes, a share of 2.5 %
    assert "modes" in found(rare)
    often = rng.standard_normal((4, 4000, 2))
    often[:, :, 0] += 20 * rng.integers(2, size=(4, 4000))
    assert "modes" not in found(often)


def test_nested_r_hat_of_chains_that_remember_their_start():
    rng = np.random.default_rng(10)
    x0 = 5 * rng.standard_normal((128, 2))
    groups = signs.groups_of_starts(x0)
    assert sorted(groups.ravel()) == list(range(128))
    assert groups.shape == (16, 8)
    x = rng.standard_normal((128, 10, 2))
    assert signs.nested_r_hat(x, groups).max() < 1.1
    assert signs.nested_r_hat(x + x0[:, None], groups).max() > 1.4


def test_short_chains_are_judged_together():
    """64 chains of 20 draws: silent where they have forgotten their starts, in 100 of 100 sets."""
    rng = np.random.default_rng(11)

    def short(x, x0):
        look = SimpleNamespace(x=x, labels=LABELS, state=SimpleNamespace(x0=x0), named=tuple)
        return [one.kind for one in doubts.of_short_chains(look)]

    for _ in range(100):
        assert short(rng.standard_normal((64, 20, 2)), rng.standard_normal((64, 2))) == []
    x0 = 3 * rng.standard_normal((64, 2))
    assert short(rng.standard_normal((64, 20, 2)) + x0[:, None], x0) == ["nested_r_hat"]
    assert short(rng.standard_normal((8, 20, 2)), x0[:8]) == []


def test_energy_fractions():
    """E-BFMI is 2 for independent energies, and nearly 0 for a slow walk."""
    rng = np.random.default_rng(12)
    independent = rng.standard_normal((2, 20_000))
    assert signs.energy_fractions(independent) == pytest.approx([2, 2], abs=0.1)
    assert signs.energy_fractions(np.cumsum(independent, axis=1)).max() < 0.05


@pytest.mark.parametrize("x", [
    np.zeros((2, 200, 1)), np.ones((3, 150, 2)) * np.arange(150)[:, None],
    np.full((2, 200, 2), 1e300), np.concatenate([np.zeros((1, 200, 1)), np.ones((1, 200, 1))]),
], ids=["constant", "singular", "huge", "two points"])
def test_odd_draws_cause_no_error(x):
    with np.errstate(all="ignore"):
        found(x)


# ---- groups that are apart ----

TAILS = {
    "normal": lambda rng, n: rng.standard_normal(n), "t2": lambda rng, n: rng.standard_t(2, n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "Pareto": lambda rng, n: rng.pareto(1.0, n),
}


@pytest.mark.parametrize("repeats", [1, 10])
@pytest.mark.parametrize("name", TAILS)
def test_a_tail_is_not_apart(name, repeats):
    """Nor if chains stand still; none of 1000 samples, so at most 0.5 % with 99 % confidence."""
    rng = np.random.default_rng(6)
    assert not any(signs.has_gap(np.repeat(TAILS[name](rng, 4000 // repeats), repeats))
                   for _ in range(1000))


@pytest.mark.parametrize("name", TAILS)
def test_a_tail_of_many_draws_is_no_rare_mode(name):
    """None of 300 samples, so at most 1.6 % with 99 % confidence."""
    rng = np.random.default_rng(6)
    assert not any(signs.has_gap(TAILS[name](rng, 20_000), signs.RAREST) for _ in range(300))


def test_a_rare_mode_makes_the_implied_moments_useless():
    """30 draws of 20 000 are in a mode 60 standard deviations away."""
    rng = np.random.default_rng(7)
    for _ in range(100):
        x = rng.standard_normal(20_000)
        x[:30] += 60
        assert signs.has_gap(x, signs.RAREST)
        assert not signs.has_gap(x)


@pytest.mark.parametrize("weight", [0.01, 0.02, 0.3])
def test_a_separate_mode_is_apart(weight):
    rng = np.random.default_rng(7)
    for _ in range(100):
        modes = rng.random(4000) < weight
        assert signs.has_gap(rng.standard_normal(4000) + 20 * modes)


@pytest.mark.parametrize(("module", "options"), [
    ("fastkam.search.implied", {}),
    ("fastkam.diagnostics.slopes", {"sampler": "am", "draws": 1000})])
def test_implied_moments_ask_for_rare_modes(module, options, monkeypatch):
    """Both of a default call and of the verdict on another run."""
    shares = []
    monkeypatch.setattr(f"{module}.has_gap", lambda values, share: shares.append(share) or False)
    result = fk.sample(lambda x: -0.5 * float(x @ x), [0.0, 0.0], seed=1, progress=False,
                       diagnose=False, **options)
    result.verdict(evaluations=2000 if options else 0)
    assert set(shares) == {signs.RAREST}
