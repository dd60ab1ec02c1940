"""Faults by the hundred: ``PYTHONPATH=tests python -m faults 300`` makes 300 runs with a fault.

Further arguments: a seed, and the name of one fault or case.
"""

import sys
from collections import Counter
from itertools import cycle, islice

from faults.runs import CASES
from faults.suite import FAULTS, Suite, applies


def main(n=300, seed=0, only=None):
    """Make n runs, and print how they ended."""
    suite, broken = Suite(seed), []
    pairs = [(case, fault) for case in CASES for fault in FAULTS
             if applies(fault, case) and only in (None, case, fault)]
    suite.random.shuffle(pairs)
    for case, fault in islice(cycle(pairs), n):
        try:
            suite.once(case, fault)
        except Exception as error:
            broken.append((case, fault, error))
            print(f"BROKEN {case}, {fault}: {error!r:.500} {getattr(error, '__notes__', '')}",
                  flush=True)
    ended = Counter()
    for (fault, _, how), count in suite.counts.items():
        ended[fault, " ".join(how.split()[:2])] += count
    for (fault, how), count in sorted(ended.items()):
        print(f"{fault:15} {how:25} {count:5}")
    print(f"{n} runs, {len(broken)} broken promises")
    suite.close()
    return len(broken)


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:3]), *sys.argv[3:])))
