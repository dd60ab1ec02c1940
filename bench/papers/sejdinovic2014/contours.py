"""Figures 1 and 2 of Sejdinovic et al. (2014): does KAM's proposal follow the target's bends?

    python -m bench.papers.sejdinovic2014.contours [--quick]

Three targets of two dimensions that lie along a curve: the banana B(0.03, 100), the flower
F(10, 6, 6, 1) and a ring. The subsample is 1000 exact draws, nu what one chain learns, the kernel
lengths are those of the authors' programs, and a shorter one for the flower. At points of the
curve: the proposal's ellipse of 95 %, and the angle between its long axis and the curve, beside
that of the target's covariance, which is all that AM knows. On top a draw of g(x) =
sum_i beta_i (k(x, z_i) - mean_j k(x, z_j)), whose gradients shape the proposal.
"""

import numpy as np

import fastkam as fk
from bench.papers.record import heading, options, table, write
from bench.papers.sejdinovic2014.figure5 import samplers

V, B = 100.0, 0.03
N, NOISE, CHI2 = 1000, 0.2, -2 * np.log(0.05)       # 95 % of a Gaussian in two dimensions
COLUMNS = ["target", "kernel length", "nu", "acceptance", "long axis, sd", "short axis, sd",
           "KAM's angle to the curve", "AM's angle to the curve"]


def bend(t):
    """The banana's curve at x_1 = t and its direction: two arrays (n, 2)."""
    return np.c_[t, B * (t**2 - V)], np.c_[np.ones_like(t), 2 * B * t]


def petals(r0, A, w):
    """The function of an angle that gives the flower's curve and its direction."""

    def curve(phi):
        r, slope = r0 + A * np.cos(w * phi), -A * w * np.sin(w * phi)
        c, s = np.cos(phi), np.sin(phi)
        return np.c_[r * c, r * s], np.c_[slope * c - r * s, slope * s + r * c]

    return curve


# target, kernel length, curve, parameters of its points
FLOWER = fk.targets.Flower(r0=10.0, A=6.0, w=6, s2=1.0, d=2)
ROUND = 2 * np.pi * np.arange(20) / 20
TARGETS = {
    "banana": (fk.targets.banana(b=B, V=V, d=2), 5.0, bend, np.linspace(-16, 16, 9)),
    "flower": (FLOWER, 5.0, petals(10, 6, 6), ROUND),
    "flower, short length": (FLOWER, 1.5, petals(10, 6, 6), ROUND),
    "ring": (fk.targets.ring(), 1.0, petals(3.5, 0, 1), ROUND[::2]),
}


def learned(target, length, tune, seed):
    """nu of a chain of KAM after its warm-up, and its acceptance afterwards."""
    sampler, schedule = samplers(length, np.ones(2), max(2 * N, tune))["KAM"]
    result = fk.sample(target, target.sample(1, seed=seed)[0], sampler=sampler, schedule=schedule,
                       draws=tune, tune=tune, chains=1, seed=seed, progress=False, threads=1,
                       search=False)
    return np.exp(float(result.states[0]["kernel.log_nu"])), result.acceptance[0]


def angles(covariances, directions):
    """Degrees between the long axis of each covariance and each direction, (n,)."""
    axes = np.linalg.eigh(covariances)[1][..., -1]
    cosines = (axes * directions).sum(axis=-1) / np.linalg.norm(directions, axis=-1)
    return np.degrees(np.arccos(np.minimum(np.abs(cosines), 1)))


def features(points, z, length, seed):
    """g at the points (m, 2) for beta ~ N(0, I): (m,)."""
    k = np.exp(-((points[:, None] - z) ** 2).sum(axis=-1) / (2 * length**2))
    return (k - k.mean(axis=1, keepdims=True)) @ np.random.default_rng(seed).standard_normal(len(z))


def middle(values):
    """The median and the range."""
    return f"{np.median(values):.2g} ({values.min():.2g} to {values.max():.2g})"


def plot(path, shown):
    """Above a draw of g, below the ellipses of every other point on the targets."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(shown), figsize=(14, 7), layout="constrained")
    turn = np.linspace(0, 2 * np.pi, 100)
    circle = np.sqrt(CHI2) * np.c_[np.cos(turn), np.sin(turn)]
    for k, (name, (length, z, points, covariances)) in enumerate(shown.items()):
        low, high = z.min(axis=0) - length / 2, z.max(axis=0) + length / 2
        grid = np.meshgrid(*(np.linspace(a, b, 60) for a, b in zip(low, high, strict=True)))
        g = features(np.c_[grid[0].ravel(), grid[1].ravel()], z, length, k).reshape(60, 60)
        axes[0, k].pcolormesh(*grid, g, cmap="gray", rasterized=True)
        axes[0, k].quiver(*(x[::5, ::5] for x in grid),
                          *(x[::5, ::5] for x in np.gradient(g)[::-1]), color="C3")
        axes[0, k].set(title=f"{name}: a draw of g", xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        axes[1, k].scatter(*z.T, s=1)
        for y, R in zip(points[::2], covariances[::2], strict=True):
            axes[1, k].plot(*(y[:, None] + np.linalg.cholesky(R) @ circle.T), "C3", lw=1)
        axes[1, k].set(title=f"{name}: proposals, 95 %", aspect="equal")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=60)
    print(f"written to {path}")


def main():
    chosen = options(__file__, __doc__, quick="nu from a tenth of the steps")
    tune = 2000 if chosen.quick else 20_000
    rows, shown = [], {}
    for name, (target, length, curve, at) in TARGETS.items():
        nu, acceptance = learned(target, length, tune, chosen.seed)
        z = target.sample(N, seed=chosen.seed)
        points, directions = curve(at)
        kernel = fk.kernels.Gaussian(length)
        R = np.array([fk.kernels.proposal_covariance(y, z, kernel, step_size=nu, noise=NOISE)
                      for y in points])
        deviations = np.sqrt(np.linalg.eigvalsh(R))
        shown[name] = length, z, points, R
        rows.append([name, f"{length:g}", f"{nu:.2g}", f"{acceptance:.2f}",
                     middle(deviations[:, 1]), middle(deviations[:, 0]),
                     middle(angles(R, directions)), middle(angles(np.cov(z.T), directions))])
    text = heading("Sejdinovic et al. (2014), figures 1 and 2",
                   "python -m bench.papers.sejdinovic2014.contours", chosen)
    text += (f"\nnu learned in {tune:,} steps, and the acceptance of as many steps after them; "
             "axes and angles (in degrees) as medians and ranges over the points of the curve. "
             "A direction that knows nothing has a median of 45.\n\n") + table(COLUMNS, rows)
    plot(chosen.folder / "contours.png", shown)
    write(chosen.folder / "contours.md", text)


if __name__ == "__main__":
    main()
