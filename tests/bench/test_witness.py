"""What counts as lost, torn and invented after a crash, on numbers made up here."""

from __future__ import annotations

import pytest

from bench.witness import Fault, Known, Tally, Witness, number_of


def offsets(*numbers: int) -> list[int]:
    return [-1 if number == 0 else number << 20 | nth for nth, number in enumerate(numbers)]


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        (offsets(7, 7, 7), 7),
        (offsets(0, 0), 0),
        (offsets(7, 8, 7), "torn"),
        (offsets(7, 0), "torn"),
        ([7 << 20, 7 << 20], "invented"),
        ([-2], "invented"),
    ],
)
def test_an_offset_tells_which_commit_it_is_from(stored: list[int], found: int | Fault) -> None:
    assert number_of(stored) == found


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (4, "lost"),
        (5, "lost"),
        (10, "invented"),
        (11, "lost"),
        (12, "lost"),
        (13, None),
        (15, None),
        (16, "invented"),
    ],
)
def test_what_was_answered_must_be_there_and_what_was_sent_may_be(found: int, fault: Fault | None) -> None:
    known = Known(stored=5)
    known.load(base=10, sent=15, answered=13)
    assert known.read(offsets(found, found)) == fault


def test_what_was_never_answered_may_be_missing() -> None:
    known = Known()
    known.load(base=0, sent=2, answered=0)
    assert known.read(offsets(0, 0)) is None


def test_between_two_loads_there_is_nothing_to_be_found() -> None:
    known = Known(stored=5)
    known.load(base=10, sent=15, answered=10)
    assert known.read(offsets(7)) == "invented"


def test_what_was_read_once_stays() -> None:
    known = Known()
    known.load(base=0, sent=9, answered=3)
    assert known.read(offsets(8)) is None
    assert known.read(offsets(8)) is None
    assert known.read(offsets(7)) == "lost"


def test_a_tally_counts_what_all_clients_know() -> None:
    tally, witness = Tally(), Witness(2)
    witness.heard({"sent": [4, 6], "acked": [3, 6]}, tally)
    assert (witness.base, tally.answered, tally.unanswered) == (6, 9, 1)
    witness.read([offsets(4, 4), offsets(6, 6)], tally)
    assert tally.fault_count == 0
    witness.heard({"sent": [8, 6], "acked": [8, 6]}, tally)
    assert (witness.base, tally.answered, tally.unanswered) == (8, 11, 1)
    witness.read([offsets(7, 7), offsets(6, 5)], tally)
    assert tally.faults == {"lost": 1, "torn": 1, "invented": 0}
    assert tally.compared == 8
    assert tally.fault_count == 2


def test_a_load_that_came_to_write_nothing_has_sent_its_first_commit_at_most() -> None:
    tally, witness = Tally(), Witness(2)
    witness.heard(None, tally)
    assert (witness.base, tally.answered, tally.unanswered) == (1, 0, 1)
    witness.read([offsets(1), offsets(1)], tally)
    assert tally.faults["invented"] == 1
