"""The draws and settings of a run, as read-only properties."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.chain import REJECTED
from fastkam.arguments import near, shown
from fastkam.run.lazy import mapped, read_only
from fastkam.run.state import RunState
from fastkam.run.stored import StoredTrace
from fastkam.run.trace import Trace
from fastkam.samplers import Sampler
from fastkam.schedules import Schedule


class Extras(dict[str, Any]):
    """Extras by name, to which none can be added."""

    def __reduce__(self) -> Any:
        return Extras, (dict(self),)

    def refuse(self, *added: Any, **named: Any) -> Any:
        """Refuse to add extras."""
        name = next(iter([*added, *named]), "")
        raise TypeError(f"the extra {shown(name)} cannot be added to those of a run: return it in "
                        "a dict beside the log density, or give derived=")

    __setitem__ = update = setdefault = __ior__ = refuse

    def __missing__(self, name: object) -> Any:
        there = f"there are {list(self)}" if self else (
            "there are none; before the first draw none are known")
        raise KeyError(f"there is no extra {shown(name)}; {there}{near(name, self)}")


class Recorded:
    """The part of `fastkam.Result` that reads the state of its run.

    Parameters
    ----------
    state : RunState
    """

    def __init__(self, state: RunState) -> None:
        self.state = state
        self.mapped: NDArray[np.float64] | None = None  # cache: draws in the user's coordinates

    # ---- the run ----

    @property
    def sampler(self) -> Sampler:
        return self.state.sampler

    @property
    def schedule(self) -> Schedule:
        return self.state.schedule

    @property
    def tune(self) -> int:
        return self.state.tune

    @property
    def thin(self) -> int:
        return self.state.thin

    @property
    def requested(self) -> int:
        return self.state.requested

    @property
    def share(self) -> bool:
        return self.state.share

    @property
    def names(self) -> list[str]:
        return list(self.state.layout.shapes)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return self.state.layout.shapes

    @property
    def dims(self) -> dict[str, list[str]]:
        return self.state.layout.dims

    @property
    def coords(self) -> dict[str, NDArray[Any]]:
        return self.state.layout.coords

    @property
    def search(self) -> list[str]:
        return self.state.search

    @property
    def scales(self) -> NDArray[np.float64]:
        return self.state.scales

    @property
    def trace(self) -> Trace | StoredTrace:
        return self.state.trace

    @property
    def warmup(self) -> Trace | StoredTrace:
        return self.state.warmup

    @property
    def states(self) -> list[dict[str, NDArray[Any]]]:
        return self.state.states

    @property
    def status(self) -> str:
        return self.state.status

    @property
    def stopped_by(self) -> str:
        return self.state.stopped_by

    @property
    def seconds(self) -> float:
        return self.state.seconds

    # ---- the draws ----

    @property
    def chains(self) -> int:
        """Number of chains."""
        return self.state.chains

    @property
    def d(self) -> int:
        """Dimension of the point."""
        return self.state.d if self.state.coordinates is None else self.state.coordinates.n_x

    @property
    def draws(self) -> NDArray[np.float64]:
        """The draws, (chains, draws, d), read-only: ``np.array(result.draws)`` is a copy."""
        if self.mapped is None:
            self.mapped = read_only(self.state.constrained(self.trace.draws))
        return self.mapped

    @property
    def warmup_draws(self) -> NDArray[np.float64]:
        """The states of warm-up, (chains, states, d), read-only."""
        return read_only(self.state.constrained(self.warmup.draws))

    @property
    def extras(self) -> Mapping[str, Any]:
        """Extras that the density returned, and derived quantities, {name: (chains, draws, ...)}.

        The arrays are read-only. Their names are known from the first draw on. Where the density is
        0, as at some draws of a learned surrogate, they are NaN; those that are not floats are
        False there, or a meaningless integer.
        """
        return Extras(self.trace.extras)

    @property
    def stats(self) -> Mapping[str, Any]:
        """Statistics of each draw, {name: (chains, draws)}, read-only."""
        return self.trace.stats

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """The draws of a named parameter or of an extra, (chains, draws, *shape), read-only.

        The label of one coordinate or of one element of an extra, such as "x[0]", selects its
        draws, (chains, draws). With coords the label has the value there, "x[A]"; the position of a
        coordinate, "x[0]", is accepted too, unless values in its coords look like integers.

        Raises
        ------
        KeyError
            If there is no parameter, extra or element of that name.
        """
        layout = self.state.layout
        if isinstance(name, str) and name in self.shapes:
            return mapped(self.draws, lambda some: layout.split(some)[name])
        places, extra = self.places(name)
        if not places and extra is None:
            beside = self.known_beside(name, self.keys())
            raise KeyError(f"there is no parameter {shown(name)}; {beside}")
        if extra is None:
            return mapped(self.draws, lambda some: some[..., places[0]])
        whole, index = extra
        at: tuple[Any, ...] = (..., *index)
        return mapped(self.extras[whole], lambda some: some[at])

    def known_beside(self, name: object, known: object) -> str:
        """The names that there are instead of one that is unknown, `known` in most messages."""
        keys = self.keys()
        whole = name.partition("[")[0] if isinstance(name, str) else ""
        if whole in keys and (labels := self.labels_of(whole)) != [whole]:
            return f"the elements of {whole!r} are {shown(labels)}"
        return f"there are {known}{near(name, keys)}"

    def __contains__(self, name: object) -> bool:
        """Whether there is a parameter, an extra or a coordinate of that name."""
        if not isinstance(name, str):
            return False
        places, extra = self.places(name)
        return name in self.shapes or bool(places) or extra is not None

    def places(self, name: object) -> tuple[list[int], tuple[str, tuple[int, ...]] | None]:
        """Indices of the coordinates of that name, or the name of an extra and an index in it.

        A parameter or an extra has priority over the label of an element.
        """
        if not isinstance(name, str):
            return [], None
        if name not in self.shapes and name in self.extras:
            return [], (name, ())
        if places := self.state.layout.places(name):
            return places, None
        whole = name.partition("[")[0]
        if whole in self.extras and whole not in self.shapes:
            shape = self.extras[whole].shape[2:]
            labels = self.state.layout.labels_of(whole, shape)
            if name in labels:
                at = np.unravel_index(labels.index(name), shape)
                return [], (whole, tuple(int(i) for i in at))
        return [], None

    def selected(
        self, var_names: str | Iterable[str], step: int = 1
    ) -> tuple[NDArray[np.float64], list[str]]:
        """Every `step`-th draw of parameters, extras and elements of these, and their labels.

        Returns
        -------
        draws : ndarray, shape (chains, draws, d)
        labels : list of d str

        Raises
        ------
        ValueError
            If there is none of such a name.
        """
        try:
            names = [var_names] if isinstance(var_names, str) else list(var_names)
        except TypeError:
            raise TypeError("var_names must be a name or a list of names, not "
                            f"{shown(var_names)}") from None
        for name in names:
            if not isinstance(name, str) or name not in self:
                raise ValueError(f"var_names has {shown(name)}, and "
                                 f"{self.known_beside(name, ', '.join(self.keys()[:20]))}")
        labels, parts = [], []
        for name in dict.fromkeys(names):
            part = np.asarray(self[name][:, ::step], dtype=float)
            labels += self.labels_of(name)
            parts.append(part.reshape(*part.shape[:2], -1))
        if not labels:
            raise ValueError("var_names must name a parameter or an extra that has elements, not "
                             f"{shown(var_names)}")
        return np.concatenate(parts, axis=2), labels

    def labels_of(self, name: str) -> list[str]:
        """A label for each element of a parameter or an extra, or that of one element."""
        places, extra = self.places(name)
        if extra is None:
            labels = self.state.layout.labels
            return [labels[i] for i in places]
        whole, index = extra
        return [name] if index else self.state.layout.labels_of(
            whole, self.extras[whole].shape[2:])

    def __iter__(self) -> Iterator[str]:
        """The names of the parameters and extras."""
        return iter(self.keys())

    def keys(self) -> list[str]:
        """The names of the parameters and extras, with which ``dict(result)`` has their draws."""
        return [*self.shapes, *self.extras]

    def _ipython_key_completions_(self) -> list[str]:
        """Return the names that IPython completes in ``result["``."""
        return self.keys()

    @property
    def evaluations(self) -> int:
        """Number of evaluations of the density, without those of a surrogate.

        Evaluations of the search, and those of the check of gradients after the run, are counted.
        Those that find a starting point without a search are not, nor is the one at the start of
        each chain, nor the six or so before the run that find out whether there is a gradient and
        whether it is right (``check_gradient=``).
        """
        return self.state.evaluations

    @property
    def acceptance(self) -> NDArray[np.float64]:
        """Mean acceptance probability of the draws, (chains,); NaN if it was not recorded."""
        return self.trace.acceptance

    @property
    def rejected(self) -> dict[str, NDArray[np.int64]]:
        """Number of points at which the density has no finite value, {kind: (chains,)}.

        The kinds are "nan", "outside" (-inf), "failed", and "gradient", where the density is
        finite and its gradient is not.
        """
        none = np.zeros(len(REJECTED), np.int64)  # of chains that have not begun
        counts = np.array([state["n_rejected"] for state in self.states] or [none] * self.chains)
        return dict(zip(REJECTED, counts.T, strict=True))

    @property
    def offending(self) -> dict[str, NDArray[np.float64]]:
        """The first points of each kind of `rejected`, {kind: (up to 5 a chain, d)}."""
        none = np.zeros((len(REJECTED), 0, self.state.d))
        points = np.array([state["offending"] for state in self.states] or [none])
        points = points * self.state.scales
        rows = {kind: points[:, i].reshape(-1, self.state.d) for i, kind in enumerate(REJECTED)}
        return {kind: self.state.constrain(some[~np.isnan(some).all(axis=1)])
                for kind, some in rows.items()}

    @property
    def adaptation(self) -> dict[str, NDArray[Any]]:
        """The learned fields during warm-up, {"step": (n,), field: (chains, n, *shape)}.

        The fields (``docs/names.md`` has their meanings) are recorded after up to 50 evenly spaced
        steps of warm-up, in units of the scales, with NaN for steps that a chain has not reached.
        There are fewer steps if the fields are large, and none (n = 0) if two records take more
        than 64 MB.
        """
        names = [name for name in (self.states or [{}])[0] if name.startswith("adaptation.")]
        fields = {name.removeprefix("adaptation."): np.array([state[name] for state in self.states])
                  for name in names}
        return {"step": self.state.snapshot_steps} | fields
