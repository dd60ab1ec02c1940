"""Runs as files: one .npz without pickle, with a JSON header, written new and then renamed."""

from __future__ import annotations

import json
import os
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fastkam.errors import SamplingWarning
from fastkam.parameters import UnknownClass, class_path, plain, revived
from fastkam.problem.coordinates import Coordinates
from fastkam.run.files import clear, replacing
from fastkam.run.interrupts import Shield
from fastkam.run.shapes import Layout
from fastkam.run.state import RunState, check_bit_generator
from fastkam.run.trace import Trace
from fastkam.samplers import DelayedAcceptance, Sampler, as_sampler
from fastkam.schedules import Schedule, as_schedule

FORMAT = 2
HEADER = ("sampler", "schedule", "tune", "thin", "keep_warmup", "share", "requested", "undecided",
          "bit_generator", "generators", "search", "searched",
          "seconds", "status")
SEED = ("entropy", "spawn_key", "pool_size", "n_children_spawned")


def write(path: str | os.PathLike[str], run: RunState) -> None:
    """Write the file `path`: under another name first, so that an old one is whole until then."""
    header = {name: plain(getattr(run, name)) for name in HEADER}
    header |= {"format": FORMAT, "stat_names": plain(run.trace.stat_names),
               "seed": {name: plain(getattr(run.seed, name)) for name in SEED},
               "shapes": run.layout.shapes, "dims": run.layout.dims}
    if run.coordinates is not None:
        header["coordinates"] = run.coordinates.header()
    if run.trace.records.fields is not None:
        header["extras"] = plain(run.trace.records.fields)
        header["n_extras"] = run.trace.records.n_extras
    arrays: dict[str, Any] = {
        "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
        "x0": run.x0, "snapshot_steps": run.snapshot_steps, "scales": run.scales}
    parts = {"trace.": run.trace.arrays(), "warmup.": run.warmup.arrays(),
             "coords.": run.layout.coords}
    parts |= {f"chain{k}.": state for k, state in enumerate(run.states)}
    for prefix, some in parts.items():
        arrays |= {prefix + name: value for name, value in some.items()}
    with Shield(), replacing(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def read(
    path: str | os.PathLike[str],
    sampler: Sampler | str | None = None,
    schedule: Schedule | str | None = None,
) -> RunState:
    """The run in a file that `write` made; ValueError where it is no such file.

    `sampler` and `schedule` stand in for those of the file, whose classes it then need not know.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be that of a file, not {path!r}")
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"path must be a file, not the folder {str(path)!r}")
    if not path.exists():
        raise FileNotFoundError(f"path: there is no file {str(path)!r} in {str(Path.cwd())!r}")
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as content:
            arrays = {name: content[name] for name in content.files}
            header = dict(json.loads(arrays.pop("header").tobytes()))
    except (zipfile.BadZipFile, AttributeError, KeyError, TypeError, ValueError, EOFError) as error:
        raise ValueError(f"{path} is not a fastkam result, which Result.save or a checkpoint "
                         "writes") from error
    if header.pop("format", None) != FORMAT:
        raise ValueError(f"{path} has a format that this version of fastkam does not know")
    try:
        if sampler is not None:
            sampler = as_sampler(sampler)
            behind = header["sampler"]["class"] == class_path(DelayedAcceptance)
            if behind and not isinstance(sampler, DelayedAcceptance):
                sampler = DelayedAcceptance(sampler=sampler)
        header["sampler"] = sampler or parameters(path, header, "sampler")
        header["schedule"] = (as_schedule(schedule) if schedule is not None
                              else parameters(path, header, "schedule"))
        return from_parts(header, arrays)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a fastkam result: {error!r}") from error


def parameters(path: Path, header: dict[str, Any], name: str) -> Any:
    """The sampler or the schedule of a file."""
    try:
        return revived(header[name])
    except UnknownClass as error:
        raise ValueError(f"{path} {error}; or give {name}=, the {name} with which the run began, "
                         "to load or resume") from error


def from_parts(header: dict[str, Any], arrays: dict[str, Any]) -> RunState:
    """The run of a file's header and arrays."""

    def under(prefix: str) -> dict[str, Any]:
        return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}

    shapes = {name: tuple(shape) for name, shape in header.pop("shapes").items()}
    seed = {name: revived(value) for name, value in header.pop("seed").items()}
    stat_names = header.pop("stat_names")
    extras = header.pop("extras", None)
    n_extras = header.pop("n_extras", 0)
    fields = None if extras is None else {
        name: (tuple(shape), kind) for name, (shape, kind) in revived(extras).items()}
    check_bit_generator(header["bit_generator"])
    return RunState(
        layout=Layout(shapes, header.pop("dims"), under("coords.")),
        coordinates=Coordinates.from_header(header.pop("coordinates", None)),
        seed=np.random.SeedSequence(**seed),
        x0=arrays["x0"],
        snapshot_steps=arrays["snapshot_steps"],
        scales=arrays["scales"],
        trace=Trace.from_arrays(under("trace."), stat_names, fields, n_extras),
        warmup=Trace.from_arrays(under("warmup."), stat_names),
        states=[under(f"chain{k}.") for k in range(len(arrays["x0"]))],
        generators=revived(header.pop("generators")),
        **header,
    )


class CheckpointWriter:
    """Writes checkpoints: none where `path` is None.

    A file that cannot be written does not end a run that may have taken days: it is warned of,
    tried again, and is an error only at the end, with the draws in it.

    Attributes
    ----------
    error : Exception or None
        Of the last attempt.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, interval: float = 0.0) -> None:
        self.path, self.interval = path, interval
        self.last = time.monotonic()
        self.error: Exception | None = None
        if path is not None:
            clear(path)

    def due(self, state: Callable[[], RunState]) -> None:
        """Write a checkpoint of the run that `state` returns, if it is time."""
        if self.path is None or time.monotonic() - self.last < self.interval:
            return
        known = self.error is not None
        self.write(state())
        if self.error and not known:
            warnings.warn(f"the run goes on{self.problem}", SamplingWarning, stacklevel=2)
        self.last = time.monotonic()

    def write(self, run: RunState) -> None:
        """Write a checkpoint."""
        if self.path is None:
            return
        try:
            write(self.path, run)
            self.error = None
        except Exception as error:  # whatever it is, the draws and the density's own error are kept
            self.error = error

    @property
    def problem(self) -> str:
        """What is wrong with the file, as the end of a sentence; nothing where nothing is."""
        return f", but checkpoint={str(self.path)!r}: {self.error}" if self.error else ""
