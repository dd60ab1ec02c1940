"""Effective draws a CPU second on the same density."""

import tempfile
from pathlib import Path

import numpy as np

import fastkam as fk
from bench.papers.record import table
from bench.peers.densities import SCALES, V

FORMS = {"python": "Python", "many": "Python, vectorized", "gradient": "Python, gradient",
         "jax": "XLA", "compiled": "compiled"}
SECONDS = {"banana": (4, 2), "neal": (2, 1)}      # CPU seconds a run, (full, quick)
ROUNDS = 3
MIXED = 1.1         # R-hat above which an effective sample size says nothing
COMMON = ["package", "sampler", "density", "chains", "steps of each", "evaluations / s", "R-hat",
          "min ESS / s"]


def ensemble_ess(x):
    """The variance of a draw over that of the mean of all, (d,), of walkers (walkers, n, d).

    Walkers depend on each other, and swaps of temperature exchange them: only the course of their
    mean says how many draws they are worth.
    """
    return (x.std((0, 1)) / fk.diagnostics.mcse_mean(x.mean(0)[None])) ** 2


def summary(answer, info, path):
    """Return ESS, R-hat and moments of one run; the draws themselves are dropped."""
    x = np.load(path)
    ess = (ensemble_ess(x) if info["ensemble"] else fk.diagnostics.ess_bulk(x)).min()
    r_hat = np.nan if info["ensemble"] else fk.diagnostics.r_hat(x).max()
    return answer | {
        "ess": float(ess), "per_second": float(ess / answer["seconds"]), "r_hat": float(r_hat),
        "mean": x.mean((0, 1)).tolist(), "var": x.var((0, 1)).tolist(),
    }


def runs(contest, name, options):
    """({(package, sampler): [summary a round]}, rounds)"""
    rounds = 1 if options.quick else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "draws.npy")
        return contest.rounds(
            name, "sampling", range(options.seed, options.seed + rounds), name=name,
            see=lambda answer, info: summary(answer, info, path),
            budget=SECONDS[name][options.quick], path=path), rounds


def median(answers, what):
    return np.median([answer[what] for answer in answers])


def by_error(answers):
    """Independent draws a second that would err as much in E x_1 and E x_1^2 of the banana."""
    errors = []
    for answer in answers:
        mean, square = answer["mean"][0], answer["var"][0] + answer["mean"][0] ** 2
        errors += [mean**2 / V, (square - V) ** 2 / (2 * V**2)]
    return 1 / np.mean(errors) / median(answers, "seconds")


def has_mixed(answers):
    """Whether the chains agree, so that their effective sample size means something."""
    return not median(answers, "r_hat") > MIXED


def ratio(answers, ours):
    """fastkam's ESS a second over this one's, round by round; empty where one means nothing."""
    if ours is None or not (has_mixed(answers) and has_mixed(ours)):
        return ""
    pairs = zip(answers, ours, strict=True)
    return f"{np.median([our['per_second'] / one['per_second'] for one, our in pairs]):.3g}"


def common(package, name, info, answers):
    """The cells that all tables have."""
    seconds = median(answers, "seconds")
    return [package, name, FORMS[info["kind"]], str(info["chains"]),
            f"{median(answers, 'steps'):,.0f}",
            f"{median(answers, 'evaluations') / seconds:,.3g}",
            "-" if info["ensemble"] else f"{median(answers, 'r_hat'):.3f}",
            f"{median(answers, 'per_second'):,.3g}" if has_mixed(answers) else "-"]


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
            *common(package, name, info, mine), ratio(mine, ours),
            *([] if options.quick else [f"{by_error(mine):,.2g}"]),
            f"{mean[0]:.2f}", f"{mean[1]:.2f}", f"{var[0]:.0f}", f"{var[1]:.0f}",
            f"{var[2:].min():.2f} to {var[2:].max():.2f}"])
    columns = [*COMMON, "fastkam auto", *([] if options.quick else ["by the error / s"]),
               "mean x1 (0)", "mean x2 (0)", "var x1 (100)", "var x2 (201)", "other var (1)"]
    rows += contest.missing("banana", len(columns))
    return (
        "log density -x1²/200 - (x2 - 0.1 (x1² - 100))²/2 - (x3² + ... + x8²)/2; every chain from "
        f"N(0, I), {SECONDS['banana'][options.quick]} CPU seconds a run, half of the steps warm-up "
        f"whose time counts; compilation does not. Medians (seeds: {rounds}).\n\n"
        "- Min ESS: `fastkam.diagnostics.ess_bulk`, the least over coordinates; of an ensemble, "
        "whose walkers depend on each other, the same from the variance of its mean. Where R-hat "
        f"is above {MIXED} it says nothing, and is left out.\n"
        "- fastkam auto: its ESS a second over this row's, round by round; the Python one over "
        "Python densities, the compiled one over compiled.\n"
        + ("" if options.quick else
           "- By the error: how many independent draws a second would err as much as the runs did "
           f"in E x1 and E x1². Of {2 * rounds} errors only, so good to a factor of two, but no "
           "diagnostic is needed for it: where it is far below the ESS, the chains have not been "
           "where they should have been.\n") +
        "- Mean and variance: of all draws of all rounds, beside the truth.\n\n"
    ) + table(columns, rows)


def neal(contest, options):
    answers, rounds = runs(contest, "neal", options)
    rows = []
    for package, name, info in contest.entrants("neal"):
        if (package, name) not in answers:
            continue
        mine = answers[package, name]
        reference = "hmc, 5 steps, compiled" if "HMC" in name or "hmc" in name else "nuts, compiled"
        wrong = max(np.abs(np.array(answer["var"]) / SCALES**2 - 1).max() for answer in mine)
        rows.append([*common(package, name, info, mine),
                     ratio(mine, answers.get(("fastkam", reference))), f"{100 * wrong:.1f} %"])
    columns = [*COMMON, "fastkam's over it", "largest error of a variance"]
    rows += contest.missing("neal", len(columns))
    return (
        "Independent normals of scales 0.01 to 1, d = 100; target acceptance 0.8, "
        f"{SECONDS['neal'][options.quick]} CPU seconds a run, half of the steps warm-up whose time "
        "and gradients count; compilation does not. Evaluations are of the gradient. nutpie calls "
        "the very function that fastkam calls. fastkam's over it: ESS a second of its NUTS or HMC "
        f"over this row's. Where R-hat is above {MIXED} an effective sample size says nothing, and "
        f"is left out. Medians (seeds: {rounds}).\n\n"
    ) + table(columns, rows)
