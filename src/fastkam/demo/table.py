"""Demonstration: Bayesian logistic regression of the user's own table.

    y_i = 1 with probability 1 / (1 + exp(-<x_i, w>)),   w ~ N(0, I)

Features are standardized and the intercept stands last.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field

import numpy as np

import fastkam as fk
from fastkam.demo import report
from fastkam.diagnostics.checks import convergence
from fastkam.plots.style import new_figure, plain
from fastkam.run.shapes import RESERVED
from fastkam.samplers.metropolis import OPTIMAL

MISSING = {"", "?", "na", "n/a", "nan", "null", "none", "."}
MOST_LEVELS = 20  # of a column of texts
MOST_COEFFICIENTS = 20  # printed
MOST_DRAWN = 40  # in the figure
MOST_DRAWS = 5_000  # kept a chain
# the first proposal is good already: a gain near 1 would spoil it
GENTLE = fk.schedules.Finite(gain=fk.schedules.Power(c=1.0, k=2 / 3, offset=100.0))


@dataclass
class Table:
    """A table as a regression takes it.

    Attributes
    ----------
    X : ndarray, shape (n, d)
        Standardized features (sd with divisor n - 1), and a column of ones last.
    y : ndarray of int, shape (n,)
        0 or 1.
    names : list of d str
    notes : list of str
        What was done to the columns.
    """

    X: np.ndarray
    y: np.ndarray
    names: list
    notes: list = field(default_factory=list)


def read_table(path, label):
    """The Table in a CSV file with a header; ValueError that names what is wrong with it.

    A column of texts becomes one indicator for each of its values but the first; constant columns
    are dropped.
    """
    header, rows, lines = read_csv(path)
    if label not in header:
        raise ValueError(f"--label must be a column of {path}, not {label!r}: {', '.join(header)}")
    for line, row in zip(lines, rows, strict=True):
        for name, text in zip(header, row, strict=True):
            if text.strip().lower() in MISSING:
                raise ValueError(f"{path}: line {line}, column {name!r} has no value ({text!r})")
    columns = {name: [row[i].strip() for row in rows] for i, name in enumerate(header)}
    y, notes = binary(columns.pop(label), label)
    names, features = [], []
    for name, texts in columns.items():
        for title, values in encoded(name, texts, notes):
            if values.min() == values.max():
                notes.append(f"column {title!r} is constant: dropped")
                continue
            names.append(title)
            features.append((values - values.mean()) / values.std(ddof=1))
    if not features:
        raise ValueError(f"{path} has no column to predict {label!r} from")
    return Table(np.column_stack([*features, np.ones(len(y))]), y,
                 [*distinct(names), "intercept"], notes)


def distinct(names):
    """The names as `sample` takes them: different ones, without slashes."""
    found: list[str] = []
    for name in names:
        name = name.replace("/", "|")
        while name in (*found, *RESERVED, "intercept"):
            name += "'"
        found.append(name)
    return found


def read_csv(path):
    """(header, rows, lines): texts, all rows of one length, and the line at which each ends.

    A column without a name gets one by its place.
    """
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            (header, _), *below = [(row, reader.line_num) for row in reader if row]
    except OSError as error:
        raise ValueError(f"--data cannot be read: {error}") from None
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path} is not a CSV file with a header: {error}") from None
    header = [name.strip() or f"column {place}" for place, name in enumerate(header, start=1)]
    if len(set(header)) < len(header):
        raise ValueError(f"{path} names a column twice: {', '.join(header)}")
    for row, line in below:
        if len(row) != len(header):
            raise ValueError(
                f"{path}: line {line} has {len(row)} values, but the header names {len(header)}"
            )
    if len(below) < 2:
        raise ValueError(f"{path} has {len(below)} rows below the header: too few")
    return header, *zip(*below, strict=True)


def numbers(texts):
    """The texts as a float array, or None where one is no finite number."""
    try:
        values = np.array(texts, dtype=float)
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


def binary(texts, label):
    """(y, notes): 1 for the greater number or the last text."""
    values = numbers(texts)
    levels, y = np.unique(texts if values is None else values, return_inverse=True)
    if len(levels) != 2:
        some = ", ".join(map(str, levels[:5])) + (", ..." if len(levels) > 5 else "")
        raise ValueError(f"--label must be a column of two values; {label!r} has {some}")
    shown = [repr(str(level)) if values is None else f"{level:g}" for level in levels]
    counts = np.bincount(y)
    return y, [
        f"{label} = {shown[1]} in {counts[1]} rows, the class whose probability is modeled; "
        f"{shown[0]} in {counts[0]}"
    ]


def encoded(name, texts, notes):
    """[(name, values)] of a column: itself where it holds numbers, else its indicators."""
    values = numbers(texts)
    if values is not None:
        return [(name, values)]
    levels = sorted(set(texts))
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"column {name!r} is not numeric (as {levels[0]!r}) and has {len(levels)} different "
            f"values; at most {MOST_LEVELS} can be encoded: drop it, or turn it into numbers"
        )
    if len(levels) > 1:
        notes.append(f"column {name!r} holds texts: indicators of all but {levels[0]!r}")
    texts = np.array(texts)
    return [(f"{name}={level}", (texts == level).astype(float)) for level in levels[1:] or levels]


# ---- the analysis ----


def run(table, title, folder, *, seed, quick):
    """Sample, print the coefficients, write figure and draws to `folder`."""
    n, d = table.X.shape
    report.heading(f"Logistic regression: {title}")
    print(f"{n} rows, {d} coefficients, prior N(0, I) on standardized features.")
    for note in table.notes:
        print(f"  {note}")
    mode, cov = laplace(table.X, table.y)
    steps = number_of_steps(n, d, quick)
    thin = max(1, steps // MOST_DRAWS)
    starts = mode + np.random.default_rng(seed).standard_normal((4, d)) @ np.linalg.cholesky(cov).T
    result = report.sampled(
        fk.targets.LogisticRegression(table.X, table.y),
        starts,
        sampler=fk.RobustAdaptiveMetropolis(proposal_cov=cov * OPTIMAL**2 / d),
        schedule=GENTLE,
        draws=steps // thin,
        tune=steps // 4,
        thin=thin,
        chains=4,
        seed=seed,
        names=table.names,
        keep_warmup=False,
    )
    known = result.summary()
    print_coefficients(known)
    report.say(convergence(known))
    right, auc = fit(table, result)
    report.say(
        f"On these same rows: {right:.1%} classified rightly, area under the ROC curve {auc:.3f}."
    )
    report.say(report.speed(result))
    print()
    report.save(result, lambda: figure(known), folder, "regression")
    return result


def number_of_steps(n, d, quick):
    """Steps a chain: in proportion to d, as a random walk needs them, but within some seconds."""
    seconds, least, each = (3, 2_000, 1_500) if quick else (15, 10_000, 4_000)
    evaluation = 2e-6 + n * (1e-8 + d * 2e-10)  # seconds, roughly
    return int(np.clip(seconds / (4 * evaluation), least, max(least, each * d)))


def laplace(X, y):
    """(mode, covariance) of the normal approximation of the posterior, by Newton's method."""
    d = X.shape[1]
    w = np.zeros(d)

    def loss(w):
        z = X @ w
        return np.logaddexp(0, z).sum() - y @ z + 0.5 * w @ w

    for _ in range(50):
        p = sigmoid(X @ w)
        hessian = (X.T * (p * (1 - p))) @ X + np.eye(d)
        gradient = X.T @ (p - y) + w
        step = np.linalg.solve(hessian, gradient)
        size, here = 1.0, loss(w)
        while loss(w - size * step) > here and size > 1e-6:
            size /= 2
        w = w - size * step
        if gradient @ step < 1e-10:
            break
    return w, np.linalg.inv(hessian)


def sigmoid(z):
    """1 / (1 + exp(-z)), without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * z))


def print_coefficients(known):
    """A table of the coefficients; of many, those that stand out most from 0."""
    shown = np.sort(clearest(known, MOST_COEFFICIENTS))
    rows = [
        [known.labels[i], f"{known['mean'][i]:.2f}", f"{known['sd'][i]:.2f}",
         f"{known['q5'][i]:.2f} to {known['q95'][i]:.2f}", f"{known['ess_bulk'][i]:.0f}",
         f"{known['r_hat'][i]:.3f}"]
        for i in shown
    ]
    report.table(["", "mean", "sd", "90 % interval", "ESS", "R-hat"], rows)
    if len(shown) < len(known):
        print(f"These {len(shown)} of {len(known)} stand out most from 0.")


def clearest(known, most):
    """Indices of at most `most` coefficients, those furthest from 0 in units of their sd first."""
    return np.argsort(-np.abs(known["mean"]) / known["sd"], kind="stable")[:most]


def fit(table, result):
    """(share of rows classified rightly, area under the ROC curve) of the posterior mean."""
    flat = result.draws.reshape(-1, result.d)
    some = flat[:: max(1, len(flat) // 200)]
    p = sigmoid(table.X @ some.T).mean(axis=1)
    return ((p > 0.5) == table.y).mean(), area_under_curve(p, table.y)


def area_under_curve(p, y):
    """The probability that p ranks a row of class 1 above one of class 0, ties counted half."""
    from scipy.stats import rankdata

    ones = int(y.sum())
    return (rankdata(p)[y == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(y) - ones))


def figure(known):
    """Each coefficient with its 90 % interval; of many, those that stand out most."""
    order = clearest(known, MOST_DRAWN)[::-1]
    drawn = new_figure(6, 1 + 0.22 * len(order))
    axes = drawn.subplots()
    places = np.arange(len(order))
    axes.hlines(places, known["q5"][order], known["q95"][order], color="C0")
    axes.plot(known["mean"][order], places, "o", ms=4, color="C0")
    axes.axvline(0, color="black", lw=0.6)
    axes.set_yticks(places, [plain(known.labels[i]) for i in order])
    axes.set(xlabel="coefficient of the standardized feature", title="posterior mean and 90 %")
    return drawn
