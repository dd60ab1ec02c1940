"""Faults at random moments of real runs, and what must be there afterwards.

After each the promise is the same: the process ends; the checkpoint and the result, where there is
one, load, and go on to the very draws, states and generators of the run without a fault; files that
a killed process has left are removed by the next run.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path

from same import assert_same

import fastkam as fk
from faults import runs

FAULTS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGINT to all", "SIGINT twice", "worker killed",
          "disk full")
TIMEOUT = 120  # seconds, after which a process hangs


class Suite:
    """Runs with faults; `counts` has how many ended how, by fault and case."""

    def __init__(self, seed=0):
        self.random = random.Random(seed)
        self.wholes, self.seconds, self.counts = {}, {}, {}
        self.folder = Path(tempfile.mkdtemp(prefix="faults"))

    def close(self):
        shutil.rmtree(self.folder)

    def start(self, case, folder, **options):
        """A process with a run, and the moment at which it was ready."""
        config = {"case": case, "checkpoint": str(folder / "run.fk"),
                  "out": str(folder / "out.fk")} | options
        printed = folder / "printed"
        with open(printed, "w") as out, open(folder / "errors", "w") as errors:
            process = subprocess.Popen([sys.executable, runs.__file__, json.dumps(config)],
                                       stdout=out, stderr=errors, start_new_session=True)
        while not printed.read_text().startswith("ready\n"):
            assert process.poll() is None, (folder / "errors").read_text()
            time.sleep(0.005)
        return process, time.perf_counter()

    def end(self, process, folder):
        """Wait for the end of a process; what it has printed, and its errors."""
        try:
            process.wait(timeout=TIMEOUT)
        finally:
            with suppress(ProcessLookupError):  # workers whose pool was killed wait forever
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        printed = (folder / "printed").read_text().removeprefix("ready\n")
        return printed, (folder / "errors").read_text()

    def whole(self, case):
        """The run of a case without a fault."""
        if case not in self.wholes:
            folder = self.folder / f"whole {case}"
            folder.mkdir()
            process, begun = self.start(case, folder)
            out, err = self.end(process, folder)
            self.seconds[case] = time.perf_counter() - begun
            assert out == "returned complete\n", err
            self.wholes[case] = fk.load(folder / "out.fk")
            assert_same(fk.load(folder / "run.fk"), self.wholes[case])
        return self.wholes[case]

    def once(self, case, fault):
        """One run with one fault."""
        whole = self.whole(case)
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        full = self.random.randrange(2**32) if fault == "disk full" else None
        process, _ = self.start(case, folder, full=full)
        delay = self.random.uniform(0.0, 1.05) * self.seconds[case]
        time.sleep(delay)
        self.strike(process, fault)
        out, err = self.end(process, folder)
        how = out.strip() or ending(process.returncode)
        where = f"{fault} after {delay:.3f} of {self.seconds[case]:.3f} s of {case}: {how}\n{err}"
        try:
            self.check(case, fault, folder, how, whole)
        except BaseException as error:
            error.add_note(where)
            raise
        key = fault, case, how.split(" (")[0] if how.startswith("error") else how
        self.counts[key] = self.counts.get(key, 0) + 1
        shutil.rmtree(folder)

    def strike(self, process, fault):
        """Let the fault happen."""
        if fault in ("SIGKILL", "SIGTERM", "SIGINT"):
            process.send_signal(getattr(signal, fault))
        elif fault == "SIGINT to all":
            os.killpg(process.pid, signal.SIGINT)
        elif fault == "SIGINT twice":
            process.send_signal(signal.SIGINT)
            time.sleep(self.random.uniform(0, 0.05))
            process.send_signal(signal.SIGINT)
        elif fault == "worker killed" and (workers := workers_of(process.pid)):
            os.kill(self.random.choice(workers), signal.SIGKILL)

    def check(self, case, fault, folder, how, whole):
        """Refuse an outcome that breaks the promise."""
        target, path, out = runs.target_of(case), folder / "run.fk", folder / "out.fk"
        store = runs.store_of(case, path)
        state = store / "state.npz"  # none where it was killed before the first step
        places = [place for place in (path, state, out) if place.exists()]
        found = [fk.load(store if place is state else place) for place in places]
        if how.startswith(("returned", "error")):
            assert places[-1] is out
            if fault != "disk full":
                for part in found:  # the last checkpoint is of the result
                    assert_same(part, found[-1])
        if fault in ("SIGKILL", "SIGTERM"):
            assert how in (fault, "returned complete")
        elif fault.startswith("SIGINT"):
            assert how in ("returned interrupted", "returned complete", "KeyboardInterrupt",
                           "SIGINT")
            if how == "KeyboardInterrupt":  # before the run, or after it
                assert all(state.status in ("complete", "interrupted") for state in found)
        elif fault == "worker killed":
            assert how == "returned complete"
        else:
            assert how == "returned complete" or "No space left on device" in how
            assert found or how.startswith("OSError"), how  # of a store, before the first step
        kept = shutil.copytree(store, folder / "kept") if state.exists() else None
        for place in places:
            if kept is not None:  # a run that goes on adds to its store
                shutil.rmtree(store)
                shutil.copytree(kept, store)
            assert_same(resumed(fk.load(store if place is state else place), target), whole)
        if path.exists() and kept is None:
            # what is left of a file that was not finished goes with the next
            resumed(fk.load(path), target, checkpoint=path)
            left = [name for name in os.listdir(folder) if name.startswith(".run.fk")]
            assert not left, left


def ending(code):
    """The signal that has ended a process, or its exit code."""
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def resumed(part, target, **options):
    """The rest of a run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return part.resume(target=target, vectorized=target is runs.logps, diagnose=False,
                           progress=False, **options)


def workers_of(pid):
    """The processes that a process has started to evaluate densities."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
            command = (status.parent / "cmdline").read_text()
        except OSError:  # it has ended
            continue
        if f"\nPPid:\t{pid}\n" in text and "resource_tracker" not in command:
            found.append(int(status.parent.name))
    return found



def applies(fault, case):
    """Whether a fault can happen to a case."""
    return fault != "worker killed" or runs.CASES[case].get("pool") in ("fork", "spawn") or (
        "executor" in runs.CASES[case])
