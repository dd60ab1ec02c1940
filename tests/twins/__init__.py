"""Samplers with one classic mistake each, which a test must detect.

A twin is a change of the source of a registered sampler; the files of `twins.samplers` list them.
The tests apply it to a copy, compile that (build.py), and demand that the test named by `caught_by`
fails:

    "invariance"    a frozen kernel leaves its target invariant: tests/stat/test_invariance.py
    "oracle"        the kernel equals its NumPy reference, in what it learns too:
                    tests/oracle/test_mistakes.py
    "sharing"       the same of chains that learn as one: tests/oracle/test_few_points.py
    "jumps"         moves between modes leave a target invariant: tests/stat/test_jumps.py
    "exchange"      couplings leave the joint distribution of their rungs invariant:
                    tests/stat/test_exchange.py
    "estimates"     the same of point and noise, and of surrogates: tests/stat/test_estimates.py
    "refused"       the engine refuses the kernel: tests/api/test_noisy.py
"""

import importlib
import pkgutil

from twins import samplers

__all__ = ["CHECKS", "LIST", "TWINS", "caught_by"]

CHECKS = ("invariance", "oracle", "sharing", "jumps", "exchange", "estimates", "refused")
LIST = [one for file in pkgutil.iter_modules(samplers.__path__, "twins.samplers.")
        for one in importlib.import_module(file.name).TWINS]
TWINS = {one.name: one for one in LIST}


def caught_by(check):
    """Return (twin, sampler) of every mistake that a test has to see."""
    return [(one.name, name) for one in LIST if one.caught_by == check for name in one.spoils]
