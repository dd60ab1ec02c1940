"""Texts of findings: no number in them is impossible."""

from types import SimpleNamespace

import numpy as np
import pytest

import fastkam as fk
from fastkam.diagnostics.faults import acceptance


@pytest.mark.parametrize(("rates", "text"), [
    ([1.0, 1.0], "All chains accept all proposals of RobustAdaptiveMetropolis: they are"),
    ([0.99999, 1.0], "accept more than 99.9 % of the proposals of RobustAdaptiveMetropolis"),
    ([0.9996, 0.9998], "accept more than 99.9 % of the proposals"),
    ([0.98769, 0.999], "accept more than 98.7 % of the proposals"),
])
def test_chains_never_accept_more_than_all_proposals(rates, text):
    look = SimpleNamespace(log_ratio=np.log(rates)[:, None] * np.ones((2, 5)), is_estimate=False,
                           state=SimpleNamespace(sampler=fk.RobustAdaptiveMetropolis()))
    found, = acceptance(look)
    assert text in found.text
    assert "100" not in found.text
