"""Every sampler and coupling has a planted mistake that a test must detect; each can be applied."""

import pytest
from twins import CHECKS, LIST, TWINS
from twins.build import copies, kernel_of

from fastkam.samplers import SAMPLERS


def test_every_sampler_and_coupling_has_a_twin():
    caught = [(name, twin.caught_by) for twin in LIST for name in twin.spoils]
    assert {name for name, _ in caught} == {*SAMPLERS, "delayed"}
    for name in SAMPLERS:       # mistakes that the engine refuses do not count
        assert any(other == name and check != "refused" for other, check in caught), name
    assert {check for _, check in caught} == set(CHECKS)
    assert len(TWINS) == len(LIST)


@pytest.mark.parametrize("twin", LIST, ids=lambda twin: twin.name)
def test_a_twin_is_a_change_of_its_sampler(twin):
    files = copies(twin)
    for name in twin.spoils:
        module, kernel = kernel_of(name)
        copied = f"{twin.name}__{module.rpartition('.')[2]}.pyx"
        assert f"cdef class {kernel}(" in files[copied]
