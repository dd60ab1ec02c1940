"""The numbers of docs/replication-titsias2019.md."""

from claims import Cell, Stated, Text, cells

NEAL, AUSTRALIAN, HEART, PIMA, RIPLEY, GERMAN, CARAVAN, DIGITS, FIGURE = (
    f"titsias2019/{name}" for name in ("neal", "australian", "heart", "pima", "ripley", "german",
                                       "caravan", "digits", "figure1"))
TRACES = {number: f"titsias2019/figures#Figure {number}" for number in (2, 5)}
SIX = (NEAL, AUSTRALIAN, HEART, PIMA, RIPLEY, GERMAN)
LEAST, SPEED, THEIRS, SECONDS = (
    "min ESS", "min ESS / s", "paper: min, median, max ESS", "CPU seconds")
REPEATS, STEPS = Text(HEART, r"Means over (\d+) repeats"), Text(HEART, r"of ([\d,]+) steps")


def beside_theirs(file, row):
    """The least ESS, and the paper's."""
    return [Cell(file, row, LEAST), Cell(file, row, THEIRS)]


def percent_more(column):
    """Return what gadMALAf gains over gadMALAe on the regressions but Caravan, in percent."""
    return [100 * (Cell(file, "gadMALAf", column)() / Cell(file, "gadMALAe", column)() - 1)
            for file in SIX[1:]]


def with_nuts(file):
    return cells(file, ["gadMALAf", "NUTS"], SPEED)


CLAIMS = [
    ("Processing Systems 32", [Stated("paper: title page")]),
    ("means of 10 repeats (of the digits of 5) of 20,000 steps", [
        REPEATS, Text(DIGITS, r"means over (\d+) repeats"), STEPS]),
    ("Neal's Gaussian 1,453 (1,413), Australian 3,380 (3,486), Heart 3,754 (3,893), Pima 5,233 "
     "(5,408), Ripley 8,572 (8,328), German 2,852 (2,735)",
     [source for file in SIX for source in beside_theirs(file, "gadMALAf")]),
    ("reproduced: 0.066 (0.068)", cells(RIPLEY, "gadRWM", ["acceptance", "paper: acceptance"])),
    ("differs by 6 % at most, and per second that of the fast form is 26 to 51 %", [
        lambda: max(map(abs, percent_more(LEAST))), lambda: min(percent_more(SPEED)),
        lambda: max(percent_more(SPEED))]),
    ("of 11,264 per second, against 341, 1,638 and 1,798",
     cells(GERMAN, ["gadMALAf", "RWM", "MALA", "HMC, 5 steps"], SPEED)),
    ("Australian 25,021 against NUTS's 24,311, Heart 55,979 and 55,991, Pima 65,122 and 60,060, "
     "Ripley 258,097 and 207,947, German 11,264 and 11,783",
     [source for file in SIX[1:] for source in with_nuts(file)]),
    ("Gaussian 7,379 and 110,661", with_nuts(NEAL)),
    ("limits NUTS to 20,000", [STEPS]),
    ("on Heart 320 (342), German 124 (122); on Neal's Gaussian 4 (9)",
     [source for file in (HEART, GERMAN, NEAL) for source in beside_theirs(
         file, "AM, as released")]),
    ("at 7.1 and 2.5 for targets of 0.25 and 0.4 (7.4 and 2.2)", [
        *cells(FIGURE, ["gadRWM, 0.25", "gadRWM, 0.4"], "beta"),
        *2 * [Stated("definition: of the rows' names")],
        *cells(FIGURE, ["gadRWM, 0.25", "gadRWM, 0.4"], "paper: beta")]),
    ("it is 2.9 million after", [Cell(FIGURE, "gadRWM, 0.25, 5e-5", "beta")]),
    ("is 1,694 for gadMALAf, 1,020 for gadMALAe, 59 for gadRWM and 23 for AM.",
     cells(TRACES[2], ["gadMALAf", "gadMALAe", "gadRWM", "AM, as released"], "ESS of x_100")),
    ("deviate by 0.03, 0.10 and 0.08, AM's by 0.74, those of AM with the programs' diagonal factor "
     "by 0.43.", cells(TRACES[2], ["gadMALAf", "gadMALAe", "gadRWM", "AM, as released",
                                   "AM, diagonal"], "deviation of the diagonal")),
    ("on Caravan are -1256.9 and -1257.1.", cells(
        TRACES[5], ["gadMALAf", "NUTS"], "mean log density")),
    ("of gadMALAf 219, gadMALAe 59, gadRWM 5, MALA 5, RWM 3, HMC 233 (228, 67, 5, 4, 3, 248)",
     cells(CARAVAN, ["gadMALAf", "gadMALAe", "gadRWM", "MALA", "RWM", "HMC, 10 steps"],
           [LEAST, THEIRS])),
    ("74 ± 20 against 82 ± 9", cells(CARAVAN, ["gadMALAf", "NUTS"], SPEED, (0, 1))),
    ("363 small images (65 weights)", [
        Text(DIGITS, r"(\d+) images"), Text(DIGITS, r"d = (\d+)")]),
    ("of 1,624 in 0.27 s, MALA 81 in 0.19 s; its diagonal form has 56", [
        *cells(DIGITS, "gadMALAf", [LEAST, SECONDS]), *cells(DIGITS, "MALA", [LEAST, SECONDS]),
        Cell(DIGITS, "gadMALAf, diagonal", LEAST)]),
    ("per second: 19,728 in 0.86 s, with 7 gradients per step instead of 550", [
        *cells(DIGITS, "NUTS", [LEAST, SECONDS, "evaluations a step"]),
        Stated("paper: text on the digits 5 and 6")]),
    ("(51 dimensions)", [Stated("paper: figure 1")]),
    ("Caravan has 86 weights, not 87.", [
        Text(CARAVAN, r"d = (\d+)"), Stated("paper: caption of table 1")]),
    ("On MNIST 497 sixes", [Stated("program: labels of the training set")]),
    ("of the 5 repeats of NUTS 2 are", [
        Stated("paper: caption of table 7"), Stated("program: files of results")]),
    ("(Heart 61,840, Ripley 269,881; about equal on Australian, 29,038, and German, 12,139), "
     "though not on Caravan (29, gadMALAf 74) nor on Neal's Gaussian (5,447)", [
         *(Cell(file, "Fisher MALA", SPEED) for file in (HEART, RIPLEY, AUSTRALIAN, GERMAN)),
         Cell(CARAVAN, "Fisher MALA", SPEED), Cell(CARAVAN, "gadMALAf", SPEED),
         Cell(NEAL, "Fisher MALA", SPEED)]),
]
