"""Parse command-line values: a density, a starting point, a sampler and its parameters."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import importlib
import importlib.util
import inspect
import math
import sys
import traceback
from pathlib import Path

import numpy as np

from fastkam.arguments import near
from fastkam.stop import ESS, Time


class UsageError(Exception):
    """A mistake in the command, reported in one line."""


# ---- the density ----


def find_target(text):
    """The object that MODULE:FUNCTION names."""
    module, colon, name = text.rpartition(":")
    if not (colon and module and name):
        raise UsageError(f"the density must be given as MODULE:FUNCTION, not {text!r}")
    found = load_module(module)
    for part in name.split("."):
        if not hasattr(found, part):
            there = [n for n, v in vars(found).items() if callable(v) and n[:1] != "_"]
            raise UsageError(
                f"{module} has no {name!r}" + (f"; it has {', '.join(there)}" if there else "")
            )
        found = getattr(found, part)
    return found


def load_module(text):
    """The module of a file's path, or of a name; the current folder is searched first."""
    try:
        if text.endswith(".py"):
            return load_file(Path(text))
        if "" not in sys.path:
            sys.path.insert(0, "")
        return importlib.import_module(text)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        name = getattr(error, "name", None)
        if isinstance(error, ModuleNotFoundError) and name and f"{text}.".startswith(f"{name}."):
            raise UsageError(f"there is no module {text!r}, here or installed") from None
        raise UsageError(f"cannot import {text}: {in_one_line(error)}") from error


def load_file(path):
    """The module in a file, whose own folder is searched for what it imports."""
    if not path.is_file():
        raise UsageError(f"there is no file {str(path)!r}")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{str(path)!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # so that what it defines can be pickled
    spec.loader.exec_module(module)
    return module


def in_one_line(error):
    """Message of an exception, and the place where it was raised."""
    text = f"{type(error).__name__}: {error}".splitlines()[0]
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) or not frames:
        return text
    return f"{text} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"


# ---- the start ----


def read_init(text):
    """The starting point or points of --init: numbers, a=1,b=2, or @FILE (.npy, or text)."""
    if not text.startswith("@"):
        try:
            if "=" in text:
                return named_numbers(text)
            return np.array([float(part) for part in text.split(",")])
        except ValueError:
            raise UsageError("--init must be numbers like 0,0, or a=0,b=0 by name, or @FILE, not "
                             f"{text!r}") from None
    path = Path(text[1:])
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        lines = [line.replace(",", " ").split() for line in path.read_text().splitlines()]
        points = [[float(part) for part in line] for line in lines if line]
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"--init cannot be read from {str(path)!r}: {error}") from None
    if not points or len({len(point) for point in points}) > 1:
        raise UsageError(f"--init must be a file of points of one dimension, and {path} is not")
    if len(points[0]) == 1:  # a number a line is one point
        return np.array(points)[:, 0]
    return np.array(points[0] if len(points) == 1 else points)


def named_numbers(text):
    """{"a": 1.0, "b": 2.0} of a=1,b=2; ValueError if it is not of this form."""
    pairs = [part.split("=") for part in text.split(",")]
    found = {name.strip(): float(value) for name, value in pairs}
    if len(found) < len(pairs) or not all(name.isidentifier() for name in found):
        raise ValueError(text)
    return found


# ---- numbers, and the end of a run ----


def whole(text):
    """An integer as 1000 or 1e3."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number.is_integer():
        raise argparse.ArgumentTypeError(f"must be a whole number, as 1000 or 1e3, not {text!r}")
    return int(number)


def read_stop(size, limit):
    """The rule that ends a run with this effective sample size or time, or None."""
    rules = []
    for option, make, value in (("--ess", ESS, size), ("--time-limit", Time, limit)):
        if value is not None:
            try:
                rules.append(make(value))
            except ValueError as error:
                words = str(error).split(maxsplit=1)[1]
                raise UsageError(f"{option} {words}") from None
    return None if not rules else rules[0] if len(rules) == 1 else rules[0] | rules[1]


# ---- the sampler ----


def known_samplers():
    """{short name: class}."""
    from fastkam.samplers import SAMPLERS

    return SAMPLERS


def sampler_class(name):
    """The class of a short name."""
    if name not in known_samplers():
        raise UsageError(f"there is no sampler {name!r}; there are {', '.join(known_samplers())}"
                         f"{near(name, known_samplers())}")
    return known_samplers()[name]


def read_sampler(name, settings):
    """The sampler of that name with parameters from texts KEY=VALUE."""
    if name == "auto":
        if settings:
            raise UsageError("--set needs a sampler, not --sampler auto")
        return name
    cls = sampler_class(name)
    fields = [field.name for field in dataclasses.fields(cls) if field.init]
    parameters = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set must be KEY=VALUE, not {text!r}")
        if key not in fields:
            has = f"its parameters are {', '.join(fields)}" if fields else "it has none"
            raise UsageError(f"{name} has no parameter {key!r}; {has}{near(key, fields)}")
        parameters[key] = read_value(value)
    try:
        return cls(**parameters)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name}: {error}") from error


def read_value(text):
    """A Python literal, one of our parameter objects as ``Gaussian(sigma=2)``, or the text."""
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return text
    if isinstance(node, ast.Call):
        return read_object(node, text)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return text


def read_object(node, text):
    """An object of a parameter class from a call with literal arguments."""
    from fastkam import kernels, samplers, schedules  # noqa: F401  # they define the classes
    from fastkam.parameters import defined

    known = defined()
    name = ast.unparse(node.func).rpartition(".")[2]
    if name not in known:
        raise UsageError(f"--set knows no {name!r} as in {text!r}; it knows {', '.join(known)}")
    try:
        places = [ast.literal_eval(argument) for argument in node.args]
        named = {word.arg: ast.literal_eval(word.value) for word in node.keywords}
        return known[name](*places, **named)
    except (TypeError, ValueError) as error:
        raise UsageError(f"--set cannot make {text!r}: {error}") from error


# ---- descriptions ----


def list_samplers():
    """A table of the samplers: short name, class, one line."""
    rows = [
        [name, f"  {cls.__name__}", f"  {first_line(cls)}"]
        for name, cls in known_samplers().items()
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    return "\n".join(
        f"{name.ljust(widths[0])}{title.ljust(widths[1])}{line}" for name, title, line in rows
    )


def first_line(cls):
    return (inspect.getdoc(cls) or "").partition("\n")[0]


def describe_sampler(name):
    """A sampler's documentation, each parameter with its default, and what it records."""
    cls = sampler_class(name)
    sections = documentation(inspect.getdoc(cls) or "")
    lines = [f"{name}: fastkam.samplers.{cls.__name__}", "", sections.pop("", "")]
    described = parameters(sections.pop("Parameters", ""))
    for field in dataclasses.fields(cls):
        kind, text = described.get(field.name, ("", ""))
        lines += ["", f"  {field.name} = {default(field)}" + (f"   ({kind})" if kind else "")]
        lines += [f"      {line}" for line in text.splitlines()]
    for title, meanings in recorded(cls).items():
        lines += ["", title, *(f"  {symbol}: {text}" for symbol, text in meanings.items())]
    for title, text in sections.items():
        lines += ["", title, *(f"  {line}".rstrip() for line in text.splitlines())]
    return "\n".join(lines)


def recorded(cls):
    """{title: {name: meaning}} of a sampler's own statistics, and of what it learns."""
    fields = cls.kernel_class().FIELDS
    found = {
        "Recorded with each draw (result.stats)":
            {field.stat: field.meaning for field in fields.values() if field.stat},
        "Learned in warm-up (result.adaptation)":
            {name: field.meaning for name, field in fields.items() if field.learned}}
    return {title: meanings for title, meanings in found.items() if meanings}


def default(field):
    """The default of a dataclass's field, as text."""
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    if field.default_factory is not dataclasses.MISSING:
        return repr(field.default_factory())
    return "(must be given)"


def documentation(text):
    """{title: text} of a numpydoc docstring; what comes before the first title under ""."""
    sections: dict[str, list[str]] = {}
    title, lines = "", text.splitlines()
    for i, line in enumerate(lines):
        below = lines[i + 1] if i + 1 < len(lines) else ""
        if line and below and set(below) == {"-"}:
            title = line
        elif not (line and set(line) == {"-"}):
            sections.setdefault(title, []).append(line)
    return {title: "\n".join(body).strip("\n") for title, body in sections.items()}


def parameters(text):
    """{name: (type, text)} of a numpydoc section of parameters."""
    found: dict[str, tuple[str, str]] = {}
    names: list[str] = []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            heads, _, kind = line.partition(" : ")
            names = heads.split(", ")
            found |= dict.fromkeys(names, (kind, ""))
        else:
            found |= {name: (found[name][0], f"{found[name][1]}\n{line.strip()}".strip())
                      for name in names}
    return found


