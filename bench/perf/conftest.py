"""Fixtures of the benches."""

import pytest


@pytest.fixture
def report(capsys):
    """A function that prints a line at once."""
    def say(text):
        with capsys.disabled():
            print(f"\n{text}", flush=True)

    return say
