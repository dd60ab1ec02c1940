"""A run: the chains of a result, alive; it drives them in chunks, alone or in threads."""

from __future__ import annotations

import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
from threadpoolctl import threadpool_limits

from fastkam._core.engine import ChainState, Fault, Group
from fastkam.errors import SamplingError, SamplingWarning
from fastkam.progress import Progress, reporter

CHUNK_SECONDS = 0.05
WATCH_SECONDS = 0.05


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
        self.trace = result.trace.grown(rows)
        warmup_rows = result.tune // result.thin if result.keep_warmup else 0
        self.warmup = result.warmup.grown(max(warmup_rows, result.warmup.rows))
        chains = range(result.chains)
        members = [chains] if target.batched else [[k] for k in chains]
        self.groups = [Members(self, list(some)) for some in members]

    # ---- driving ----

    def go(self, *, threads=1, progress=None, stop=None, checkpoint=None, interval=60.0):
        """Run until every chain has its draws, or `stop` says so; the Result, or SamplingError."""
        reason = "complete"
        report = reporter(progress, self.total_steps())
        saved = time.monotonic()

        def between():
            nonlocal saved
            report(self.progress())
            if checkpoint is not None and time.monotonic() - saved >= interval:
                self.result("running").save(checkpoint)
                saved = time.monotonic()
            return stop is not None and stop.timely and stop.met(self)

        try:
            with threadpool_limits(1, user_api="blas"):
                for rows in self.milestones(stop):
                    if self.advance(rows, threads, between):
                        reason = "stopped"
                        break
                    if stop is not None and stop.met(self):
                        reason = "stopped"
                        break
            report(self.progress())
        except Fault as fault:
            if isinstance(fault.cause, KeyboardInterrupt):
                reason = "interrupted"
            else:
                raise self.error(fault, checkpoint) from fault.cause
        except KeyboardInterrupt:
            reason = "interrupted"
        finally:
            report.close()
        result = self.result(reason)
        if checkpoint is not None:
            result.save(checkpoint)
        if reason == "interrupted":
            warnings.warn(
                f"interrupted after {result.trace.counts.tolist()} of {self.rows} draws a chain; "
                "result.resume() goes on from there",
                SamplingWarning,
                stacklevel=3,
            )
        return result

    def milestones(self, stop):
        """The numbers of draws at which stop rules are asked, then the last."""
        if stop is not None:
            rows = 100
            while rows < self.rows:
                if rows > self.trace.rows:
                    yield rows
                rows = rows + max(100, rows // 5)
        yield self.rows

    def advance(self, rows, threads, between):
        """Bring every chain to `rows` draws; True where `between` asked to stop."""
        waiting = [group for group in self.groups if not group.reached(rows)]
        if threads == 1 or len(waiting) < 2:
            return self.advance_here(waiting, rows, between)
        return self.advance_threads(waiting, rows, threads, between)

    def advance_here(self, waiting, rows, between):
        """One thread, this one: a chunk of each group in turn."""
        while waiting:
            for group in waiting:
                group.chunk(rows)
                if between():
                    return True
            waiting = [group for group in waiting if not group.reached(rows)]
        return False

    def advance_threads(self, waiting, rows, threads, between):
        """Worker threads run the chains, this thread watches."""
        self.halt.clear()

        def work(group):
            while not (self.halt.is_set() or group.reached(rows)):
                group.chunk(rows)

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
    def seconds(self):
        return time.perf_counter() - self.begun

    def result(self, status):
        """A Result of what there is; the traces are shared, not copied."""
        states, generators = [], []
        for group in self.groups:
            with group.lock:
                states += [chain.state() for chain in group.chains]
                generators += [chain.bit_generator.state for chain in group.chains]
        return self.past.replaced(
            trace=self.trace,
            warmup=self.warmup,
            states=states,
            generators=generators,
            requested=self.rows,
            seconds=self.past.seconds + self.seconds,
            status=status,
            target=self.target,
        )

    def error(self, fault, checkpoint):
        """The SamplingError of a fault, with the draws so far."""
        result = self.result("failed")
        if checkpoint is not None:
            result.save(checkpoint)
        step = int(result.states[fault.chain]["t"])
        where = f"chain {fault.chain}, step {step}, at x = {np.array2string(fault.x, threshold=8)}"
        if fault.code == 0:
            what = "no finite log density at the start, nor at 100 points around it"
        elif fault.cause is not None:
            what = f"the target raised {type(fault.cause).__name__}: {fault.cause}"
        elif fault.code == -101:
            what = "the log density is +inf, which no density is"
        else:
            what = f"the target answered the fatal code {fault.code}"
        kept = f"{result.trace.counts.tolist()} draws a chain are kept in this error's .result"
        return SamplingError(
            f"{what} ({where}); {kept}",
            result=result,
            chain=fault.chain,
            step=step,
            x=fault.x,
        )


class Members:
    """A group of chains of a run, with the arrays it records into."""

    def __init__(self, run, indices):
        result = run.past
        self.run, self.indices = run, indices
        self.lock = threading.Lock()
        self.size = 1  # steps a chunk, grown until one takes CHUNK_SECONDS
        self.started = False
        self.limit = -1
        self.chains = []
        for k in indices:
            kernel = result.sampler.build(result.x0[k])
            chain = ChainState(kernel, result.generator(k), result.x0[k])
            if result.states:
                chain.restore(result.states[k])
            self.chains.append(chain)
        schedule = result.schedule.compiled(result.sampler, result.d, result.tune)
        self.engine = Group(run.target.bind(), self.chains, schedule)

    @property
    def tuning(self):
        return self.chains[0].t < self.run.past.tune

    def reached(self, rows):
        return not self.tuning and all(self.run.trace.counts[k] >= rows for k in self.indices)

    def attach(self, rows):
        """Record into the warm-up's rows, or into the draws' up to `rows`."""
        limit = -1 if self.tuning else rows
        if self.started and limit == self.limit:
            return
        self.limit = limit
        trace = self.trace
        capacity = trace.x.shape[1] if self.tuning else rows
        for k, chain in zip(self.indices, self.chains, strict=True):
            chain.attach(trace.chain(k), int(trace.counts[k]), capacity, self.run.past.thin)

    @property
    def trace(self):
        return self.run.warmup if self.tuning else self.run.trace

    def chunk(self, rows):
        """Run a chunk of steps, no further than the end of warm-up or `rows` draws."""
        with self.lock:
            self.attach(rows)
            trace = self.trace
            begun = time.perf_counter()
            try:
                if not self.started:
                    self.engine.start()
                    self.started = True
                n = self.size
                if self.tuning:
                    n = min(n, self.run.past.tune - self.chains[0].t)
                self.engine.run(n)
            except Fault as fault:
                fault.chain = self.indices[fault.chain]
                raise
            finally:
                for k, chain in zip(self.indices, self.chains, strict=True):
                    trace.counts[k] = chain.count
            seconds = time.perf_counter() - begun
            growth = np.clip(CHUNK_SECONDS / max(seconds, 1e-9), 0.1, 8.0)
            self.size = max(1, int(self.size * growth))
