"""Every registered sampler says what it is: formula, reference, parameters, fields, statistics."""

import dataclasses
import importlib
import re

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam.samplers import SAMPLERS

TINY = {"ckam": {"cycle": 20}, "kpca": {"subsample": 12}}     # where defaults need a longer run


def parameters_of(cls):
    """{name: description} of the parameters that the docstring describes."""
    section = re.split(r"(?:Notes|References)\n +---", cls.__doc__.split("Parameters\n")[1])[0]
    found, names = {}, []
    for line in section.splitlines()[1:]:
        text = line.strip()
        if re.match(r" {4}\w", line) and not text.startswith("---"):
            names = [name.strip() for name in text.split(" : ")[0].split(",")]
            found |= dict.fromkeys(names, "")
        elif text:
            found |= {name: found[name] + text for name in names}
    return found


@pytest.mark.parametrize("name", SAMPLERS)
def test_class(name):
    cls = SAMPLERS[name]
    described = parameters_of(cls)
    assert set(described) == {field.name for field in dataclasses.fields(cls)}
    assert all(described.values()), described
    assert re.search(r"References\n +-+\n +\w.*\(\d{4}\)|References\n +-+\n +Li, C", cls.__doc__)
    assert len(cls.__doc__.splitlines()[0]) <= 95
    assert cls.__doc__.splitlines()[0].endswith(".")


@pytest.mark.parametrize("name", SAMPLERS)
def test_exported(name):
    cls = SAMPLERS[name]
    assert getattr(fk.samplers, cls.__name__) is cls
    assert cls.__name__ in fk.samplers.__all__


@pytest.mark.parametrize("name", SAMPLERS)
def test_algorithm(name):
    """The compiled module begins with its name, a formula and a reference."""
    module = importlib.import_module(SAMPLERS[name].kernel_class().__module__)
    title, formula = module.__doc__.split("\n\n")[:2]
    assert title.endswith(".")
    assert "\n" not in title
    formulas = [line for line in module.__doc__.splitlines() if line.startswith("    ")]
    assert any(re.search(r"=|~|<-", line) for line in formulas), formula
    assert re.search(r"\((19|20)\d\d\)\. |Li, C\. et al\.", module.__doc__)


@pytest.mark.parametrize("name", SAMPLERS)
def test_fields_and_statistics(name):
    kernel = SAMPLERS[name].kernel_class()
    for name, field in kernel.FIELDS.items():
        assert isinstance(field.shape, tuple), name
        assert len(field.meaning) > 3, name
        assert field.dtype in ("f8", "i8"), name
    assert not set(kernel.statistics()) & {"lp", "acceptance_rate", "accepted"}


@pytest.mark.parametrize("name", SAMPLERS)
def test_runs(name):
    """The sampler runs, and records and stores what it declares."""
    sampler = SAMPLERS[name](**TINY.get(name, {}))
    result = sample(lambda x: (-0.5 * x @ x, -x), np.zeros(2), sampler=sampler, draws=60,
                    tune=40, chains=2, seed=1, progress=False)
    kernel = SAMPLERS[name].kernel_class()
    assert result.draws.shape == (2, 60, 2)
    assert set(sampler.stat_names) == set(result.stats) - {"lp", "acceptance_rate", "accepted"}
    assert {f"kernel.{field}" for field in kernel.FIELDS} <= set(result.states[0])
    for name, field in kernel.FIELDS.items():
        assert result.states[0][f"kernel.{name}"].ndim == len(field.shape)


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name not in TINY])
def test_short_name(name):
    result = sample(lambda x: (-0.5 * x @ x, -x), np.zeros(1), sampler=name, draws=5, tune=5,
                    chains=1, progress=False)
    assert type(result.sampler) is SAMPLERS[name]
