"""The participants of each contest, and their results, round by round."""

import numpy as np

from bench.peers.environments import REQUIREMENTS
from bench.peers.launch import PeerError, ask


class Contest:
    """The packages that can take part, and the errors of the others.

    Attributes
    ----------
    versions : {package: {distribution: version}}
    problems : {"package" or "package, sampler": the error's last line}
    """

    def __init__(self, only=()):
        self.samplers, self.versions, self.problems = {}, {}, {}
        for package in ("fastkam", *REQUIREMENTS):
            if only and package not in only:
                continue
            try:
                told = ask(package, "describe")
            except PeerError as error:
                self.tell(package, error)
                continue
            self.samplers[package] = told["samplers"]
            self.versions[package] = told["versions"]

    def tell(self, who, error):
        """Store an error, and print it."""
        self.problems[who] = str(error).replace("|", "/")
        print(who, "does not run", error, sep=" | ", flush=True)

    def missing(self, part, columns):
        """Rows of `columns` cells for what is missing in the table of a part, with the reason."""
        absent = [[package, "", error] for package, error in self.problems.items()
                  if package not in self.samplers and "," not in package]
        absent += [[package, name, self.problems[f"{package}, {name}"]]
                   for package, name, _ in self.entrants(part)
                   if f"{package}, {name}" in self.problems]
        return [[package, name, f"did not run: {error}", *[""] * (columns - 3)]
                for package, name, error in absent]

    def entrants(self, part):
        """[(package, sampler, its description)] of a part."""
        return [(package, name, info) for package, samplers in self.samplers.items()
                for name, info in samplers.items() if part in info["parts"]]

    def rounds(self, part, job, seeds, see=lambda answer, info: answer, **arguments):
        """{(package, sampler): [an answer a round]}, every one in turn in each round.

        see(answer, description) may add to each answer as it comes. A sampler that fails once is
        left out.
        """
        answers = {}
        for seed in seeds:
            for package, name, info in self.entrants(part):
                key = f"{package}, {name}"
                if key in self.problems:
                    continue
                try:
                    answer = see(
                        ask(package, job, sampler=name, seed=seed, **arguments), info)
                except PeerError as error:
                    self.tell(key, error)
                    answers.pop((package, name), None)
                    continue
                print(part, seed, key, short(answer), sep=" | ", flush=True)
                answers.setdefault((package, name), []).append(answer)
        return answers


def short(answer):
    return {name: float(f"{value:.3g}") for name, value in answer.items() if np.isscalar(value)}
