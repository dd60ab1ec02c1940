"""One run of another package: `python -m bench.evidence.nested NAME CASE SEED`.

All have their defaults, but for nautilus, which makes draws until n_eff is 2500 and not 10 000.
The packages stand in an environment of their own, whose interpreter the variable FASTKAM_NESTED
names: `pip install dynesty nautilus-sampler ultranest pocomc`. The last line of the output is the
answer, as JSON. Calls are evaluations of the likelihood, each point of many in one call.
"""

import contextlib
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
NOT_RUN = "not run"  # where the variable is not set
N_EFF = 2500  # of nautilus, whose error is 1 / sqrt(n_eff): 0.02, as for the others


class Counted:
    """The likelihood of points (k, d), or of a point (d,); counts."""

    def __init__(self, case):
        self.case, self.n = case, 0

    def __call__(self, x):
        X = np.atleast_2d(x)
        self.n += len(X)
        values = np.maximum(self.case.loglike(X), -1e300)
        return values if np.ndim(x) == 2 else float(values[0])


def dynesty(case, f, seed):
    import dynesty as package

    sampler = package.NestedSampler(f, case.from_cube, case.d, rstate=np.random.default_rng(seed))
    sampler.run_nested(print_progress=False)
    return sampler.results.logz[-1], sampler.results.logzerr[-1]


def nautilus(case, f, seed):
    import nautilus as package

    sampler = package.Sampler(case.from_cube, f, n_dim=case.d, vectorized=True, seed=seed)
    sampler.run(verbose=False, n_eff=N_EFF)
    return sampler.log_z, 1 / np.sqrt(sampler.n_eff)


def ultranest(case, f, seed):
    import ultranest as package

    np.random.seed(seed)  # noqa: NPY002 - the package draws from it
    names = [f"x{i}" for i in range(case.d)]
    sampler = package.ReactiveNestedSampler(names, f, case.from_cube, vectorized=True)
    found = sampler.run(show_status=False, viz_callback=False)
    return found["logz"], found["logzerr"]


def pocomc(case, f, seed):
    import pocomc as package

    sampler = package.Sampler(prior=package.Prior(case.marginals), likelihood=f, vectorize=True,
                              random_state=seed)
    sampler.run(progress=False)
    return sampler.evidence()


PACKAGES = {"dynesty": dynesty, "nautilus": nautilus, "ultranest": ultranest, "pocomc": pocomc}


def answer(package, name, seed, seconds):
    """Return the result of a run in the other environment, or {"failed": why}."""
    python = os.environ.get("FASTKAM_NESTED")
    if not python:
        return {"failed": NOT_RUN}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [python, "-m", "bench.evidence.nested", package, name, str(seed)], cwd=ROOT, text=True,
        capture_output=True, env=os.environ | threads,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds)))
    lines = done.stdout.strip().splitlines()
    if done.returncode < 0:
        return {"failed": f"> {seconds} s"}
    if done.returncode or not lines:
        return {"failed": (done.stderr.strip().splitlines() or ["no output"])[-1][:60]}
    return json.loads(lines[-1])


def main():
    from bench.evidence.densities import CASES

    package, name, seed = sys.argv[1:]
    warnings.simplefilter("ignore")
    case = CASES[name]()
    f, begun = Counted(case), time.process_time()
    with contextlib.redirect_stdout(sys.stderr):
        value, error = PACKAGES[package](case, f, int(seed))
    print(json.dumps({"value": float(value), "error": float(error), "calls": f.n,
                      "seconds": time.process_time() - begun}))


if __name__ == "__main__":
    main()
