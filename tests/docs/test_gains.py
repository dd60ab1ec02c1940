"""The default gain that a docstring states is the one that the code has."""

import re

import pytest

from fastkam.samplers import SAMPLERS

# "The default gain is (1 + n)^(-0.6)", "the default gain 1 / (1 + n) makes ...", up to a word
STATED = re.compile(
    r"default gain (?:is )?([-\w\s().,/^+]*?)(?:[.;]\s|[.;,]?$|, (?:constant|on)| makes)")


def stated_gain(doc, d, n):
    """The value of the formula in the docstring; None where it states none."""
    found = STATED.search(" ".join(doc.split()))
    if not found:
        return None
    formula = found[1].strip().replace("^", "**").replace("d n", "d * n")
    return eval(formula, {"min": min, "d": d, "n": n})


def gain(name, d, n):
    return SAMPLERS[name]().default_gain(d)(n)


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_docstring_states_the_default_gain(name):
    for d, n in ((2, 1), (3, 10), (7, 5000)):
        stated = stated_gain(SAMPLERS[name].__doc__, d, n)
        if stated is not None:
            assert stated == pytest.approx(gain(name, d, n), rel=1e-12)


@pytest.mark.parametrize("name", ["am", "rbam", "gam", "dram", "barker", "automala", "autorwm"])
def test_the_gain_of_a_large_covariance(name):
    """The gain from 8 dimensions on is that of the docstrings."""
    sampler = SAMPLERS[name]()
    for n in (1, 10, 5000):
        assert sampler.default_gain(8)(n) == (80 + n) ** -0.9
        assert sampler.diminishing_gain(8)(n) == 1 / (80 + n)
        assert sampler.default_gain(7)(n) > (70 + n) ** -0.9


@pytest.mark.parametrize("name", ["barker", "automala", "autorwm"])
def test_a_diagonal_metric_is_learned_like_a_small_one(name):
    for sampler, d in ((SAMPLERS[name](metric="diagonal"), 20), (SAMPLERS[name](), 51)):
        assert sampler.default_gain(d) == sampler.default_gain(2)


def test_the_gains_are_found():
    stated = {name for name in SAMPLERS if stated_gain(SAMPLERS[name].__doc__, 2, 1) is not None}
    assert stated >= {"rwm", "ram", "am", "mala", "fishermala", "barker", "automala", "autorwm",
                      "dm", "gadrwm", "gadmala", "dram", "arwm", "cholam"}
    assert stated_gain("The default gain is n^(-0.6).", 2, 1) != pytest.approx(gain("mala", 2, 1))
