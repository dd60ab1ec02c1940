"""The numbers of docs/replication-sejdinovic2014.md."""

from claims import Cell, Stated, Text, cells

CONTOURS, GLASS, SECOND, LONGER = (
    f"sejdinovic2014/{name}" for name in ("contours", "glass", "glass-seed-2", "figure4"))
RUNS = (GLASS, SECOND)
TITLES = ("B(0.03, 100), 40000", "B(0.1, 100), 80000", "F(10, 6, 6, 1), 120000")
TARGETS = [f"sejdinovic2014/figure5#{title}" for title in TITLES]
STEPS, CHAINS = (40_000, 80_000, 120_000), 20
DEVIATION, NORM, SECONDS = (
    "mean quantile deviation, %", "norm of mean", "CPU seconds, all chains")
ANGLE, MEANS, MMD = "KAM's angle to the curve", "difference of means", "MMD² / 1000"
PAPER = ["KAM", "AM-LS", "AM", "SM"]
PROGRAM = "program: constants of the experiments' scripts"


def on(files, rows, column, nths=(0,)):
    """The numbers of one column: by row, of each by target or run."""
    rows = [rows] if isinstance(rows, str) else rows
    return [Cell(file, row, column, n) for row in rows for file in files for n in nths]


def times_the_steps(file):
    """Return the ratio of CPU seconds, as in bench/papers/sejdinovic2014/figure5.py."""
    return lambda: round(Cell(file, "KAM", SECONDS)() / Cell(file, "AM", SECONDS)())


def ratio_to_kam(file):
    return lambda: Cell(file, "AM", DEVIATION)() / Cell(file, "KAM", DEVIATION)()


def standard_errors_from_am(file):
    return lambda: abs(less(file, "AM")()) / (less(file, "AM", interval=True)() / 1.28)


def less(file, label, interval=False):
    """KAM's deviation less that of the other at the foot of a section, or its interval."""
    first, second = r"[+-]\d+\.\d+", r"\d+\.\d+"
    pattern = rf"{first} ± ({second})" if interval else rf"({first}) ± {second}"
    return Text(file, rf"(?:: |, ){label} {pattern}")


def intervals_at_equal_time():
    """Return on how many intervals KAM is worse at equal time, against SM and AM."""
    labels = [f"{name}, KAM's time" for name in ("SM", "AM")]
    return [less(file, label)() / less(file, label, interval=True)()
            for file in TARGETS for label in labels]


def hours(steps):
    """Return the CPU time of a number of steps on glass, computed from the longer chains."""
    chain = [cell() for cell in cells(LONGER, PAPER, "CPU seconds a chain")]
    return sum(chain) / len(chain) / Text(LONGER, r"from 0, ([\d,]+) steps")() * steps / 3600


def microseconds():
    """Return the time of a step of KAM on each target."""
    return [1e6 * Cell(file, "KAM", SECONDS)() / CHAINS / steps
            for file, steps in zip(TARGETS, STEPS, strict=True)]


CLAIMS = [
    ("Intervals are 80 %", [Text("sejdinovic2014/figure5", r"chains with (\d+) % intervals")]),
    ("by 2 degrees (median), that", [Cell(CONTOURS, "ring", ANGLE)]),
    ("that of the covariance by 26 and 52", cells(
        CONTOURS, ["banana", "ring"], "AM's angle to the curve")),
    ("length 5, it is 32 degrees off; with 1.5 it is 8", [
        Cell(CONTOURS, row, column) for row in ("flower", "flower, short length")
        for column in ("kernel length", ANGLE)]),
    ("that accept 0.24 to 0.27", cells(
        CONTOURS, ["banana", "flower, short length"], "acceptance")),
    ("deviation is 1.6, 1.6 and 0.70 %", on(TARGETS, "KAM", DEVIATION)),
    ("AM's 2.3, 2.1 and 1.31, SM's 3.4, 2.9 and 0.61, AM-LS's 2.4, 3.1 and 1.28",
     on(TARGETS, ["AM", "SM", "AM-LS"], DEVIATION)),
    ("beyond its interval of 80 %. At 95 %, the differences", [
        Text("sejdinovic2014/figure5", r"chains with (\d+) % intervals"),
        Stated("definition: 1.96 standard errors")]),
    ("1.5 and 1.6 standard errors", [standard_errors_from_am(file) for file in TARGETS[:2]]),
    ("some 54, 80 and 87 times as many", [times_the_steps(file) for file in TARGETS]),
    ("is 0.37, 0.34 and 0.16 %, SM's 0.40, 0.56 and 0.12",
     on(TARGETS, ["AM, KAM's time", "SM, KAM's time"], DEVIATION)),
    ("by 3 to 6 times the interval", [
        lambda: min(intervals_at_equal_time()), lambda: max(intervals_at_equal_time())]),
    ("(1.4 and 2.4; AM 1.4 and 3.4)", on(TARGETS[:2], ["KAM", "AM"], NORM)),
    ("it is 1.9 ± 0.3, worse than AM's 0.51 ± 0.07", on(TARGETS[2:], ["KAM", "AM"], NORM, (0, 1))),
    ("Reproduced: 3.6, 5.6 and 5.2", on(TARGETS, "SM", NORM)),
    ("It accepts 0.14, 0.07 and 0.06", on(TARGETS, "AM", "acceptance")),
    ("are 1.5 and 1.3 times KAM's on the bananas, and 1.9 times", [
        ratio_to_kam(file) for file in TARGETS]),
    ("(3.1 ± 0.6 against 2.1 ± 0.4)", on(TARGETS[1:2], ["AM-LS", "AM"], DEVIATION, (0, 1))),
    ("have 6,000 steps, 6 % of the paper's 100,000", [
        Text(GLASS, r"from 0, ([\d,]+) steps"),
        lambda: Text(GLASS, r"from 0, ([\d,]+) steps")() / 100_000 * 100,
        Stated("paper: section 5.1, length of the chains")]),
    ("their 100 importance draws and 10 chains", [
        Text(GLASS, r"(\d+) importance draws"), Text(GLASS, r"Means over (\d+) chains")]),
    ("of 0.47 ± 0.04 and 0.50 ± 0.05 for KAM", on(RUNS, "KAM", MEANS, (0, 1))),
    ("0.47 and 0.40 for AM-LS, 0.48 and 0.72 for AM, 0.55 and 0.53 for SM",
     on(RUNS, ["AM-LS", "AM", "SM"], MEANS)),
    ("MMD² / 1000 was 3.4 and 3.7, 2.9 and 2.0, 2.8 and 7.9, 4.1 and 4.4", [
        Stated("definition: of the unit of the column"),
        *on(RUNS, ["KAM", "AM-LS", "AM", "SM"], MMD)]),
    ("Beyond an interval of 80 %, KAM", [Text(GLASS, r"chains with (\d+) % intervals")]),
    ("(by 0.09 ± 0.07, in means)", [
        Text(GLASS, r"SM -(0\.\d+) ± 0\.\d+, AM -0"),
        Text(GLASS, r"SM -0\.\d+ ± (0\.\d+), AM -0")]),
    ("of all in the first (2.2) and an average one in the second (4.0)",
     on(RUNS, "KAM, median length", MMD)),
    ("are 0.42 and 0.50", on(RUNS, "RAM", MEANS)),
    ("with 8 chains of 20,000 steps of the paper's", [
        Text(LONGER, r"Means over (\d+) chains"), Text(LONGER, r"from 0, ([\d,]+) steps")]),
    ("of 0.190 ± 0.026 for KAM, 0.191 for AM-LS, 0.195 for AM and 0.206 for SM, MMD² / 1000 of "
     "0.43, 0.41, 0.38 and 0.49", [
         *cells(LONGER, "KAM", MEANS, (0, 1)), *cells(LONGER, PAPER[1:], MEANS),
         Stated("definition: of the unit of the column"), *cells(LONGER, PAPER, MMD)]),
    ("differ by 0.23, in means", [Text(LONGER, r"; (\d\.\d+) and \d\.\d+ are the distances")]),
    ("some 6 hours of CPU, and its benchmark 7.", [
        lambda: hours(len(PAPER) * 30 * 100_000), lambda: hours(30 * 500_000)]),
    ("adds 2 to 3 % to the cost", 2 * [Stated("paper: section 5.1, cost of the sampler")]),
    ("10.2 and 10.9 CPU seconds per chain on glass, SM 10.6 and 10.0",
     on(RUNS, ["KAM", "SM"], "CPU seconds a chain")),
    ("all 8 coordinates", [Stated("paper: section 5.2, dimension")]),
    ("(5, 10, 5; 23 on glass)", 4 * [Stated(PROGRAM)]),
    ("one state in 20", [Stated(PROGRAM)]),
    ("variance 20, not 5", [
        Stated("definition: the variance of 2 theta"), Stated("paper: section 5.1, prior")]),
    ("of up to 2.4 million steps", [lambda: CHAINS * max(STEPS)]),
    ("took 6.5 to 26 s with KAM and 0.09 to 0.24 s with SM", [
        Cell(file, row, SECONDS) for row in ("KAM", "SM") for file in (TARGETS[0], TARGETS[2])]),
    ("the 8 to 11 microseconds", [lambda: min(microseconds()), lambda: max(microseconds())]),
]
