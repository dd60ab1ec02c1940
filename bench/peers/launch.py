"""Jobs in the packages' own processes: one at a time, one thread, one processor."""

import json
import os
import subprocess
import time

from bench.peers.environments import ROOT, python_of

ONE_THREAD = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu", "MPLBACKEND": "Agg"}


class PeerError(Exception):
    """A package that does not install, import or run; the message is the error's last line."""


def command(*words, timeout=600, **variables):
    """Return the output of a process."""
    try:
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=timeout,
                              env=os.environ | ONE_THREAD | variables)
    except FileNotFoundError:
        raise PeerError("no environment: python -m bench.peers.environments") from None
    except subprocess.TimeoutExpired:
        raise PeerError(f"not done after {timeout} s") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise PeerError(lines[-1] if lines else f"exit code {done.returncode}")
    return done.stdout


def ask(package, job, **arguments):
    """The answer of a job of `bench.peers.job`."""
    problem = os.path.join(os.path.dirname(os.path.dirname(python_of(package))), "error.txt")
    if os.path.exists(problem):
        with open(problem) as file:
            raise PeerError(file.read())
    said = command(python_of(package), "-m", "bench.peers.job", package, job,
                   json.dumps(arguments))
    return json.loads(said.splitlines()[-1])


def cost(package, script):
    """(wall, CPU) seconds of a fresh process that runs `script`."""
    begun = time.perf_counter()
    with subprocess.Popen([python_of(package), "-c", script], env=os.environ | ONE_THREAD,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise PeerError(f"exit code {process.returncode} of {script!r}")
    return time.perf_counter() - begun, used.ru_utime + used.ru_stime
