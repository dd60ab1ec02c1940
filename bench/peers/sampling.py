"""Effective draws a CPU second on the same density."""

import tempfile
from pathlib import Path

import numpy as np

import fastkam as fk
from bench.papers.record import table

FORMS = {"python": "Python", "many": "Python, vectorised", "gradient": "Python, gradient",
         "jax": "XLA", "compiled": "compiled"}
SECONDS = {"banana": (8, 2), "neal": (2, 1)}      # CPU seconds a run, (full, quick)
WORST_R_HAT = 1.05


def summary(answer, path):
    """Of one run: ESS, R-hat, moments; the draws themselves are forgotten."""
    x = np.load(path)
    ess = fk.diagnostics.ess_bulk(x)
    return answer | {
        "ess": float(ess.min()),
        "per_second": float(ess.min() / answer["seconds"]),
        "r_hat": float(fk.diagnostics.r_hat(x).max()),
        "mean": x.mean((0, 1)).tolist(), "var": x.var((0, 1)).tolist(),
    }


def runs(contest, name, options):
    """({(package, sampler): [summary a round]}, rounds)"""
    rounds = 1 if options.quick else 3
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "draws.npy")
        return contest.rounds(
            name, "sampling", range(options.seed, options.seed + rounds), name=name,
            see=lambda answer: summary(answer, path), budget=SECONDS[name][options.quick],
            path=path), rounds


def median(answers, what):
    return np.median([answer[what] for answer in answers])


def efficiency(answers):
    """ESS a second, in brackets where the chains disagree."""
    text = f"{median(answers, 'per_second'):,.3g}"
    return text if median(answers, "r_hat") < WORST_R_HAT else f"({text})"


def ratio(answers, ours):
    """fastkam's ESS a second over this one's, round by round."""
    if ours is None:
        return ""
    pairs = zip(answers, ours, strict=True)
    return f"{np.median([our['per_second'] / one['per_second'] for one, our in pairs]):.3g}"


def common(package, name, info, answers):
    """The cells that all tables have."""
    seconds = median(answers, "seconds")
    return [package, name, FORMS[info["kind"]], str(info["chains"]),
            f"{median(answers, 'steps'):,.0f}",
            f"{median(answers, 'evaluations') / seconds:,.3g}"]


def banana(contest, options):
    answers, rounds = runs(contest, "banana", options)
    rows = []
    for package, name, info in contest.entrants("banana"):
        if (package, name) not in answers:
            continue
        mine = answers[package, name]
        compiled = info["kind"] in ("jax", "compiled")
        ours = answers.get(("fastkam", "auto, compiled" if compiled else "auto"))
        mean = np.mean([answer["mean"] for answer in mine], axis=0)
        var = np.mean([answer["var"] for answer in mine], axis=0)
        rows.append([
            *common(package, name, info, mine), efficiency(mine), ratio(mine, ours),
            f"{median(mine, 'r_hat'):.3f}", f"{mean[0]:.2f}", f"{mean[1]:.2f}", f"{var[0]:.0f}",
            f"{var[1]:.0f}", f"{var[2:].min():.2f} to {var[2:].max():.2f}"])
    return (
        "log density -x1²/200 - (x2 - 0.1 (x1² - 100))²/2 - (x3² + ... + x8²)/2; every chain from "
        f"N(0, I), {SECONDS['banana'][options.quick]} CPU seconds a run, half of the steps warm-up, "
        "whose time counts; compilation does not. ESS: bulk, the least over coordinates, of all "
        "chains or walkers, as `fastkam.diagnostics.ess_bulk` has it; in brackets where R-hat is "
        f"above {WORST_R_HAT}, which makes it no number to compare by. \"fastkam auto\": its ESS a "
        "second over this row's, Python densities with its Python one, compiled with its compiled "
        f"one. Medians of {rounds} seeds; moments their mean.\n\n"
    ) + table(["package", "sampler", "density", "chains", "steps of each", "evaluations / s",
               "min ESS / s", "fastkam auto", "R-hat", "mean x1 (0)", "mean x2 (0)",
               "var x1 (100)", "var x2 (201)", "other var (1)"], rows)


def neal(contest, options):
    answers, rounds = runs(contest, "neal", options)
    truth = (np.arange(1, 101) / 100) ** 2
    rows = []
    for package, name, info in contest.entrants("neal"):
        if (package, name) not in answers:
            continue
        mine = answers[package, name]
        reference = "hmc, 5 steps, compiled" if "HMC" in name or "hmc" in name else "nuts, compiled"
        wrong = max(np.abs(np.array(answer["var"]) / truth - 1).max() for answer in mine)
        rows.append([*common(package, name, info, mine), efficiency(mine),
                     ratio(mine, answers.get(("fastkam", reference))),
                     f"{median(mine, 'r_hat'):.3f}", f"{100 * wrong:.1f} %"])
    return (
        "Independent normals of scales 0.01 to 1, d = 100; target acceptance 0.8, "
        f"{SECONDS['neal'][options.quick]} CPU seconds a run, half of the steps warm-up, whose time "
        "and gradients count; compilation does not. nutpie calls the very function that fastkam "
        f"calls. \"Times fastkam\": ESS a second of its NUTS, or HMC, over this row's. Medians of "
        f"{rounds} seeds.\n\n"
    ) + table(["package", "sampler", "density", "chains", "steps of each", "gradients / s",
               "min ESS / s", "fastkam's over it", "R-hat", "largest error of a variance"], rows)
