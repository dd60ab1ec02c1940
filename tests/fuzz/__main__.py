"""Calls with odd arguments by the thousand: ``PYTHONPATH=tests python -m fuzz 100000 [seed]``.

Each call has one or several unsuitable arguments, chosen at random by the seed and the number of
the call. It must work, or raise what the function documents with a message that names the argument;
it may neither end the process, nor take more than 20 seconds or 4 GB. The last lines count the
outcomes. --first begins at that number, --only takes one entry, and --once makes one call in this
process, to look at it: ``--once 4711``.
"""

import argparse
import collections
import os
import sys
import tempfile

from fuzz.workers import tried

GOOD = ("works", "refused", "stopped with an error")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls", type=int, nargs="?", default=10_000)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--only", help="an entry of fuzz.entries")
    parser.add_argument("--once", type=int)
    options = parser.parse_args()
    if options.once is not None:
        from fuzz.calls import made
        from fuzz.entries import ENTRIES

        name, arguments, changed = made(options.seed, options.once, options.only)
        print(name, {one: str(arguments[one])[:1000] for one in changed})
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)  # some calls write files
            print(ENTRIES[name].call(**arguments))
        return 0
    counts, entries, wrong = collections.Counter(), collections.Counter(), 0
    numbers = range(options.first, options.first + options.calls)
    for number, name, what in tried(options.seed, numbers, options.workers, options.only):
        good = what in GOOD
        counts[what if good else "wrong"] += 1
        entries[name] += 1
        wrong += not good
        if not good:
            print(f"{number} {name}: {what}", flush=True)
    print(f"{counts.total()} calls of {len(entries)} entries: {dict(counts)}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
