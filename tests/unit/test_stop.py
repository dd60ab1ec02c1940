"""Rules to stop by: when two of them are met or due, and when they are looked at."""

from types import SimpleNamespace

import pytest

import fastkam as fk
from fastkam.run.loop import milestones

SHORT, LONG = fk.stop.Time(1.0), fk.stop.Time("1min")


@pytest.mark.parametrize(("seconds", "one", "both"), [
    (0.5, False, False), (1.5, True, False), (60.0, True, True)])
def test_two_rules(seconds, one, both):
    run = SimpleNamespace(seconds=seconds)
    for either in (SHORT | LONG, LONG | SHORT):
        assert either.met(run) == either.due(run) == one
    for all_of_them in (SHORT & LONG, LONG & SHORT):
        assert all_of_them.met(run) == all_of_them.due(run) == both
    assert (SHORT | LONG).limits().seconds == 1.0
    assert (SHORT & LONG).limits().seconds == 60.0


def test_rules_are_looked_at_after_100_draws_more_or_a_fifth_more():
    assert list(milestones(1000)) == [100, 200, 300, 400, 500, 600, 720, 864]
    assert list(milestones(100)) == []
