"""A run: the chains of a result, alive; it drives them in chunks, alone or in threads."""

from __future__ import annotations

import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext

import numpy as np
from threadpoolctl import threadpool_limits

from fastkam._core.engine import INFINITE, ChainState, Fault, Group
from fastkam.errors import SamplingError, SamplingWarning
from fastkam.progress import Progress, reporter
from fastkam.samplers.sampler import Composite
from fastkam.stop import NO_LIMIT

CHUNK_SECONDS = 0.05
WATCH_SECONDS = 0.05
LEAST_ACCEPTANCE = 0.005
HISTORY_BYTES = 2**23  # most that a chain's snapshots of what is learnt may take


class Run:
    """Continues a result.

    Parameters
    ----------
    result : Result
        Not changed; `Run.result` makes a new one.
    target : Target
    rows : int
        How many draws a chain there will be.
    """

    def __init__(self, result, target, rows):
        self.past = result
        self.target = target
        self.rows = rows
        self.begun = time.perf_counter()
        self.halt = threading.Event()
        self.most_evaluations = NO_LIMIT
        self.trace = result.trace.grown(rows)
        warmup_rows = result.tune // result.thin if result.keep_warmup else 0
        self.warmup = result.warmup.grown(max(warmup_rows, result.warmup.rows))
        self.snapshots = snapshot_steps(result)
        chains = range(result.chains)
        together = target.batched or result.share
        members = [chains] if together else [[k] for k in chains]
        self.groups = [Members(self, list(some)) for some in members]

    # ---- driving ----

    def go(self, *, threads=1, progress=None, stop=None, checkpoint=None, interval=60.0):
        """Run until every chain has its draws, or `stop` says so; the Result, or SamplingError."""
        keeper = Keeper(checkpoint, interval)
        reason, failure = self.drive(threads=threads, progress=progress, stop=stop, keeper=keeper)
        return self.ended(reason, failure, keeper)

    def drive(self, *, threads=1, progress=None, stop=None, keeper):
        """Run; why it ended ("complete", "stopped", "interrupted"), and the failure or None."""
        reason, failure = "complete", None
        report = reporter(progress, self.total_steps())
        if stop is not None:
            most = stop.most_evaluations(self.past.chains)
            self.most_evaluations = min(self.most_evaluations, most)

        def between():
            report(self.progress())
            keeper.keep(self)
            return stop is not None and stop.due(self)

        try:
            with one_blas_thread():
                for rows in self.milestones(stop):
                    if self.advance(rows, threads, between) or self.may_end(stop):
                        reason = "stopped"
                        break
            report(self.progress())
        except KeyboardInterrupt:
            reason = "interrupted"
        except Fault as fault:
            if isinstance(fault.cause, KeyboardInterrupt):
                reason = "interrupted"
            else:
                failure = fault
        except Exception as error:  # of the progress function, a stop rule or the sampler
            failure = error
        finally:
            report.close()
        return reason, failure

    def ended(self, reason, failure, keeper):
        """The Result of a run that is over, written and warned of; or its SamplingError."""
        result = self.result("failed" if failure else reason)
        unwritten = keeper.final(result)
        kept = f"{result.trace.counts.tolist()} draws a chain are kept in this error's .result"
        if isinstance(failure, Fault):
            where = {"chain": failure.chain, "x": failure.x,
                     "step": int(result.states[failure.chain]["t"])}
            raise SamplingError(f"{describe(failure, where['step'])}; {kept}{unwritten.text}",
                                result=result, **where) from failure.cause
        if failure:
            what = f"{type(failure).__name__}: {failure}"
            raise SamplingError(f"the run was stopped by {what}; {kept}{unwritten.text}",
                                result=result) from failure
        if reason == "interrupted":
            made = f"{result.trace.counts.tolist()} of {self.rows} draws a chain"
            text = f"interrupted after {made}; result.resume() goes on from there{unwritten.text}"
            warnings.warn(SamplingWarning(text, result=result), stacklevel=5)
        elif unwritten.error:
            raise SamplingError(f"the run is {reason}{unwritten.text}; {kept}",
                                result=result) from unwritten.error
        warn_of_stuck_chains(result)
        warn_of_divergences(result)
        return result

    def may_end(self, stop):
        """Whether `stop` ends the run before all its draws are made."""
        missing = any(self.trace.counts < self.rows)
        return stop is not None and missing and stop.met(self)

    def milestones(self, stop):
        """The numbers of draws at which stop rules are asked, then the last."""
        if stop is not None:
            yield from (rows for rows in milestones(self.rows) if rows > self.trace.rows)
        yield self.rows

    def advance(self, rows, threads, between):
        """Bring every chain to `rows` draws; True where `between` asked to stop."""
        waiting = [group for group in self.groups if not group.reached(rows)]
        if threads == 1 or len(waiting) < 2:
            return self.advance_here(waiting, rows, threads, between)
        return self.advance_threads(waiting, rows, threads, between)

    def advance_here(self, waiting, rows, threads, between):
        """This thread: a chunk of each group in turn, whose evaluations the others help with."""
        while waiting:
            for group in waiting:
                group.chunk(rows, threads)
                if between():
                    return True
            waiting = [group for group in waiting if not group.reached(rows)]
        return False

    def advance_threads(self, waiting, rows, threads, between):
        """Worker threads run the chains, this thread watches; each group has its share of them."""
        self.halt.clear()
        share = max(1, threads // len(waiting))

        def work(group):
            while not (self.halt.is_set() or group.reached(rows)):
                group.chunk(rows, share)

        with ThreadPoolExecutor(threads, thread_name_prefix="fastkam") as pool:
            try:
                todo = {pool.submit(work, group) for group in waiting}
                while todo:
                    done, todo = wait(todo, timeout=WATCH_SECONDS)
                    for future in done:
                        future.result()
                    if between():
                        return True
            finally:
                self.halt.set()
        return False

    # ---- what there is so far ----

    def total_steps(self):
        chains = self.past.chains
        return chains * (self.past.tune + self.rows * self.past.thin)

    def progress(self):
        chains = [chain for group in self.groups for chain in group.chains]
        steps = sum(chain.t for chain in chains)
        return Progress(
            steps=steps,
            total=self.total_steps(),
            draws=self.trace.counts.tolist(),
            tuning=any(chain.t < self.past.tune for chain in chains),
            acceptance=sum(chain.n_accepted for chain in chains) / max(steps, 1),
            seconds=self.seconds,
        )

    @property
    def evaluations(self):
        return sum(chain.n_evaluations for group in self.groups for chain in group.chains)

    @property
    def seconds(self):
        return time.perf_counter() - self.begun

    def result(self, status):
        """A Result of what there is; the draws are shared, not copied."""
        states, generators = [], []
        draws, warmup = self.trace.counts.copy(), self.warmup.counts.copy()
        for group in self.groups:
            with group.door, group.lock:
                states += [chain.state() for chain in group.chains]
                generators += [chain.bit_generator.state for chain in group.chains]
                # what other threads add from here on belongs to no state: it is left out
                draws[group.indices] = self.trace.counts[group.indices]
                warmup[group.indices] = self.warmup.counts[group.indices]
        return self.past.replaced(
            trace=self.trace.first(draws),
            warmup=self.warmup.first(warmup),
            states=states,
            generators=generators,
            requested=self.rows,
            seconds=self.past.seconds + self.seconds,
            status=status,
            target=self.target,
        )


def snapshot_steps(result):
    """The steps of warm-up after which the result keeps what has been learnt: at most 50, (n,)."""
    kernel = result.sampler.build(result.x0[0])
    size = 8 * sum(value.size for value in kernel.learnt().values())
    n = min(50, result.tune, max(2, HISTORY_BYTES // max(size, 1)))
    return np.ceil(np.arange(1, n + 1) * (result.tune / max(n, 1))).astype(int)


def milestones(rows):
    """100, 200, ... and then a fifth more each time, below `rows`."""
    some = 100
    while some < rows:
        yield some
        some += max(100, some // 5)


def describe(fault, step):
    """What a Fault was, and where."""
    where = f"chain {fault.chain}, step {step}, at x = {np.array2string(fault.x, threshold=8)}"
    if fault.code == 0:
        what = "no finite log density at the start, nor at 100 points around it"
    elif fault.cause is not None:
        what = f"the target raised {type(fault.cause).__name__}: {fault.cause}"
    elif fault.code == INFINITE:
        what = "the log density is +inf, which no density is"
    else:
        what = f"the target answered the fatal code {fault.code}"
    return f"{what} ({where})"


def warn_of_stuck_chains(result):
    """Say so where a chain has hardly moved: its draws tell next to nothing."""
    if result.trace.rows < 100:
        return
    rates = result.acceptance
    if rates.min() < LEAST_ACCEPTANCE:
        worst = int(rates.argmin())
        advice = "begin with narrower ones, or tune for longer"
        if result.target.is_estimate:
            advice += ", or make estimates less noisy (see fastkam.check_noise)"
        warnings.warn(
            f"chain {worst} accepts {100 * rates[worst]:.2g} % of the proposals of "
            f"{type(result.sampler).__name__}: {advice}",
            SamplingWarning,
            stacklevel=6,
        )


def warn_of_divergences(result):
    """Say so where trajectories diverged: the draws may leave out a part of the target.

    Not of a composite, whose other moves and replicas go where they do not.
    """
    n = result.trace.n_diverging
    if n and result.trace.rows >= 100 and not isinstance(result.sampler, Composite):
        warnings.warn(
            f"{n} of {result.trace.counts.sum()} trajectories diverged: the draws may leave out "
            "where the target bends most; raise target_acceptance, or reparametrise",
            SamplingWarning,
            stacklevel=6,
        )


class Keeper:
    """Writes checkpoints: none where `path` is None.

    A file that cannot be written does not end a run that may have taken days: it is warned of,
    tried again, and is an error only at the end, with the draws in it.
    """

    error, text = None, ""

    def __init__(self, path, interval):
        self.path, self.interval = path, interval
        self.last = time.monotonic()

    def keep(self, run):
        """Write a checkpoint of `run` if it is time."""
        if self.path is None or time.monotonic() - self.last < self.interval:
            return
        known = self.error is not None
        if self.write(run.result("running")).error and not known:
            warnings.warn(f"the run goes on{self.text}", SamplingWarning, stacklevel=2)
        self.last = time.monotonic()

    def final(self, result):
        """Write the last one; self, with `error` and the `text` that tells of it."""
        return self if self.path is None else self.write(result)

    def write(self, result):
        try:
            result.save(self.path)
            self.error, self.text = None, ""
        except OSError as error:
            self.error, self.text = error, f", but checkpoint={str(self.path)!r}: {error}"
        return self


class Members:
    """A group of chains of a run, with the arrays it records into."""

    def __init__(self, run, indices):
        result = run.past
        self.run, self.indices = run, indices
        self.lock = threading.Lock()
        self.door = threading.Lock()
        self.size = 1  # steps a chunk, grown until one takes CHUNK_SECONDS
        self.started = False
        self.limit = None
        self.chains = []
        for k in indices:
            # chains that learn as one begin with the same knowledge
            kernel = result.sampler.build(result.x0.mean(axis=0) if result.share else result.x0[k])
            chain = ChainState(kernel, result.generator(k), result.x0[k],
                               n_aux=run.target.n_aux)
            chain.keep_history(len(run.snapshots))
            if result.states:
                chain.restore(result.states[k])
            self.chains.append(chain)
        schedule = result.schedule.compiled(result.sampler, result.d, result.tune)
        self.engine = Group(run.target.bind(), self.chains, schedule, share=result.share)

    @property
    def tuning(self):
        return self.chains[0].t < self.run.past.tune

    def reached(self, rows):
        if all(chain.n_evaluations >= self.run.most_evaluations for chain in self.chains):
            return True
        return not self.tuning and all(self.run.trace.counts[k] >= rows for k in self.indices)

    def attach(self, rows):
        """Record into the warm-up's rows, or into the draws' up to `rows`."""
        limit = -1 if self.tuning else rows
        if limit == self.limit:
            return
        trace = self.run.warmup if self.tuning else self.run.trace
        capacity = trace.x.shape[1] if self.tuning else rows
        for k, chain in zip(self.indices, self.chains, strict=True):
            chain.attach(trace.chain(k), capacity, self.run.past.thin)
        self.limit = limit

    def chunk(self, rows, threads):
        """Run a chunk of steps, no further than the end of warm-up or `rows` draws."""
        with self.door:  # held by whoever waits for the state: chunks in a row would starve him
            pass
        with self.lock:
            self.attach(rows)
            begun = time.perf_counter()
            t = self.chains[0].t
            n = self.size
            self.note()  # here too: an interrupt may have come between the step and the note
            if self.tuning:
                snapshots = self.run.snapshots
                n = min(n, snapshots[np.searchsorted(snapshots, t, side="right")] - t)
            try:
                if not self.started:
                    self.engine.start()
                    self.started = True
                self.engine.run(n, self.run.most_evaluations, threads)
            except Fault as fault:
                fault.chain = self.indices[fault.chain]
                raise
            self.note()
            seconds = time.perf_counter() - begun
            made = self.chains[0].t - t  # fewer than asked for at the end of warm-up
            growth = np.clip(CHUNK_SECONDS / max(seconds, 1e-9), 0.1, 8.0)
            self.size = max(1, int(made * growth))


    def note(self):
        """Keep what has been learnt, where a snapshot of it is due."""
        snapshots, t = self.run.snapshots, self.chains[0].t
        i = np.searchsorted(snapshots, t)
        if i < len(snapshots) and snapshots[i] == t:
            for chain in self.chains:
                chain.snapshot(i)


def one_blas_thread():
    """A context in which BLAS has one thread, where that can be undone for certain.

    The number belongs to the process, and runs that begin and end in several threads would undo
    each other's limit in the wrong order; only those of the main thread are sure to be nested.
    """
    if threading.current_thread() is threading.main_thread():
        return threadpool_limits(1, user_api="blas")
    return nullcontext()
