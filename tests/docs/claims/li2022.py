"""The numbers of docs/replication-li2022.md."""

from claims import Cell, Stated, Text, cells, tables

TWO, FIVE, WIDE, BIAS = (
    f"li2022/{name}" for name in ("two_mode", "five_component", "mixture_32d", "bias"))
ESS, MARGINAL, OTHER, KERNELS = (
    f"li2022/figures#Figure {number}" for number in (11, 10, 14, 13))
KL, TENTH, OFF, SECONDS = "KL at the end", "KL after a tenth", "occupancy error", "CPU seconds"
EXACT, PUBLISHED = "cKAM, own noise, exact", "cKAM, own noise, as published"
CHAINS, EVALUATIONS = r"quartiles of (\d+) chains", r"chains of ([\d,]+) evaluations"
PROGRAM = "program: constants of the experiments' scripts"


def of_kernels(form):
    """The KL at the end of one form, with each kernel."""
    return [Cell(KERNELS, row, f"{form}: KL")() for row in tables(KERNELS)]


def least_and_most(form):
    return [lambda: min(of_kernels(form)), lambda: max(of_kernels(form))]


def deviations():
    """Return how far the marginals of the five components are off."""
    return [Cell(OTHER, row, "deviation")() for row in tables(OTHER)]


def occupancy_errors():
    return [100 * Cell(FIVE, row, OFF)() for row in tables(FIVE)]


def most_bias():
    """Percent of one half, at 2 standard errors: what the runs of the exact form do not exclude."""
    share, error = cells(BIAS, "exact, draws of Sampling", "left mode", (0, 1))
    return 100 * (abs(share() - 0.5) + 2 * error()) / 0.5


CLAIMS = [
    ("10 chains of 2 million evaluations, AM", [Text(TWO, CHAINS), Text(TWO, EVALUATIONS)]),
    ("the programs' noise, 4 falling to 1", 2 * [
        Stated("code: bench/papers/li2022/released.py, ckam")]),
    ("wrong by 0.81 (median, relative) with the kernel active and by 0.41 as released",
     cells(TWO, ["cKAM, paper", "cKAM, as released"], OFF)),
    ("by 0.10, and in the exact form by 0.05", cells(TWO, [PUBLISHED, EXACT], OFF)),
    ("in 400 runs of 2 million steps the", [
        Text(BIAS, r"(\d+) runs of"), Text(BIAS, r"runs of (\d+) steps")]),
    ("has 0.535 ± 0.003 of the draws", cells(
        BIAS, "published, draws of Sampling", "left mode", (0, 1))),
    ("12.8 standard errors", [
        Cell(BIAS, "published, draws of Sampling", "standard errors from 1/2")]),
    ("gave 0.499 ± 0.003, 0.5 standard errors", [
        *cells(BIAS, "exact, draws of Sampling", "left mode", (0, 1)),
        lambda: -Cell(BIAS, "exact, draws of Sampling", "standard errors from 1/2")()]),
    ("one of more than 1.3 % (2 standard errors)", [
        most_bias, Stated("definition: of the bound")]),
    ("40 to 60 % of the steps", 2 * [Stated(PROGRAM)]),
    ("after 2 million evaluations the symmetric KL", [Text(TWO, EVALUATIONS)]),
    ("is 0.066 (quartiles 0.065 to 0.069) in 0.48 s", [
        *cells(TWO, EXACT, KL, (0, 1, 2)), Cell(TWO, EXACT, SECONDS)]),
    ("random walk 0.041 (0.036 to 0.047) in 0.09 s", [
        *cells(TWO, "RW", KL, (0, 1, 2)), Cell(TWO, "RW", SECONDS)]),
    ("tempering 0.040 (0.039 to 0.041) in 0.23 s", [
        *cells(TWO, "parallel tempering", KL, (0, 1, 2)),
        Cell(TWO, "parallel tempering", SECONDS)]),
    ("of the evaluations: 0.41, 0.25, 0.24.",
     cells(TWO, [EXACT, "RW", "parallel tempering"], TENTH)),
    ("as in the paper, it has 1.09", [Cell(TWO, "cKAM, paper", KL)]),
    ("(6.1, 6.2, 6.1 and 1.8)", cells(TWO, ["AM", "RBAM", "GAM", "KAM, paper"], KL)),
    ("give 0.42, where the published form gives 0.08", cells(
        TWO, ["the cycles without the kernel", PUBLISHED], KL)),
    ("5,868 with the programs' noise, 7,365 as released and 6,286 in the exact form, where AM, "
     "RBAM and GAM have at least 661,040, 261,227 and 617,256 with 100 % of", [
         *cells(ESS, ["cKAM, paper", "cKAM, as released", EXACT, "AM", "RBAM", "GAM"],
                "ESS a second"), Cell(ESS, "AM", "left mode, %")]),
    ("the random walk has 81,917, with 50 % in the left mode, and parallel tempering 104,027", [
        *cells(ESS, "RW", ["ESS a second", "left mode, %"]),
        Cell(ESS, "parallel tempering", "ESS a second")]),
    ("active, 99 % of the draws shown", [Cell(MARGINAL, "cKAM, paper", "x_1 < 0, %")]),
    ("six kernels is 0.076 to 0.090 after 1 million evaluations", [
        *least_and_most(EXACT), Text(KERNELS, EVALUATIONS)]),
    ("the KL is 0.40 to 2.5 for cKAM and 0.20 to 2.3 for KAM", [
        *least_and_most("cKAM, programs' noise"), *least_and_most("KAM, programs' noise")]),
    ("deviate by 0.002 to 0.014, most", [lambda: min(deviations()), lambda: max(deviations())]),
    ("10 chains of 1 million evaluations and of 480,000", [
        Text(FIVE, CHAINS), Text(FIVE, EVALUATIONS), Text(WIDE, EVALUATIONS)]),
    ("is 0.142 with the programs' noise, 0.166 as released, 0.145 in the exact form; KAM has "
     "0.076, RBAM 0.075, AM 0.078, GAM 0.077, their random walk 0.075",
     cells(FIVE, ["cKAM, paper", "cKAM, as released", EXACT, "KAM, paper", "RBAM", "AM", "GAM",
                  "RW"], KL)),
    ("All but KAM (0.36 s) also took less time than cKAM (0.26 s)",
     cells(FIVE, ["KAM, paper", "cKAM, paper"], SECONDS)),
    ("is right within 1 to 5 %", [
        lambda: min(occupancy_errors()), lambda: max(occupancy_errors())]),
    ("exploration, 40 % of", [Stated("code: bench/papers/li2022/__main__.py, samplers")]),
    ("*32 dimensions", [Stated("definition: of fastkam.targets.mixture_32d")]),
    ("it has 0.128 and, as released, 0.122, where GAM has 0.225, RBAM 0.457 and AM 11.7",
     cells(WIDE, ["cKAM, paper", "cKAM, as released", "GAM", "RBAM", "AM"], KL)),
    ("takes 0.69 microseconds, one of cKAM 3.06",
     cells(WIDE, ["GAM", "cKAM, paper"], "µs an evaluation")),
    ("random walk (0.068), tempering (0.027) and a random walk of 15 times that variance (0.009)", [
        *cells(WIDE, ["RW", "parallel tempering"], KL),
        Stated("code: bench/papers/li2022/__main__.py, samplers"), Cell(WIDE, "RW, wide", KL)]),
    ("programs (0.024)", [Cell(WIDE, "KAM, paper", KL)]),
    ("have 0.136 and 0.103, those with the kernel's 0.143 and 0.132", [
        Cell(file, row, KL) for row in ("the cycles without the kernel", PUBLISHED)
        for file in (FIVE, WIDE)]),
    ("the 32-dimensional density", [Stated("definition: of fastkam.targets.mixture_32d")]),
    ("eps is 2 in the programs and 0.75 in the tables", [
        Stated(PROGRAM), Stated("paper: tables of parameters")]),
]
