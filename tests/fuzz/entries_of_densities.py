"""Entries of densities: targets of every form, `Problem` and what it is made of."""

from __future__ import annotations

import numpy as np

import fastkam as fk
from fuzz.entry import (
    FUNCTION,
    D,
    Density,
    Entry,
    estimator,
    is_array,
    is_run,
    is_target,
    loglike,
    options_of,
    plain_run,
    prints,
    prior,
    problem,
)


def densities():
    """Targets of every form, and what is asked of them."""
    python = fk.Target.from_python
    yield "as_target", Entry(fk.as_target, lambda: {"target": Density(), "dim": D},
                             ("vectorized", "gradient"), check=is_target,
                             words=("x0", "density", *FUNCTION), covers=("as_target",))
    yield "Target.from_python", Entry(
        python, lambda: {"f": Density(), "dim": D}, options_of(python), check=is_target,
        words=("target", "density", *FUNCTION), covers=("Target",))
    yield "Target.from_c", Entry(
        fk.Target.from_c, lambda: {"function": Density(), "dim": D}, options_of(fk.Target.from_c),
        words=("target", "pointer", "function"), covers=("Target",), weight=0.5)
    yield "Target.from_numba", Entry(
        fk.Target.from_numba, lambda: {"f": Density(), "dim": D}, ("args",),
        words=("target", "numba"), covers=("Target",), weight=0.3)
    yield "Target.from_capsule", Entry(
        fk.Target.from_capsule, lambda: {"provider": fk.targets.Gaussian([0.0, 0.0])},
        check=is_target, words=("__fk_target__", "capsule"), covers=("Target",), weight=0.3)

    def estimated(**arguments):
        made = fk.Target.from_estimator(**arguments)
        return fk.sample(**{**plain_run(), "target": made})

    yield "Target.from_estimator", Entry(
        estimated, lambda: {"f": estimator, "dim": D, "n_aux": 3},
        options_of(fk.Target.from_estimator), check=is_run,
        words=("target", "estimate", "x0", "dimension"), covers=("Target",))
    yield "Target.logp", Entry(
        lambda x: fk.as_target(Density(), D).logp(x), lambda: {"x": np.zeros(D)}, check=is_array,
        covers=("Target",))
    yield "Target.logp_grad", Entry(
        lambda x: fk.as_target(Density(True), D, gradient=True).logp_grad(x),
        lambda: {"x": np.zeros(D)}, covers=("Target",))
    yield "check_gradient", Entry(
        fk.check_gradient, lambda: {"target": Density(True), "x": np.ones(D)}, ("vectorized",),
        check=prints, words=("gradient", "density", "x0"), covers=("check_gradient",))
    yield "check_noise", Entry(
        fk.check_noise, lambda: {"target": fk.Target.from_estimator(estimator, D, 3),
                                 "x": np.zeros(D), "n": 20}, ("seed",), check=prints,
        words=("density", "estimate"), covers=("check_noise", "NoiseCheck"))

    def recipe(factory, **more):
        return fk.sample(**{**plain_run(), "target": fk.TargetRecipe(factory, **more)})

    yield "TargetRecipe", Entry(
        recipe, lambda: {"factory": Density}, ("gradient",), check=is_run,
        words=("target", "density", *FUNCTION),
        raises=(ImportError, AttributeError), weight=0.3, covers=("TargetRecipe",))
    yield "choose_sampler", Entry(
        fk.choose_sampler, lambda: {"target": Density(), "x0": np.zeros(D), "chains": 2, "seed": 1},
        ("vectorized", "surrogate"), check=prints, words=("density", "starting point"), weight=0.2,
        covers=("choose_sampler",))


class Bridge:
    """A model as UM-Bridge has them, without its package."""

    name = "normal"

    def get_input_sizes(self, config):
        return [D]

    def get_output_sizes(self, config):
        return [1]

    def supports_evaluate(self):
        return True

    def supports_gradient(self):
        return False

    def __call__(self, parameters, config):
        return [[Density()(parameters[0])]]


def models():
    """Models of other packages: where one is missing, that alone is said."""

    def tried(function):
        def call(**arguments):
            try:
                function(**arguments)
            except (ImportError, FileNotFoundError):  # no package, no library
                return

        return call

    for name, good in (("from_jax", {"f": Density()}), ("from_torch", {"f": Density()}),
                       ("from_bridgestan", {"lib": "missing.so", "data": {"n": 3}})):
        function = getattr(fk, name)
        yield name, Entry(tried(function), good.copy, options_of(function), weight=0.2,
                          words=(*good, "path"), covers=(name,))

    def pymc(**options):
        try:
            import pymc
        except ImportError:
            return
        with pymc.Model() as model:
            pymc.Normal("a")
        fk.from_pymc(model, backend="python", **options)

    yield "from_pymc", Entry(pymc, lambda: {"log_likelihood": False}, ("deterministics",),
                             weight=0.05, covers=("from_pymc",))

    def bridge(**options):
        return fk.sample(**{**plain_run(), "target": fk.from_umbridge(Bridge(), **options)})

    yield "from_umbridge", Entry(bridge, lambda: {"config": {"level": 1}}, check=is_run,
                                 words=("model", "target"), weight=0.2, covers=("from_umbridge",))


def problems():
    """`Problem`, its methods, and what it is made of."""
    options = tuple(name for name in options_of(fk.Problem) if name != "prior")

    def made(**arguments):
        found = fk.Problem(**arguments)
        prints(found)
        return fk.sample(**{**plain_run(), "target": found,
                            "x0": None if found.has_prior else np.full(found.n_x, 0.4)})

    words = ("target", "density", "names", "parameter", "prior", "dims", "coords", "x0", "scipy",
             "mu", "sigma", "shapes", "bounds", "likelihood", "dim", *FUNCTION)
    yield "Problem", Entry(made, lambda: {"loglike": loglike(), "prior": prior()}, options,
                           check=is_run, words=words, weight=4, covers=("Problem",))
    yield "Problem with bounds", Entry(
        made, lambda: {"loglike": Density(), "bounds": {"a": (0, 1), "b": (None, 2)},
                       "names": ["a", "b"], "transforms": {"a": "logit"}}, options, check=is_run,
        words=(*words, "a", "b"), weight=2, covers=("Problem", "Transform"))
    yield "Problem with dims", Entry(
        made, lambda: {"loglike": lambda a: Density()(a), "shapes": {"a": 2}, "names": ["a"],
                       "dims": {"a": ["city"]}, "coords": {"city": ["Bern", "Basel"]}}, options,
        check=is_run, words=(*words, "a", "city"), weight=1, covers=("Problem",))
    for method, name, value in (
            ("constrain", "z", np.zeros(D)), ("unconstrain", "x", np.ones(D)),
            ("log_prior", "x", np.ones(D)), ("log_prior_z", "z", np.zeros(D)),
            ("log_likelihood", "x", np.ones(D)), ("logp", "z", np.zeros(D))):
        def call(method=method, **arguments):
            return getattr(problem(), method)(*arguments.values())

        yield f"Problem.{method}", Entry(
            call, lambda name=name, value=value: {name: value.copy()}, check=is_array, weight=0.4,
            words=("mu", "sigma", "x", "z"), covers=("Problem",))
    yield "Problem.sample_prior", Entry(
        lambda n, rng: problem().sample_prior(n, rng), lambda: {"n": 3, "rng": 1}, check=is_array,
        weight=0.4, words=("seed",), covers=("Problem",))

    def correlations(**arguments):
        prior = fk.LKJ(**arguments)
        x = prior.rvs(3, random_state=1)
        prior.logpdf(x)
        assert np.isfinite(x).all()

    yield "LKJ", Entry(correlations, lambda: {"n": 3, "eta": 2.0}, weight=0.4, covers=("LKJ",))
    yield "LKJ.logpdf", Entry(lambda L: fk.LKJ(2, 1.0).logpdf(L), lambda: {"L": np.eye(2)},
                              check=is_array, weight=0.3, words=("x",), covers=("LKJ",))
    yield "LKJ.rvs", Entry(lambda size, random_state: fk.LKJ(2, 1.0).rvs(size, random_state),
                           lambda: {"size": 3, "random_state": 1}, check=is_array, weight=0.3,
                           words=("seed",), covers=("LKJ",))
