"""Pictures of the experiments: colors that everybody can tell apart, and small files."""

from io import BytesIO

# of Okabe and Ito, the yellow one, which is pale on white, left out
COLORS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#8A8A8A")
STYLES = ("-", "--", ":", "-.")


def panels(rows, columns, **options):
    """A figure and its axes (rows, columns), without a window."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, layout="constrained", squeeze=False, **options)


def style(k):
    """The look of line k: those of the same color differ in their dashes."""
    return {"color": COLORS[k % len(COLORS)], "linestyle": STYLES[k // len(COLORS) % len(STYLES)]}


def save(figure, path, dpi=85):
    """Keep the figure in the file, with 128 colors: a quarter of the size."""
    from PIL import Image

    file = BytesIO()
    figure.savefig(file, dpi=dpi)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.open(file).convert("RGB").quantize(128).save(path, optimize=True)
    print(f"written to {path}")
