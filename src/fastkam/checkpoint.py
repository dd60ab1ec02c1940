"""Results as files: one .npz without pickle, with a JSON header, written new and then renamed."""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = 1
HEADER = "header"


def class_name(cls: type) -> str:
    """The name of a class in a header: with its module where it is none of fastkam's."""
    own = cls.__module__.split(".")[0] == "fastkam"
    return cls.__name__ if own else f"{cls.__module__}:{cls.__qualname__}"


def classes() -> dict[str, type]:
    """The parameter classes that a header may name."""
    from fastkam import kernels, samplers, schedules

    own = list(samplers.PythonSampler.__subclasses__())
    for cls in own:
        own += cls.__subclasses__()
    return {class_name(cls): cls for cls in own} | {
        name: value
        for module in (samplers, schedules, kernels)
        for name, value in vars(module).items()
        if isinstance(value, type) and dataclasses.is_dataclass(value)
    }


def plain(value: Any) -> Any:
    """`value` in JSON's own types: arrays and parameter objects become marked dictionaries."""
    if dataclasses.is_dataclass(value):
        init = [f.name for f in dataclasses.fields(value) if f.init]
        fields = {name: plain(getattr(value, name)) for name in init}
        return {"__class__": class_name(type(value))} | fields
    if isinstance(value, np.ndarray):
        return {"__array__": value.tolist(), "dtype": str(value.dtype)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a {type(value).__name__} cannot stand in a file's header: {value!r}")


def revived(value: Any) -> Any:
    """The inverse of `plain` (tuples come back as lists)."""
    if isinstance(value, list):
        return [revived(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "__array__" in value:
        return np.array(value["__array__"], dtype=value["dtype"])
    fields = {key: revived(item) for key, item in value.items() if key != "__class__"}
    if "__class__" not in value:
        return fields
    known = classes()
    if value["__class__"] not in known:
        raise ValueError(f"the file names an unknown class {value['__class__']!r}")
    return known[value["__class__"]](**fields)


def write(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> None:
    """Write the file `path`: under another name first, so that an old one is whole until then."""
    path = Path(path)
    text = json.dumps(plain({"format": FORMAT} | header)).encode()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            np.savez(file, allow_pickle=False, **{HEADER: np.frombuffer(text, np.uint8)}, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """(header, arrays) of a file that `write` made; ValueError where it is no such file."""
    path = Path(path)
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as content:
            arrays = {name: content[name] for name in content.files}
            header = dict(json.loads(arrays.pop(HEADER).tobytes()))
    except (zipfile.BadZipFile, AttributeError, KeyError, TypeError, ValueError, EOFError) as error:
        raise ValueError(f"{path} is not a fastkam result: {error}") from error
    if header.pop("format", None) != FORMAT:
        raise ValueError(f"{path} has a format that this version of fastkam does not know")
    return revived(header), arrays
