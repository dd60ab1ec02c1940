"""The end of a run from the command line: its files, its table, and what to do next."""

import re
import sys
import traceback

from fastkam.arguments import counted
from fastkam.run.checkpoint import counts_in, draws_in
from fastkam.run.files import place_of
from fastkam.run.stored import StoredTrace

# arguments of functions -> options
OPTIONS = {"x0": "--init", "stop": "--time-limit, --ess", "executor": "--processes",
           'on_error="reject"': "--on-error reject", "search=False": "--no-search",
           **{name: f"--{name}" for name in (
               "sampler", "draws", "budget", "tune", "chains", "thin", "seed", "threads",
               "schedule", "names", "evaluations", "checkpoint", "store")}}


def ended(result, options, target, out):
    """Save a result, print it and write its report; return the exit code."""
    unsaved = keep(result, out)
    report(result, out if unsaved is None else None, resuming(options, target, out))
    if unsaved is not None:
        say_unsaved(unsaved, result.status in ("complete", "stopped"), options, target, out)
        return 1
    unreported = write_report(result, options, target)
    if result.status == "interrupted":
        print(f"interrupted; {kept(result)}")
        print(how_to_resume(options, target, out))
    else:
        print(f"result  {out}")
    if unreported is not None:
        say(f"--report {options.report} cannot be written: {reason(unreported)}; the result was "
            f"saved; to write it again: fastkam summary {out} --report FILE.html")
        return 1
    return 130 if result.status == "interrupted" else 0


def failed(error, options, target, out):
    """Print the user's traceback, save the draws, print how to continue; return the exit code."""
    cause, frames = error.__cause__, own_frames(error.__cause__)
    if cause is not None and (frames is not None or not isinstance(cause, OSError)):
        traceback.print_exception(cause.with_traceback(frames))  # not that of a disk which is full
    say(in_options(str(error).rpartition(";")[0] or str(error), resuming(options, target, out)))
    if error.result is not None:
        unsaved = keep(error.result, out)
        if unsaved is not None:
            say_unsaved(unsaved, False, options, target, out)
        else:
            say(f"{kept(error.result)} in {out}")
            say(how_to_resume(options, target, out))
    return 1


def say(text):
    """Print a message about an error."""
    print(f"fastkam: {text}", file=sys.stderr)


def keep(result, out):
    """Write the result to a file, unless its draws are in a store; return an error of the disk."""
    if not isinstance(result.trace, StoredTrace):
        try:
            result.save(out)
        except OSError as error:
            return error
    return None


def write_report(result, options, target):
    """Write the report if there is to be one; return the error if that is not possible."""
    if options.report is None:
        return None
    try:
        result.report(options.report, title=target)
    except (OSError, ImportError) as error:
        return error
    print(f"report  {options.report}")
    return None


def reason(error):
    """Describe an error, without a path that the message has already."""
    return getattr(error, "strerror", None) or error


def say_unsaved(error, complete, options, target, out):
    """Print that the result cannot be written, where its draws are, and how to go on."""
    say(f"the result cannot be written to {out}: {reason(error)}")
    draws = None if options.checkpoint is None else draws_in(options.checkpoint)
    if draws is not None and place_of(options.checkpoint).exists():
        say(f"{counted(draws, 'draw')} of all chains are in --checkpoint {options.checkpoint}, "
            "which is a result, too: make room, or copy it to another disk")
        say(f"to see them: fastkam summary {options.checkpoint}" if complete else
            how_to_resume(options, target, options.checkpoint))
    elif options.evaluations is not None:
        say(f"the draws are lost, but the calls of the function are in --evaluations "
            f"{options.evaluations}: make room, or give --out a file on another disk, and repeat "
            "the command, which does not make those calls again")
    else:
        say("the draws are lost: make room, or give --out a file on another disk, and repeat the "
            "command; --store or --checkpoint keep the draws on the way")


def own_frames(error):
    """The traceback of `error`, beginning with the user's first frame; None if there is none."""
    frames = None if error is None else error.__traceback__
    others = {"fastkam", *sys.stdlib_module_names}
    while frames and frames.tb_frame.f_globals.get("__name__", "").partition(".")[0] in others:
        frames = frames.tb_next
    return frames


def kept(result):
    """Number of draws, as a text."""
    counts = result.trace.counts.tolist()
    if isinstance(result.trace, StoredTrace):  # others may be in memory alone: of a full disk
        counts = counts_in(result.trace.store.state_path) or [0]
    number = counts[0] if len(set(counts)) == 1 else ", ".join(map(str, counts))
    return f"{number} of {counted(result.requested, 'draw')} a chain are saved"


def how_to_resume(options, target, out):
    """Return the command that continues the run, as a sentence."""
    return f"to go on: {resuming(options, target, out)}"


def resuming(options, target, out):
    """Return the command that continues the run."""
    more = " --vectorized" if options.vectorized else ""
    return f"fastkam resume {out} --target {target}{more}"


def in_options(text, resume):
    """Put options and the command `resume` into a text for users of Python."""
    text = re.sub(r"result\.resume\((\w*)[^()]*\)",
                  lambda call: f"{resume} --draws N" if call[1] == "draws" else resume, text)
    text = re.sub(r"fk\.resume\(('[^']*')[^()]*\)",
                  r"fastkam resume \1 --target MODULE:FUNCTION", text)
    text = re.sub(r"\b(\w+)=(?=[,)])", lambda name: OPTIONS.get(name[1], name[0]), text)
    text = re.sub(r"^(\w+)(?= must )", lambda name: OPTIONS.get(name[1], name[0]), text)
    text = re.sub(r'\bsampler="(\w+)"', r"--sampler \1", text)
    return re.sub(r'\b(on_error="reject"|search=False)', lambda name: OPTIONS[name[0]], text)


def print_table(result, names, file, resume):
    """Print the summary of a result, with what to do in terms of the command line.

    `file` is None if the result could not be saved.
    """
    table = result.summary(names)
    table.notes = [in_options(note, resume) for note in table.notes]
    print(table)
    if file is not None and any("result." in note for note in table.notes):
        print(f"(In Python: result = fastkam.load({str(file)!r}))")


def report(result, out, resume):
    """Print the table, the speed, and the rejected points."""
    from fastkam.demo.report import speed
    from fastkam.diagnostics.checks import rejected_points

    if result.draws.shape[1]:
        print_table(result, None, out, resume)
        print()
    print(speed(result))
    points = rejected_points(result)
    if points:
        print(points)
