"""Figure 4 of Sejdinovic et al. (2014) with longer chains: a fifth of the paper's steps.

    python -m bench.papers.sejdinovic2014.figure4 [--quick]

As `glass`, of the paper's samplers alone: 8 chains each of 20 000 steps, of which a fifth is
burn-in, as in the paper, which had 30 chains of 100 000. Those would take some six hours of CPU,
and their benchmark seven; these take 25 minutes, the quick form one. The data are read from the
folder FASTKAM_DATA.
"""

from bench.papers.record import options
from bench.papers.sejdinovic2014.glass import PAPER, Setting, experiment

FULL = Setting(importance=100, steps=20_000, tune=4000, chains=8, benchmark=20_000, kept=2000)
QUICK = Setting(importance=10, steps=1000, tune=200, chains=4, benchmark=1000, kept=500)


def main():
    chosen = options(__file__, __doc__, quick="10 importance draws, a twentieth of the steps")
    experiment(chosen, QUICK if chosen.quick else FULL, PAPER,
               "Sejdinovic et al. (2014), figure 4: glass, longer chains",
               "python -m bench.papers.sejdinovic2014.figure4", "figure4")


if __name__ == "__main__":
    main()
