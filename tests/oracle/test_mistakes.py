"""Samplers with one mistake each differ from their NumPy references, even if they are invariant."""

import pytest
from agreement import disagreement
from twins import TWINS, caught_by

from fastkam.kernels import Matern
from fastkam.samplers import SAMPLERS
from reference import REFERENCES

OPTIONS = {
    "walk_learns_away": {"target_acceptance": 0.3},
    "halved_for_ever": {"proposal_cov": 1e6},
    "pca_equal_weights": {"subsample": 30, "n_components": 4},
    "cycles_forget_bank": {"subsample": 20, "cycle": 150},
    "curvature_twice": {"exact": True},
    "stale_distances": {"kernel": Matern(2.0, 4.0), "subsample": 11, "renewal": 0.1},
}
TARGETS = {"stale_distances": "twelve"}     # dimensions: more than the sampler has points


# a walk that learns the wrong way hardly moves
@pytest.mark.filterwarnings("ignore::fastkam.SamplingWarning")
@pytest.mark.parametrize(("twin", "name"), caught_by("oracle"))
def test_a_planted_mistake_is_detected(twins, twin, name):
    """The sampler without the mistake agrees with the reference in the same test."""
    for cls in (SAMPLERS[name], twins.sampler(twin, name)):
        found = disagreement(REFERENCES[name], cls(**OPTIONS.get(twin, {})),
                             TARGETS.get(twin, "correlated"), tune=900, draws=400)
        assert (found is None) == (cls is SAMPLERS[name]), (TWINS[twin].mistake, found)
