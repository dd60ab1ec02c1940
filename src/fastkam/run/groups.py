"""Groups of chains that step together and record together."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from fastkam._core.density.scaled import ScaledTarget
from fastkam._core.engine.chain import ChainState
from fastkam._core.engine.fault import Fault
from fastkam._core.engine.group import Group
from fastkam.run.records import record
from fastkam.run.serial import serially
from fastkam.run.shapes import check_extras

CHUNK_SECONDS = 0.05
MOST_SECONDS = 0.1  # a chunk in which the density has become slower ends early
LEAST_GROWTH, MOST_GROWTH = 0.1, 8.0  # limits of a chunk's size relative to the last


class ChainGroup:
    """A group of chains of a run, with the arrays it records into."""

    def __init__(self, run, indices):
        past = run.past
        self.run, self.indices = run, indices
        self.lock = threading.Lock()
        self.turnstile = threading.Lock()
        self.started = False
        self.limit = None
        x0 = past.x0[indices] / past.scales
        middle = x0.mean(axis=0)  # chains that share their adaptation begin with equal kernels
        # all kernels first, then all chains: with thousands of chains each kind shares memory pages
        sampler = past.own_sampler
        kernels = [sampler.build(middle if past.share else start) for start in x0]
        generators = [past.generator(k) for k in indices]
        self.chains = [ChainState(kernel, generator, start, n_aux=run.target.n_aux)
                       for kernel, generator, start in zip(kernels, generators, x0, strict=True)]
        for k, chain in zip(indices, self.chains, strict=True):
            chain.keep_history(len(past.snapshot_steps))
            if past.states:
                chain.restore(past.states[k])
        self.target = target = run.target.bind()
        if run.trace.records.n_extras:
            target.expect_extras()
        self.scales = past.scales if past.scaled else None
        if self.scales is not None:
            target = ScaledTarget(target, self.scales)
        self.engine = Group(target, self.chains, run.plan, share=past.share,
                            snapshot_steps=past.snapshot_steps)

    def point(self):
        """The state of the first chain, and its log density."""
        chain = self.chains[0]
        return chain.position * self.run.past.scales, float(chain.state()["logp_x"])

    @property
    def tuning(self):
        return self.chains[0].t < self.run.past.tune

    @property
    def recording(self):
        """The trace in which the chains record now."""
        return self.run.warmup if self.tuning else self.run.trace

    @property
    def expected(self):
        """Whether draws have extras or derived quantities."""
        return bool(self.target.returns_extras or self.run.target.derived
                    or self.run.trace.records.fields)

    def reached(self, rows):
        if self.run.is_spent(chain.n_evaluations for chain in self.chains):
            return True
        return not self.tuning and bool((self.run.trace.counts[self.indices] >= rows).all())

    def attach(self, rows):
        """Record in the rows of warm-up, or in those of the draws, up to `rows`."""
        limit = -1 if self.tuning else rows
        if limit == self.limit:
            return
        trace = self.recording
        capacity = trace.capacity if self.tuning else rows
        for k, chain in zip(self.indices, self.chains, strict=True):
            arrays = trace.chain(k)
            if self.scales is not None:
                arrays["scales"] = self.scales
            chain.attach(arrays, capacity, self.run.past.thin, noting=not self.tuning)
        self.limit = limit

    def chunk(self, rows, threads, interruptible):
        """Run a chunk of steps, no further than the end of warm-up or `rows` draws.

        The steps alone are made within `interruptible`, a context.
        """
        with self.turnstile:  # admits a thread that waits for `lock` between two chunks
            pass
        with self.lock:
            self.attach(rows)
            begun = time.perf_counter()
            t = self.chains[0].t
            # no chain may fill its rows before the others, because it would stop recording
            n = min(self.run.pace, self.recording.room(self.indices) * self.run.past.thin)
            if self.tuning:
                n = min(n, self.run.past.tune - t)
            try:
                with interruptible, serially(self.run.target):
                    if not self.started:
                        self.engine.start()
                        self.started = True
                    self.engine.run(n, self.run.most_evaluations, threads, MOST_SECONDS)
            except BaseException as error:
                if isinstance(error, Fault):
                    error.chain = self.indices[error.chain]
                    if self.scales is not None:
                        error.x = error.x * self.scales
                with suppress(Exception):  # the error comes first; missing rows are computed again
                    self.record(ending=True)
                raise
            self.record()
            self.run.pace = paced(self.chains[0].t - t, time.perf_counter() - begun)
            self.settle()

    def settle(self):
        """Write rows to the store if they are due; rows of warm-up do not wait for extras."""
        moved = self.run.warmup.settle(self.indices, False)
        if self.run.trace.settle(self.indices, self.expected) or moved:
            self.limit = None  # the window begins with another row

    def flush(self):
        """Write all rows to the store; rows that cannot be written stay in memory."""
        with suppress(OSError):
            self.limit = None
            self.run.warmup.flush(self.indices, False)
            self.run.trace.flush(self.indices, self.expected)

    def record(self, *, ending=False):
        """Record the extras and the derived quantities of the draws just made."""
        trace = self.run.trace
        chains, known = list(zip(self.indices, self.chains, strict=True)), trace.records.fields
        record(trace, chains, self.target, self.run.target, ending=ending)
        if known is None and trace.records.fields:
            check_extras(trace.records.fields, self.run.past.layout)


def paced(made, seconds):
    """Number of steps of the next chunk, if the last made `made` steps in these seconds."""
    growth = CHUNK_SECONDS / max(seconds, 1e-9)
    return max(1, int(made * min(max(growth, LEAST_GROWTH), MOST_GROWTH)))
