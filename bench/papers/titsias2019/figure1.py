"""Figure 1: the proposals that gradient-based adaptation learns on two correlated Gaussians.

    python -m bench.papers.titsias2019.figure1 [--quick]

Ten chains from 0. In two dimensions, N(0, [[1, .99], [.99, 1]]), 20 000 steps of warm-up and as
many draws; gadRWM with the step 5e-4 of the authors' programs, and with the 5e-5 of the paper's
text. On the Gaussian process in 51 dimensions, gadMALAf with 200 000 steps of warm-up, and the
programs' 1e-3. The fit is the condition number of Sigma^-1 C, C the learned covariance: 1 where
the proposal has the target's shape. The autocorrelations of the first coordinate are in the
picture only; AM is not in the paper's figure, and "as released" it is in Python, so that its
seconds do not compare with the others'.
"""

import time

import numpy as np

import fastkam as fk
from bench.papers.record import heading, options, table, write
from bench.papers.titsias2019 import released
from fastkam.schedules import Finite, constant

CHAINS, STEPS, LONG, LAGS = 10, 20_000, 200_000, 100
COLUMNS = ["sampler", "acceptance", "beta", "size of the proposal", "fit", "min ESS",
           "CPU seconds", "paper: beta"]


def samplers():
    """Name -> (sampler, schedule, the paper's beta)."""
    bold, timid = Finite(gain=constant(5e-4)), Finite(gain=constant(5e-5))
    return {
        "gadRWM, 0.25": (fk.GradientAdaptiveRandomWalk(), bold, "7.4"),
        "gadRWM, 0.4": (fk.GradientAdaptiveRandomWalk(target_acceptance=0.4), bold, "2.2"),
        "gadMALAf, 0.55": (fk.GradientAdaptiveMALA(), bold, ""),
        "AM, as released": (released.AdaptiveMetropolis(), Finite(), ""),
        "gadRWM, 0.25, 5e-5": (fk.GradientAdaptiveRandomWalk(), timid, ""),
        "AM": (fk.CholeskyAdaptiveMetropolis(), Finite(), ""),
    }


def learned(result):
    """The covariance of the proposal of each chain, (chains, d, d)."""
    L = np.array([np.tril(state["kernel.L"]) for state in result.states])
    delta = np.array([state.get("kernel.delta", 1.0) for state in result.states])
    return delta.reshape(-1, 1, 1) * (L @ L.transpose(0, 2, 1))


def autocorrelation(x, lags):
    """Mean over the chains of rho_0, ..., rho_lags of x (chains, draws)."""
    x = x - x.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(x, 2 * x.shape[1])) ** 2
    products = np.fft.irfft(power)[:, :lags + 1]
    return (products / products[:, :1]).mean(axis=0)


def measure(label, target, spec, tune, draws, seed):
    """The row of one sampler, its learned covariances, and its autocorrelations."""
    sampler, schedule, known = spec
    begun = time.process_time()
    result = fk.sample(target, np.zeros(target.dim), sampler=sampler, schedule=schedule,
                       draws=draws, tune=tune, chains=CHAINS, seed=seed, keep_warmup=False,
                       progress=False, threads=1, search=False)
    seconds = (time.process_time() - begun) / CHAINS
    cov = learned(result)
    ratios = np.linalg.eigvals(np.linalg.solve(target.cov, cov)).real
    size = np.prod(ratios, axis=1) ** (1 / target.dim)
    betas = [state["kernel.beta"] for state in result.states if "kernel.beta" in state]
    least, _, _ = fk.diagnostics.ess_range(result.draws)
    row = [label, f"{result.acceptance.mean():.3f}", spread(betas) if betas else "", spread(size),
           spread(ratios.max(axis=1) / ratios.min(axis=1)), spread(least),
           f"{seconds:.2g}", known]
    return row, cov, autocorrelation(result.draws[:, :, 0], LAGS)


def spread(values):
    """The median, and the least and largest over the chains."""
    return f"{np.median(values):.3g} ({np.min(values):.3g} to {np.max(values):.3g})"


def ellipse(cov):
    """The points two standard deviations from 0, (2, 100)."""
    angle = np.linspace(0, 2 * np.pi, 100)
    return 2 * np.linalg.cholesky(cov) @ [np.cos(angle), np.sin(angle)]


def plot(path, plane, found, process, cov):
    """Ellipses of target and proposals, autocorrelations, and the two matrices."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(12, 6), layout="constrained")
    shown = list(found)[:4]
    for axis, label in zip(axes.flat, shown, strict=False):
        for each in found[label][0]:
            axis.plot(*ellipse(each), color="C0", lw=0.6)
        axis.plot(*ellipse(plane.cov), color="C2", lw=2)
        axis.set_title(label)
    for label in shown:
        axes[1, 0].plot(found[label][1], label=label)
    axes[1, 0].set(title="autocorrelation of $x_1$", xlabel="lag")
    axes[1, 0].legend(fontsize=7)
    largest = process.cov.max()
    learned_matrix = cov.mean(axis=0)
    learned_matrix *= np.trace(process.cov) / np.trace(learned_matrix)
    titles = ("51 dimensions: target", "gadMALAf, of the same trace", "difference")
    matrices = (process.cov, learned_matrix, learned_matrix - process.cov)
    for axis, title, matrix in zip(axes[1, 1:], titles, matrices, strict=True):
        image = axis.imshow(matrix, vmin=-largest, vmax=largest, cmap="RdBu_r")
        axis.set(title=title, xticks=[], yticks=[])
    figure.colorbar(image, ax=axes[1, 1:], shrink=0.8)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=70)
    print(f"written to {path}")


def main():
    chosen = options(__file__, __doc__, quick="a tenth of the steps")
    steps, long = (STEPS // 10, LONG // 10) if chosen.quick else (STEPS, LONG)
    plane, process = fk.targets.correlated_gaussian(), fk.targets.gp_gaussian()
    rows, found = [], {}
    for label, spec in samplers().items():
        row, *found[label] = measure(label, plane, spec, steps, steps, chosen.seed)
        rows.append(row)
        print(*row, sep=" | ", flush=True)
    spec = (fk.GradientAdaptiveMALA(), Finite(gain=constant(1e-3)), "")
    row, cov, _ = measure("gadMALAf, 0.55, 51 dimensions", process, spec, long, steps, chosen.seed)
    rows.append(row)
    text = heading("Figure 1: learned proposals", "python -m bench.papers.titsias2019.figure1",
                   chosen)
    text += (
        f"\n{CHAINS} chains; {steps:,} steps of warm-up, of the last row {long:,}, and {steps:,} "
        "draws. Medians, in brackets the least and largest of the chains. Size: the geometric mean "
        "of the eigenvalues of Sigma^-1 C, C the covariance of the proposal (for gadMALAf that of "
        "its noise); fit: the ratio of the largest to the least. ESS by the paper's estimator. "
        "The picture is figure1.png: two standard deviations of the target (green) and of the "
        "proposals (blue, one a chain).\n\n") + table(COLUMNS, rows)
    plot(chosen.folder / "figure1.png", plane, found, process, cov)
    write(chosen.folder / "figure1.md", text)


if __name__ == "__main__":
    main()
