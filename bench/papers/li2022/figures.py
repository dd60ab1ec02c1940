"""Figures 10 to 14: effective sample sizes, densities and marginals of draws, and other kernels.

    python -m bench.papers.li2022.figures [--quick]

Samplers, targets and numbers of evaluations are those of the comparison in `__main__`. Figure 11:
the ESS of growing parts of ten chains against CPU seconds, Exploration included, on the two-mode
target. Figures 10, 12 and 14: the draws of the first of these chains, and of one on the five
components. Figure 13: the divergence of cKAM and KAM with several kernels, half as many evaluations
as elsewhere; the paper, whose kernels are not stated, has cKAM alone. ESS is the multivariate one
of the authors' program, from batch means. The full setting takes some four minutes of CPU, the
quick one 20 seconds.
"""

import numpy as np
from scipy.special import ndtr

import fastkam as fk
from bench.papers.li2022.__main__ import BOUNDS, CHAINS, EVALUATIONS, middle, run, samplers
from bench.papers.li2022.released import falling
from bench.papers.pictures import COLORS, panels, save, style
from bench.papers.record import heading, options, table, write
from fastkam.diagnostics import symmetric_kl
from fastkam.schedules import Finite, Perpetual, Power

SHOWN = ("RW", "AM", "RBAM", "GAM", "KAM, paper", "cKAM, paper", "cKAM, as released",
         "cKAM, own noise, exact", "parallel tempering")
FRACTIONS = np.geomspace(0.01, 1, 10)
KERNELS = {
    "Matern, order 4, length 2": fk.kernels.Matern(2.0, 4.0),
    "Matern, order 4, length 0.5": fk.kernels.Matern(0.5, 4.0),
    "Matern, order 4, length 8": fk.kernels.Matern(8.0, 4.0),
    "Matern, order 1.5, length 2": fk.kernels.Matern(2.0, 1.5),
    "Gaussian, length 2": fk.kernels.Gaussian(2.0),
    "linear": fk.kernels.Linear(),
}
FORMS = ("cKAM, programs' noise", "cKAM, own noise, exact", "KAM, programs' noise")


def multivariate_ess(x):
    """n (det S / det B)^(1/d) of draws x (n, d): S their covariance, B that of batch means.

    Vats, D., Flegal, J. M. and Jones, G. L. (2019). Multivariate output analysis for Markov chain
    Monte Carlo. Biometrika 106, 321-337.
    """
    n, d = x.shape
    b = int(np.sqrt(n))
    a = n // b
    means = x[:a * b].reshape(a, b, d).mean(axis=1)
    ratio = np.linalg.det(np.cov(x.T)) / np.linalg.det(b * np.cov(means.T))
    return n * ratio ** (1 / d)


def runs(name, n, seed):
    """Label -> (draws (chains, .., d), evaluations before them, CPU seconds of a chain)."""
    found = {}
    for label, spec in samplers(name, n).items():
        if label in SHOWN:
            x, seconds, spent = run(name, *spec, n, seed)
            found[label] = x, spent, seconds
    return found


def parts(x):
    """Growing parts of a chain."""
    return [x[:max(30, int(f * len(x)))] for f in FRACTIONS]


def left(x):
    """The share of the left mode, in percent."""
    return 100 * (x[..., 0] < 0).mean(axis=-1)


def ess_against_time(path, found, n):
    """Figure 11; the section of the results."""
    figure, ((axes,),) = panels(1, 1, figsize=(7.5, 4.5))
    rows = []
    for k, (label, (x, spent, seconds)) in enumerate(found.items()):
        ess = np.array([[multivariate_ess(part) for part in parts(chain)] for chain in x])
        at = seconds * (spent + FRACTIONS * (n - spent)) / n
        axes.loglog(at, np.median(ess, axis=0), label=label, **style(k))
        rows.append([label, middle(ess[:, -1]), f"{seconds:.3g}",
                     f"{np.median(ess[:, -1]) / seconds:,.0f}", middle(left(x))])
    axes.set(xlabel="CPU seconds", ylabel="multivariate ESS")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    save(figure, path)
    columns = ["sampler", "ESS at the end", "CPU seconds", "ESS a second", "left mode, %"]
    return (
        f"\n## Figure 11: ESS on the two-mode target\n\nThe picture is {path.name}. Medians and "
        f"quartiles of {CHAINS} chains of {n:,} evaluations, thinned to at most 100,000 draws; "
        "the truth of the last column is 50.\n\n") + table(columns, rows)


def densities(path, found, target):
    """Figure 12: histograms of the draws of one chain, beside the density."""
    figure, axes = panels(2, 5, figsize=(14, 4.7), sharex=True, sharey=True)
    box = BOUNDS["two_mode"]
    edges = [np.linspace(low, high, 5 * (high - low) + 1) for low, high in box]
    centers = [0.5 * (e[1:] + e[:-1]) for e in edges]
    points = np.stack(np.meshgrid(*centers), axis=-1)
    density = np.exp(target.logp(points.reshape(-1, 2))).reshape(points.shape[:2])
    images = {"target": density / density.sum()}
    for label, (x, _, _) in found.items():
        counts = np.histogram2d(*x[0].T, bins=edges)[0].T
        images[label] = counts / len(x[0])
    most = images["target"].max()
    for axis, (label, image) in zip(axes.flat, images.items(), strict=True):
        axis.pcolormesh(*edges, np.log(np.maximum(image / most, 1e-3)), cmap="cividis", vmin=-7,
                        vmax=1, rasterized=True)
        axis.set_title(label, fontsize=10)
        axis.set(aspect="equal", xticks=(-10, 0, 10), yticks=(-10, 0, 10))
    save(figure, path)


def marginal_cdf(name, t):
    """The distribution function of the first coordinate."""
    if name == "two_mode":
        return 0.5 * ndtr((t + 8) / np.sqrt(0.5)) + 0.5 * ndtr((t - 8) / np.sqrt(2))
    return np.mean([ndtr((t - 2.5 * (i - 1)) / i**0.25) for i in range(1, 6)], axis=0)


def deviation(name, x):
    """The largest difference between the distribution functions of draws x (n,) and target."""
    return np.abs(marginal_cdf(name, np.sort(x)) - (np.arange(len(x)) + 0.5) / len(x)).max()


def marginals(path, every):
    """Figures 10 and 14: the first coordinate of one chain; their sections of the results."""
    figure, axes = panels(2, len(SHOWN), figsize=(16, 4.6), sharey="row", sharex="row")
    text = ""
    for row, number, (name, found) in zip(axes, (10, 14), every.items(), strict=True):
        low, high = BOUNDS[name][0]
        edges = np.linspace(low, high, 101)
        centers, width = 0.5 * (edges[1:] + edges[:-1]), edges[1] - edges[0]
        exact, rows = np.diff(marginal_cdf(name, edges)) / width, []
        for axis, (label, (x, _, _)) in zip(row, found.items(), strict=True):
            first = x[0, :, 0]
            axis.stairs(np.histogram(first, edges)[0] / len(first) / width, edges, fill=True,
                        color=COLORS[5])
            axis.plot(centers, exact, color=COLORS[6], lw=0.9)
            axis.set_ylim(0, (2.2 if name == "two_mode" else 1.6) * exact.max())
            share = 100 * (first < (0 if name == "two_mode" else 5)).mean()
            rows.append([label, f"{share:.1f}", f"{deviation(name, first):.3f}"])
        row[0].set_ylabel("$x_1$, " + name.replace("_", " "), fontsize=10)
        share = "x_1 < 0, %" if name == "two_mode" else "x_1 < 5, %"
        text += (
            f"\n## Figure {number}: the marginal of x_1, {name}\n\nThe picture is {path.name}, the "
            f"line the truth, of which {100 * marginal_cdf(name, 0 if number == 10 else 5):.1f} % "
            "is in the second column. Deviation: the largest difference between the distribution "
            "functions.\n\n") + table(["sampler", share, "deviation"], rows)
    for axis, label in zip(axes[0], SHOWN, strict=True):
        axis.set_title(label.replace(", ", ",\n", 1), fontsize=9)
    save(figure, path)
    return text


def forms(kernel, n):
    """Form -> the arguments of `run`, for one kernel."""
    cycles = {"metric": "identity", "cycle": 1000, "exploration_fraction": 0.4, "subsample": 50,
              "kernel": kernel}
    ckam = fk.CyclicalKernelAdaptiveMetropolis
    noisy = ckam(gamma=falling(4.0, 1.0, 0.55, 1000), **cycles)
    kam = fk.KernelAdaptiveMetropolis(
        metric="identity", kernel=kernel, subsample=30, step_size=2 * 2.38 / np.sqrt(2),
        gamma=falling(4.0, 1.0, 0.55, n))
    return dict(zip(FORMS, (
        (noisy, Perpetual(), 0.6, 1), (ckam(**cycles), Finite(), 0.6, 1),
        (kam, Perpetual(gain=Power(k=0.75, offset=0.0)), 1, 1)), strict=True))


def kernels(path, target, n, seed):
    """Figure 13; the section of the results."""
    figure, axes = panels(1, len(FORMS), figsize=(14, 4.3), sharey=True)
    rows = []
    for k, (label, kernel) in enumerate(KERNELS.items()):
        row = [label]
        for axis, (form, spec) in zip(axes[0], forms(kernel, n).items(), strict=True):
            x, seconds, spent = run("two_mode", *spec, n, seed)
            kl = np.array([[symmetric_kl(part, target.logp, BOUNDS["two_mode"])
                            for part in parts(chain)] for chain in x])
            at = seconds * (spent + FRACTIONS * (n - spent)) / n
            axis.loglog(at, np.median(kl, axis=0), label=label, **style(k))
            axis.set(title=form, xlabel="CPU seconds")
            axis.minorticks_off()
            row += [middle(kl[:, -1]), f"{seconds:.2g}"]
        rows.append(row)
        print(*row, sep=" | ", flush=True)
    axes[0, 0].set_ylabel("symmetric KL")
    axes[0, -1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    save(figure, path)
    columns = ["kernel", *(f"{form}{end}" for form in FORMS for end in (": KL", ": CPU seconds"))]
    return (
        f"\n## Figure 13: kernels, on the two-mode target\n\nThe picture is {path.name}. KL at the "
        f"end, medians and quartiles of {CHAINS} chains of {n:,} evaluations. Linear: the kernel "
        "whose proposal follows the covariance of the subsample.\n\n") + table(columns, rows)


def main():
    chosen = options(__file__, __doc__, quick="a twentieth of the evaluations")
    shorter = 20 if chosen.quick else 1
    text = heading("Figures 10 to 14", "python -m bench.papers.li2022.figures", chosen)
    counts = {name: EVALUATIONS[name] // shorter for name in ("two_mode", "five_component")}
    every = {name: runs(name, n, chosen.seed) for name, n in counts.items()}
    target, n = fk.targets.two_mode(), counts["two_mode"]
    text += ess_against_time(chosen.folder / "figure11.png", every["two_mode"], n)
    densities(chosen.folder / "figure12.png", every["two_mode"], target)
    text += marginals(chosen.folder / "figures10_14.png", every)
    text += kernels(chosen.folder / "figure13.png", target, n // 2, chosen.seed)
    write(chosen.folder / "figures.md", text)


if __name__ == "__main__":
    main()
