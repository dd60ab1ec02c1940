"""The command line: fastkam demo, sample, resume, summary, samplers."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from fastkam._version import __version__
from fastkam.arguments import check_integer
from fastkam.cli.ending import ended, failed, in_options, print_table, resuming
from fastkam.cli.options import (
    UsageError,
    find_target,
    read_init,
    read_sampler,
    read_stop,
    whole,
)
from fastkam.errors import SamplingError, SamplingWarning
from fastkam.problem.described import Described
from fastkam.run.files import check_output, check_path, place_of
from fastkam.run.stored import StoredTrace
from fastkam.stores.store import check_outside

TO_RESUME = "fastkam resume {} --target MODULE:FUNCTION"


def main(argv=None):
    """Run the command line `argv`; return the exit code.

    0: success; 1: the run failed; 2: a mistake in the command; 130: interrupted.
    """
    options = parser().parse_args(attached(sys.argv[1:] if argv is None else argv))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", SamplingWarning)
            warnings.showwarning = partial(say_warning, warnings.showwarning)
            return options.command(options)
    except UsageError as error:
        print(f"fastkam: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("fastkam: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has ended, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def say_warning(show, message, *where, **more):
    """Print a warning about a run, except for what is printed below the table; show others."""
    if not isinstance(message, SamplingWarning):
        show(message, *where, **more)
        return
    result: Any = message.result
    if result is None or (result.status != "interrupted" and not any(
            one.text in str(message) for one in result.warnings)):
        print(f"fastkam: {in_options(str(message), TO_RESUME.format('FILE'))}", file=sys.stderr)


def attached(argv):
    """`argv` with ``--init -1,2`` as ``--init=-1,2``, since argparse takes -1,2 for an option."""
    argv, joined = list(argv), []
    while argv:
        word = argv.pop(0)
        number = argv and argv[0][:1] == "-" and argv[0][1:2].replace(".", "0").isdigit()
        if word in ("--init", "--set") and number:
            word = f"{word}={argv.pop(0)}"
        joined.append(word)
    return joined


# ---- options ----


def parser():
    """The parser of the command line."""
    top = argparse.ArgumentParser("fastkam", description="Adaptive MCMC at compiled speed.")
    top.add_argument("--version", action="version", version=f"fastkam {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    add_demo(commands)
    add_sample(commands)
    add_resume(commands)
    add_summary(commands)
    add_samplers(commands)
    return top


def add_demo(commands):
    one = commands.add_parser(
        "demo",
        help="show what it does: many modes, a bent ridge, an epidemic, or your own table",
        description="Sample three examples: sixteen separate modes and a long bent ridge by the "
        "default call, beside emcee where it is installed, and an SIR model of an outbreak of "
        "influenza. With --data, a logistic regression of your own table instead.",
    )
    one.add_argument("--data", metavar="FILE.csv", help="a table with a header")
    one.add_argument("--label", metavar="COLUMN", help="its column of two values, to be predicted")
    one.add_argument("--out", metavar="DIR", default="fastkam-demo",
                     help="where figures and draws go (default: %(default)s)")
    one.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    one.add_argument("--quick", action="store_true", help="fewer draws")
    one.set_defaults(command=demo)


def add_sample(commands):
    one = commands.add_parser(
        "sample",
        help="draw from a density of yours",
        description="Draw from the log density MODULE:FUNCTION. MODULE is a file, as model.py, or "
        "the name of an importable module; FUNCTION takes x (d,) and returns a number, or is "
        "anything else that fastkam.sample takes; a Problem with priors needs no start.",
    )
    one.add_argument("target", metavar="MODULE:FUNCTION")
    start = one.add_mutually_exclusive_group()
    start.add_argument("--init", metavar="0,0 | a=0,b=0 | @FILE",
                       help="where the chains start, by name for a function of named parameters; "
                       "a file holds one point, or one a chain")
    start.add_argument("--dim", type=int, help="start at 0 in this dimension")
    one.add_argument("--sampler", default="auto", metavar="NAME",
                     help="see fastkam samplers; auto chooses (default: %(default)s)")
    one.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                     help="a parameter of the sampler; may be repeated")
    one.add_argument("--schedule", default="finite", metavar="NAME",
                     help="when it adapts: finite, diminishing, rare or perpetual "
                     "(default: %(default)s)")
    one.add_argument("--draws", type=whole,
                     help="draws a chain (default: 1000, so far apart that they suffice)")
    one.add_argument("--budget", type=whole,
                     help="evaluations within which a run without --draws goes on "
                     "(default: 1000000)")
    one.add_argument("--tune", type=whole,
                     help="steps of warm-up (default: 1000; with auto what the choice needs)")
    one.add_argument("--chains", type=int, default=4, help="default: %(default)s")
    one.add_argument("--share", action="store_true", help="let the chains learn as one")
    one.add_argument("--thin", type=int, help="keep every thin-th step (default: chosen with auto)")
    one.add_argument("--no-search", action="store_true",
                     help="start at the points that are given, in their own units")
    one.add_argument("--seed", type=int, help="the same seed gives the same draws")
    one.add_argument("--names", metavar="a,b", help="names of the coordinates")
    add_running(one, "default: FUNCTION.fk, which is not replaced")
    one.set_defaults(command=sample)


def add_resume(commands):
    one = commands.add_parser(
        "resume",
        help="go on with a run",
        description="Go on with the run in FILE, as if it had never stopped.",
    )
    one.add_argument("file", metavar="FILE")
    one.add_argument("more", nargs="*", help=argparse.SUPPRESS)
    one.add_argument("--target", metavar="MODULE:FUNCTION",
                     help="the density; a file does not hold it")
    one.add_argument("--draws", type=whole,
                     help="number of further draws per chain (default: those missing)")
    add_running(one, "default: FILE itself")
    one.set_defaults(command=resume)


def add_running(one, out):
    """The options that sample and resume share."""
    one.add_argument("--time-limit", metavar="5min",
                     help="end the run after this time: 90s, 10min, 2h, 11h50min or 1d; without "
                     "--draws it goes on until then, or until --ess is met")
    one.add_argument("--ess", type=float, metavar="400",
                     help="end the run once each coordinate has this effective sample size")
    one.add_argument("--vectorized", action="store_true",
                     help="FUNCTION takes points (k, d) and returns (k,)")
    one.add_argument("--threads", type=int, help="threads to run chains in")
    one.add_argument("--processes", type=int, metavar="N", help="run chains in N processes")
    one.add_argument("--out", metavar="FILE", help=f"where the result goes ({out})")
    one.add_argument("--checkpoint", metavar="FILE", help="written every minute on the way")
    one.add_argument("--report", metavar="FILE.html",
                     help="write a report too: summary, findings, figures, settings")
    one.add_argument("--store", metavar="FOLDER",
                     help="where the draws go during the run, in place of a file at its end")
    one.add_argument("--evaluations", metavar="FILE",
                     help="where every call of the function is kept; those in it are not repeated")
    one.add_argument("--on-error", choices=("stop", "reject"), default="stop",
                     help="at a point where the function fails twice: stop, or reject the point")
    one.add_argument("--no-progress", action="store_true", help="do not show progress")


def add_summary(commands):
    one = commands.add_parser(
        "summary",
        help="print the summary of a run",
        description="Print the summary of the run in FILE, with the verdict on its draws.",
    )
    one.add_argument("file", metavar="FILE", help="a file or a folder of draws")
    one.add_argument("names", nargs="*", metavar="NAME",
                     help="parameters and extras, or elements of them (default: all parameters)")
    one.add_argument("--report", metavar="FILE.html",
                     help="write a report too: summary, findings, figures, settings")
    one.set_defaults(command=summary)


def add_samplers(commands):
    one = commands.add_parser(
        "samplers",
        help="list the samplers, or one's parameters",
        description="List the samplers; with NAME, describe one and its parameters.",
    )
    one.add_argument("name", nargs="?", metavar="NAME")
    one.set_defaults(command=samplers)


# ---- commands ----


def demo(options):
    """fastkam demo"""
    if (options.data is None) != (options.label is None):
        raise UsageError("--data and --label go together")
    from fastkam.demo import many_modes, outbreak, ridge, table

    folder = Path(options.out)
    try:
        check_integer("--seed", options.seed, least=0)
        if options.data is not None:
            read = table.read_table(options.data, options.label)
        folder.mkdir(parents=True, exist_ok=True)
    except (ValueError, OSError) as error:
        raise UsageError(error) from error
    if options.data is not None:
        title = f"{options.label} of {options.data}"
        table.run(read, title, folder, seed=options.seed, quick=options.quick)
        return 0
    for demonstration in (many_modes, ridge, outbreak):
        demonstration.run(folder, seed=options.seed, quick=options.quick)
    return 0


def start_of(options, target):
    """Starting points of the chains; None for a Problem, which has its own."""
    if options.dim is not None:
        return zeros(options.dim)
    if options.init is not None:
        return read_init(options.init)
    if not isinstance(target, Described):
        raise UsageError("--init, where the chains start, or --dim, to start at 0, must be given")
    return None


def sample(options):
    """fastkam sample"""
    from fastkam.sampling import sample as run

    target = find_target(options.target)
    out = place(options, options.target.rpartition(":")[2] + ".fk")
    check_paths(options, out)
    check_new(options, out)
    x0 = start_of(options, target)
    sampler = read_sampler(options.sampler, options.set)
    return finish(options, options.target, out, lambda: say_choice(options, run(
        target,
        x0,
        sampler=sampler,
        search=not options.no_search,
        schedule=options.schedule,
        draws=options.draws,
        budget=options.budget,
        tune=options.tune,
        chains=options.chains,
        share=options.share,
        thin=options.thin,
        seed=options.seed,
        names=[one.strip() for one in options.names.split(",")] if options.names else None,
        **how_to_run(options),
    )))


def how_to_run(options):
    """The arguments that `fastkam.sample` and `fastkam.resume` share."""
    return {"vectorized": options.vectorized, "threads": options.threads,
            "stop": read_stop(options.ess, options.time_limit),
            "executor": options.processes, "checkpoint": options.checkpoint,
            "store": options.store, "evaluations": options.evaluations,
            "on_error": options.on_error, "progress": False if options.no_progress else None}


def say_choice(options, result):
    """Return the result, after printing the sampler if it was chosen automatically."""
    if options.sampler == "auto":
        name = type(result.sampler).__name__
        chosen = [line for line in result.search if line.startswith(name)]
        print(f"Sampler: {(chosen or [name])[-1]}.")
    return result


def zeros(dim):
    """The starting point 0 of the dimension of --dim."""
    if dim < 1:
        raise UsageError(f"--dim must be at least 1, not {dim}")
    return [0.0] * dim


def resume(options):
    """fastkam resume"""
    from fastkam.result import load
    from fastkam.result import resume as run

    if options.more and options.target is None:
        raise UsageError("the density must be given by --target: fastkam resume "
                         f"{options.file} --target {options.more[0]}")
    if options.more:
        raise UsageError(f"one FILE must be given, not {options.more[0]!r} as well: fastkam resume "
                         f"{options.file} --target {options.target}")
    if options.target is None:
        raise UsageError("--target must be given: a result file does not hold the density")
    try:
        result = load(options.file)
    except (ValueError, OSError) as error:
        raise UsageError(error) from error
    target = find_target(options.target)
    in_store = isinstance(result.trace, StoredTrace) and Path(options.file).is_dir()
    out = Path(options.file) if in_store else place(options, options.file)
    check_paths(options, out)
    return finish(options, options.target, out, lambda: run(
        result,
        options.draws,
        target=target,
        **how_to_run(options),
    ))


def check_suffix(path):
    """Refuse, before any work, a report that no browser would open."""
    if path is not None and Path(path).suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--report must be a file that ends with .html or .htm, not {path!r}")


def check_paths(options, out):
    """Refuse, before any work, a report that could not be written, and a file that is given twice.
    """
    if options.report is not None:
        check_file(check_output, "--report", options.report)
    files = {"--report": options.report, "the result": out, "--checkpoint": options.checkpoint,
             "--evaluations": options.evaluations}
    for one, other in combinations([name for name, path in files.items() if path is not None], 2):
        same = place_of(files[one]) == place_of(files[other])
        if same and (one, other) != ("the result", "--checkpoint"):
            raise UsageError(f"{one} and {other} must be different files, not both "
                             f"{str(files[one])!r}")
    check_suffix(options.report)


def check_new(options, out):
    """Refuse to replace the result of an earlier run, unless --out names its file.

    With a store, or a checkpoint of the same name, the run itself takes care of an earlier one.
    """
    own = options.checkpoint is not None and place_of(options.checkpoint) == place_of(out)
    if options.out is None and options.store is None and not own and (
            out.exists() and out.stat().st_size):
        raise UsageError(f"{out} has the result of an earlier run: continue it (fastkam resume "
                         f"{out} --target {options.target}), or give another file, or the same, "
                         f"which is then replaced (--out {out})")


def place(options, otherwise):
    """Path of the result; a file that could not be written is refused before any work."""
    if options.store is not None:
        if options.out is not None:
            raise UsageError("--out must not be given with --store, which is where the draws go")
        return Path(options.store)
    for check in (partial(check_path, result=True), check_outside):
        check_file(check, "--out", options.out or otherwise)
    return Path(options.out or otherwise)


def check_file(check, name, path):
    """Refuse the path of a file by a check of `fastkam.run.files`."""
    try:
        check(name, path)
    except (ValueError, OSError) as error:
        raise UsageError(error) from error


def finish(options, target, out, run):
    """Run, save and report; return the exit code."""
    try:
        result = run()
    except SamplingError as error:
        return failed(error, options, target, out)
    except (TypeError, ValueError, OSError, ImportError) as error:
        raise UsageError(in_options(str(error), resuming(options, target, out))) from error
    return ended(result, options, target, out)


def summary(options):
    """fastkam summary"""
    from fastkam.result import load

    if options.report is not None:
        check_file(check_output, "--report", options.report)
    check_suffix(options.report)
    try:
        result = load(options.file)
        resume = TO_RESUME.format(options.file)
        if result.draws.shape[1]:
            print_table(result, options.names or None, options.file, resume)
        else:
            print(repr(result), *(in_options(one.text, resume) for one in result.warnings),
                  sep="\n")
        if options.report:
            result.report(options.report)
    except (ValueError, OSError, ImportError) as error:
        raise UsageError(error) from error
    return 0


def samplers(options):
    """fastkam samplers"""
    from fastkam.cli.options import describe_sampler, list_samplers

    print(list_samplers() if options.name is None else describe_sampler(options.name))
    return 0
