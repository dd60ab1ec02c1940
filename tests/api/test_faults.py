"""Some of the faults of tests/faults, each once; ``python -m faults`` makes hundreds."""

import pytest
from faults.suite import Suite

EACH = [("ram", "SIGKILL"), ("ram", "disk full"), ("pt", "SIGINT"), ("shared nuts", "SIGTERM"),
        ("vectorized kam", "SIGINT twice"), ("jumps in a thread pool", "SIGINT to all"),
        ("ram in forked processes", "worker killed"), ("auto, with a search", "SIGINT")]


@pytest.fixture(scope="module")
def suite():
    made = Suite(seed=5)
    yield made
    made.close()


@pytest.mark.parametrize(("case", "fault"), EACH)
def test_a_fault_at_a_random_moment(suite, case, fault):
    suite.once(case, fault)
