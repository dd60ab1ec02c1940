"""The tables of the results."""

from collections import defaultdict

import numpy as np

from bench.papers.record import table
from bench.posteriors import references
from bench.posteriors.densities import POSTERIORS
from bench.posteriors.peers import PACKAGES
from bench.posteriors.runs import OURS


class Results:
    """Rows by (posterior, gradient, sampler): whether it passes, and its median evaluations."""

    def __init__(self, rows):
        self.rows = defaultdict(list)
        known = references.load()
        for row in rows:
            if row["posterior"] not in known:
                continue
            row["right"], row["worst"] = references.errors(row["posterior"], row["moments"])
            row["right"] &= row["evaluations"] is not None
            self.rows[row["posterior"], row["gradient"], row["sampler"]].append(row)

    def passes(self, *key):
        """In more than half of the seeds."""
        rows = self.rows.get(key, [])
        return bool(rows) and sum(row["right"] for row in rows) > len(rows) / 2

    def evaluations(self, *key):
        """Median over the seeds; infinite where ESS 400 was not reached in half of them."""
        found = [np.inf if row["evaluations"] is None else row["evaluations"]
                 for row in self.rows.get(key, [])]
        return float(np.median(found)) if found else np.inf

    def best(self, name, gradient):
        """(evaluations, sampler) of the best of ours that passes, or (inf, "")."""
        return min([(self.evaluations(name, gradient, one), one) for one in OURS[gradient]
                    if self.passes(name, gradient, one)], default=(np.inf, ""))


def thousands(n):
    return "-" if not np.isfinite(n) else f"{n / 1000:,.1f}"


def cell(results, *key):
    """Thousands of evaluations; in parentheses where the moments are wrong."""
    if key not in results.rows:
        return ""
    text = thousands(results.evaluations(*key))
    return text if results.passes(*key) or text == "-" else f"({text})"


def report(rows, gradient):
    """Markdown of one table of all samplers, one of the default beside the best, and a summary."""
    results, peer = Results(rows), PACKAGES[gradient]
    ran = {sampler for _, of, sampler in results.rows if of == gradient}
    ours_ran = [one for one in OURS[gradient] if one in ran]
    names = [name for name, one in POSTERIORS.items() if gradient in one.uses]
    beside, ratios, saved, failed = [], [], [], []
    for name in names:
        key = name, gradient, "default"
        runs = results.rows.get(key, [])
        if not runs:
            continue
        ours, passes = results.evaluations(*key), results.passes(*key)
        (least, which) = results.best(name, gradient)
        theirs = results.evaluations(name, gradient, peer)
        silent = sum(not run["right"] and not run["told"] for run in runs)
        good = results.passes(name, gradient, peer)
        if which and not passes:
            failed.append(name)
        if which and passes:
            ratios.append(ours / least)
        if passes and good and np.isfinite(theirs):
            saved.append(theirs / ours)
        beside.append([
            name, f"{sum(run['right'] for run in runs)} of {len(runs)}", str(silent),
            thousands(np.median([run["before"] for run in runs])), thousands(ours)])
        if ours_ran:
            beside[-1] += [f"{which}: {thousands(least)}" if which else "none passes",
                           f"{ours / least:.2f}" if which and np.isfinite(ours) else "-"]
        if peer in ran:
            beside[-1] += [
                cell(results, name, gradient, peer),
                f"{theirs / ours:.2f}" if np.isfinite(theirs) and np.isfinite(ours) else "-"]
    text = f"\n## {'With' if gradient else 'Without'} the gradient\n\n"
    if ratios:
        text += (f"Against the best sampler of ours, where both pass: median "
                 f"{np.median(ratios):.2f}, worst {np.max(ratios):.2f} ({len(ratios)} "
                 "posteriors). ")
    if ours_ran:
        text += f"Another passes and the default does not: {', '.join(failed) or 'nowhere'}. "
    if saved:
        text += (f"{peer} takes, where both pass, {np.median(saved):.2f} times as many in the "
                 f"median, {np.min(saved):.2f} at least ({len(saved)} posteriors).")
    columns = ["posterior", "default passes", "wrong without a word", "before the draws",
               "to ESS 400"]
    columns += ["best of ours", "default / best"] if ours_ran else []
    columns += [peer, f"{peer} / default"] if peer in ran else []
    text += ("\n\n" if ours_ran or saved else "") + table(columns, beside)
    columns = ["default", *ours_ran, *([peer] if peer in ran else [])]
    if len(columns) == 1:
        return text
    return text + "\n" + table(["", *columns], [
        [name, *(cell(results, name, gradient, one) for one in columns)] for name in names])
