"""A planted mistake: changes of the source of registered samplers."""

from typing import NamedTuple

HELPERS = {"moments": "linalg.moments", "step": "engine.step"}     # elsewhere than samplers
IMPORT_CHAIN = "from fastkam._core.engine.kernel cimport Chain, Kernel"


class Change(NamedTuple):
    """A change of a module of the core: `old`, which stands in one place there, becomes `new`."""

    module: str
    old: str
    new: str


class Twin(NamedTuple):
    """A mistake in one or several samplers."""

    name: str
    spoils: tuple[str, ...]     # registered names; "delayed" for delayed acceptance
    caught_by: str
    mistake: str
    changes: tuple[Change, ...]


def twin(name, spoils, caught_by, mistake, *changes):
    """Return a twin; a change is (module, old, new), or (old, new) of the sampler's own module."""
    spoils = (spoils,) if isinstance(spoils, str) else spoils
    changes = [change if len(change) == 3 else (spoils[0], *change) for change in changes]
    return Twin(name, spoils, caught_by, mistake, tuple(
        Change(HELPERS.get(module, f"samplers.{module}"), old, new)
        for module, old, new in changes))
