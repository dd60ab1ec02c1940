"""The bare loops of the list of items make fastkam's chains: `pytest bench/perf -q`."""

import numpy as np
import pytest

from bench.perf.items import ITEMS, KINDS, STORED, BareChain, ours


@pytest.mark.parametrize("d", [2, 8])
@pytest.mark.parametrize("kind", [kind for _, kind in KINDS.values()])
def test_all_loops_that_store_draws_make_the_same_chain(kind, d):
    found = []
    for upto in range(STORED, len(ITEMS)):
        chain = BareChain(upto, kind, d)
        chain.go(500)
        found.append(chain.draws)
    assert np.ptp(found[0]) > 1
    for draws in found[1:]:
        np.testing.assert_allclose(draws, found[0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("d", [2, 8])
def test_the_loop_that_learns_makes_the_chain_of_am(d):
    from bench.perf.test_overhead import adaptive

    go, trace, _ = adaptive(d, 500)
    go()
    chain = BareChain(STORED, 2, d)
    chain.go(500)
    np.testing.assert_allclose(trace.x[0], chain.draws, rtol=1e-6, atol=1e-9)


def test_a_step_of_ours_can_be_made():
    assert ours("rwm", 0, 2).go(10) > 0
