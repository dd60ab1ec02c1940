"""Figures 6 to 12: where single chains go on the three targets of several modes.

    python -m bench.papers.dharamshi2023.figures [--quick]

One chain of each sampler from a start that they share, as many steps as in the paper, with the
samplers of tables 1 to 3. Figures 6 to 8 are one picture, double_banana.png, figure 9 is
basis_vectors.png, figures 10 to 12 are banana_bunch.png. "PT (5), true swaps" is not in the paper.
The full setting takes some 20 seconds of CPU, the quick one 7.
"""

import numpy as np

import fastkam as fk
from bench.papers.dharamshi2023.__main__ import errors, parts, samplers, steps_of
from bench.papers.pictures import COLORS, panels, save
from bench.papers.record import heading, options, table, write

TRUE, SWAPS = "true draws", "PT (5), true swaps"
SHOWN = {
    "double_banana": ["RWM", "aRWM, as released", "PT (2), as released", "PT (5), as released",
                      "MALA", "DM", "Scout", "DM finite, as released", "Scout finite", SWAPS],
    "basis_vectors": ["PT (5), as released", "Scout", SWAPS],
    "banana_bunch": ["aRWM, as released", "PT (5), as released", "Scout", "Scout finite", SWAPS],
}
TITLES = {"double_banana": "Figures 6 to 8", "basis_vectors": "Figure 9",
          "banana_bunch": "Figures 10 to 12"}
COLUMNS = ["sampler", "acceptance", "distance of the mean", "of the second moment",
           "shares of the parts, %", "changes of the part", "distinct points"]
BOUNDS = {"double_banana": ((-14, 14), (-130, 80)), "banana_bunch": ((-80, 80), (-80, 80))}
PAIRS = ((0, 1), (0, 2), (1, 2))
FAINT = np.exp(-8)
FEW = 20_000        # points of a panel, evenly spaced in time


def run(name, target, label, shorter, seed):
    """The result of one chain from the shared start."""
    sampler, schedule, split = samplers(name)[label.removesuffix(", true swaps")]
    draws, tune = steps_of(name, split)
    x0 = start(target, seed)
    return fk.sample(target, x0, sampler=sampler, schedule=schedule, draws=draws // shorter,
                     tune=tune // shorter, chains=1, seed=seed, keep_warmup=False, progress=False,
                     threads=1, search=False)


def start(target, seed):
    """The point from which all begin."""
    return np.random.default_rng(seed).uniform(-5, 5, target.dim)


def row_of(name, target, label, x, acceptance):
    """Numbers for what the picture shows of draws x (n, d)."""
    where, n = parts(name, x)
    mean, second, _ = errors(name, target, x[None])
    shares = 100 * np.bincount(where, minlength=n) / len(x)
    distinct = 1 + (np.diff(x, axis=0) != 0).any(axis=1).sum()
    return [label, "" if acceptance is None else f"{acceptance:.3f}", f"{mean[0]:.3g}",
            f"{second[0]:.3g}", f"{shares.min():.1f} to {shares.max():.1f}",
            f"{(np.diff(where) != 0).sum():,}", f"{distinct:,}"]


def some(x):
    """Some of the draws (n, d), equally spaced, at most FEW."""
    return x[:: -(-len(x) // FEW)]


def show_density(axes, places, density):
    """The logarithm of the density on a grid, down to FAINT of the largest value."""
    log_density = np.log(np.maximum(density / density.max(), FAINT))
    axes.pcolormesh(*places, log_density, cmap="cividis", rasterized=True)


def show_outline(axes, places, density):
    """A contour of the density at the level FAINT."""
    axes.contour(*places, density / density.max(), [FAINT], colors=COLORS[7], linewidths=0.7)


def show_points(axes, x, x0):
    """Draws, and the start unless there is none."""
    axes.plot(*x.T, ".", ms=2.0, mew=0, alpha=0.5, color=COLORS[0], rasterized=True)
    if x0 is not None:
        axes.plot(*x0, "o", ms=5, mew=0.8, mec="white", color=COLORS[3])


def plot_double_banana(path, target, chains, x0):
    """The target, then the draws of each sampler."""
    figure, axes = panels(2, 6, figsize=(13, 7), sharex=True, sharey=True)
    places = [np.linspace(*bounds, 300) for bounds in BOUNDS["double_banana"]]
    points = np.stack(np.meshgrid(*places), axis=-1).reshape(-1, 2)
    density = np.exp(target.logp(points)).reshape(300, 300)
    show_density(axes[0, 0], places, density)
    axes[0, 0].set_title("target (figure 6)", fontsize=10)
    for axis, (label, x) in zip(axes.flat[1:], chains.items(), strict=True):
        show_outline(axis, places, density)
        show_points(axis, some(x), None if label == TRUE else x0)
        axis.set_title(label, fontsize=10)
        axis.set(xlim=BOUNDS["double_banana"][0], ylim=BOUNDS["double_banana"][1])
    figure.supxlabel("$x_1$")
    figure.supylabel("$x_2$")
    save(figure, path)


def plot_basis_vectors(path, target, chains, x0):
    """The path of each coordinate."""
    figure, axes = panels(target.dim, len(chains), figsize=(13, 6.5), sharex=True, sharey=True)
    for column, (label, x) in zip(axes.T, chains.items(), strict=True):
        step = -(-len(x) // 4000)
        for j, axis in enumerate(column):
            for mode in (-10, 0, 10):
                axis.axhline(mode, color=COLORS[3], lw=0.6)
            axis.plot(np.arange(0, len(x), step), x[::step, j], ".", ms=1.5, color=COLORS[0],
                      rasterized=True)
            axis.set_ylabel(f"$x_{j + 1}$")
        column[0].set_title(label, fontsize=10)
        column[-1].set(xlabel="draw", xticks=len(x) // 4 * np.arange(5))
    save(figure, path)


def projection(u, v):
    """The density of two coordinates of the bunch, the same for any two, up to a factor.

    Each component has x_a + s (x_o^2 - 1) ~ N(40 s, 4), x_o ~ N(0, 9) and x_k ~ N(0, 4), where
    (a, o, k) is an order of the coordinates and s is 1 or -1.
    """
    def normal(x, variance):
        return np.exp(-0.5 * x**2 / variance) / np.sqrt(variance)

    def bent(a, o):
        return normal(o, 9) * sum(normal(a + s * (o**2 - 1) - 40 * s, 4) for s in (1, -1))

    o = np.linspace(-15, 15, 3001)
    fine = np.linspace(-200, 200, 2001)
    alone = bent(fine[:, None], o).sum(axis=1) * (o[1] - o[0]) / np.sqrt(2 * np.pi)

    def straight(a, k):
        return np.interp(a, fine, alone) * normal(k, 4)

    return (bent(u, v) + bent(v, u) + straight(u, v) + straight(v, u)
            + 2 * normal(u, 9) * normal(v, 4) + 2 * normal(v, 9) * normal(u, 4))


def plot_banana_bunch(path, target, chains, x0):
    """The projections of the target, of its draws, and of each sampler's draws."""
    figure, axes = panels(3, len(chains) + 1, figsize=(15, 6.7), sharex=True, sharey=True)
    places = np.linspace(*BOUNDS["banana_bunch"][0], 641)
    density = projection(places, places[:, None])
    for k, (row, pair) in enumerate(zip(axes, PAIRS, strict=True)):
        show_density(row[0], (places, places), density)
        row[0].set_ylabel(f"$x_{pair[1] + 1}$ against $x_{pair[0] + 1}$")
        for axis, (label, x) in zip(row[1:], chains.items(), strict=True):
            show_outline(axis, (places, places), density)
            show_points(axis, some(x)[:, pair], None if label == TRUE else x0[list(pair)])
            if k == 0:
                axis.set_title(label, fontsize=10)
    axes[0, 0].set_title("target (figure 10)", fontsize=10)
    axes[0, 0].set(xlim=BOUNDS["banana_bunch"][0], ylim=BOUNDS["banana_bunch"][1])
    for axis in axes.flat:
        axis.set(aspect="equal", xticks=(-50, 0, 50), yticks=(-50, 0, 50))
    save(figure, path, dpi=110)


PLOTS = {"double_banana": plot_double_banana, "basis_vectors": plot_basis_vectors,
         "banana_bunch": plot_banana_bunch}


def section(name, chosen):
    """Make one picture; the section of the results that belongs to it."""
    target, rows, chains = fk.targets.TARGETS[name](), [], {}
    for label in SHOWN[name]:
        result = run(name, target, label, 20 if chosen.quick else 1, chosen.seed)
        chains[label] = result.draws[0]
        rows.append(row_of(name, target, label, chains[label], result.acceptance[0]))
    if name != "basis_vectors":
        exact = {TRUE: target.sample(FEW, seed=chosen.seed)}
        rows.append(row_of(name, target, TRUE, exact[TRUE], None))
        chains = exact | chains
    print(*rows, sep="\n", flush=True)
    PLOTS[name](chosen.folder / f"{name}.png", target, chains, start(target, chosen.seed))
    return f"\n## {TITLES[name]}: {name}\n\nThe picture is {name}.png.\n\n" + table(COLUMNS, rows)


def main():
    chosen = options(__file__, __doc__, quick="a twentieth of the steps")
    text = heading("Figures 6 to 12: single chains", "python -m bench.papers.dharamshi2023.figures",
                   chosen)
    text += (
        "\nOne chain of each sampler, all from the same start, with the steps of tables 1 to 3. "
        "Parts: the halves x_2 > -25 and < -25 of the double banana; axis and sign of the largest "
        "coordinate on the others: least and largest share, and how often consecutive draws are in "
        "different parts. Distinct points: draws that differ from the one before. The pictures "
        f"have at most {FEW:,} draws of a chain, equally spaced, the starts in orange.\n")
    for name in SHOWN:
        text += section(name, chosen)
    write(chosen.folder / "figures.md", text)


if __name__ == "__main__":
    main()
