"""Files of runs with something wrong in them: each must be refused by name, or work.

    python tests/files/fuzzing.py [--seconds 600] [--workers 2] [--seed 1] [--only CASE] [--bytes]

makes such files, tries them in other processes until the time is over or all are tried, and prints
how many were refused, how many worked, and those that did neither: what ended the process, took too
long or too much memory, or raised anything else. Each entry of each file gets each mistake, or with
--chance 0.1 one in ten of them; with --bytes, the bytes of the files are damaged at random.
"""

import argparse
import collections
import io
import itertools
import json
import os
import queue
import resource
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import runs_in_files

sys.path.append(str(Path(__file__).resolve().parents[1]))  # where this is run as a program
from limits import Limit

SECONDS = 20  # of the processor, that a file may take; see limits
ADDRESS_SPACE = 4 * 2**30  # bytes of a process that tries files
STOPS = (31, 75, 141)  # evaluations at which runs stop within a step
# of a file with other coordinates, and of one with chains at points without a density
ABOUT_TARGET = ("has other parameters or transforms than the run",
                "must have a density where the run goes on")
REFUSED, WORKS, STOPPED = "refused", "works", "stopped with an error"

# ---- the mistakes ----

INTEGERS = (-1, 0, 1, 2, 7, 10**6, 2**40, 2**62, -2**62, -2**63, 2**63 - 1)
REALS = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, 1e-300)
TYPES = ("f4", "i4", "i8", "f8", "U3", "c16", "u1", ">f8", "b1", "V8", "M8[s]")
VALUES = (None, True, -1, 0, 1, 2, 3, 10**6, 2**62, 10**400, 0.5, float("nan"), float("inf"), 1e308,
          "", "x", [], [1], {}, {"class": "os:system", "parameters": {}},
          {"array": [1], "dtype": "(1000000000,)f8"}, {"array": [1], "dtype": "O"},
          {"array": [[1]], "dtype": "float64"}, {"class": "fastkam.schedules:Finite",
                                                 "parameters": {}})
COSTLY = (("thin", 10**6), ("n_steps", 10**6))  # allowed, and a draw takes as many evaluations


def changes(array):
    """Values for one element of an array, of its type."""
    kind = array.dtype.kind
    if kind == "i":
        limits = np.iinfo(array.dtype)
        return [value for value in INTEGERS if limits.min <= value <= limits.max]
    return list(REALS) if kind == "f" else [255, 0] if kind == "u" else []


def mistakes(arrays):
    """Each array with each mistake: (what, function of the dict of arrays that makes it)."""
    for name, array in arrays.items():
        if name == "header":
            continue
        for value in changes(array):
            yield f"{name} = {value}", at(name, value, ...)
            if array.size > 1:
                for place in (0, array.size - 1, array.size // 2):
                    yield f"{name}[{place}] = {value}", at(name, value, place)
        if array.size > 1:
            yield f"{name} reversed", changed(
                name, lambda array: array.ravel()[::-1].reshape(array.shape))
        for shape in shapes(array):
            yield f"{name} of shape {shape}", changed(name, partial(np.resize, new_shape=shape))
        for dtype in TYPES:
            if np.dtype(dtype) != array.dtype:
                yield f"{name} of {dtype}", changed(name, partial(np.zeros_like, dtype=dtype))
        yield f"{name} missing", without(name)
        yield f"{name} twice", put(f"{name}.{name}", array)
    for name in ("more", "chain0.more", "chain7.t", "trace.more", "coords.more",
                 "chain0.kernel.more"):
        yield f"{name} besides", put(name, np.zeros(2))


def put(name, value):
    """A function that sets an array."""
    def change(arrays):
        arrays[name] = value
    return change


def changed(name, function):
    """A function that puts function(array) in the place of an array."""
    def change(arrays):
        arrays[name] = function(arrays[name])
    return change


def at(name, value, place):
    """A function that sets one element of an array, counted through, or all of it."""
    def element(array):
        array = np.array(array)
        array.reshape(-1)[place] = value
        return array
    return changed(name, element)


def without(name):
    """A function that removes an array."""
    def change(arrays):
        del arrays[name]
    return change


def shapes(array):
    """Other shapes than that of an array."""
    shape = array.shape
    found = {(), (0,), (1,), (3,), (*shape, 1), (1, *shape), (array.size,)}
    for axis, n in enumerate(shape):
        for other in (0, 1, n - 1, n + 1, 2 * n, n + 100):
            found.add((*shape[:axis], max(other, 0), *shape[axis + 1:]))
    return sorted(found - {shape}, key=str)


def header_mistakes(header, path=()):
    """Each entry of the header with each mistake."""
    for key in list(header) if isinstance(header, dict) else range(len(header)):
        place = (*path, key)
        # a run of which every millionth step is a draw is one, and takes long
        for value in [one for one in VALUES if (key, one) not in COSTLY]:
            yield f"header {place} = {value!r:.40}", in_header(place, value)
        yield f"header {place} missing", in_header(place, None, remove=True)
        inner = header[key]
        if isinstance(inner, dict) or (isinstance(inner, list) and len(inner) < 20):
            yield from header_mistakes(inner, place)
    if isinstance(header, dict):
        yield f"header {path} with more", in_header((*path, "more"), 1)


def in_header(place, value, remove=False):
    """A function that sets or removes an entry of the header."""
    def change(arrays):
        header = json.loads(arrays["header"].tobytes())
        inner = header
        for key in place[:-1]:
            inner = inner[key]
        if remove:
            del inner[place[-1]]
        else:
            inner[place[-1]] = value
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    return change


def whole_headers():
    """Headers that are no header at all."""
    for text in (b"", b"[]", b"{}", b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"NaN",
                 b'{"format": 2}', b"9" * 5000):
        yield f"header {text[:20]!r}", put("header", np.frombuffer(text, np.uint8))


def all_mistakes(arrays):
    """All of them but damage to bytes."""
    header = json.loads(arrays["header"].tobytes())
    return itertools.chain(mistakes(arrays), header_mistakes(header), whole_headers())


def made(arrays, change):
    """The bytes of a file with a mistake."""
    others = dict(arrays)
    change(others)
    file = io.BytesIO()
    np.savez(file, **others)
    return file.getvalue()


def damages(whole, rng):
    """Damage to the bytes of a file, without end."""
    arrays = arrays_in(whole)
    names = list(arrays)
    for size in (0, 1, 22, len(whole) // 2, len(whole) - 1):
        yield f"{size} bytes", whole[:size]
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    yield "compressed", file.getvalue()
    yield "sizes that are not true", lying(whole)
    while True:
        damaged = bytearray(whole)
        for place in rng.integers(len(whole), size=rng.integers(1, 8)):
            damaged[place] = rng.integers(256)
        yield "bytes of the file", bytes(damaged)
        damaged = bytearray(whole)
        directory = whole.rindex(b"PK\x05\x06")
        start = whole.index(b"PK\x01\x02")
        for place in rng.integers(start, directory + 22, size=rng.integers(1, 4)):
            damaged[place] = rng.integers(256)
        yield "bytes of the directory", bytes(damaged)
        yield "bytes of a member", with_damaged_member(whole, names[rng.integers(len(names))], rng)


def with_damaged_member(whole, name, rng):
    """A file in which a member has other bytes, in its own header too, and the right checksum."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(file, "w") as new:
        for member in old.infolist():
            content = bytearray(old.read(member))
            if member.filename == f"{name}.npy":
                for place in rng.integers(min(len(content), 400), size=rng.integers(1, 5)):
                    content[place] = rng.integers(256)
            new.writestr(member.filename, bytes(content))
    return file.getvalue()


def lying(whole):
    """A file whose directory says that its first member has 2^31 bytes."""
    damaged = bytearray(whole)
    place = whole.index(b"PK\x01\x02")
    damaged[place + 20 : place + 28] = (2**31).to_bytes(4, "little") * 2
    return bytes(damaged)


def arrays_in(whole):
    """The arrays of a file."""
    with np.load(io.BytesIO(whole)) as content:
        return {name: content[name] for name in content.files}


# ---- trying them, in processes of their own ----


def outcome(case, path):
    """Return the outcome of reading a file: refused, works, or an error."""
    import fastkam as fk

    try:
        runs_in_files.go_on(case, path)
    except ValueError as error:
        if str(path) in str(error) or any(text in str(error) for text in ABOUT_TARGET):
            return REFUSED
        return f"ValueError without the file: {error}"
    except fk.SamplingError as error:
        return f"{STOPPED}: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return WORKS


def work():
    """Try the files that standard input names, a line each, and print what became of them."""
    import warnings

    warnings.simplefilter("ignore")
    if "FASTKAM_SANITIZER" not in os.environ:  # a sanitizer reserves terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    np.seterr(all="ignore")
    for line in sys.stdin:
        case, path = json.loads(line)
        print(json.dumps(outcome(case, path)), flush=True)


class Worker:
    """A process that tries files, and another in its place where it has ended."""

    def __init__(self):
        self.process = None

    def ask(self, case, path):
        """Return the outcome of reading a file, from a worker."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, __file__, "--worker"], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        limit = Limit(self.process, SECONDS)
        self.process.stdin.write(json.dumps([case, str(path)]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        late = limit.end()
        if answer:
            return json.loads(answer)
        process, self.process = self.process, None
        process.communicate()
        code = process.returncode
        return f"took more than {SECONDS} s" if late else f"ended with {code}"

    def close(self):
        if self.process is not None:
            self.process.communicate()


def tried(files, workers=2, seconds=np.inf):
    """Yield (case, what, outcome) for files (case, what, bytes), in some order."""
    todo, done, end = queue.Queue(maxsize=4 * workers), queue.Queue(), time.monotonic() + seconds

    def run(folder, k):
        worker, path = Worker(), Path(folder) / f"{k}.fk"
        while (one := todo.get()) is not None:
            case, what, content = one
            path.write_bytes(content)
            done.put((case, what, worker.ask(case, path)))
        worker.close()
        done.put(None)

    def feed():
        for one in files:
            if time.monotonic() > end:
                break
            todo.put(one)
        for _ in range(workers):
            todo.put(None)

    with tempfile.TemporaryDirectory() as folder:
        threads = [threading.Thread(target=run, args=(folder, k)) for k in range(workers)]
        threads.append(threading.Thread(target=feed))
        for thread in threads:
            thread.start()
        left = workers
        while left:
            found = done.get()
            if found is None:
                left -= 1
            else:
                yield found
        for thread in threads:
            thread.join()


def originals(cases=None, stops=STOPS):
    """Good files, {(case, evaluation): bytes}."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "good.fk"
        for case in cases or runs_in_files.CASES:
            for stop in (None, *stops):
                if runs_in_files.make(case, path, stop) == (stop is not None):
                    found[case, stop] = path.read_bytes()
    return found


def every_file(good, chance=1.0, rng=None):
    """Each mistake in each file, or a random part of them."""
    for (case, stop), whole in good.items():
        arrays = arrays_in(whole)
        for what, change in all_mistakes(arrays):
            if chance == 1 or rng.random() < chance:
                yield case, f"{what} (stopped at {stop})", made(arrays, change)


def damaged_files(good, rng):
    """Damage to one file after another, without end."""
    endless = [(case, damages(whole, rng)) for (case, _), whole in good.items()]
    for case, some in itertools.cycle(endless):
        what, content = next(some)
        yield case, what, content


def is_good(answer):
    """Whether a file was refused by name, or worked."""
    return answer in (REFUSED, WORKS)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append")
    parser.add_argument("--chance", type=float, default=1.0, help="of each mistake")
    parser.add_argument("--bytes", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work()
        return
    rng = np.random.default_rng(options.seed)
    good = originals(options.only)
    files = damaged_files(good, rng) if options.bytes else every_file(good, options.chance, rng)
    counts = collections.Counter()
    for case, what, answer in tried(files, options.workers, options.seconds):
        counts[answer.partition(":")[0]] += 1
        if not is_good(answer):
            print(f"{case}: {what}: {answer}", flush=True)
    print(f"{len(good)} files, {counts.total()} mistakes:", dict(counts))


if __name__ == "__main__":
    main()
