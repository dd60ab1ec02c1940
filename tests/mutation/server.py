"""The part that runs within pytest: which mutants the tests reach, and which mutants they notice.

All tests are collected once; each mutant is tried in a fork of that process, so that nothing is
imported a second time. What is learned goes to files of JSON lines in the folder FASTKAM_MUTATION.
"""

import json
import os
import random
import re
import resource
import select
import shutil
import signal
import time
from collections import Counter
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

from _pytest.runner import runtestprotocol
from fk_mutant import on, reached

WORK = Path(os.environ["FASTKAM_MUTATION"])
PART, PARTS = int(os.environ["FASTKAM_MUTATION_PART"]), int(os.environ["FASTKAM_MUTATION_PARTS"])
LONGEST = {signal.ITIMER_PROF: 5.0, signal.ITIMER_REAL: 60.0}   # seconds of a test that is used
MEMORY = 8 << 30    # bytes of a process that tries a mutant


class TooLongError(BaseException):
    """A test that is not used takes more than LONGEST."""


def read(name):
    """Return the lines of all parts of a log."""
    lines = []
    for file in sorted(WORK.glob(f"{name}-*.jsonl")):
        for line in file.read_text().splitlines():
            lines.append(json.loads(line))
    return lines


def write(name, entry):
    """Add a line to this part's log."""
    with open(WORK / f"{name}-{PART}.jsonl", "a") as file:
        file.write(json.dumps(entry) + "\n")


def pytest_collection_modifyitems(items):
    """Leave out what compiles."""
    items[:] = [item for item in items if "twins" not in item.fixturenames]


def pytest_runtestloop(session):
    """Take the place of the loop over tests."""
    session.config._tmp_path_factory.getbasetemp()
    end = time.monotonic() + float(os.environ["FASTKAM_MUTATION_SECONDS"])
    {"record": record, "attempt": attempt, "control": control}[
        os.environ["FASTKAM_MUTATION_PHASE"]](session, end)
    return True


def record(session, end):
    """Run this part's tests with no mutant on, and write which mutants each has reached."""
    known = {entry["test"] for entry in read("reached")}
    for signum in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(signum, give_up)
    for item in in_rounds(session.items)[PART::PARTS]:
        if item.nodeid in known:
            continue
        if time.monotonic() > end:
            break
        reached[:] = bytes(len(reached))
        begin = time.monotonic()
        for timer, limit in LONGEST.items():
            signal.setitimer(timer, limit)
        try:
            passed = passes(item)
        except TooLongError:
            passed = False
        finally:
            for timer in LONGEST:
                signal.setitimer(timer, 0)
        write("reached", {"test": item.nodeid, "seconds": round(time.monotonic() - begin, 3),
                          "passed": passed,
                          "reached": [k for k, hit in enumerate(reached.tobytes()) if hit]})


def in_rounds(items):
    """Order tests: one case of each function, then another one of each, and so on."""
    generator, functions = random.Random(1), {}
    for item in items:
        functions.setdefault((item.path, item.originalname), []).append(item)
    for cases in functions.values():
        generator.shuffle(cases)
    turns = []
    for turn in zip_longest(*functions.values()):
        cases = [item for item in turn if item is not None]
        generator.shuffle(cases)
        turns += cases
    return turns


def give_up(number, frame):
    raise TooLongError


def passes(item):
    """Run a test; whether it passes (or is skipped)."""
    reports = runtestprotocol(item, nextitem=None, log=False)
    return not any(report.failed for report in reports)


def attempt(session, end):
    """Try this part's mutants, each with the tests that reach it, until one fails."""
    items = {item.nodeid: item for item in session.items}
    table = json.loads((WORK / "mutants.json").read_text())
    mutants, refused = table["mutants"], set(table["refused"])
    unsteady = {entry["test"] for entry in read("control") if not entry["passed"]}
    tests = known_tests(items.keys() - unsteady, len(mutants))
    tried = {entry["mutant"]: entry for entry in read("tried")}
    numbers = [k for k in range(1, len(mutants) + 1) if k not in refused][PART::PARTS]
    random.Random(2).shuffle(numbers)
    kills = Counter()       # of tests, of their functions, and of tests in files
    for entry in tried.values():
        kills.update(credit(mutants[entry["mutant"] - 1][0], entry["by"]))
    for number in numbers:
        before = tried.get(number, {"by": None, "passed": []})
        if before["by"] and before["by"] not in unsteady:
            continue
        if time.monotonic() > end:
            break
        file = mutants[number - 1][0]
        reaching = [entry for entry in tests
                    if number in entry["reached"] and entry["test"] not in before["passed"]]
        reaching.sort(key=lambda entry, file=file: cost(file, entry, kills))
        chosen = within_limit(reaching)
        result = in_a_fork(number, [items[entry["test"]] for entry in chosen],
                           [entry["seconds"] for entry in chosen])
        kills.update(credit(file, result["by"]))
        passed = [entry["test"] for entry in chosen[:result["passed"]]]
        write("tried", {"mutant": number, "left": len(reaching) - len(chosen), **result,
                        "passed": before["passed"] + passed})


def known_tests(names, n):
    """Return the entries of tests that pass with no mutant on.

    Those of which nothing is known may reach all n mutants, where a user has named some tests.
    """
    known = read("reached")
    entries = [entry for entry in known if entry["passed"] and entry["test"] in names]
    if os.environ["FASTKAM_MUTATION_NAMED"] == "1":
        unknown = names - {entry["test"] for entry in known}
        entries += [{"test": name, "seconds": 1.0, "reached": range(n + 1)}
                    for name in sorted(unknown)]
    return entries


def credit(file, test):
    """Return what a test that has caught a mutant gets credit for."""
    return [(file, test), test, test.partition("[")[0]] if test else []


def cost(file, entry, kills):
    """Return the key that tests are sorted by: seconds, divided by how promising a test is."""
    test = entry["test"]
    own = re.search(rf"[\[_/-]{Path(file).stem}[\]_.-]", test) is not None
    hope = 1 + 5 * kills[file, test] + kills[test] + kills[test.partition("[")[0]]
    return (0.05 + entry["seconds"]) / (hope * (1 + 9 * own))


def within_limit(tests):
    """Return the first tests, as many as a mutant has time for."""
    left, chosen = float(os.environ["FASTKAM_MUTATION_EACH"]), []
    for entry in tests:
        left -= entry["seconds"]
        if left < 0 and chosen:
            break
        chosen.append(entry)
    return chosen


def control(session, end):
    """Run the tests that have caught mutants in the same way with no mutant on."""
    items = {item.nodeid: item for item in session.items}
    done = {entry["test"] for entry in read("control")}
    seconds = {entry["test"]: entry["seconds"] for entry in read("reached")}
    caught = sorted({entry["by"] for entry in read("tried") if entry["by"]})
    for test in caught[PART::PARTS]:
        if test in items.keys() - done and time.monotonic() < end:
            result = in_a_fork(0, [items[test]], [seconds.get(test, 1.0)])
            write("control", {"test": test, "passed": result["by"] is None})


def in_a_fork(number, items, seconds):
    """Try a mutant in a fork: by which test it is caught, and how many have passed before."""
    begin = time.monotonic()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        run_tests(number, items, write_end)
    os.close(write_end)
    place, how = 0, None
    while place < len(items) and how is None:
        ready = select.select([read_end], [], [], 20 + 10 * seconds[place])[0]
        said = os.read(read_end, 1) if ready else b"t"
        if said == b"+":
            place += 1
        else:
            how = {b"t": "time", b"-": "test"}.get(said, "crash")
    os.close(read_end)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    on[0] = 0
    for folder in (WORK / f"temporary-{PART}").iterdir():
        shutil.rmtree(folder, ignore_errors=True)
    return {"by": items[place].nodeid if how else None, "how": how, "passed": place,
            "seconds": round(time.monotonic() - begin, 2)}


def run_tests(number, items, pipe):
    """Run tests with a mutant on, and say + or - after each; this process ends here."""
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        on[0] = number
        for item in items:
            passed = passes(item)
            os.write(pipe, b"+" if passed else b"-")
            if not passed:
                break
    except BaseException:
        os.write(pipe, b"-")
    finally:
        os._exit(0)
