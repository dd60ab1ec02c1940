"""End a call: with its result and a warning, or with an error that contains the draws."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fastkam._core.engine.fault import Fault
from fastkam.arguments import counted, told
from fastkam.diagnostics import checks
from fastkam.errors import SamplingError, SamplingWarning, warn
from fastkam.run.faults import TaskLost, Unwritten, describe
from fastkam.run.hints import advice, of_memory

if TYPE_CHECKING:
    from fastkam.result import Result
    from fastkam.run.loop import Outcome
    from fastkam.run.options import RunOptions


def conclude(result: Result, outcome: Outcome, options: RunOptions) -> Result:
    """The result of a run, with its warnings.

    If the run has failed, a SamplingError that contains the result is raised.
    """
    failure = outcome.failure
    unwritten, problem = outcome.checkpoint.error, outcome.checkpoint.problem
    counts = result.trace.counts.tolist()
    kept = f"{counts} draws a chain are kept in this error's .result"
    weighted = result.log_weights is not None
    if weighted:
        kept = (f"{counts} draws a chain and {counted(result.evaluations, 'evaluation')} are kept "
                "in this error's .result and .result.state.calls; with evaluations=\"calls.fk\" "
                "the same call of sample continues from those in the file")
    moved = options.earlier.take_message()
    if moved and failure is not None:
        kept = f"{kept}; {moved}"
    elif moved:
        warn(SamplingWarning(moved, result=result))
    if isinstance(failure, Fault):
        step = 1 if weighted else int(result.states[failure.chain]["t"])
        assert result.target is not None
        mend = advice(failure, step, result.target)
        with suppress(Exception):  # a transform in Python may fail, and be the failure itself
            failure.x = outcome.state.constrain(failure.x)
        if weighted:
            what = describe(failure, "in learning a surrogate")
            raise SamplingError(f"{what}{mend}; {kept}", result=result,
                                x=failure.x) from failure.cause
        what = describe(failure, f"chain {failure.chain}, step {step}")
        raise SamplingError(f"{what}{mend}; {kept}{problem}", result=result, chain=failure.chain,
                            step=step, x=failure.x) from failure.cause
    if failure is not None:
        if not isinstance(failure, Exception):  # SystemExit, or one of another package
            if moved:
                warn(SamplingWarning(moved, result=result))
            raise with_result(failure, result, kept)
        lost = isinstance(failure, TaskLost)
        what = str(failure) if lost or isinstance(failure, Unwritten) else told(failure)
        what = ", ".join([what, *getattr(failure, "__notes__", ())])
        if isinstance(failure, MemoryError):
            what += f": {of_memory(result.chains, result.state.d)}"
        raise SamplingError(
            f"the run was stopped by {what}; {kept}{problem}", result=result,
            chain=failure.chains[0] if isinstance(failure, TaskLost) else None,
        ) from failure.cause if isinstance(failure, TaskLost) else failure
    if options.shield.leaving is not None:
        raise with_result(options.shield.leaving, result, kept)
    interrupted = result.status == "interrupted"
    if options.until_stop and result.state.budget and result.status == "complete":
        warn(SamplingWarning(
            f"stop was not met within the number of evaluations that the run may take, "
            f"{result.state.budget}: give a larger budget, or continue (result.resume(stop=...))",
            result=result))
    if unwritten is not None and not interrupted:
        raise SamplingError(f"the run is {result.status}{problem}; {kept}",
                            result=result) from unwritten
    if options.diagnose and not interrupted:
        try:
            with options.shield.opened:
                checks.warn(result)
        except KeyboardInterrupt:
            interrupted = True
        except SamplingWarning:  # where warnings are errors
            raise
        except Exception as error:  # such as one of a transform in Python
            warn(SamplingWarning(f"the draws could not be judged: {told(error)}", result=result))
    if options.shield.taken() or interrupted:
        text = (f"interrupted after {counts} of {result.requested} draws a chain; result.resume() "
                f"continues from there{problem}")
        if weighted:
            text = (f"interrupted after {counts} draws a chain and "
                    f"{counted(result.evaluations, 'evaluation')}, which are in "
                    "result.state.calls; with evaluations=\"calls.fk\" the same call of sample "
                    "continues from those in the file")
        if result.status != "interrupted":
            text = (f"interrupted at the end of a run that is {result.status}: no draw is missing; "
                    "result.warnings may not have been shown")
        warn(SamplingWarning(text, result=result))
    return result


def with_result(error: BaseException, result: Result, kept: str) -> BaseException:
    """An exception that is no `Exception`, and that is raised as it is, with the result."""
    with suppress(Exception):  # a class may refuse attributes, and none declares this one
        error.result = result  # type: ignore[attr-defined]
        error.add_note(kept)
    return error
