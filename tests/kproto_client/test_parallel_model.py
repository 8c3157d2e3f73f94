"""KIP-333 on the model: random histories (CK-90), and the proposal's own example (CK-91).

A history is a list of events for one partition: records and markers come, retention and compaction take some away, the
member polls, commits, crashes or loses the partition. The state machine asserts its invariants I1 to I6 all along; in
the end all that should have been handed out was.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.client.core.ranges import OPEN, Range
from tests.kproto_client.parallel_model import Consumer, Partition

HISTORIES = 1000
SMALL = st.integers(0, 12)
EVENTS = st.one_of(
    st.tuples(st.just("produce"), SMALL, st.integers(1, 9)),
    st.tuples(st.just("poll"), SMALL, st.integers(1, 6)),
    st.tuples(st.just("poll"), SMALL, st.integers(1, 6)),
    st.tuples(st.sampled_from(["commit", "crash", "revoke", "marker", "checkpoint", "catch-up fails"]), SMALL, SMALL),
    st.tuples(st.sampled_from(["retain", "compact"]), st.integers(0, 60), st.integers(0, 4)),
)


class History:
    """What happened to a partition, and what was seen of it."""

    def __init__(self, merge: bool) -> None:
        self.merge = merge
        self.partition = Partition()
        self.delivered: set[int] = set()
        self.produced_from = 0

    def begin(self, produced: int, committed: int) -> Consumer:
        self.partition.produce(produced)
        self.partition.committed = self.produced_from = min(committed, produced)
        return self.start()

    def start(self) -> Consumer:
        return Consumer(self.partition, merge=self.merge)

    def apply(self, consumer: Consumer, event: tuple[str, int, int]) -> Consumer:
        """Return who consumes from now on."""
        what, first, second = event
        match what:
            case "produce":
                self.partition.produce(first, second)
            case "marker":
                self.partition.write_marker()
            case "retain":
                self.partition.retain_from(first)
            case "compact":
                self.partition.compact(range(first, first + second))
            case "poll":
                consumer.fetch_past(second)
                consumer.fetch_head_unless_normal(first)
                self.delivered.update(consumer.poll(first))
            case "commit":
                consumer.commit()
            case "checkpoint":
                consumer.checkpoint()
            case "catch-up fails":
                if consumer.catch_up is not None and consumer.catch_up.ranges:
                    consumer.catch_up.catch_up_failed()
            case "revoke":
                consumer.commit()
                return self.start()
            case "crash":
                return self.start()
        return consumer

    def end(self, consumer: Consumer) -> None:
        consumer.read_all()
        self.delivered.update(consumer.delivered)
        assert consumer.delivered == sorted(set(consumer.delivered))
        missing = {offset for offset in self.partition.records if offset >= self.produced_from} - self.delivered
        assert not missing


@settings(max_examples=HISTORIES)
@given(
    produced=st.integers(0, 40),
    committed=st.integers(0, 40),
    events=st.lists(EVENTS, max_size=40),
    merge=st.booleans(),
)
def test_every_retained_record_is_handed_out_in_order(
    produced: int, committed: int, events: list[tuple[str, int, int]], merge: bool
) -> None:
    """CK-90, CK-75, CK-63, CK-81, I1 to I6."""
    history = History(merge)
    consumer = history.begin(produced, committed)
    for event in events:
        consumer = history.apply(consumer, event)
        if event[0] == "commit":
            assert_all_before_was_handed_out(history)
    history.end(consumer)


def assert_all_before_was_handed_out(history: History) -> None:
    """CK-73, CK-83: a committed offset has no record before it that nobody got."""
    partition = history.partition
    assert partition.committed is not None
    skipped = {offset for offset in partition.records if history.produced_from <= offset < partition.committed}
    assert not skipped - history.delivered


def given_the_example(merge: bool) -> tuple[Partition, Consumer]:
    """Committed 70; the log ends at 120 when the member comes back."""
    partition = Partition(committed=70)
    partition.produce(120)
    return partition, Consumer(partition, merge=merge, limit_bytes=1000)


def poll_and_commit(consumer: Consumer, count: int) -> list[int]:
    consumer.fetch_past(count)
    consumer.fetch_head_unless_normal(count)
    offsets = consumer.poll(count)
    consumer.commit()
    return offsets


def test_the_worked_example() -> None:
    """CK-91, CK-51, CK-60, CK-70, CK-72, CK-74: 70, 120."""
    partition, consumer = given_the_example(merge=True)
    assert consumer.head == 120
    assert partition.checkpoints == {0: Range(70, 120), 1: Range(120, OPEN)}
    partition.produce(10)
    seen: list[int] = []
    while len(seen) < 50:
        seen += poll_and_commit(consumer, 7)
        assert partition.committed == seen[-1] + 1
        assert 70 < partition.committed <= 120
    assert seen == list(range(70, 120))
    assert consumer.catch_up is not None
    assert consumer.catch_up.ahead_bytes > 0  # the head has read on meanwhile
    assert poll_and_commit(consumer, 100)[0] == 120
    consumer.read_all()
    consumer.commit()
    assert consumer.delivered == list(range(70, 130))
    assert partition.committed == 130
    assert partition.checkpoints == {}


def second_crash(merge: bool) -> tuple[Partition, Consumer]:
    partition, consumer = given_the_example(merge)
    consumer.fetch_past(20)
    consumer.poll(20)
    consumer.commit()
    partition.produce(80)
    assert (partition.committed, partition.end) == (90, 200)
    return partition, Consumer(partition, merge=merge)


def test_a_second_crash_leaves_two_ranges_or_one() -> None:
    """CK-91, CK-80, CK-82."""
    for merge, ranges in ((False, (Range(90, 120), Range(120, 200))), (True, (Range(90, 200),))):
        partition, consumer = second_crash(merge)
        assert consumer.head == 200
        assert consumer.catch_up is not None
        assert consumer.catch_up.ranges == ranges
        assert partition.checkpoints == dict(enumerate([*ranges, Range(200, OPEN)]))
        consumer.read_all()
        assert consumer.delivered == list(range(90, 200))


def test_n_crashes_leave_at_most_n_and_one_ranges() -> None:
    """CK-81, CK-82."""
    for merge in (False, True):
        partition = Partition(committed=0)
        for crashes in range(5):
            partition.produce(10)
            consumer: Any = Consumer(partition, merge=merge)
            assert len(consumer.catch_up.ranges) == (1 if merge else crashes + 1)
