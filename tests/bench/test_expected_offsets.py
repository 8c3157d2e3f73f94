"""Lost, torn and invented offsets after a crash, on made-up numbers."""

from __future__ import annotations

import pytest

from bench.expected_offsets import CrashCounts, ExpectedGroup, ExpectedOffsets, Fault, commit_number


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
def test_an_offset_identifies_its_commit(stored: list[int], found: int | Fault) -> None:
    assert commit_number(stored) == found


@pytest.mark.parametrize(
    ("found", "fault"),
    [(4, "lost"), (5, "lost"), (10, "invented"), (11, "lost"), (12, "lost"), (13, None), (15, None), (16, "invented")],
)
def test_an_acknowledged_commit_must_be_stored_and_a_sent_one_can_be(found: int, fault: Fault | None) -> None:
    group = ExpectedGroup(stored=5)
    group.after_load(base=10, sent=15, acknowledged=13)
    assert group.check(offsets(found, found)) == fault


def test_a_commit_without_a_response_can_be_missing() -> None:
    group = ExpectedGroup()
    group.after_load(base=0, sent=2, acknowledged=0)
    assert group.check(offsets(0, 0)) is None


def test_a_number_between_two_loads_is_invented() -> None:
    group = ExpectedGroup(stored=5)
    group.after_load(base=10, sent=15, acknowledged=10)
    assert group.check(offsets(7)) == "invented"


def test_a_fetched_commit_must_not_disappear() -> None:
    group = ExpectedGroup()
    group.after_load(base=0, sent=9, acknowledged=3)
    assert group.check(offsets(8)) is None
    assert group.check(offsets(8)) is None
    assert group.check(offsets(7)) == "lost"


def test_the_counts_cover_all_groups() -> None:
    counts, expected = CrashCounts(), ExpectedOffsets(2)
    expected.after_load({"sent": [4, 6], "acked": [3, 6]}, counts)
    assert (expected.base, counts.acknowledged, counts.pending) == (6, 9, 1)
    expected.check([offsets(4, 4), offsets(6, 6)], counts)
    assert counts.fault_count == 0
    expected.after_load({"sent": [8, 6], "acked": [8, 6]}, counts)
    assert (expected.base, counts.acknowledged, counts.pending) == (8, 11, 1)
    expected.check([offsets(7, 7), offsets(6, 5)], counts)
    assert counts.faults == {"lost": 1, "torn": 1, "invented": 0}
    assert counts.compared == 8
    assert counts.fault_count == 2


def test_a_load_that_wrote_nothing_has_sent_at_most_its_first_commit() -> None:
    counts, expected = CrashCounts(), ExpectedOffsets(2)
    expected.after_load(None, counts)
    assert (expected.base, counts.acknowledged, counts.pending) == (1, 0, 1)
    expected.check([offsets(1), offsets(1)], counts)
    assert counts.faults["invented"] == 1
