"""The limit of time of the fuzzers: of the processor, or many times as much by the clock."""

import subprocess
import sys

import limits
import pytest
from limits import Limit


def ended(code, seconds, monkeypatch, patience=30):
    monkeypatch.setattr(limits, "PATIENCE", patience)
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        limit = Limit(process, seconds)
        process.wait()
        return limit.end(), process.returncode


@pytest.mark.parametrize(("code", "seconds", "patience"), [
    ("while True: pass", 0.2, 1e6),
    ("import time; time.sleep(600)", 0.1, 1),
])
def test_a_call_that_takes_too_long_is_ended(monkeypatch, code, seconds, patience):
    assert ended(code, seconds, monkeypatch, patience) == (True, -9)


def test_a_process_that_waits_for_the_processor_is_not_ended(monkeypatch):
    """On a busy machine more time passes than the limit, but little processor time."""
    assert ended("import time; time.sleep(2)", 1.0, monkeypatch) == (False, 0)


def test_a_crash_is_no_matter_of_time(monkeypatch):
    assert ended("import os; os.abort()", 20.0, monkeypatch) == (False, -6)
