"""SIGINT in a worker: it ends a task early, and is passed on long after the last one."""

import signal

from fastkam.run.worker import GRACE_SECONDS, Interrupts


def test_an_interrupt_is_passed_on_where_the_last_task_has_long_ended():
    interrupts, passed = Interrupts(), []
    interrupts.previous = lambda number, frame: passed.append(number)
    interrupts.begin()
    assert not interrupts.asked.is_set()
    interrupts.receive(signal.SIGINT, None)
    assert interrupts.asked.is_set()
    interrupts.end()
    interrupts.receive(signal.SIGINT, None)
    assert passed == []
    interrupts.ended -= GRACE_SECONDS
    interrupts.receive(signal.SIGINT, None)
    assert passed == [signal.SIGINT]
    interrupts.begin()
    assert not interrupts.asked.is_set()
    interrupts.receive(signal.SIGINT, None)
    assert passed == [signal.SIGINT]


def test_a_task_in_the_process_itself_leaves_its_handler():
    """Only a worker takes over SIGINT: in this process the user's handler stays."""
    def own(number, frame):
        pass

    before = signal.signal(signal.SIGINT, own)
    try:
        Interrupts().begin()
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
