"""Built-in targets: compiled densities with known moments and exact draws.

A class is a family; a function returns the member of it that a paper used. Each is a `Target`, can
be passed to `fastkam.sample` as it is, runs without the GIL in any number of threads, and can be
pickled. `TARGETS` holds those that need no argument by their short names.

    target = fastkam.targets.two_mode()
    target.logp(x), target.logp_grad(x), target.mean, target.cov, target.sample(1000, seed=1)
"""

from typing import TYPE_CHECKING

from fastkam.targets.bananas import (
    Banana,
    BananaMixture,
    banana,
    banana_bunch,
    double_banana,
    hard_banana,
)
from fastkam.targets.builtin import BuiltIn
from fastkam.targets.datasets import DATASETS, load_dataset
from fastkam.targets.flowers import Flower, FlowerFullNorm, ring
from fastkam.targets.funnel import Funnel
from fastkam.targets.gaussian import (
    Gaussian,
    StudentT,
    correlated_gaussian,
    gp_gaussian,
    neal_gaussian,
)
from fastkam.targets.horseshoe import HorseshoeRegression, horseshoe
from fastkam.targets.logistic import LogisticRegression, logistic_regression, standardize
from fastkam.targets.mixture import (
    GaussianMixture,
    LatticeMixture,
    basis_vectors,
    five_component,
    mixture_32d,
    two_mode,
)

if TYPE_CHECKING:
    from fastkam.targets.gaussian_process import (
        GaussianProcessClassification,
        GaussianProcessLaplace,
        glass_classification,
    )

LATE = ("GaussianProcessClassification", "GaussianProcessLaplace", "glass_classification")

TARGETS = {
    "banana": banana,
    "banana_bunch": banana_bunch,
    "basis_vectors": basis_vectors,
    "correlated_gaussian": correlated_gaussian,
    "double_banana": double_banana,
    "five_component": five_component,
    "flower": Flower,
    "flower_full_norm": FlowerFullNorm,
    "funnel": Funnel,
    "gp_gaussian": gp_gaussian,
    "hard_banana": hard_banana,
    "horseshoe": horseshoe,
    "mixture_32d": mixture_32d,
    "neal_gaussian": neal_gaussian,
    "ring": ring,
    "student_t": StudentT,
    "two_mode": two_mode,
}

__all__ = [
    "DATASETS",
    "TARGETS",
    "Banana",
    "BananaMixture",
    "BuiltIn",
    "Flower",
    "FlowerFullNorm",
    "Funnel",
    "Gaussian",
    "GaussianMixture",
    "GaussianProcessClassification",
    "GaussianProcessLaplace",
    "HorseshoeRegression",
    "LatticeMixture",
    "LogisticRegression",
    "StudentT",
    "banana",
    "banana_bunch",
    "basis_vectors",
    "correlated_gaussian",
    "double_banana",
    "five_component",
    "glass_classification",
    "gp_gaussian",
    "hard_banana",
    "horseshoe",
    "load_dataset",
    "logistic_regression",
    "mixture_32d",
    "neal_gaussian",
    "ring",
    "standardize",
    "two_mode",
]


def __getattr__(name):
    """Import the targets that need scipy.linalg, which takes as long as all the others."""
    if name in LATE:
        from fastkam.targets import gaussian_process

        return getattr(gaussian_process, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
