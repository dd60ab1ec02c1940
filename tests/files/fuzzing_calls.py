"""Files of calls, and values passed to an AskTell, with mistakes in them.

    python tests/files/fuzzing_calls.py [--seconds 60] [--seed 1]

A file of calls with damaged bytes must be refused by its name, or be shorter at its end, and a run
with it must have the draws that it has without; one with a made-up header must be refused or work;
a value given to AskTell.tell must be refused by the argument's name, without a change of the run,
or be accepted as a value of the function. All in one process, whose memory is limited; if that
ends without a word, a file in its folder has the number of the mistake.
"""

import argparse
import collections
import json
import random
import resource
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np

import fastkam as fk
from fastkam.points.records import MAGIC, MARK

ADDRESS_SPACE = 4 * 2**30  # bytes
OPTIONS = {"sampler": "ram", "draws": 4, "tune": 3, "chains": 2, "seed": 1, "progress": False,
           "diagnose": False}
START = np.array([0.4, 0.0])
VALUES = (None, True, -1, 0, 1, 2, 3, 10**6, 2**31, 2**62, 10**400, 0.5, float("nan"), float("inf"),
          "", "x", "f8", [], [1], [[]], [[2], "f8"], [[10**9], "f8"], [[0, 2**40], "i8"],
          {}, {"a": [[], "f8"]}, {"a": 1}, {"extras": {}}, ["a", "b"])
TOLD = (None, True, "x", 1j, -1.0, np.nan, -np.inf, 10**400, np.float32(-1), np.zeros(2), (),
        (-1.0,), (-1.0, -2.0), (-1.0, np.zeros(2)), (-1.0, np.zeros(3)), (-1.0, {"a": 1}), [-1.0],
        {"a": 1}, (-1.0, {"a": object()}), (-1.0, {1: 2}), np.ma.masked, SystemExit(1), b"1",
        np.array(-1.0))
POINTS = (None, -1, 0, 7, 2**70, True, 0.5, "0", [], [0], [0, 0], [0.0], [None], [[0]], {0: 1},
          np.array(0), np.array([0]), np.array([0.0]), range(1), object())


def plain(x):
    return -0.5 * float(x @ x)


def with_extras(x):
    return plain(x), {"sum": x.sum(), "rows": x * np.ones((2, 1))}


def in_two_parts(x):
    return with_extras(x) if x[0] > 0.45 else -np.inf


def with_gradient(x):
    return plain(x), -x


FUNCTIONS = {"plain": (plain, "ram"), "extras": (with_extras, "ram"),
             "two parts": (in_two_parts, "ram"), "gradient": (with_gradient, "mala")}


class Fuzzer:
    """Mistakes by their numbers.

    Attributes
    ----------
    counts : Counter of tuple (kind of mistake, what came of it)
    """

    def __init__(self, folder):
        self.path = Path(folder) / "calls.fk"
        self.counts = collections.Counter()
        self.good = {}
        for name, (f, sampler) in FUNCTIONS.items():
            self.path.unlink(missing_ok=True)
            draws = self.run(f, sampler)
            calls = fk.Evaluations(self.path)
            self.good[name] = self.path.read_bytes(), calls.x, calls.values, draws

    def run(self, f, sampler):
        """The draws of a run with the file."""
        options = OPTIONS | {"sampler": sampler}
        return fk.sample(f, START, evaluations=self.path, **options).draws

    def once(self, number):
        """Try one mistake; an AssertionError, or what was raised, where it is not dealt with."""
        rng = random.Random(number)
        kind = rng.choice(["bytes", "bytes", "header", "told"])
        self.counts[kind, getattr(self, kind)(rng)] += 1

    def bytes(self, rng):
        """Damage the bytes of a file."""
        name = rng.choice(list(FUNCTIONS))
        data, x, values, draws = self.good[name]
        self.path.write_bytes(damaged(bytearray(data), rng))
        try:
            calls = fk.Evaluations(self.path)
            kept = len(calls)
            assert kept <= len(x)
            np.testing.assert_array_equal(calls.x, x[:kept])
            np.testing.assert_array_equal(calls.values, values[:kept])
            look_at(calls)
            np.testing.assert_array_equal(self.run(*FUNCTIONS[name]), draws)
        except ValueError as error:
            return self.refused(error)
        return "works"

    def header(self, rng):
        """Begin a file with a header that is made up, with a right checksum."""
        told = {"d": 2, "names": [], "gradient": False, "target": "", "extras": {}}
        for _ in range(rng.choice([1, 1, 2])):
            told[rng.choice(list(told))] = rng.choice(VALUES)
        text = json.dumps(told).encode()
        if rng.random() < 0.2:
            text = bytes(damaged(bytearray(text), rng))
        records = self.good["plain"][0][-rng.randrange(1, 500):] if rng.random() < 0.5 else MARK
        self.path.write_bytes(
            MAGIC + np.array([len(text), zlib.crc32(text)], "<u4").tobytes() + text + records)
        try:
            look_at(fk.Evaluations(self.path))
            self.run(plain, "ram")
        except ValueError as error:
            return self.refused(error)
        return "works"

    def refused(self, error):
        """An error must name the file."""
        assert str(self.path) in str(error), error
        assert len(str(error)) < 5000
        return "refused"

    def told(self, rng):
        """Pass an AskTell values that it cannot use, after some that it can."""
        loop = fk.AskTell(START, search=False, **OPTIONS)
        for _ in range(rng.randrange(4)):
            points = loop.ask()
            loop.tell(points, [plain(x) for _, x in points])
        points = loop.ask()
        known = loop.asked_for().indices.tolist()
        given = rng.choice([points, rng.choice(POINTS), points.indices[:1]])
        values = rng.choice([[rng.choice(TOLD)], rng.choice(TOLD), [rng.choice(TOLD)] * 2])
        try:
            loop.tell(given, values)
        except (TypeError, ValueError) as error:
            words = ("points", "values", "the log density must be", "extras must be")
            assert any(word in str(error) for word in words), error  # noqa: PT017
            assert loop.asked_for().indices.tolist() == known
            loop.tell(points, [plain(x) for _, x in points])
            assert not loop.done
            return "refused"
        try:
            loop.ask()
        except fk.SamplingError:
            return "ended with an error"
        return "works"


def damaged(data, rng):
    """Some bytes changed, left out, doubled or put in."""
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        i, n = rng.randrange(len(data)), rng.choice([1, 1, 4, 8, 100])
        what = rng.choice(["flip", "flip", "set", "cut", "remove", "double", "insert"])
        if what == "flip":
            data[i] ^= 1 << rng.randrange(8)
        elif what == "set":
            data[i : i + n] = rng.choice([b"\0", b"\xff", b"9"]) * len(data[i : i + n])
        elif what == "cut":
            del data[max(i, 1):]
        elif what == "remove":
            del data[i : min(i + n, len(data) - 1)]
        else:
            data[i:i] = data[i : i + n] if what == "double" else rng.randbytes(n)
    return data


def look_at(calls):
    """Read everything that the object has."""
    _ = (calls.x, calls.values, calls.seconds, calls.times, calls.names, calls.d, repr(calls))
    _ = (calls.extras, calls.gradients)
    assert len(calls.errors) == len(calls.workers) == len(calls)
    if np.isfinite(calls.values).any():
        calls.best()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    until, bad, n = time.monotonic() + options.seconds, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(folder)
        while time.monotonic() < until:
            number = options.seed * 10**9 + n
            (Path(folder) / "number").write_text(str(number))
            try:
                fuzzer.once(number)
            except (Exception, SystemExit) as error:
                bad += 1
                print(f"{number}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            n += 1
    for (kind, what), count in sorted(fuzzer.counts.items()):
        print(f"{kind:8} {what:20} {count:7}")
    print(f"{n} tried, {bad} neither refused nor work")
    return bool(bad)


if __name__ == "__main__":
    raise SystemExit(main())
