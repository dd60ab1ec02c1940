"""Entries of functions of arrays, of the targets that fastkam has, and of `fastkam.testing`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

import fastkam as fk
from fuzz.entry import (
    FUNCTION,
    SPD,
    D,
    Entry,
    draws,
    is_array,
    is_run,
    is_target,
    nothing,
    options_of_any,
    plain_run,
    prints,
)


def arrays():
    """Functions of arrays: linear algebra, kernels, the bank, diagnostics."""
    yield "mvn_logpdf", Entry(
        fk.linalg.mvn_logpdf, lambda: {"x": draws(3, D), "mean": np.zeros(D), "cov": SPD.copy()},
        ("factor", "out", "threads"), check=is_array, words=("x",),
        covers=("linalg.mvn_logpdf",))
    yield "cholupdate", Entry(
        fk.linalg.cholupdate, lambda: {"L": np.linalg.cholesky(SPD), "v": np.ones(D), "a": 0.9,
                                       "s": 0.1}, ("out", "threads"), check=is_array, words=("L",),
        covers=("linalg.cholupdate",))

    def bank(x, out=None, threads=1, **arguments):
        return fk.CholeskyBank(**arguments).lookup(x, out=out, threads=threads)

    yield "CholeskyBank", Entry(
        bank, lambda: {"points": draws(5, D), "factors": np.array([np.eye(D)] * 5),
                       "x": draws(3, D)}, ("metric", "out", "threads"), check=is_array,
        words=("factors", "x"), covers=("CholeskyBank",))
    yield "proposal_covariance", Entry(
        fk.kernels.proposal_covariance, lambda: {
            "y": draws(3, D), "z": draws(9, D), "kernel": fk.kernels.Gaussian(1.0)},
        ("step_size", "noise", "out", "threads"), check=is_array, words=("length", "z"),
        covers=("kernels.proposal_covariance",))
    for kernel in (fk.kernels.Gaussian, fk.kernels.Matern, fk.kernels.Linear):
        def with_kernel(kernel=kernel, **arguments):
            made = kernel(**arguments)
            if not made.adapts_length:
                assert np.isfinite(made.matrix(draws(4, D), made.first_length)).all()
            return fk.sample(**plain_run(fk.KernelAdaptiveMetropolis(kernel=made)))

        yield f"kernel {kernel.__name__}", Entry(
            with_kernel, dict, tuple(one.name for one in fields(kernel) if one.init) or ("length",),
            check=is_run, weight=0.4, covers=(f"kernels.{kernel.__name__}", "kernels.Kernel"))
    yield "as_kernel", Entry(fk.kernels.as_kernel, lambda: {"kernel": "gaussian"}, weight=0.2,
                             covers=("kernels.as_kernel",))
    of_draws = ("ess_bulk", "ess_tail", "mcse_mean", "mcse_sd", "r_hat", "esjd")
    for name in of_draws:
        yield name, Entry(getattr(fk.diagnostics, name), lambda: {"draws": draws()}, check=is_array,
                          weight=0.5, covers=(f"diagnostics.{name}",))
    for name in ("ess_geyer", "ess_range"):
        yield name, Entry(getattr(fk.diagnostics, name), lambda: {"x": draws(30, D)},
                          check=is_array, weight=0.5, covers=(f"diagnostics.{name}",))
    yield "summary", Entry(fk.diagnostics.summary, lambda: {"draws": draws()}, ("labels", "draws"),
                           check=prints, covers=("diagnostics.summary", "diagnostics.Summary"))
    yield "mean_error", Entry(fk.diagnostics.mean_error,
                              lambda: {"draws": draws(), "mean": [0.0, 0]}, check=is_array,
                              words=("mean",), weight=0.5, covers=("diagnostics.mean_error",))
    yield "quantile_deviation", Entry(
        fk.diagnostics.quantile_deviation, lambda: {"q": draws(30) ** 2, "df": 2}, ("levels",),
        weight=0.5, covers=("diagnostics.quantile_deviation",))
    yield "implied_moments", Entry(
        fk.diagnostics.implied_moments, lambda: {"draws": draws(), "gradients": -draws()}, ("x",),
        check=is_array, weight=0.5, covers=("diagnostics.implied_moments",))
    yield "mode_occupancy", Entry(
        fk.diagnostics.mode_occupancy, lambda: {
            "draws": draws(), "mode_of": lambda x: (x[..., 0] > 0).astype(int),
            "weights": [0.5, 0.5]}, weight=0.5, check=prints,
        words=("mode_of", *FUNCTION),
        covers=("diagnostics.mode_occupancy", "diagnostics.ModeOccupancy"))
    yield "mmd2", Entry(fk.diagnostics.mmd2, lambda: {"x": draws(20, D), "y": draws(30, D)},
                        ("degree", "offset"), check=is_array, weight=0.5,
                        covers=("diagnostics.mmd2",))
    yield "symmetric_kl", Entry(
        fk.diagnostics.symmetric_kl, lambda: {
            "draws": draws(30, D), "logp": lambda x: -0.5 * (x**2).sum(-1),
            "bounds": [[-3, 3], [-3, 3]], "bins": 5},
        ("prior_draws", "refine"), check=is_array,
        words=("bounds", "bins", *FUNCTION), weight=0.5, covers=("diagnostics.symmetric_kl",))
    yield "marginal_symmetric_kl", Entry(
        fk.diagnostics.marginal_symmetric_kl, lambda: {
            "draws": draws(30, D), "logps": [lambda x: -0.5 * x**2] * D,
            "bounds": [[-3, 3], [-3, 3]], "bins": 5},
        ("prior_draws", "refine"), check=is_array,
        words=("logps", "logp", "bins", *FUNCTION), weight=0.5,
        covers=("diagnostics.marginal_symmetric_kl",))


def built_in_targets():
    """Every class and function of `fastkam.targets`."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(8, 2)), np.array([0, 1] * 4)
    good: dict[str, dict[str, Any]] = {
        "Gaussian": {"mean": np.zeros(D), "cov": SPD},
        "StudentT": {"d": 2, "df": 3.0, "scale": 1.0, "location": 0.0},
        "GaussianMixture": {"means": [[0.0, 0], [3, 3]], "covs": 1.0, "weights": [0.4, 0.6]},
        "LatticeMixture": {"d": 4, "K": 2, "spacing": 15.0, "variance": 15.0},
        "Banana": {"curvature": 0.1, "shift": 1.0, "variances": [2.0, 1.0]},
        "BananaMixture": {"bent": [0, 1], "along": [1, 0], "shift": [1.0, 1.0],
                          "curvature": [0.1, 0.1], "variances": [[1.0, 2.0], [2.0, 1.0]]},
        "Flower": {"r0": 10.0, "A": 6.0, "w": 6, "s2": 1.0, "d": 3},
        "FlowerFullNorm": {"r0": 10.0, "A": 6.0, "w": 6, "s2": 1.0, "d": 3},
        "Funnel": {"d": 3, "variance": 9.0},
        "HorseshoeRegression": {"X": X, "y": X[:, 0]},
        "LogisticRegression": {"X": X, "y": y, "prior_variance": 1.0},
        "GaussianProcessClassification": {"X": X, "y": y, "n_importance": 5, "ridge": 1e-3},
        "GaussianProcessLaplace": {"X": X, "y": y, "prior_variance": 5.0},
        "standardize": {"X": X, "intercept": True},
        "logistic_regression": {"name": "none such", "prior_variance": 1.0},
        "load_dataset": {"name": "none such"},
    }
    for name in fk.targets.__all__:
        what = getattr(fk.targets, name)
        if not callable(what) or (not options_of_any(what) and name not in good):
            continue
        has = good.get(name, {})
        check = is_target if name not in ("standardize", "load_dataset") else nothing
        yield f"targets.{name}", Entry(
            what, lambda has=has: {key: np.array(value) if isinstance(value, np.ndarray) else value
                                   for key, value in has.items()},
            tuple(one for one in options_of_any(what) if one not in has), check=check, weight=0.4,
            words=(*options_of_any(what), "x", "shift", "variances"),
            raises=(OSError, ArithmeticError) if "ridge" in has else (OSError,),
            covers=(f"targets.{name}",))
    target = fk.targets.Gaussian(np.zeros(D), SPD)
    yield "target.sample", Entry(target.sample, lambda: {"n": 3, "seed": 1}, check=is_array,
                                 weight=0.3, covers=("targets.BuiltIn",))
    yield "target.quantile_region", Entry(target.quantile_region, lambda: {"x": draws(3, D)},
                                          weight=0.3)
    mixture = fk.targets.GaussianMixture([[0.0, 0], [3, 3]])
    yield "target.mode_of", Entry(mixture.mode_of, lambda: {"x": draws(3, D)}, check=is_array,
                                  weight=0.3)


def tests_of_samplers():
    """`fastkam.testing`."""
    target = fk.targets.Gaussian(np.zeros(D), SPD)
    yield "testing.replicate", Entry(
        fk.testing.replicate, lambda: {"sampler": "rwm", "target": target, "points": draws(5, D),
                                       "steps": 2, "seed": 1}, ("state", "schedule"),
        ("target", "steps"), is_array, words=("x0",), weight=0.5, covers=("testing.replicate",))
    yield "testing.learned_state", Entry(
        fk.testing.learned_state, lambda: {"sampler": "ram", "target": target, "tune": 10,
                                          "seed": 1},
        fixed=("target", "tune"), words=("n",), weight=0.3, covers=("testing.learned_state",))
    yield "testing.compare", Entry(
        fk.testing.compare, lambda: {"before": draws(9, D), "after": draws(9, D) + 0.1,
                                     "seed": 1},
        ("reversible", "n_directions"), check=prints, words=("after",), weight=0.3,
        covers=("testing.compare",))
    yield "testing.invariance", Entry(
        fk.testing.invariance, lambda: {"sampler": "ram", "target": target, "steps": 1,
                                        "replicates": 20, "tune": 10, "seed": 1},
        ("reversible", "exact"), ("target", "tune", "steps", "replicates"), prints,
        ("n", "points"), weight=0.3,
        covers=("testing.invariance",))
