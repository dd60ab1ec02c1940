"""One run of GPry or PyVBMC in its own environment: `python -m bench.costly.emulator_job JSON`.

The last line of the output is the result, as JSON: calls of the density, mean and standard
deviation (d,), whether the package says that it has converged, and CPU seconds. Both packages run
with their defaults. What they need besides the density is generous, since it is made from the
posterior: GPry has as bounds the mean and 6 standard deviations to either side, PyVBMC as plausible
bounds one to either side, and the start of the case.
"""

import json
import sys
import time
import warnings

import numpy as np

from bench.costly.densities import CASES

BOX, PLAUSIBLE = 6, 1           # standard deviations to either side of the mean
FAR = 50                        # and to an upper bound, since PyVBMC wants both bounds or none
WALLS = {"exponential, d = 3": 0.0}     # lower bounds


class Counted:
    """A density that counts its calls, with -inf where it is NaN."""

    def __init__(self, f):
        self.f, self.n = f, 0

    def __call__(self, x):
        self.n += 1
        value = float(self.f(np.asarray(x, float).ravel()))
        return value if value == value else -np.inf


def gpry(case, wall, f, seed):
    from gpry import Runner

    least, most = case.mean - BOX * case.sd, case.mean + BOX * case.sd
    runner = Runner(f, bounds=list(zip(np.maximum(least, wall), most, strict=True)), seed=seed,
                    verbose=1)
    runner.run()
    runner.generate_mc_sample()
    drawn = runner.last_mc_samples()
    x, w = drawn["X"], drawn["w"]
    mean = np.average(x, axis=0, weights=w)
    return mean, np.sqrt(np.average((x - mean) ** 2, axis=0, weights=w)), runner.has_converged


def pyvbmc(case, wall, f, seed):
    from pyvbmc import VBMC

    least = np.full(case.d, wall)
    most = case.mean + FAR * case.sd if np.isfinite(wall) else np.full(case.d, np.inf)
    low = np.maximum(case.mean - PLAUSIBLE * case.sd, wall + 0.05 * case.sd)
    vbmc = VBMC(f, np.atleast_2d(case.x0), least, most, low, case.mean + PLAUSIBLE * case.sd,
                options={"display": "off"}, seed=seed)
    posterior, results = vbmc.optimize()
    mean, covariance = posterior.moments(cov_flag=True)
    return mean.ravel(), np.sqrt(np.diag(covariance)), results["success_flag"]


def main():
    given = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    case, begun = CASES[given["posterior"]], time.process_time()
    f = Counted(case.f)
    wall = WALLS.get(given["posterior"], -np.inf)
    mean, sd, converged = {"gpry": gpry, "pyvbmc": pyvbmc}[given["package"]](
        case, wall, f, given["seed"])
    print("\n" + json.dumps({
        "calls": f.n, "mean": list(mean), "sd": list(sd), "converged": bool(converged),
        "seconds": time.process_time() - begun}), flush=True)


if __name__ == "__main__":
    main()
