"""Make a run from the checked arguments of `sample`, by a search and the choice of a sampler."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam.density.forms import as_target, check_surrogate, target_of, with_surrogate
from fastkam.density.gradient import check_start
from fastkam.interop.differentiable import drawn
from fastkam.interop.doors import opened
from fastkam.problem.starts import Outcomes, one_by_one
from fastkam.run.drawn_starts import best_of, by_labels
from fastkam.run.drive import BUDGET, FIRST_ROWS
from fastkam.run.hints import of_memory
from fastkam.run.loop import Outcome
from fastkam.run.records import Fields, check_derived
from fastkam.run.shapes import Layout, check_extras, check_layout, check_names_of_extras
from fastkam.run.starts import starting_points
from fastkam.run.state import RunState, snapshot_steps
from fastkam.run.stored import DRAWS, UNDECIDED, WARMUP, new_trace
from fastkam.run.streams import Stream, generator_of
from fastkam.run.writer import CheckpointWriter
from fastkam.samplers import DelayedAcceptance, Sampler, as_sampler
from fastkam.samplers.delayed import check_stages
from fastkam.search.choice import (
    Choice,
    before_the_run,
    choose,
    find,
    known_of,
    log,
)
from fastkam.search.estimates import for_noise
from fastkam.search.found import Search
from fastkam.search.watch import Spent, Watch
from fastkam.surrogate.asked import BUDGET as BUDGET_OF_LEARNING
from fastkam.surrogate.asked import check_learnable, uncounted, within_budget

if TYPE_CHECKING:
    from fastkam._core.engine.kernel import Kernel
    from fastkam.density.target import Target
    from fastkam.points.evaluations import Evaluations
    from fastkam.points.reply import Reply
    from fastkam.problem.coordinates import Coordinates
    from fastkam.run.options import RunOptions
    from fastkam.schedules import Schedule
    from fastkam.stop import StopRule
    from fastkam.surrogate.run import Attempt

# for densities whose evaluation takes long
FEWER = 'surrogate="learn" often needs a tenth of the evaluations'
IN_PROCESSES = "executor= makes them in several processes"


@dataclass(kw_only=True, eq=False, repr=False)
class Call:
    """A call of `sample`: its checked arguments, and the parts of a run that are made from them.

    Attributes
    ----------
    target, x0, problem
        The density and the start of the search, as given; the `Problem` made of them, or None.
    rows : int
        Number of draws per chain.
    enough : bool
        Whether the run continues until the draws suffice.
    common : dict
        names, shapes, dims and coords, if there is no problem.
    learning : bool
        Whether a surrogate is to be learned, with at most `budget` evaluations.
    surrogate_steps : int or None
        The argument as given; `steps` is the resulting number.
    own : Target
        The density in the form that the sampler needs; `target` is then the same density, evaluated
        by the workers of this call if they evaluate points.
    points : ndarray, shape (chains, d)
        The points at which the search begins.
    layout : Layout
        The named parameters that make up x.
    choice : Choice or None
        The choice of "auto".
    found : Search
    learned : Attempt or None
        The outcome of learning a surrogate.
    wrong_gradient : str
        How the gradient at the start disagrees with the density, or "".
    labels : list of str
        The labels of what `x0` was drawn from, if it has any.
    stored : Evaluations or None
        The calls that `x0` was drawn from, if it was.
    independent : bool
        Whether the coordinates of `x0` were drawn independently, around the means of a summary.
    free_tune : bool
        Whether warm-up has the default length, and the sampler begins with no shape.

    The others are as in `sample`.
    """

    target: Any
    x0: Any
    labels: list[str]
    stored: Evaluations | None
    independent: bool
    problem: Any
    options: RunOptions
    stop: StopRule | None
    sampler: Any
    rows: int
    enough: bool
    tune: int | None
    chains: int
    seed: np.random.SeedSequence
    schedule: Schedule
    share: bool
    vectorized: bool
    thin: int | None
    search: bool
    common: dict[str, Any]
    keep_warmup: bool
    keep_stats: bool
    check_gradient: bool
    surrogate: Any
    learning: bool
    budget: int | None
    surrogate_steps: int | None
    steps: int
    bit_generator: str
    own: Target = field(init=False)
    points: NDArray[np.float64] = field(init=False)
    layout: Layout = field(init=False)
    rng: np.random.Generator = field(init=False)
    watch: Watch = field(init=False)
    choice: Choice | None = field(default=None, init=False)
    found: Search = field(init=False)
    learned: Attempt | None = field(default=None, init=False)
    wrong_gradient: str = field(default="", init=False)
    free_tune: bool = field(default=False, init=False)

    def prepare(self) -> RunState:
        """The run before its first step."""
        method = self.chosen()
        self.take_forms(method)
        if self.surrogate is not None:
            method = DelayedAcceptance(sampler=method, steps=self.steps)
        without = self.tune is None
        self.free_tune = without and (self.choice is None or self.choice.search.mixture is None)
        kernel = self.checked(method)
        if self.choice is None:
            with self.watch, before_the_run(self.target, self.problem):
                self.found = find(self.target, self.points, self.chains, self.rng,
                                  search=self.search, executor=self.options.for_chains,
                                  watch=self.watch)
            if without:
                self.tune = self.shortened(method.TUNE, method)
            if self.search and self.own.is_estimate and self.surrogate is None:
                with self.watch, before_the_run(self.target, self.problem):
                    method, self.found = for_noise(
                        method, self.target, self.found, self.rng, self.watch)
        return self.state(method, kernel)

    # ---- the density, and the start of the search ----

    def begin(self) -> None:
        """Find the points at which the search begins, and the names of the parameters."""
        problem, chains, seed = self.problem, self.chains, self.seed
        self.watch = Watch(self.options, chains, advice=self.advice)
        derived: Fields | None = {}
        if problem is None:
            self.target = opened(self.target)
            x0 = drawn(self.target, chains, seed) if self.x0 is None else self.x0
            self.points = starting_points(x0, chains)
            self.layout = check_layout(**self.common, d=self.points.shape[1])
            self.points = by_labels(self.points, self.labels, self.layout.labels)
        else:
            self.target, self.layout = problem.target(), problem.layout
            if self.stored is not None:
                self.x0 = best_of(self.stored, chains, lambda x: problem.coordinates.inside(
                    by_labels(x, self.labels, self.layout.labels))[1])
            if self.labels:
                self.x0 = by_labels(self.x0, self.labels, self.layout.labels)
            if self.independent:
                self.x0 = problem.coordinates.nearby(self.x0)
            self.points = (self.drawn_points() if self.x0 is None
                           else problem.start(self.x0, chains, seed))
            derived = check_derived(self.target, self.points[:1], self.layout.shapes)
        if self.options.stop is not None:
            self.options.stop.check(self.layout, self.chains)
        self.check_room()
        self.rng = generator_of(seed, Stream.SEARCH)
        if derived is not None:
            self.check_dims(derived)

    def drawn_points(self) -> NDArray[np.float64]:
        """Draws of the problem where the density is finite, evaluated as those of the run.

        If the share of the time that a search may take is over, the density is not known there.
        """
        problem, desk = self.problem, self.options.desk
        named = not (isinstance(self.sampler, str) and self.sampler == "auto")
        target = problem.target(gradient=named and as_sampler(self.sampler).needs_gradient)
        if desk.wanted and not target.is_estimate:
            with before_the_run(target, problem):
                target = desk.through(target, np.empty(0), self.layout, self.chains)
        with self.watch:
            return np.asarray(problem.start(
                None, self.chains, self.seed, partial(self.outcomes, target),
                at_once=desk.on_points))

    def outcomes(
        self, target: Target, Z: NDArray[np.float64], noise: list[NDArray[np.float64]]
    ) -> Outcomes:
        """The outcomes of evaluations at draws Z (k, dim), as long as there is time for them."""
        desk = self.options.desk
        replies: list[Reply | None] = [None] * len(Z)
        with suppress(Spent):
            if desk.on_points:
                replies = desk.evaluated(target, Z)
            values = one_by_one(target, Z, noise)
            for reply in replies:
                if not desk.on_points:
                    self.watch.within()
                value = next(values)
                error = None if reply is None else reply.error
                yield error if isinstance(error, Exception) else value

    def check_dims(self, extras: Fields) -> None:
        """Refuse dims of extras that there are not, or of other shapes, at the first point.

        `extras` are derived quantities. If the function has no density there, the extras are not
        known before the run.
        """
        if set(self.layout.dims) - {*self.layout.shapes, *extras}:
            plain = self.plain()
            try:
                if not np.isfinite(plain.logp(self.points[0])):
                    return
            except Exception:  # the run will say what is wrong
                return
            extras = extras | (plain.extras_fields() or {})
        check_extras(extras, self.layout)

    def check_room(self) -> None:
        """Refuse draws for which there is no memory."""
        d, rows = self.points.shape[1], self.rows
        if self.options.store is not None:
            return
        try:
            np.empty((self.chains, rows, d))
        except (MemoryError, ValueError) as error:
            mend = "leave draws out with stop=" if self.stop is not None else "take thin="
            raise ValueError(f"draws must fit into memory, not {rows} for each of {self.chains} "
                             f"chains of dimension {d}: {mend}, or give store=") from error
        try:
            np.empty((self.chains, self.tune or 0 if self.keep_warmup else 0, d))
        except (MemoryError, ValueError) as error:
            raise ValueError(f"tune must fit into memory, not {self.tune} states of each of "
                             f"{self.chains} chains of dimension {d}: give keep_warmup=False, or "
                             "store=") from error

    @property
    def advice(self) -> str:
        """Advice on the search of a density whose evaluation takes long."""
        ways = [*([] if self.learning or self.surrogate is not None else [FEWER]),
                *([] if self.options.executor is not None else [IN_PROCESSES])]
        return f"{', and '.join(ways)}: see docs/costly.md" if ways else ""

    @property
    def coordinates(self) -> Coordinates | None:
        """The map from the points of the chains to those of the user, if there is one."""
        return None if self.problem is None else self.problem.coordinates

    def plain(self) -> Target:
        """The density without a surrogate, evaluated by the workers if they evaluate points."""
        plain = as_target(self.target, self.points.shape[1], vectorized=self.vectorized)
        with before_the_run(plain, self.problem):
            return self.through(plain)

    def differentiable(self) -> Target:
        """The same in a form with gradients, if the density has them."""
        target = self.target if self.problem is None else self.problem.target(gradient=True)
        return self.through(as_target(target, self.points.shape[1], vectorized=self.vectorized,
                                      gradient=True))

    def through(self, target: Target) -> Target:
        """The same density, evaluated by the workers of this call if they evaluate points."""
        return self.options.desk.through(target, self.points[0], self.layout, self.chains)

    # ---- a surrogate that is learned ----

    def learn(self) -> bool:
        """Learn a surrogate; return whether this made weighted draws, so that no run follows."""
        # loads scipy's optimizers, which other runs do not need
        from fastkam.surrogate.run import attempt, frozen_walk

        known = known_of(self.problem)
        plain = as_target(self.target, self.points.shape[1], vectorized=self.vectorized)
        check_learnable(plain, known)
        with before_the_run(plain, self.problem):
            self.options.desk.take_batches(plain)
        self.own = self.plain()
        spent = self.chains if self.x0 is None else 0  # where chains start, drawn from the prior
        with before_the_run(self.own, self.problem):
            done = attempt(self.own, self.points, self.chains, self.rows, self.rng, known,
                           (self.budget or BUDGET_OF_LEARNING) - spent, self.options, self.seed,
                           self.bit_generator, self.layout, self.coordinates, self.stored,
                           weigh=self.surrogate_steps is None, go_on=self.budget is None)
        self.learned = done
        if done.state is not None:
            return True
        self.options = self.options.ended_by(within_budget(
            self.stop, self.budget, self.uncounted))
        self.watch = Watch(self.options, self.chains, spent=done.calls.n)
        if done.learned is None:
            if not self.options.report.asked:  # otherwise nothing follows
                done.warn()
            if self.budget is not None or (self.points == self.points[0]).all():
                self.points = done.calls.higher(self.points)
            return False
        frozen = frozen_walk(done, self.chains)
        self.surrogate, self.search, self.enough = done.learned.density, False, False
        self.sampler, self.points = frozen.sampler, frozen.points
        self.tune = frozen.tune if self.tune is None else self.tune
        left = int(done.calls.left) // self.chains - 1  # one is made at the start
        self.rows = max(1, min(self.rows, left - self.tune))
        return False

    def weighted(self) -> Outcome:
        """The run that has made weighted draws."""
        assert self.learned is not None
        state = self.learned.finished(self.options)
        return Outcome(state, self.learned.failure, CheckpointWriter())

    # ---- a sampler, and the density that it needs ----

    def chosen(self) -> Sampler:
        """The sampler, which "auto" chooses by the outcome of a search."""
        if not (isinstance(self.sampler, str) and self.sampler == "auto"):
            return as_sampler(self.sampler)
        plain = self.plain()
        with self.watch, before_the_run(plain, self.problem):
            self.choice = choose(
                plain, self.points, self.chains, self.rng, search=self.search,
                surrogate=self.surrogate is not None, threads=self.options.threads or 1,
                known=known_of(self.problem, self.layout), executor=self.options.for_chains,
                watch=self.watch, differentiable=self.differentiable)
        check_names_of_extras(plain.extras_fields() or {}, self.layout)
        log.info("auto: %s", self.choice)
        self.found = self.choice.search
        return self.choice.sampler

    def take_forms(self, method: Sampler) -> None:
        """Set `own` and `target` to the density in the form that a sampler needs."""
        target, problem, surrogate = self.target, self.problem, self.surrogate
        if problem is not None:
            target = problem.target(gradient=method.needs_gradient)
        own = target_of(method, target, self.points.shape[1], self.vectorized)
        with before_the_run(own, problem):
            target = self.through(own)
        if surrogate is not None:
            if problem is not None and self.learned is None:
                surrogate = problem.beside(surrogate)
            own, target = with_surrogate(own, surrogate), with_surrogate(target, surrogate)
            check_surrogate(target.surrogate, self.points)
        self.own, self.target = own, target

    def checked(self, method: Sampler) -> Kernel:
        """The kernel of a sampler, checked against the density and the other arguments."""
        target = self.target
        check_stages(method, target)
        if self.tune is None:
            self.tune = method.TUNE if self.choice is None else self.shortened(
                self.choice.tune, method)
        if self.search and method.relative:
            self.schedule = self.schedule.after_search(method, target.dim)
        method.check_run(self.schedule, self.tune)
        if self.share:
            method.check_share()
        self.schedule.compiled(method, target.dim, self.tune)
        try:
            kernel = method.build(self.points[0])  # refuses what does not fit the dimension
        except MemoryError as error:
            raise ValueError(f"{method!r} must fit into memory in the dimension of x0, "
                             f"{target.dim}, and does not ({error}): "
                             f"{of_memory(self.chains, target.dim)}") from error
        if self.check_gradient and method.needs_gradient:
            with self.watch:  # a point that hangs ends the check in time
                self.wrong_gradient = check_start(target, self.points[0], self.problem)
        return kernel

    def shortened(self, tune: int, method: Sampler) -> int:
        """A number of warm-up steps that takes some half of what the search has left, at most."""
        n = self.found.evaluations
        each = 2 * self.chains * method.evaluations_per_step
        of_budget = ((self.budget or BUDGET) - n) / each if self.enough else tune
        return int(max(0, min(tune, of_budget, self.watch.most_tune(n))))

    # ---- the run ----

    @property
    def uncounted(self) -> int:
        """Number of calls that the run does not count."""
        return uncounted(self.chains, vectorized=self.vectorized, share=self.share)

    def state(self, method: Sampler, kernel: Kernel) -> RunState:
        """The run before its first step."""
        options, found, learned = self.options, self.found, self.learned
        chains, d = self.points.shape
        assert self.tune is not None
        check_names_of_extras(self.target.extras_fields() or {}, self.layout)
        thinned = self.thin is None and (self.enough or self.choice is not None)
        if options.store is not None:
            options.store.create()
        traces = [new_trace(options.store, section, chains, d,
                            method.stat_names if self.keep_stats else None)
                  for section in (UNDECIDED if thinned else DRAWS, WARMUP)]
        lines = [*([] if learned is None else learned.lines), *found.steps,
                 *([] if self.choice is None else [str(self.choice)])]
        return RunState(
            sampler=method,
            schedule=self.schedule,
            x0=found.points,
            tune=self.tune,
            thin=self.thin or 1,
            keep_warmup=self.keep_warmup,
            share=self.share,
            requested=self.rows,
            undecided=min(FIRST_ROWS, self.rows) if thinned else 0,
            budget=(self.budget or BUDGET) if self.enough else 0,
            reserved=self.uncounted if self.enough and self.budget is not None else 0,
            may_tune=self.enough and self.free_tune,
            by_gradients=self.choice is not None and self.search and (
                options.diagnose or self.enough),
            seed=self.seed,
            bit_generator=self.bit_generator,
            layout=self.layout,
            coordinates=self.coordinates,
            trace=traces[0],
            warmup=traces[1],
            snapshot_steps=snapshot_steps(kernel, self.tune),
            scales=found.scales if method.relative else np.ones(d),
            searched=found.evaluations + (0 if learned is None else learned.calls.n),
            calls=None if learned is None else learned.record,
            seconds=time.perf_counter() - options.begun,
            tails=found.tails if self.coordinates is None else self.coordinates.tails(
                found.tails, found.of_logarithms),
            is_density=found.is_density,
            search=lines,
            wrong_gradient=self.wrong_gradient,
        )
