"""Files of calls with mistakes in them, and odd values passed to an AskTell: some of many."""

import pytest
from fuzzing_calls import Fuzzer


@pytest.mark.parametrize("seed", range(4))
def test_mistakes_are_refused_or_do_no_harm(tmp_path, seed):
    fuzzer = Fuzzer(tmp_path)
    for number in range(30):
        fuzzer.once(1000 * seed + number)
    assert sum(fuzzer.counts.values()) == 30
