"""The numbers of docs/replication-dharamshi2023.md."""

from math import comb, sqrt

from claims import Cell, Stated, Text, cells, tables

BANANA, DOUBLE, BASIS, BUNCH, HORSESHOE = (
    f"dharamshi2023/{name}" for name in ("banana", "double_banana", "basis_vectors", "banana_bunch",
                                         "horseshoe"))
THREE = (DOUBLE, BASIS, BUNCH)
PICTURES = [f"dharamshi2023/figures#{title}" for title in (
    "Figures 6 to 8", "Figure 9", "Figures 10 to 12")]
SHARES, CHANGES, DISTINCT = "shares of the parts, %", "changes of the part", "distinct points"
ACCEPTANCE, ESJD, MEAN, SECOND = (
    "acceptance", "ESJD", "distance of the mean", "of the second moment")
DISTANCES = "paper: distances"
CHAINS = Text(DOUBLE, r"Means over (\d+) chains")


def on(files, rows, column, nths=(0,)):
    """The numbers of one column: by row, of each by target."""
    rows = [rows] if isinstance(rows, str) else rows
    return [Cell(file, row, column, n) for row in rows for file in files for n in nths]


def compared():
    """Whether the paper's distance lies below our mean, of each row of two targets."""
    return [Cell(file, row, DISTANCES)() < Cell(file, row, MEAN)()
            for file in (DOUBLE, BUNCH) for row, cell in tables(file).items()
            if cell[DISTANCES]]


def standard_errors(file, row, other, column=MEAN):
    """Between the means over chains of two rows."""
    def difference():
        (one, spread), (two, spread_of_two) = (
            [source() for source in cells(file, name, column, (0, 1))] for name in (row, other))
        return (one - two) / sqrt((spread**2 + spread_of_two**2) / CHAINS())
    return difference


def compared_row(file, rows, column, nths=(0,)):
    """Ours by row, then the paper's by row."""
    return cells(file, rows, column, nths) + cells(file, rows, f"paper: {column}")


def at_most_by_chance():
    """The probability of as many, were each distance as likely above as below our mean."""
    n, k = len(compared()), sum(compared())
    return sum(comb(n, i) for i in range(k, n + 1)) / 2**n


def least_ess_of_the_horseshoe():
    """Return the least ESS of the samplers in the paper's table."""
    return [Cell(HORSESHOE, row, "min ESS")() for row, cell in tables(HORSESHOE).items()
            if cell[DISTANCES]]


def deviations_from_the_paper(row):
    """Return our acceptance less the paper's, in standard deviations between chains."""
    return [(Cell(file, row, ACCEPTANCE)() - Cell(file, RELEASED, f"paper: {ACCEPTANCE}")())
            / Cell(file, row, ACCEPTANCE, 1)() for file in THREE]


RELEASED, COPIES = "DM finite, as released", ["PT (2), as released", "PT (5), as released"]
ROWS = ["RWM", "aRWM, as released", "DM", "Scout"]
TRUE, EVEN_ODD, SWAPS = "PT (5)", "PT (5), even-odd", "PT (5), true swaps"

CLAIMS = [
    ("means of 20 chains", [CHAINS]),
    ("aRWM 0.081 ± 0.011 (0.0895)", [
        *cells(BANANA, "aRWM, as released", ACCEPTANCE, (0, 1)),
        Cell(BANANA, "aRWM, as released", "paper: acceptance")]),
    ("DM 0.721 ± 0.002 (0.7225)", [
        *cells(BANANA, "DM", ACCEPTANCE, (0, 1)), Cell(BANANA, "DM", "paper: acceptance")]),
    ("ESJD 8.3 ± 0.5 (7.3) and 1.83 ± 0.15 (2.4)", [
        source for row in ("aRWM, as released", "DM")
        for source in [*cells(BANANA, row, ESJD, (0, 1)), Cell(BANANA, row, "paper: ESJD")]]),
    ("minimum ESS of 33 against 415", cells(BANANA, ["DM", "aRWM, as released"], "min ESS")),
    ("0.514, 0.073, 0.835, 0.836 (0.519, 0.078, 0.835, 0.834)", compared_row(
        DOUBLE, ROWS, ACCEPTANCE)),
    ("0.374, 0.285, 0.716, 0.715 (0.379, 0.294, 0.709, 0.706)", compared_row(
        BASIS, ROWS, ACCEPTANCE)),
    ("0.497, 0.020, 0.782, 0.787 (0.482, 0.018, 0.770, 0.791)", compared_row(
        BUNCH, ROWS, ACCEPTANCE)),
    ("ESJD 11.0, 0.95, 11.5 (11.1, 1.01, 13.5)", [
        *on(THREE, "Scout", ESJD), *on(THREE, "Scout", "paper: ESJD")]),
    ("the mixture of 2 Gaussians", [Stated("paper: reference Roberts and Rosenthal (2009)")]),
    ("accepts 0.115 and 0.065 on", on((DOUBLE, BUNCH), "aRWM", ACCEPTANCE)),
    ("is 0.68 ± 0.11 (0.80)", [
        *cells(DOUBLE, "DM", ESJD, (0, 1)), Cell(DOUBLE, "DM", "paper: ESJD")]),
    ("double banana 3.7 ± 2.8 (1.24), basis vectors 1.5 ± 0.5 (1.01), bunch 5.1 ± 2.4 (1.26)", [
        source for file in THREE
        for source in [*cells(file, "Scout", MEAN, (0, 1)), Cell(file, "Scout", DISTANCES)]]),
    ("For DM it is 7.0 ± 4.3 (2.66)", [
        *cells(DOUBLE, "DM", MEAN, (0, 1)), Cell(DOUBLE, "DM", DISTANCES)]),
    ("18 distances on the double banana and the bunch 16 lie", [
        lambda: len(compared()), lambda: sum(compared())]),
    ("16 or more would have probability 0.0007", [lambda: sum(compared()), at_most_by_chance]),
    ("with 2 and 5 replicas", 2 * [Stated("definition: of the rows' names")]),
    ("double banana 0.41 ± 0.04 and 0.44 ± 0.07 (0.376, 0.403)", compared_row(
        DOUBLE, COPIES, ACCEPTANCE, (0, 1))),
    ("basis vectors 0.375 and 0.375 (0.376, 0.374)", compared_row(BASIS, COPIES, ACCEPTANCE)),
    ("bunch 0.38 ± 0.04 and 0.43 ± 0.02 (0.414, 0.429)", compared_row(
        BUNCH, COPIES, ACCEPTANCE, (0, 1))),
    ("ESJD 1.25 ± 0.14 and 2.5 ± 0.4 (0.99, 2.16)", compared_row(DOUBLE, COPIES, ESJD, (0, 1))),
    ("1.56 and 2.03 (1.47, 2.13)", compared_row(BASIS, COPIES, ESJD)),
    ("1.75 ± 0.18 and 3.62 ± 0.17 (1.72, 3.54)", compared_row(BUNCH, COPIES, ESJD, (0, 1))),
    ("run is within 1.9 standard deviations in each", [lambda: max(
        abs(Cell(file, row, column)() - Cell(file, row, f"paper: {column}")())
        / Cell(file, row, column, 1)()
        for file in THREE for row in COPIES for column in (ACCEPTANCE, ESJD))]),
    ("accepts 0.375 and 0.374, too, but its ESJD is 11 and 37", cells(
        BASIS, ["PT (2)", TRUE], [ACCEPTANCE, ESJD])),
    ("PT with 5 replicas jumps", [Stated("definition: of the row's name")]),
    ("(ESJD 212, 37 and 429, against Scout's 11, 0.95 and 11.5)", on(
        THREE, [TRUE, "Scout"], ESJD)),
    ("are 3.5 ± 2.3, 1.0 ± 0.4 and 6.4 ± 2.6, which is -0.2, -4.1 and 1.7 standard errors", [
        *on(THREE, TRUE, MEAN, (0, 1)), *(standard_errors(file, TRUE, "Scout") for file in THREE)]),
    ("swaps 2.6 ± 1.6, 1.0 ± 0.4 and 6.0 ± 2.9, -1.4, -3.3 and 1.2 standard errors", [
        *on(THREE, EVEN_ODD, MEAN, (0, 1)),
        *(standard_errors(file, EVEN_ODD, "Scout") for file in THREE)]),
    ("targets 20 chains do not", [CHAINS]),
    ("are 176 ± 90 and 161 ± 71, Scout's 181 ± 120", cells(
        BUNCH, [TRUE, EVEN_ODD, "Scout"], SECOND, (0, 1))),
    ("0.55 ± 0.38 (0.23)", [
        *cells(DOUBLE, "aRWM, as released", MEAN, (0, 1)),
        Cell(DOUBLE, "aRWM, as released", DISTANCES)]),
    ("of the mean, 2.7 ± 1.0, and Scout that of the second moment (349 ± 140 for aRWM)", cells(
        BUNCH, "aRWM, as released", [MEAN, SECOND], (0, 1))),
    ("0.746 ± 0.031 and 0.758 ± 0.040 (0.686)", [
        *cells(DOUBLE, [RELEASED, "DM finite"], ACCEPTANCE, (0, 1)),
        Cell(DOUBLE, RELEASED, "paper: acceptance")]),
    ("0.61 ± 0.08 and 0.70 ± 0.06 (0.577)", [
        *cells(BUNCH, [RELEASED, "DM finite"], ACCEPTANCE, (0, 1)),
        Cell(BUNCH, RELEASED, "paper: acceptance")]),
    ("0.705 and 0.700 (0.697)", [
        *cells(BASIS, [RELEASED, "DM finite"], ACCEPTANCE), Cell(BASIS, RELEASED,
                                                                "paper: acceptance")]),
    ("within 2.2 standard deviations on each, in the exact form within 2.1", [
        lambda: max(map(abs, deviations_from_the_paper(RELEASED))),
        lambda: max(map(abs, deviations_from_the_paper("DM finite")))]),
    ("distinct points, 3,677, Scout 41,981", cells(
        PICTURES[0], ["aRWM, as released", "Scout"], DISTINCT)),
    ("(44 and 56 % of the draws)", cells(PICTURES[0], "MALA", SHARES, (0, 1))),
    ("it has 11 % in one of them", [Cell(PICTURES[0], RELEASED, SHARES)]),
    ("change the mode only 71 and 84 times; PT with a true swap does so 5,987 times", cells(
        PICTURES[1], ["PT (5), as released", "Scout", SWAPS], CHANGES)),
    ("(1,946 distinct ones)", [Cell(PICTURES[2], "aRWM, as released", DISTINCT)]),
    ("ends are 2 to 50 %)", cells(PICTURES[2], "PT (5), as released", SHARES, (0, 1))),
    ("Scout's shares are 12 to 22 %. But those of PT with a true swap are 11 to 20 %", cells(
        PICTURES[2], ["Scout", SWAPS], SHARES, (0, 1))),
    ("(minimum ESS 1 or 2 of 45,000 draws); NUTS has 738", [
        lambda: min(least_ess_of_the_horseshoe()), lambda: max(least_ess_of_the_horseshoe()),
        Text(HORSESHOE, r"5,000 \+ ([\d,]+) steps"), Cell(HORSESHOE, "NUTS", "min ESS")]),
    ("is 401, not 400", [
        Stated("definition: of fastkam.targets.banana_bunch"), Stated("program: the true moment")]),
    ("of 0.4 ± 0.2, 0.5 ± 0.2 and 2.8 ± 5.9", on(THREE, "pt, as it comes", MEAN, (0, 1))),
    ("Scout has 3.7, 1.5 and 5.1, with", on(THREE, "Scout", MEAN)),
    ("has 0.47, 0.35 and 0.92", on(THREE, "pt of NUTS, 4 rungs", MEAN)),
    ("errors of 1.3 and 5:", [Cell(BUNCH, "Scout", DISTANCES), Cell(BUNCH, "Scout", MEAN)]),
]
