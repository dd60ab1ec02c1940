"""Make the figures of the pages: python docs/figures/make.py [FOLDER].

`curved.png` is the figure of the README, from the code that stands there, and `calibration.png`
that of docs/testing.md. `choosing.png` shows the tables of docs/choosing.md. `pair.png` and
`proposals.png` are those of docs/plots.md.
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def curved(folder):
    """The figure that the first block of Python in the README makes."""
    code = re.search(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)[1]
    space = {}
    exec(compile(code, "README.md", "exec"), space)
    space["figure"].set_size_inches(5.2, 3.6)
    space["figure"].savefig(folder / "curved.png", dpi=90, pil_kwargs={"optimize": True})


def calibration(folder):
    """The figure that the blocks of Python up to the one that plots make in docs/testing.md."""
    page, space = (ROOT / "docs" / "testing.md").read_text(), {}
    for code in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S):
        exec(compile(code, "docs/testing.md", "exec"), space)
        if "figure" in space:
            break
    space["figure"].savefig(folder / "calibration.png", dpi=90, pil_kwargs={"optimize": True})


def of_plots(number):
    """The figure after the block of Python of that number, from 0, of docs/plots.md."""
    page, space = (ROOT / "docs" / "plots.md").read_text(), {}
    code = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    for text in (code[0], code[number].partition("figure = fk.plots.plot_adaptation")[0]):
        text = text.replace('figure.savefig("pair.png")\n', "")
        exec(compile(text, "docs/plots.md", "exec"), space)
    return space["figure"]


def pair(folder):
    """The first figure of docs/plots.md."""
    figure = of_plots(0)
    figure.set_size_inches(4.6, 4.6)
    small(figure, folder / "pair.png")


def proposals(folder):
    """The figure of proposals in docs/plots.md."""
    small(of_plots(4), folder / "proposals.png")


def small(figure, path):
    """Save a figure with 128 colors, which points in several colors need."""
    from io import BytesIO

    from PIL import Image

    file = BytesIO()
    figure.savefig(file, dpi=90)
    Image.open(file).convert("RGB").quantize(128).save(path, optimize=True)


def tables():
    """[(title, samplers, densities, thousands of evaluations)] of docs/choosing.md; None for -."""
    page = (ROOT / "docs" / "choosing.md").read_text()
    for title in ("With a gradient", "Without a gradient"):
        table = page.partition(f"\n## {title}\n")[2].partition("\n| | ")[2].split("\n\n")[0]
        head, _, *body = [line.strip("| ").split(" | ") for line in table.splitlines()]
        body = [row for row in body if ", d = " in row[0]]
        values = [[None if cell == "-" else float(cell.strip("*")) for cell in row[1:]]
                  for row in body]
        yield title, [name.replace("`", "") for name in head], [row[0] for row in body], values


def choosing(folder):
    """A point for each sampler and density; at the right edge those that did not get there."""
    from matplotlib.figure import Figure

    from fastkam.plots.style import COLORS

    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    edge = 60_000
    for axes, (title, samplers, densities, values) in zip(
        figure.subplots(1, 2), tables(), strict=True
    ):
        for k, sampler in enumerate(samplers):
            row = [edge if values[i][k] is None else values[i][k] for i in range(len(densities))]
            height = [-i - 0.09 * (k - 3) for i in range(len(densities))]
            axes.plot(row, height, "D" if k == 0 else "o", label=sampler, color=COLORS[k],
                      ms=5.5 if k == 0 else 4, zorder=3 if k == 0 else 2, clip_on=False)
        axes.set(xscale="log", xlim=(5, edge))
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("thousands of evaluations until done", fontsize=8)
        axes.set_yticks([-i for i in range(len(densities))], densities, fontsize=7)
        axes.set_xticks([10, 100, 1000, 10_000, edge],
                        ["10", "100", "1000", "10 000", "not\nreached"], fontsize=7)
        axes.minorticks_off()
        axes.grid(axis="y", lw=0.3)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.legend(fontsize=6.5, loc="upper right", bbox_to_anchor=(1.05, -0.2), ncols=4,
                    frameon=False, columnspacing=1.0)
    figure.savefig(folder / "choosing.png", dpi=90, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    curved(folder)
    choosing(folder)
    calibration(folder)
    pair(folder)
    proposals(folder)
