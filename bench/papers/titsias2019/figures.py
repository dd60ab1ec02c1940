"""Figures 2 to 6: traces of single chains, and the scales that they learn.

    python -m bench.papers.titsias2019.figures [--quick]

One chain of each sampler with the settings of tables 1 to 7, where NUTS has 500 steps of warm-up,
as in the paper. Figure 2: the coordinate x_100 of Neal's Gaussian, and the diagonal of the learned
L against the standard deviations of the target. Figures 3 to 6: the log density on Neal's Gaussian,
German credit, Caravan and the digits. The data are read from the folder FASTKAM_DATA. With
mnist.npz in it (see `digits`) figure 6 is of the paper's data, and NUTS has 200 draws there, since
the paper's 20 000 took a day; without it, of the small images that come with scikit-learn. The full
setting takes some two minutes of CPU, most of them on Caravan; the quick one ten seconds.
"""

import numpy as np

import fastkam as fk
from bench.papers.pictures import COLORS, panels, save
from bench.papers.record import heading, options, table, write
from bench.papers.titsias2019 import digits, released
from bench.papers.titsias2019.__main__ import STEPS, samplers, target_of
from fastkam.schedules import Finite

FEW = 200       # draws of NUTS on MNIST
NEAL = ("gadMALAf", "gadMALAe", "gadRWM", "AM, as released", "AM, diagonal", "HMC, 20 steps")
NUMBER = {"neal": 3, "german": 4, "caravan": 5, "digits": 6}
COLUMNS = ["sampler", "acceptance", "mean log density", "standard deviation",
           "ESS of the log density"]
LEARNED = ["sampler", "ESS of x_100", "standard deviation of x_100", "deviation of the diagonal"]


def specs(name):
    """Name -> (sampler, schedule, warm-up, draws), those that the paper has."""
    found = {}
    for label, (sampler, schedule, known) in samplers(name).items():
        if known:
            found[label] = sampler, schedule, 500 if label == "NUTS" else STEPS, STEPS
        if name == "neal" and known == "AM":
            diagonal = released.DiagonalAdaptiveMetropolis()
            found["AM, diagonal"] = diagonal, Finite(), STEPS, STEPS
    return found


def specs_of_digits(d, mnist):
    """The same for the digits."""
    hmc = fk.HMC(metric="fixed", n_steps=20, jitter=0.0, target_acceptance=0.7)
    found = {}
    for label, (sampler, schedule, tune) in digits.samplers(d, mnist).items():
        if label == "NUTS":
            found["HMC, 20 steps"] = hmc, Finite(), digits.DRAWS, digits.DRAWS
        draws = FEW if label == "NUTS" and mnist else digits.DRAWS
        found[label] = sampler, schedule, tune, draws
    return found


def run(target, spec, shorter, seed):
    """The result of one chain from N(0, I)."""
    sampler, schedule, tune, draws = spec
    x0 = np.random.default_rng(seed).standard_normal(target.dim)
    return fk.sample(target, x0, sampler=sampler, schedule=schedule,
                     draws=max(50, draws // shorter), tune=max(50, tune // shorter), chains=1,
                     seed=seed, keep_warmup=False, progress=False, threads=1,
                     check_gradient=False, search=False)


def row_of(label, result):
    """Numbers for what the picture of the log density shows."""
    lp = result.stats["lp"][0]
    ess = fk.diagnostics.ess_geyer(lp[:, None])[0]
    return [label, f"{result.acceptance[0]:.3f}", f"{lp.mean():.1f}", f"{lp.std(ddof=1):.2f}",
            f"{ess:,.0f}"]


def ratios(result, scales):
    """The diagonal of L over the standard deviations, or None where no L is learned."""
    L = np.asarray(result.states[0].get("kernel.L", ()))
    return np.diag(L) / scales if L.size else None


def row_of_neal(label, result, scales):
    """Numbers for what figure 2 shows."""
    x, found = result.draws[0, :, -1:], ratios(result, scales)
    off = "" if found is None else f"{np.log(found).std():.3f}"
    return [label, f"{fk.diagnostics.ess_geyer(x)[0]:,.0f}", f"{x.std(ddof=1):.3f}", off]


def plot_neal(path, results, scales):
    """Figure 2: traces of x_100, and below them the diagonal of L."""
    figure, axes = panels(2, len(NEAL), figsize=(14, 5.2), sharey="row", sharex="row")
    for column, label in zip(axes.T, NEAL, strict=True):
        x = results[label].draws[0, :, -1]
        column[0].plot(np.arange(0, len(x), 10), x[::10], lw=0.4, color=COLORS[0], rasterized=True)
        column[0].set_title(label, fontsize=10)
        column[0].set(xlabel="draw", xticks=len(x) // 2 * np.arange(3), ylim=(-4, 4))
        found = ratios(results[label], scales)
        if found is None:
            column[1].set_axis_off()
            continue
        middle = np.exp(np.log(found).mean())
        column[1].plot(scales, found / middle * scales, ".", ms=3, color=COLORS[0])
        column[1].plot(scales, scales, color=COLORS[3], lw=1)
        column[1].set(xlabel="$s_i$", xlim=(0, 1.05), ylim=(0, 1.6))
    axes[0, 0].set_ylabel("$x_{100}$")
    axes[1, 0].set_ylabel("$L_{ii}$, scaled to the target")
    save(figure, path)


def plot_log_density(path, results, name):
    """The traces of all samplers within the range of NUTS, whose mean is the line."""
    count = -(-len(results) // 2)
    figure, axes = panels(2, count, figsize=(2.8 * count, 5.2), sharey=True)
    reference = results["NUTS"].stats["lp"][0]
    middle, spread = reference.mean(), reference.std()
    for axis, (label, result) in zip(axes.flat, results.items(), strict=False):
        lp = result.stats["lp"][0]
        step = max(1, len(lp) // 4000)
        axis.plot(np.arange(0, len(lp), step), lp[::step], lw=0.4, color=COLORS[0],
                  rasterized=True)
        axis.axhline(middle, color=COLORS[3], lw=1)
        axis.set_title(label, fontsize=10)
        axis.set(xticks=len(lp) // 2 * np.arange(3),
                 ylim=(middle - 6 * spread, middle + 5 * spread))
    for axis in axes.flat[len(results):]:
        axis.set_axis_off()
    figure.supxlabel("draw", fontsize=10)
    figure.supylabel(f"log density, {name}", fontsize=10)
    save(figure, path)


def section(name, target, every, title, chosen):
    """Run the samplers; the section of the results, and the results of the runs."""
    shorter, results = 40 if chosen.quick else 1, {}
    for label, spec in every.items():
        results[label] = run(target, spec, shorter, chosen.seed)
        print(name, *row_of(label, results[label]), sep=" | ", flush=True)
    number = NUMBER[name]
    plot_log_density(chosen.folder / f"figure{number}.png", results, title)
    rows = [row_of(label, result) for label, result in results.items()]
    text = f"\n## Figure {number}: {title}\n\nThe picture is figure{number}.png.\n\n"
    return text + table(COLUMNS, rows), results


def main():
    chosen = options(__file__, __doc__, quick="a fortieth of the steps")
    X, six, source = digits.images()    # first: it may be missing
    mnist = source == "MNIST"
    if not mnist:
        print(f"figure 6 is of {source}: there is no mnist.npz in the folder FASTKAM_DATA")
    text = heading("Figures 2 to 6: traces", "python -m bench.papers.titsias2019.figures", chosen)
    text += (
        "\nOne chain of each sampler from N(0, I), with the settings of tables 1 to 7, NUTS with "
        "500 steps of warm-up. ESS by the paper's estimator. The lines in the pictures of the log "
        "density are the means of NUTS. Deviation of the diagonal: the standard deviation of "
        "log(L_ii / s_i) over the coordinates, 0 where the learned scales are proportional to "
        "those of the target; figure 2 shows L_ii divided by the geometric mean of these ratios.\n")
    for name in ("neal", "german", "caravan"):
        target = target_of(name)
        title = "Neal's Gaussian" if name == "neal" else name.capitalize()
        more, results = section(name, target, specs(name), title, chosen)
        if name == "neal":
            scales = np.sqrt(np.diag(target.cov))
            plot_neal(chosen.folder / "figure2.png", results, scales)
            text += "\n## Figure 2: Neal's Gaussian\n\nThe picture is figure2.png.\n\n" + table(
                LEARNED, [row_of_neal(label, results[label], scales) for label in NEAL])
        text += more
    pixels = np.column_stack([X.reshape(len(X), -1), np.ones(len(X))])
    target = fk.targets.LogisticRegression(pixels, six.astype(int))
    more, _ = section("digits", target, specs_of_digits(target.dim, mnist),
                      f"5 against 6, {source}", chosen)
    write(chosen.folder / "figures.md", text + more)


if __name__ == "__main__":
    main()
