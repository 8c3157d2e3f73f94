"""The state machine of a share partition, in virtual time."""

from __future__ import annotations

from random import Random

import pytest

from kproto.codes import ErrorCode
from kproto_server.share_groups.acquisition import Acquired, Wanted, acquire
from kproto_server.share_groups.in_flight import RecordState, Span, StateBatch
from kproto_server.share_groups.share_partition import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledgement,
    Refused,
    SharePartition,
    Transition,
)

LOCK_MS = 30_000
LOG = [Span(base, base + 9) for base in range(0, 1000, 10)]
"""A log of batches of ten records."""


def new(start_offset: int = 0, *, count_max: int = 5, in_flight_max: int = 200) -> SharePartition:
    return SharePartition(start_offset, count_max, in_flight_max)


def fetch(
    share: SharePartition,
    member: str = "A",
    *,
    most: int = 10,
    batch_size: int = 100,
    now_ms: int = 0,
    is_limit: bool = False,
) -> list[Acquired]:
    offset = share.next_fetch_offset()
    spans = [span for span in LOG if span.last_offset >= offset][:3]
    return acquire(share, offset, spans, Wanted(member, most, batch_size, now_ms + LOCK_MS, is_limit))


def acknowledge(
    share: SharePartition, first: int, last: int, *types: int, member: str = "A", now_ms: int = 0
) -> list[StateBatch] | Refused:
    done = share.acknowledge(member, [Acknowledgement(first, last, types)], now_ms, now_ms + LOCK_MS)
    if isinstance(done, Transition):
        share.complete(done, commit=True, now_ms=now_ms)
        return done.batches
    return done


def test_a_member_acquires_whole_batches() -> None:
    share = new()
    assert fetch(share, most=5) == [Acquired(0, 9, 1)]
    assert fetch(share, most=11) == [Acquired(10, 29, 1)]
    assert share.next_fetch_offset() == 30
    assert share.record_count == 30


def test_new_records_are_cut_at_the_batch_size() -> None:
    assert fetch(new(), most=30, batch_size=15) == [Acquired(0, 19, 1), Acquired(20, 29, 1)]


def test_in_record_limit_mode_no_more_records_are_acquired_than_wanted() -> None:
    share = new()
    assert fetch(share, most=4, is_limit=True) == [Acquired(0, 3, 1)]
    assert share.next_fetch_offset() == 4
    assert fetch(share, "B", most=3, is_limit=True) == [Acquired(4, 6, 1)]


def test_accepted_records_move_the_start_offset() -> None:
    share = new()
    fetch(share, most=20)
    assert acknowledge(share, 5, 9, ACCEPT) == [StateBatch(n, n, RecordState.ACKNOWLEDGED, 1) for n in range(5, 10)]
    assert (share.start_offset, share.done_count) == (0, 5)
    acknowledge(share, 0, 4, ACCEPT, REJECT, GAP, ACCEPT, ACCEPT)
    assert (share.start_offset, share.done_count, share.end_offset) == (10, 0, 19)
    acknowledge(share, 10, 19, ACCEPT)
    assert (share.start_offset, share.end_offset, len(share)) == (20, 20, 0)


def test_released_records_are_acquired_again() -> None:
    share = new()
    fetch(share)
    acknowledge(share, 2, 3, RELEASE)
    assert share.next_fetch_offset() == 2
    assert fetch(share, "B", most=2) == [Acquired(2, 3, 2)]


@pytest.mark.parametrize("most", [1, 100])
def test_a_batch_of_the_log_that_begins_before_the_start_offset(most: int) -> None:
    """Its first records are done with: they are not acquired, and those in flight are."""
    share = new(8)
    assert fetch(share, most=5, is_limit=True) == [Acquired(8, 12, 1)]
    acknowledge(share, 8, 12, REJECT, RELEASE, ACCEPT, ACCEPT, ACCEPT)
    assert share.start_offset == 9
    assert fetch(share, "B", most=most, is_limit=True)[0] == Acquired(9, 9, 2)


def test_locks_end() -> None:
    share = new()
    fetch(share)
    acknowledge(share, 0, 3, ACCEPT)
    acknowledge(share, 4, 5, RENEW, now_ms=10_000)
    assert share.end_locks(LOCK_MS - 1) == []
    assert [batch.first_offset for batch in share.end_locks(LOCK_MS)] == [6, 7, 8, 9]
    assert share.next_lock_end_ms == LOCK_MS + 10_000
    refused = acknowledge(share, 6, 6, ACCEPT)
    assert isinstance(refused, Refused)
    assert refused.error is ErrorCode.INVALID_RECORD_STATE
    acknowledge(share, 4, 5, ACCEPT)
    assert share.start_offset == 6


def test_records_that_are_delivered_too_often_are_archived() -> None:
    share = new(count_max=2)
    for now_ms in (0, LOCK_MS):
        fetch(share, now_ms=now_ms)
        share.end_locks(now_ms + LOCK_MS)
        share.move_start()
    assert share.start_offset == 10
    assert share.next_fetch_offset() == 10


def test_records_of_other_members_are_refused() -> None:
    share = new()
    fetch(share)
    assert acknowledge(share, 0, 9, ACCEPT, member="B") == Refused(
        ErrorCode.INVALID_RECORD_STATE, "Member is not the owner of batch record"
    )
    assert isinstance(acknowledge(share, 0, 10, ACCEPT), Refused)
    assert isinstance(acknowledge(share, 10, 12, ACCEPT), Refused)
    assert isinstance(acknowledge(share, 0, 9, 9), Refused)


def test_a_refused_acknowledgement_changes_nothing() -> None:
    share = new()
    fetch(share, most=20)
    wanted = [Acknowledgement(0, 9, (ACCEPT,)), Acknowledgement(10, 30, (ACCEPT,))]
    assert isinstance(share.acknowledge("A", wanted, 0, LOCK_MS), Refused)
    assert (share.start_offset, share.done_count) == (0, 0)
    acknowledge(share, 0, 19, ACCEPT)
    assert share.start_offset == 20


def test_a_closed_session_releases() -> None:
    share = new()
    fetch(share)
    transition = share.release_all("A")
    assert transition.batches == [StateBatch(0, 9, RecordState.AVAILABLE, 1)]
    share.complete(transition, commit=True, now_ms=0)
    assert fetch(share, "B") == [Acquired(0, 9, 2)]


def test_a_closed_session_releases_what_is_between_records_of_other_members() -> None:
    share = new()
    for member, most in (("B", 3), ("A", 4), ("B", 3)):
        fetch(share, member, most=most, is_limit=True)
    released = share.release_all("A").batches
    assert [(one.first_offset, one.delivery_state) for one in released] == [(n, 0) for n in range(3, 7)]


def test_a_failed_write_rolls_back_unless_the_lock_has_ended() -> None:
    share = new()
    fetch(share)
    transition = share.acknowledge(
        "A", [Acknowledgement(0, 4, (ACCEPT,)), Acknowledgement(5, 9, (ACCEPT,))], 0, LOCK_MS
    )
    assert isinstance(transition, Transition)
    assert share.end_locks(LOCK_MS) == []
    share.complete(transition, commit=False, now_ms=LOCK_MS)
    assert share.next_fetch_offset() == 0
    assert share.done_count == 0


def test_the_limit_of_records_in_flight() -> None:
    share = new(in_flight_max=20)
    fetch(share, most=15)
    assert not share.can_acquire
    assert fetch(share) == []
    acknowledge(share, 3, 3, RELEASE)
    assert share.can_acquire
    assert fetch(share, "B") == [Acquired(3, 3, 2)]


def test_gaps_between_stored_batches_are_fetched_again() -> None:
    share = new()
    share.restore([StateBatch(5, 9, RecordState.ACKNOWLEDGED, 1), StateBatch(20, 24, RecordState.AVAILABLE, 2)])
    assert share.next_fetch_offset() == 0
    assert fetch(share, most=5) == [Acquired(0, 4, 1)]
    assert share.next_fetch_offset() == 10
    assert fetch(share, most=100) == [Acquired(10, 19, 1), Acquired(20, 24, 3), Acquired(25, 39, 1)]


def test_deleted_records_are_not_in_flight() -> None:
    share = new()
    fetch(share, most=20)
    acknowledge(share, 0, 9, RELEASE)
    share.log_starts_at(5)
    assert (share.start_offset, share.next_fetch_offset()) == (5, 5)
    acknowledge(share, 10, 19, ACCEPT)
    share.log_starts_at(40)
    assert (share.start_offset, share.end_offset) == (40, 40)


@pytest.mark.parametrize("seed", range(20))
def test_random_histories(seed: int) -> None:
    """A record has one owner, is delivered five times at most, and everything ends when the members accept all."""
    random = Random(seed)  # noqa: S311 - the same in each run
    share, now_ms = new(in_flight_max=60), 0
    owners: dict[int, str] = {}
    deliveries: dict[int, int] = {}
    for _ in range(300):
        now_ms += random.randrange(5_000)
        member = random.choice("ABC")
        for batch in share.end_locks(now_ms):
            for offset in range(batch.first_offset, batch.last_offset + 1):
                owners.pop(offset, None)
        start = share.start_offset
        match random.randrange(4):
            case 0 | 1:
                for one in fetch(share, member, most=random.randrange(1, 25), batch_size=7, now_ms=now_ms):
                    for offset in range(one.first_offset, one.last_offset + 1):
                        assert offset not in owners
                        assert offset >= share.start_offset
                        owners[offset] = member
                        deliveries[offset] = deliveries.get(offset, 0) + 1
                        assert one.delivery_count <= min(deliveries[offset], share.delivery_count_max)
            case 2:
                mine = sorted(offset for offset, owner in owners.items() if owner == member)
                for offset in random.sample(mine, len(mine) // 2):
                    kind = random.choice((ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT, RENEW))
                    done = acknowledge(share, offset, offset, kind, member=member, now_ms=now_ms)
                    assert not isinstance(done, Refused)
                    if kind != RENEW:
                        del owners[offset]
            case 3 if random.random() < 0.2:
                transition = share.release_all(member)
                share.complete(transition, commit=True, now_ms=now_ms)
                for batch in transition.batches:
                    for offset in range(batch.first_offset, batch.last_offset + 1):
                        assert owners.pop(offset) == member
        assert share.start_offset >= start
        assert share.record_count <= share.in_flight_max + 30
        assert share.done_count == sum(
            1
            for batch in share.in_flight()
            for first, last, delivery in batch.deliveries()
            for offset in range(first, last + 1)
            if offset >= share.start_offset and delivery.state in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)
        )
    share.end_locks(now_ms + LOCK_MS)
    while fetched := fetch(share, most=100):
        for one in fetched:
            acknowledge(share, one.first_offset, one.last_offset, ACCEPT)
    assert share.start_offset == share.end_offset == 1000
