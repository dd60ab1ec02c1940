"""Entries of what makes runs: `sample`, samplers, schedules, stop rules, results and files."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import fields

import numpy as np

import fastkam as fk
from fastkam.samplers import SAMPLERS
from fastkam.schedules import SCHEDULES
from fuzz.entry import (
    DRAWS,
    FUNCTION,
    SPD,
    TUNE,
    D,
    Density,
    Entry,
    Funnel,
    is_array,
    is_run,
    learned_run,
    loglike,
    options_of,
    plain_run,
    prints,
    prior,
    result,
    saved,
    tempered,
    weighted,
)


def runs():
    """`sample` in its forms."""
    optional = tuple(name for name in options_of(fk.sample)
                     if name not in plain_run())
    words = ("starting point", "target", "density", "draws", "stop", "kernel", "names", "x0",
             "shapes", "coordinates", "surrogate", *FUNCTION)
    forms = {
        "sample": plain_run,
        "sample with a gradient": lambda: plain_run("mala", True),
        "sample with a search": lambda: plain_run("auto", search=True),
        "sample vectorized": lambda: plain_run(vectorized=True),
        "sample shared": lambda: plain_run("kam", share=True),
        "sample a compiled target": lambda: {
            **plain_run(), "target": fk.targets.Gaussian(np.zeros(D), SPD)},
        "sample a problem": lambda: {**plain_run(), "target": loglike(), "x0": None,
                                     "prior": prior()},
        "sample within bounds": lambda: {**plain_run(), "x0": [0.2, 0.3],
                                         "bounds": [(0, 1), (None, 2.0)]},
        "sample named": lambda: plain_run(
            names=["a", "b"], dims={"a": "city"}, coords={"city": ["Bern"]}),
        "sample behind a surrogate": lambda: plain_run(surrogate=lambda x: -0.4 * float(x @ x)),
    }
    for name, good in forms.items():
        # a compiled density counts no calls: its runs keep their lengths
        fixed = ("target", "draws", "tune", "chains", "thin") if "compiled" in name else ()
        weight = 0.3 if "search" in name else 3.0 if name == "sample" else 1.0
        yield name, Entry(fk.sample, good, optional, fixed, is_run, words, weight=weight,
                          raises=(OSError, ImportError, UnicodeError), covers=("sample",))


def sampler_runs():
    """Every sampler, built and run for some steps."""
    for name, cls in SAMPLERS.items():
        own = tuple(one.name for one in fields(cls) if one.init)

        def call(cls=cls, **parameters):
            sampler = cls(**parameters)
            tune = 420 if isinstance(sampler, fk.CyclicalKernelAdaptiveMetropolis) else TUNE
            return fk.sample(**plain_run(sampler, sampler.needs_gradient, tune=tune))

        words = (*own, "gain", "points", "bank", "starting point")
        yield f"sampler {name}", Entry(call, dict, own, check=is_run, words=words, weight=1.5,
                                       covers=(cls.__name__, f"samplers.{cls.__name__}"))


def mixture_runs():
    """Mode jumping with a mixture that is given, and the default call with one that it finds."""
    def call(**parameters):
        return fk.sample(**plain_run(fk.ModeJumping(**parameters), tune=60))

    means = np.array([[-1.0, 0.0], [1.0, 0.5], [0.0, 3.0]])
    own = ("sampler", "moves", "jump_probability", "jump_cov", "fit")
    yield "jumps with a mixture", Entry(
        call, lambda: {"means": means.copy(), "covs": np.array([SPD, 0.5 * SPD, np.eye(D)]),
                       "weights": [1.0, 2.0, 1.0], "n_states": 40, "max_components": 4}, own,
        check=is_run, words=("mixture", "starting point"), weight=1.5, covers=("ModeJumping",))
    yield "sample a funnel", Entry(
        fk.sample, lambda: {"target": Funnel(), "x0": np.zeros(D), "draws": DRAWS, "chains": 2,
                            "seed": 1, "diagnose": False, "progress": False},
        tuple(name for name in options_of(fk.sample) if name not in ("draws", "chains")),
        ("target",), is_run, ("starting point", "density", "stop", "kernel", "names", "x0",
                              "shapes", "coordinates", "surrogate", *FUNCTION), weight=0.2,
        raises=(OSError, ImportError, UnicodeError), covers=("sample",))


def weighted_runs():
    """Runs with a learned surrogate, and what is done with their weighted draws."""
    words = ("starting point", "target", "density", "stop", "names", "x0", "shapes", "coordinates",
             "surrogate", *FUNCTION)
    yield "sample learned", Entry(
        fk.sample, learned_run,
        tuple(name for name in options_of(fk.sample) if name not in learned_run()), (), is_run,
        words, weight=0.1, raises=(OSError, ImportError, UnicodeError), covers=("sample",))
    yield "Result.resample", Entry(
        lambda **more: weighted().resample(**more), lambda: {"draws": 7, "seed": 3}, (),
        check=is_run, weight=0.5, covers=("Result",))
    yield "weighted to_numpy", Entry(
        lambda flat: weighted().to_numpy(flat=flat), lambda: {"flat": True}, check=is_array,
        weight=0.2, covers=("Result",))
    yield "weighted log_evidence", Entry(
        lambda **more: weighted().log_evidence(**more), lambda: {"evaluations": 0},
        ("method", "target", "vectorized", "seed"), check=prints, weight=0.4,
        words=("target", "density", "method", *FUNCTION), covers=("Result",))
    yield "weighted verdict", Entry(
        lambda **more: weighted().verdict(**more), lambda: {"evaluations": 30},
        ("target", "vectorized", "seed"), check=prints, weight=0.4,
        words=("target", "density", "weighted draws", *FUNCTION), covers=("Result",))
    yield "weighted save", Entry(
        lambda path: weighted().save(path), lambda: {"path": "weighted.fk"}, weight=0.2,
        raises=(OSError, UnicodeError), words=("file",), covers=("Result",))


def schedules():
    for name, cls in SCHEDULES.items():
        own = tuple(one.name for one in fields(cls) if one.init)

        def call(cls=cls, **parameters):
            return fk.sample(**plain_run(schedule=cls(**parameters)))

        yield f"schedule {name}", Entry(call, dict, own, check=is_run, words=("k",), weight=0.3,
                                        covers=(f"schedules.{cls.__name__}",))

    def power(**parameters):
        gain = fk.schedules.Power(**parameters)
        return fk.sample(**plain_run(schedule=fk.schedules.Perpetual(gain=gain)))

    yield "Power", Entry(power, dict, ("c", "k", "offset", "cap"), check=is_run, words=("gain",),
                         weight=0.5, covers=("schedules.Power",))
    yield "constant", Entry(fk.schedules.constant, lambda: {"c": 0.1}, weight=0.2,
                            covers=("schedules.constant",))
    yield "as_schedule", Entry(fk.schedules.as_schedule, lambda: {"schedule": "rare"}, weight=0.2,
                               covers=("schedules.as_schedule",))


def stops():
    for rule, good in ((fk.stop.ESS, {"size": 5.0, "of": "tail"}), (fk.stop.Rhat, {"most": 1.5}),
                       (fk.stop.Done, {"ess": 9.0, "r_hat": 1.3}),
                       (fk.stop.MCSE, {"errors": {"x": 0.5}}),
                       (fk.stop.Evaluations, {"count": 9}), (fk.stop.Time, {"limit": "1s"})):
        def call(rule=rule, **parameters):
            return fk.sample(**plain_run(stop=rule(**parameters)))

        yield f"stop {rule.__name__}", Entry(call, lambda good=good: dict(good), check=is_run,
                                             weight=0.4, covers=(f"stop.{rule.__name__}",))

    def both(other):
        return fk.sample(**plain_run(stop=fk.stop.ESS(5) & other | other))

    yield "stop & |", Entry(both, lambda: {"other": fk.stop.Evaluations(7)}, check=is_run,
                            words=("stop",), weight=0.2, raises=(),
                            covers=("stop.StopRule",))


def known(value):
    return fk.Evidence(value=value, error=0.1, method="bridge sampling")


def asked(**arguments):
    """A run that asks, to its end."""
    loop = fk.AskTell(**arguments, sampler="ram", search=False, draws=4, tune=4, chains=2,
                      diagnose=False)
    while not loop.done:
        points = loop.ask()
        loop.tell(points, [-0.5 * float(x @ x) for _, x in points])
    return loop.result


def calls():
    """The path of a file of calls."""
    with suppress(OSError):
        os.remove("calls.fk")  # another call may have written it
    fk.sample(**plain_run(), evaluations="calls.fk")
    return "calls.fk"


def after_runs():
    """Yield entries of functions of results and files."""
    resumed = tuple(name for name in options_of(fk.resume) if name != "progress")

    def go_on(result, **more):
        return fk.resume(result, **{"progress": False, "diagnose": False, **more})

    yield "resume", Entry(go_on, lambda: {"result": result(), "draws": 5}, resumed, (), is_run,
                          ("target", "density", "no such", "file"), raises=(OSError, UnicodeError,
                                                                            ImportError),
                          weight=2, covers=("resume",))
    yield "resume a file", Entry(
        go_on, lambda: {"result": saved(), "draws": 5, "target": Density()}, resumed, (), is_run,
        ("target", "density", "file", "run.fk", "surrogate"),
        raises=(OSError, UnicodeError, ImportError), covers=("resume", "Result"))
    yield "AskTell", Entry(asked, lambda: {"x0": np.zeros(D), "seed": 1}, check=is_run,
                           words=("starting point", "coordinates"), weight=0.3,
                           covers=("AskTell",))
    yield "Evaluations", Entry(lambda **more: fk.Evaluations(**more), lambda: {"path": calls()},
                               weight=0.3, raises=(OSError, UnicodeError), words=("file",),
                               covers=("Evaluations",))
    yield "load", Entry(lambda path, **more: fk.load(path, **more), lambda: {"path": saved()},
                        ("sampler", "schedule"), check=is_run,
                        words=("file", "run.fk", "not a fastkam result"),
                        raises=(OSError, UnicodeError), covers=("load",))
    yield "Result.save", Entry(lambda path: result().save(path), lambda: {"path": "other.fk"},
                               raises=(OSError, UnicodeError), words=("file",), covers=("Result",))
    yield "Result.to_netcdf", Entry(
        lambda path: result().to_netcdf(path), lambda: {"path": "other.nc"}, weight=0.2,
        raises=(OSError, UnicodeError), words=("file",), covers=("Result",))
    yield "Result.to_numpy", Entry(
        lambda flat: result().to_numpy(flat=flat), lambda: {"flat": True}, check=is_array,
        weight=0.2, covers=("Result",))
    yield "stores.Npy", Entry(fk.stores.Npy, lambda: {"path": "other.run"}, weight=0.2,
                              raises=(OSError, UnicodeError), words=("store",),
                              covers=("stores.Npy", "stores.Store"))
    yield "Result[...]", Entry(lambda name: result()[name], lambda: {"name": "a"}, check=is_array,
                               raises=(KeyError,), words=("parameter",), weight=0.3,
                               covers=("Result",))
    yield "tempering", Entry(fk.tempering, lambda: {"result": tempered()}, check=prints, weight=0.3,
                             words=("tempering",), covers=("tempering", "Tempering"))
    yield "Result.log_evidence", Entry(
        lambda **more: result().log_evidence(**more), lambda: {"evaluations": 40},
        ("method", "target", "vectorized", "seed"), check=prints, weight=0.5,
        words=("target", "density", *FUNCTION), covers=("Result", "Evidence"))
    yield "Result.verdict", Entry(
        lambda **more: result().verdict(**more), lambda: {"evaluations": 30},
        ("target", "vectorized", "seed"), check=prints, weight=0.5,
        words=("target", "density", *FUNCTION), covers=("Result", "diagnostics.Verdict"))
    yield "compare_evidence", Entry(
        fk.compare_evidence, lambda: {"models": {"a": known(0.0), "b": known(1.0)}},
        ("prior_odds",), check=prints, weight=0.5, words=("prior_odds", "models"),
        covers=("compare_evidence", "EvidenceComparison"))
    yield "plot_trace", Entry(fk.plots.plot_trace,
                              lambda: {"result": result(), "bins": 5, "most": 2}, ("truths",),
                              weight=0.05, covers=("plots.plot_trace",))
    yield "plot_2d", Entry(fk.plots.plot_2d, lambda: {
        "result": result(), "pair": (0, 1), "bins": 5, "bounds": [[-3, 3], [-3, 3]]},
                           ("logp", "truths"),
                           words=FUNCTION, weight=0.05, covers=("plots.plot_2d",))
    yield from other_figures()


def other_figures():
    """Figures besides traces and pairs over a density."""
    for name in ("plot_rank", "plot_autocorr", "plot_ess", "plot_pair"):
        yield name, Entry(getattr(fk.plots, name), lambda: {"result": result(), "most": 2},
                          ("var_names",), weight=0.05, covers=(f"plots.{name}",))
    yield "plot_modes", Entry(
        fk.plots.plot_modes, lambda: {"result": result(), "modes": [[-1.0, 0.0], [1.0, 0.0]]},
        ("weights", "names"), words=("modes", *FUNCTION), weight=0.05,
        covers=("plots.plot_modes",))
    yield "plot_adaptation", Entry(fk.plots.plot_adaptation, lambda: {"result": result()},
                                   ("names",), weight=0.05, covers=("plots.plot_adaptation",))
    yield "plot_ladder", Entry(fk.plots.plot_ladder, lambda: {"result": tempered()}, weight=0.05,
                               words=("tempering",), covers=("plots.plot_ladder",))
    yield "plot_proposals", Entry(
        fk.plots.plot_proposals, lambda: {"result": result(), "pair": (0, 1), "points": 1,
                                          "seed": 1}, ("logp",),
        words=FUNCTION, weight=0.05, covers=("plots.plot_proposals",))
