"""The default gain that a docstring states is the one that the code has."""

import re

import pytest

from fastkam import sample
from fastkam.samplers import SAMPLERS, ModeJumping, ParallelTempering
from fastkam.schedules import Diminishing, Finite, IncreasinglyRare, Power

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


def test_the_gains_are_found():
    stated = {name for name in SAMPLERS if stated_gain(SAMPLERS[name].__doc__, 2, 1) is not None}
    assert stated >= {"rwm", "ram", "am", "mala", "fishermala", "barker", "automala", "autorwm",
                      "dm", "gadrwm", "gadmala", "dram", "arwm", "cholam"}
    assert stated_gain("The default gain is n^(-0.6).", 2, 1) != pytest.approx(gain("mala", 2, 1))


KNOWN_SCALES = ("am", "rbam", "gam", "dram", "barker", "automala", "autorwm")


def test_the_gain_after_a_search():
    """The gain is that of `docs/samplers.md`, of samplers that learn a covariance and no others."""
    for name in SAMPLERS:
        sampler = SAMPLERS[name]()
        assert Finite().after_search(sampler, 7) == Finite()
        found = Finite().after_search(sampler, 8)
        if name in KNOWN_SCALES:
            assert found.gain(5) == 85**-0.9
            assert Diminishing().after_search(sampler, 8).gain(5) == 1 / 85
        else:
            assert found == Finite()
        assert IncreasinglyRare().after_search(sampler, 8) == IncreasinglyRare()
        given = Finite(gain=Power(k=0.8))
        assert given.after_search(sampler, 8) == given
    for name in ("barker", "automala", "autorwm"):
        assert Finite().after_search(SAMPLERS[name](metric="diagonal"), 20) == Finite()
        assert Finite().after_search(SAMPLERS[name](), 51) == Finite()
    assert Finite().after_search(ModeJumping(sampler="am"), 8).gain(5) == 85**-0.9
    assert Finite().after_search(ParallelTempering(sampler="am"), 8) == Finite()


def test_the_gain_of_a_run():
    """A run has that gain if a search has found its scales, and no length is given."""
    options = {"tune": 20, "draws": 10, "progress": False, "diagnose": False, "seed": 1}
    for more, changed in (({}, True), ({"search": False}, False),
                          ({"sampler": SAMPLERS["am"](target_cov=1.0)}, False),
                          ({"schedule": Finite(gain=Power(k=0.8))}, False)):
        result = sample(lambda x: -0.5 * float(x @ x), [0.0] * 8,
                        **{"sampler": "am"} | options | more)
        assert (result.schedule.gain == Power(k=0.9, offset=80.0)) == changed
