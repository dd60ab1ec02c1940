"""Result: the draws of a run, what is known of them, and all that it takes to go on."""

from __future__ import annotations

import os
from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.chain import REJECTED
from fastkam.errors import check_integer
from fastkam.trace import Trace

if TYPE_CHECKING:
    from xarray import DataTree

    from fastkam.summary import Summary

FIELDS = ("sampler", "schedule", "tune", "thin", "keep_warmup", "share", "requested",
          "bit_generator", "names", "dims", "seconds", "status")
SEED = ("entropy", "spawn_key", "pool_size", "n_children_spawned")


class Result:
    """The draws of a run; made by `fastkam.sample`, `resume` or `load`.

    ``result["theta"]`` is the parameter of that name, of shape (chains, draws, *its own).

    Attributes
    ----------
    draws : ndarray, shape (chains, draws, d)
        Every chain's draws, as many as the shortest chain has.
    stats : dict of ndarray, shape (chains, draws)
        "lp" (log density), "acceptance_rate" (acceptance probability of the step that led there),
        "accepted", and what the sampler declares.
    warmup : Trace
        The states of warm-up, with ``.draws`` and ``.stats`` of their own.
    sampler : Sampler
    schedule : Schedule
        ``schedule.guarantee`` says how far the draws may be trusted.
    share : bool
        Whether the chains have learnt as one.
    names : list of str
    dims : dict of str to tuple of int
        Shape of each named parameter.
    states : list of dict
        The state of each chain, {name: array}: position, counters, and each field of the sampler
        under "kernel.".
    status : str
        "complete", "stopped" (by a stop rule), "interrupted", or "failed".
    seconds : float
        Wall-clock time of all runs.
    """

    def __init__(self, *, sampler, schedule, x0, tune, thin, keep_warmup, requested, seed,
                 bit_generator, trace, warmup, share=False, names=None, dims=None, target=None,
                 states=(), generators=(), seconds=0.0, status="new"):
        self.sampler, self.schedule, self.share = sampler, schedule, share
        self.x0, self.tune, self.thin, self.keep_warmup = x0, tune, thin, keep_warmup
        self.requested, self.seed, self.bit_generator = requested, seed, bit_generator
        self.trace, self.warmup = trace, warmup
        self.names, self.dims = check_names(names, dims, x0.shape[1])
        self.target = target
        self.states, self.generators = states, generators
        self.seconds, self.status = seconds, status

    # ---- the draws ----

    @property
    def chains(self) -> int:
        """How many chains."""
        return len(self.x0)

    @property
    def d(self) -> int:
        """Dimension of the point."""
        return self.x0.shape[1]

    @property
    def draws(self) -> NDArray[np.float64]:
        """The draws, (chains, draws, d)."""
        return self.trace.draws

    @property
    def stats(self) -> dict[str, NDArray[Any]]:
        """Statistics a draw, {name: (chains, draws)}."""
        return self.trace.stats

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """The draws of one named parameter, (chains, draws, *shape)."""
        return split(self.draws, self.dims)[name]

    @property
    def evaluations(self) -> int:
        """Evaluations of the density, the search for a start and those of a surrogate apart."""
        return sum(int(state["n_evaluations"]) for state in self.states)

    @property
    def acceptance(self) -> NDArray[np.float64]:
        """Mean acceptance probability over the draws, (chains,); NaN where it was not kept."""
        return self.trace.acceptance

    @property
    def rejected(self) -> dict[str, NDArray[np.int64]]:
        """Points without a density, {kind: (chains,)}.

        "nan", "outside" (-inf), "failed"; "gradient" where only that is not finite.
        """
        counts = np.array([state["n_rejected"] for state in self.states])
        return dict(zip(REJECTED, counts.T, strict=True))

    @property
    def offending(self) -> dict[str, NDArray[np.float64]]:
        """The first points of each kind of `rejected`, {kind: (up to 5 a chain, d)}."""
        points = np.array([state["offending"] for state in self.states])
        rows = {kind: points[:, i].reshape(-1, self.d) for i, kind in enumerate(REJECTED)}
        return {kind: some[~np.isnan(some).all(axis=1)] for kind, some in rows.items()}

    @property
    def adaptation(self) -> dict[str, NDArray[Any]]:
        """The course of what was learnt, {"step": (n,), field: (chains, n, *shape)}.

        The fields (see the sampler's kernel, ``sampler.kernel_class().FIELDS``) after up to 50
        evenly spaced steps of warm-up; NaN where a chain has not come so far.
        """
        from fastkam.run import snapshot_steps

        names = [name for name in (self.states or [{}])[0] if name.startswith("adaptation.")]
        fields = {name.removeprefix("adaptation."): np.array([state[name] for state in self.states])
                  for name in names}
        return {"step": snapshot_steps(self)} | fields

    # ---- what is known of them ----

    def summary(self) -> Summary:
        """Mean, sd, quantiles, Monte Carlo error, effective sample sizes and R-hat.

        Returns
        -------
        Summary
            Prints as a table; ``summary["r_hat"]`` is a column as an array.
        """
        from fastkam.diagnostics import summary

        return summary(self.draws, flat_names(self.dims))

    def to_datatree(self) -> DataTree:
        """An xarray DataTree as ArviZ expects it; needs xarray (``pip install fastkam[arviz]``)."""
        from fastkam.interop.arviz import to_datatree

        return to_datatree(self)

    def to_arviz(self):
        """What the installed ArviZ takes: a DataTree, or an InferenceData before ArviZ 1.0."""
        from fastkam.interop.arviz import to_arviz

        return to_arviz(self)

    def __repr__(self) -> str:
        return (
            f"<Result of {type(self.sampler).__name__}: {self.chains} chains, "
            f"{self.trace.rows} draws, {self.d} dimensions, {self.status}>"
        )

    # ---- going on ----

    def resume(self, draws: int | None = None, **options: Any) -> Result:
        """Go on with the run: see `fastkam.resume`, which takes the same arguments."""
        from fastkam.sampling import resume

        return resume(self, draws, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything but the density to the file `path` (a .npz without pickle)."""
        from fastkam import checkpoint

        header = {name: getattr(self, name) for name in FIELDS}
        header["seed"] = {name: getattr(self.seed, name) for name in SEED}
        header["stat_names"] = self.trace.stat_names
        header["generators"] = list(self.generators)
        arrays = {"x0": self.x0}
        arrays |= {f"trace.{name}": value for name, value in self.trace.arrays().items()}
        arrays |= {f"warmup.{name}": value for name, value in self.warmup.arrays().items()}
        for k, state in enumerate(self.states):
            arrays |= {f"chain{k}.{name}": value for name, value in state.items()}
        checkpoint.write(path, header, arrays)

    def generator(self, k):
        """The bit generator of chain `k`, where it stands."""
        bits = getattr(np.random, self.bit_generator)(child(self.seed, k))
        if self.generators:
            bits.state = self.generators[k]
        return bits

    def replaced(self, **changes):
        """This result with other attributes; arrays are shared."""
        new = object.__new__(type(self))
        new.__dict__ |= self.__dict__ | changes
        return new

    def select(self, chains, *, draws_from=0, warmup_from=0):
        """These chains, a list of numbers, as a result that goes on as they would have.

        Their draws begin with the row `draws_from`, those of warm-up with `warmup_from`. Of chains
        that share what they learn it must be all.
        """
        return self.replaced(
            x0=self.x0[chains],
            trace=self.trace.select(chains, draws_from),
            warmup=self.warmup.select(chains, warmup_from),
            states=[self.states[k] for k in chains] if self.states else [],
            generators=[self.generator(k).state for k in chains],
        )

    def __getstate__(self):
        """A result travels without its target, which may not be able to."""
        return self.__dict__ | {"target": None}


def load(path: str | os.PathLike[str]) -> Result:
    """The Result in a file that `Result.save` or a checkpoint has written.

    Raises
    ------
    ValueError
        If the file is no such file.
    """
    from fastkam import checkpoint

    header, arrays = checkpoint.read(path)
    try:
        return from_parts(header, arrays)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a fastkam result: {error!r}") from error


def from_parts(header, arrays):
    """The Result of a file's header and arrays."""
    x0 = arrays.pop("x0")
    seed, stat_names = header.pop("seed"), header.pop("stat_names")

    def under(prefix):
        return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}

    header["dims"] = {name: tuple(shape) for name, shape in header["dims"].items()}
    check_bit_generator(header["bit_generator"])
    return Result(
        **header,
        x0=x0,
        seed=np.random.SeedSequence(**seed),
        trace=Trace.from_arrays(under("trace."), stat_names),
        warmup=Trace.from_arrays(under("warmup."), stat_names),
        states=[under(f"chain{k}.") for k in range(len(x0))],
    )


BIT_GENERATORS = ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")


def check_bit_generator(name):
    """`name`, if it is a bit generator of numpy.random."""
    if name not in BIT_GENERATORS:
        raise ValueError(f"bit_generator must be one of {list(BIT_GENERATORS)}, not {name!r}")
    return name


def child(seed, k):
    """The k-th child that ``seed.spawn`` would give next, without changing `seed`."""
    return np.random.SeedSequence(
        seed.entropy,
        spawn_key=(*seed.spawn_key, seed.n_children_spawned + k),
        pool_size=seed.pool_size,
    )


# ---- names ----


def check_names(names, dims, d):
    """(names, {name: shape}) that together have `d` elements; the default is one vector "x"."""
    if dims is not None and not isinstance(dims, dict):
        raise TypeError(f"dims must be a dict of shapes, not {dims!r}")
    if names is None:
        if not dims:
            return ["x"], {"x": (d,)}
        names = list(dims)
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, Iterable):
        raise TypeError(f"names must be a list of strings, not {names!r}")
    names = list(names)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError(f"names must be different strings, not {names!r}")
    dims = dict(dims or {})
    if unknown := set(dims) - set(names):
        raise ValueError(f"dims names {sorted(unknown)}, which names does not")
    shapes = {name: check_shape(name, dims.get(name, ())) for name in names}
    size = sum(int(np.prod(shape)) for shape in shapes.values())
    if size != d:
        raise ValueError(f"names and dims describe {size} coordinates, but x0 has {d}")
    return names, shapes


def check_shape(name, shape):
    """A shape given as one integer or several, as a tuple."""
    try:
        sizes = [shape] if isinstance(shape, Integral) else list(shape)
    except TypeError:
        raise TypeError(f"dims[{name!r}] must be a shape, not {shape!r}") from None
    return tuple(check_integer(f"dims[{name!r}]", size, least=0) for size in sizes)


def split(draws, dims):
    """{name: (..., *shape)} of an array (..., d)."""
    parts, start = {}, 0
    for name, shape in dims.items():
        size = int(np.prod(shape))
        parts[name] = draws[..., start : start + size].reshape(*draws.shape[:-1], *shape)
        start += size
    return parts


def flat_names(dims):
    """A label for each coordinate: "mu", "theta[0]", "beta[1, 2]"."""
    labels = []
    for name, shape in dims.items():
        labels += [
            name + (f"[{', '.join(map(str, index))}]" if index else "")
            for index in np.ndindex(*shape)
        ]
    return labels
