"""The table of what has become of each mutant."""

import json
from collections import Counter
from pathlib import Path

REASONS = Path(__file__).with_name("reasons.json")


def lines_of(work, name):
    """Return the entries of a log."""
    return [json.loads(line) for file in sorted(work.glob(f"{name}-*.jsonl"))
            for line in file.read_text().splitlines()]


def table(work):
    """Return the counts, and the place and the change of each mutant that no test has noticed."""
    known = json.loads((work / "mutants.json").read_text())
    mutants, refused = known["mutants"], set(known["refused"])
    tried = {entry["mutant"]: entry for entry in lines_of(work, "tried")}
    unsteady = {entry["test"] for entry in lines_of(work, "control") if not entry["passed"]}
    reasons = json.loads(REASONS.read_text()) if REASONS.exists() else {}
    counts, folders, survivors = Counter(), Counter(), []
    for number, (file, line, column, change) in enumerate(mutants, 1):
        entry = tried.get(number)
        if number in refused:
            fate = "not a program"
        elif entry is None or entry["by"] in unsteady:
            fate = "not tried"
        elif entry["by"]:
            fate = f"caught ({entry['how']})"
        else:
            text = known["lines"][number - 1]
            reason = reasons.get(f"{file}: {text}: {change}", "")
            fate = "no wrong result" if reason else "survived"
            tests = len(entry["passed"]) if entry["passed"] else "no"
            survivors.append(f"{file}:{line}:{column}: {change}; {tests} tests pass, "
                             f"{entry['left']} left\n    {text}" + f"\n    {reason}" * bool(reason))
        counts[fate] += 1
        folders[str(Path(file).parent), fate.split()[0]] += 1
    rows = [f"{fate:20} {count:5}" for fate, count in sorted(counts.items())]
    rows += [f"{folder:40} {fate:10} {count:5}"
             for (folder, fate), count in sorted(folders.items())]
    return "\n".join([*survivors, "", *rows])
