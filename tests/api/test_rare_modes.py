"""Draws from a rare mode that is far from the others: they are no tail, and no sign of a fault."""

import math
import warnings

import numpy as np
import pytest

import fastkam as fk


@pytest.mark.parametrize("seed", [0, 2, 3])
@pytest.mark.parametrize("weight", [0.02, 0.1])
def test_a_rare_mode_raises_no_doubt(weight, seed):
    def logp(x):
        return np.logaddexp(math.log1p(-weight) - 0.5 * x @ x,
                            math.log(weight) - 0.5 * (x - 20) @ (x - 20))

    with warnings.catch_warnings():
        warnings.simplefilter("error", fk.SamplingWarning)
        result = fk.sample(logp, [20.0, 20.0], seed=seed, progress=False)
    assert result.draws.mean() == pytest.approx(20 * weight, abs=0.3)
    assert result.verdict(500).status == "ok"
