import densities
import pytest


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The path of the C densities, compiled."""
    return densities.build(tmp_path_factory.mktemp("density"))
