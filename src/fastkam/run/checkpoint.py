"""Runs as files: one .npz without pickle, with a JSON header, written aside and renamed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastkam._core.engine.fields import Field
from fastkam._core.engine.ranges import BadField, check_form, check_names, check_range
from fastkam.arguments import shown
from fastkam.diagnostics.controls import Controls
from fastkam.parameters import UnknownClass, class_path, plain, revived
from fastkam.problem.coordinates import Coordinates
from fastkam.run.consistent import FINITE, check_run
from fastkam.run.files import check_place, clear, place_of, replacing
from fastkam.run.header import (
    OWN,
    SEED,
    TEXTS,
    check_header,
    decoded,
    dims_of,
    fields_of_extras,
    generators_of,
    integer,
    mapping,
    seed_of,
    shapes_of,
)
from fastkam.run.interrupts import Shield
from fastkam.run.members import read_members, write_members
from fastkam.run.records import Fields
from fastkam.run.shapes import Layout, check_extras, check_layout
from fastkam.run.state import NOWHERE, RunState
from fastkam.run.stored import OF_DRAWS, OF_WARMUP, WARMUP, StoredTrace
from fastkam.run.trace import Trace
from fastkam.samplers import DelayedAcceptance, Sampler, as_sampler
from fastkam.schedules import Schedule, as_schedule
from fastkam.stores.store import Store, is_beginning, store_at

if TYPE_CHECKING:
    from pathlib import Path

MODEL = '"fastkam.interop.model:ModelTransform"'
FORMAT = 2
ARRAYS = ("x0", "snapshot_steps", "scales", "tails", "implied")
CONTROLS = ("controls", "control_draws")
OPTIONAL = ("calls", "proper", "unvisited", *CONTROLS)
MOST_STATES = 4  # of a run that goes on, which are read until the rows of one are in its store
LOG_DENSITY = Field("log densities, -inf without one", below=np.inf)


class Place(NamedTuple):
    """The place of the rows of a trace: a store, a section of it, and the revision of its state.

    `warmup` is the section of the run's warm-up.
    """

    store: Store
    section: str
    revision: int
    warmup: str


def write(
    path: str | os.PathLike[str], run: RunState, *, whole: bool = False, aside: Path | None = None
) -> None:
    """Write the file `path`, under another name first, so that an old file stays valid until then.

    For a run with a store the file has the last state and the lengths of the store's columns; with
    `whole` also their rows, so that the file does not need the store; then what killed processes
    have left is removed, too, as at the beginning of a run with checkpoints. The old file is moved
    to `aside` if that is given.
    """
    if whole:
        clear(path)
    header = {name: plain(getattr(run, name)) for name in OWN}
    header |= {"format": FORMAT, "stat_names": plain(run.trace.stat_names),
               "seed": {name: plain(getattr(run.seed, name)) for name in SEED},
               "shapes": run.layout.shapes, "dims": run.layout.dims}
    header |= {name: getattr(run, name) for name in TEXTS if getattr(run, name)}
    if run.coordinates is not None:
        header["coordinates"] = run.coordinates.header()
    if run.trace.records.fields is not None:
        header["extras"] = plain(run.trace.records.fields)
        header["n_extras"] = run.trace.records.n_extras
    if not whole and isinstance(run.trace, StoredTrace) and isinstance(run.warmup, StoredTrace):
        header["store"] = described(run.trace, path) | {"warmup": run.warmup.section}
    arrays: dict[str, Any] = {
        "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
        "x0": run.x0, "snapshot_steps": run.snapshot_steps, "scales": run.scales,
        "tails": run.tails, "implied": run.implied}
    if run.calls is not None:
        arrays["calls"] = run.calls
    arrays |= {name: value for name, value in (
        ("proper", run.proper), ("unvisited", run.unvisited)) if len(value)}
    if run.controls is not None:
        arrays |= {"controls": run.controls.values,
                   "control_draws": np.array([run.controls.draws])}
    traces = [trace.whole() if whole and isinstance(trace, StoredTrace) else trace.arrays()
              for trace in (run.trace, run.warmup)]
    parts = {"trace.": traces[0], "warmup.": traces[1], "coords.": run.layout.coords}
    parts |= {f"chain{k}.": state for k, state in enumerate(run.states)}
    for prefix, some in parts.items():
        arrays |= {prefix + name: value for name, value in some.items()}
    with Shield(), replacing(path, aside) as file:
        write_members(file, arrays)
        if isinstance(run.trace, StoredTrace) and is_state_of(run.trace.store, path):
            run.trace.store.check_own()


def described(trace: StoredTrace, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Header of a file for a run with a store; no path where the file is in the store."""
    store = trace.store
    return {"path": "" if is_state_of(store, path) else str(store.path), "id": trace.identity,
            "section": trace.section, "revision": trace.revision}


def is_state_of(store: Store, path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of the state in a store."""
    return place_of(path) == store.state_path


def read(
    path: str | os.PathLike[str],
    sampler: Sampler | str | None = None,
    schedule: Schedule | str | None = None,
) -> RunState:
    """Read the run from a file of `write`; ValueError if it is not such a file.

    `sampler` and `schedule` replace those of the file, whose classes may then be unknown. If the
    run in a store has written another state meanwhile, whose rows are elsewhere, that is read.
    """
    from pathlib import Path  # see place_of

    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be that of a file, not {shown(path)}")
    check_place("path", path)
    path = Path(path)
    store = None
    if path.is_dir():
        store = store_at(path)
        if store is None and is_beginning(path):
            raise FileNotFoundError(f"the folder {str(path)!r} is empty: a run that is to write a "
                                    "store there has not made its first step yet")
        if store is None:
            raise IsADirectoryError(f"path must be a file or a store of fastkam, not the folder "
                                    f"{str(path)!r}")
        store.identity()
        path = store.state_path
        if not path.exists():
            why = ("has not made its first step yet: try again later" if store.being_written else
                   "was killed before the first step; delete it and start again")
            raise FileNotFoundError(f"store {str(store.path)!r} has no state yet: its run {why}")
    if not path.exists():
        raise FileNotFoundError(f"path: there is no file {str(path)!r} in {str(Path.cwd())!r}")
    for _ in range(MOST_STATES if store is not None else 0):
        before = path.stat()
        try:
            return read_once(path, store, sampler, schedule)
        except ValueError:
            now = path.stat()
            if (now.st_ino, now.st_mtime_ns) == (before.st_ino, before.st_mtime_ns):
                raise
    return read_once(path, store, sampler, schedule)


def read_once(
    path: Path, store: Store | None, sampler: Sampler | str | None,
    schedule: Schedule | str | None,
) -> RunState:
    """Read the run from a file, with the rows that are in the store if there is one."""
    sampler = None if sampler is None else as_sampler(sampler)
    schedule = None if schedule is None else as_schedule(schedule)
    header, arrays = read_parts(path)
    if header.pop("format", None) != FORMAT:
        raise ValueError(f"{path} has a format that this version of fastkam does not know")
    # files written before these were kept
    header = {"budget": 0, "budget_from": 0, "reserved": 0, "by_gradients": False,
              "may_tune": False} | header
    with named(path):
        check_header(header)
        behind = is_delayed(header["sampler"])
    if sampler is not None and behind and not isinstance(sampler, DelayedAcceptance):
        sampler = DelayedAcceptance(sampler=sampler)
    header["sampler"] = sampler or parameters(path, header, "sampler", Sampler)
    header["schedule"] = schedule or parameters(path, header, "schedule", Schedule)
    try:
        with named(path):
            run = from_parts(header, arrays, store)
            check_run(run)
    except ValueError as error:
        if sampler is None:
            raise
        raise ValueError(f"sampler must be the one whose states {path} has, not {shown(sampler)}: "
                         f"{error.__cause__}") from error
    return run


@contextmanager
def named(path: Path) -> Iterator[None]:
    """A context that turns an error about the content of a file into a ValueError that names it."""
    try:
        yield
    except Exception as error:
        what = error if isinstance(error, ValueError) else repr(error)
        raise ValueError(f"{path} is not a fastkam result: {what}") from error


def read_parts(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays in a file."""
    with open(path, "rb") as file:
        try:
            arrays = read_members(file)
            return decoded(arrays.pop("header")), arrays
        except BadField as error:
            raise ValueError(f"{path} is not a fastkam result: {error}") from error
        except Exception as error:  # an archive raises errors of many types
            raise ValueError(f"{path} is not a fastkam result, which Result.save or a checkpoint "
                             "writes") from error


def draws_in(path: str | os.PathLike[str]) -> int | None:
    """Number of draws of all chains in a file, or of its run in a store; 0 if there is no file.

    None if the file has something else.
    """
    counts = counts_in(path)
    return None if counts is None else sum(counts)


def counts_in(path: str | os.PathLike[str]) -> list[int] | None:
    """Number of draws of each chain in a file, as in `draws_in`; [] if there is no file."""
    place = place_of(path)
    if not place.exists() or not place.stat().st_size:
        return []
    try:
        with place.open("rb") as file:
            counts = read_members(file, ("trace.counts", "trace.stored"))
        return (counts["trace.counts"] + counts.get("trace.stored", 0)).astype(int).tolist()
    except Exception:  # an archive raises errors of many types
        return None


def is_delayed(sampler: Any) -> bool:
    """Whether the sampler of a header uses a surrogate."""
    return bool(mapping("sampler", sampler).get("class") == class_path(DelayedAcceptance))


Kind = TypeVar("Kind", Sampler, Schedule)


def parameters(path: Path, header: dict[str, Any], name: str, kind: type[Kind]) -> Kind:
    """The sampler or the schedule of a file."""
    with named(path):
        try:
            found = revived(mapping(name, header[name]))
        except UnknownClass as error:
            unknown = error
        else:
            if not isinstance(found, kind):
                raise BadField(name, f"must be a {kind.__name__}, not {found!r:.100}")
            return found
    raise ValueError(f"{path} {unknown}; or give {name}=, the {name} with which the run began, "
                     "to load or resume") from unknown


def from_parts(
    header: dict[str, Any], arrays: dict[str, NDArray[Any]], store: Store | None = None
) -> RunState:
    """The run of a file's header and arrays; `store` is the one in which the file is."""
    parts = taken_apart(arrays)
    check_names([*ARRAYS, *(name for name in OPTIONAL if name in arrays)], parts.pop("", {}))
    chains, d = check_arrays(arrays)
    stat_names = header.pop("stat_names")
    fields, n_extras = fields_of_extras(header.pop("extras", None), header.pop("n_extras", 0))
    define_own(header.get("coordinates"))
    coordinates = Coordinates.from_header(header.pop("coordinates", None))
    if coordinates is not None and coordinates.n_z != d:
        raise BadField("coordinates", f"must have {d} coordinates, not {coordinates.n_z}")
    layout = layout_of(header, parts.pop("coords", {}),
                       d if coordinates is None else coordinates.n_x, fields)
    implied = check_form("implied", arrays["implied"], (None, 4), np.float64)
    if len(implied) not in (0, len(layout.labels)):
        raise BadField("implied", f"must have {len(layout.labels)} rows or none")
    if "proper" in arrays and not np.isin(
            check_form("proper", arrays["proper"], (None,), np.int64),
            np.arange(len(layout.labels))).all():
        raise BadField("proper", f"must have indices from 0 to {len(layout.labels) - 1}")
    place = place_in(header.pop("store", None), store)
    trace = trace_of("trace", parts.pop("trace", {}), (chains, d), stat_names, fields, n_extras,
                     place)
    if place is not None:
        place = place._replace(section=place.warmup)
    warmup = trace_of("warmup", parts.pop("warmup", {}), (chains, d), stat_names, place=place)
    names = [f"chain{k}" for k in range(chains)] if "chain0" in parts else []
    check_names(names, parts)
    return RunState(
        layout=layout,
        coordinates=coordinates,
        seed=seed_of(header.pop("seed")),
        x0=arrays["x0"],
        snapshot_steps=arrays["snapshot_steps"],
        scales=arrays["scales"],
        tails=arrays["tails"],
        implied=implied,
        proper=arrays.get("proper", np.zeros(0, np.int64)),
        unvisited=arrays.get("unvisited", NOWHERE),
        calls=arrays.get("calls"),
        controls=controls_of(arrays),
        states=[parts[name] for name in names],
        generators=generators_of(header.pop("generators"), header["bit_generator"], chains),
        trace=trace,
        warmup=warmup,
        **header,
    )


def check_arrays(arrays: dict[str, NDArray[Any]]) -> tuple[int, int]:
    """Refuse arrays of a run that do not fit each other; (chains, d) of those that do."""
    x0, scales = finite("x0", arrays["x0"], 2), finite("scales", arrays["scales"], 1)
    chains, d = x0.shape
    check_form("scales", scales, (d,), np.float64)
    if not chains or not d or not (scales > 0).all():
        raise BadField("x0" if not x0.size else "scales", "must not be empty, and scales positive")
    tails = finite("tails", check_form("tails", arrays["tails"], (None, 2), np.float64), 2)
    if not np.isin(tails[:, 0], np.arange(d)).all():
        raise BadField("tails", f"must have indices from 0 to {d - 1} in its first column")
    if "calls" in arrays:
        calls = check_form("calls", arrays["calls"], (None, d + 1), np.float64)
        finite("calls", calls[calls[:, -1] > -np.inf, :-1], 2)
        check_range("calls", LOG_DENSITY, calls[:, -1], {})
    if "unvisited" in arrays:
        place = check_form("unvisited", arrays["unvisited"], (1, d + 2), np.float64)
        finite("unvisited", place[:, :-1], 2)  # the mass may be unknown
    check_form("snapshot_steps", arrays["snapshot_steps"], (None,), np.int64)
    return chains, d


def controls_of(arrays: dict[str, NDArray[Any]]) -> Controls | None:
    """Return the controls of weighted draws in a file, or None if it has none."""
    given = [name for name in CONTROLS if name in arrays]
    if not given:
        return None
    check_names(CONTROLS, given)
    values = finite("controls", arrays["controls"], 3)
    draws = finite("control_draws", check_form(
        "control_draws", arrays["control_draws"], (1,), np.float64), 1)
    if not draws[0] > 0:
        raise BadField("control_draws", f"must be positive, not {draws[0]}")
    return Controls(values, float(draws[0]))


def define_own(coordinates: Any) -> None:
    """Import the class of the transform of a model of another package, if a header names it."""
    if MODEL in json.dumps(coordinates):
        import fastkam.interop.model  # noqa: F401


def taken_apart(arrays: dict[str, NDArray[Any]]) -> dict[str, dict[str, NDArray[Any]]]:
    """Group arrays by the first part of their names, {part: {rest: array}}; "" if undivided."""
    parts: dict[str, dict[str, NDArray[Any]]] = {}
    for name, array in arrays.items():
        part, dot, rest = name.partition(".")
        parts.setdefault(part if dot else "", {})[rest if dot else name] = array
    return parts


def finite(name: str, value: NDArray[Any], ndim: int) -> NDArray[np.float64]:
    """Return `value` if it is an array of finite floats with `ndim` dimensions."""
    array = check_form(name, value, (None,) * ndim, np.float64)
    check_range(name, FINITE, array, {})
    return array


def trace_of(
    name: str,
    arrays: dict[str, NDArray[Any]],
    shape: tuple[int, ...],
    stat_names: list[str] | None,
    fields: Fields | None = None,
    n_extras: int = 0,
    place: Place | None = None,
) -> Trace | StoredTrace:
    """A trace from its arrays, in a store if `place` is given; `shape` is (chains, d)."""
    try:
        if place is not None:
            stored = StoredTrace.from_arrays(place.store, place.section, place.revision, arrays,
                                             stat_names, fields, n_extras)
            check_form("x", stored.window.x, (shape[0], None, shape[1]), np.float64)
            return stored
        trace = Trace.from_arrays(arrays, stat_names, fields, n_extras)
        check_form("x", trace.x, (shape[0], None, shape[1]), np.float64)
    except BadField as error:
        raise error.within(name) from None
    return trace


def place_in(about: Any, store: Store | None) -> Place | None:
    """The store of a run, the section of its draws and its revision, from a header."""
    if about is None:
        if store is not None:
            raise BadField("store", "is missing: this is not the state of a run with a store")
        return None
    if isinstance(about, dict):
        about = {"warmup": WARMUP} | about
    about = mapping("store", about, ("path", "id", "section", "warmup", "revision"))
    revision = integer("store.revision", about["revision"], 0)
    for name, sections in (("section", OF_DRAWS), ("warmup", OF_WARMUP)):
        if about[name] not in sections:
            raise BadField(f"store.{name}", f"must be one of {list(sections)}, not "
                                            f"{about[name]!r:.100}")
    if not isinstance(about["path"], str) or (store is None and not about["path"]):
        raise BadField("store.path", "is missing: give the folder that this file was in")
    if about["path"]:
        from pathlib import Path

        store = store_at(Path(about["path"]))
        if store is None:
            raise ValueError(f"the draws of the run were in {about['path']!r}, where there is no "
                             "store any more")
    assert store is not None
    if store.identity() != about["id"]:
        raise ValueError(f"the store {str(store.path)!r} belongs to another run")
    return Place(store, str(about["section"]), revision, str(about["warmup"]))


def layout_of(
    header: dict[str, Any], coords: dict[str, NDArray[Any]], d: int, fields: Fields | None
) -> Layout:
    """The layout of d coordinates, and of extras, that a header and arrays describe."""
    shapes, dims = shapes_of(header.pop("shapes")), dims_of(header.pop("dims"))
    size = sum(prod(shape) for shape in shapes.values())
    if size != d:
        raise BadField("shapes", f"must describe {d} coordinates, not {size}")
    if fields is None:  # no draw has been made yet
        dims = {name: some for name, some in dims.items() if name in shapes}
        used = {dim for some in dims.values() for dim in some}
        coords = {dim: values for dim, values in coords.items() if dim in used}
    layout = check_layout(list(shapes), shapes, dims, coords, d)
    check_extras(fields or {}, layout)
    return layout


def check_room(path: str | os.PathLike[str], state: RunState, rows: int) -> None:
    """Refuse a file whose draws, or states of warm-up, would not fit into memory."""
    if isinstance(state.trace, StoredTrace):
        return
    warm_up = state.tune // state.thin if state.keep_warmup else 0
    for n, what in ((rows, "draws (requested): give draws="),
                    (warm_up, "states of warm-up (tune)")):
        try:
            Trace(state.chains, n, state.d, state.trace.stat_names)
        except (MemoryError, ValueError, OverflowError) as error:
            raise ValueError(f"{path} asks for more than there is memory for: {n} {what}"
                             ) from error
