"""KIP-333 on the model: random histories (CK-90), and the proposal's own example (CK-91).

A history is a list of events of one partition: records and markers are written, retention and compaction remove
records, the member polls, commits, crashes or loses the partition. The state machine asserts its invariants I1 to I6
during the history; at the end, all retained records have been delivered.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.client.decisions.buffer1 import size_of
from kproto.client.decisions.catch_up_ranges import OPEN_END, OffsetRange
from tests.kproto_client.catch_up_model import ModelConsumer, ModelPartition, ModelRecord

HISTORIES = 1000
SMALL = st.integers(0, 12)
EVENTS_WITHOUT_NUMBERS = [
    "commit",
    "crash",
    "revoke",
    "marker",
    "checkpoint",
    "checkpoints are read",
    "consumer 2 fails",
]
EVENTS = st.one_of(
    st.tuples(st.just("produce"), SMALL, st.integers(1, 9)),
    st.tuples(st.just("poll"), SMALL, st.integers(1, 6)),
    st.tuples(st.just("poll"), SMALL, st.integers(1, 6)),
    st.tuples(st.just("pass through"), SMALL, st.integers(1, 6)),
    st.tuples(st.sampled_from(EVENTS_WITHOUT_NUMBERS), SMALL, SMALL),
    st.tuples(st.just("keys"), st.integers(1, 60), SMALL),
    st.tuples(st.sampled_from(["retain", "compact"]), st.integers(0, 60), st.integers(0, 4)),
)


class History:
    """The state of a partition, and the records delivered from it."""

    def __init__(self, merge: bool, by_key: bool) -> None:
        self.merge = merge
        self.by_key = by_key
        self.partition = ModelPartition()
        self.delivered: set[int] = set()
        self.produced_from = 0

    def begin(self, produced: int, committed: int) -> ModelConsumer:
        self.partition.produce(produced)
        self.partition.committed = self.produced_from = min(committed, produced)
        return self.start()

    def start(self) -> ModelConsumer:
        return ModelConsumer(self.partition, merge=self.merge, by_key=self.by_key, reads_checkpoints_at_once=False)

    def apply(self, consumer: ModelConsumer, event: tuple[str, int, int]) -> ModelConsumer:
        """Apply an event; return the current consumer."""
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
                consumer.fetch_by_consumer2(second)
                consumer.fetch_into_buffer1(first)
                self.delivered.update(consumer.poll(first))
            case "pass through":
                consumer.fetch_into_buffer1(first)
                self.delivered.update(consumer.pass_through(second))
            case "commit":
                consumer.commit()
            case "checkpoint":
                consumer.write_checkpoints()
            case "keys":
                consumer.scan_keys(first)
            case "checkpoints are read":
                consumer.read_checkpoints()
            case "consumer 2 fails":
                if consumer.catch_up is not None and consumer.catch_up.ranges:
                    consumer.catch_up.consumer2_failed()
            case "revoke":
                consumer.commit()
                return self.start()
            case "crash":
                return self.start()
        return consumer

    def end(self, consumer: ModelConsumer) -> None:
        consumer.read_all()
        self.delivered.update(consumer.delivered)
        assert len(consumer.delivered) == len(set(consumer.delivered))
        assert self.by_key or consumer.delivered == sorted(consumer.delivered)
        missing = {offset for offset in self.partition.records if offset >= self.produced_from} - self.delivered
        assert not missing


@settings(max_examples=HISTORIES)
@given(
    produced=st.integers(0, 40),
    committed=st.integers(0, 40),
    events=st.lists(EVENTS, max_size=40),
    merge=st.booleans(),
    by_key=st.booleans(),
)
def test_every_retained_record_is_delivered_in_order(
    produced: int, committed: int, events: list[tuple[str, int, int]], merge: bool, by_key: bool
) -> None:
    """CK-90, CK-75, CK-63, CK-81, I1 to I6."""
    history = History(merge, by_key)
    consumer = history.begin(produced, committed)
    for event in events:
        consumer = history.apply(consumer, event)
        if event[0] == "commit":
            assert_committed_records_were_delivered(history)
    history.end(consumer)


def assert_committed_records_were_delivered(history: History) -> None:
    """CK-73, CK-83: all records before the committed offset were delivered."""
    partition = history.partition
    assert partition.committed is not None
    skipped = {offset for offset in partition.records if history.produced_from <= offset < partition.committed}
    assert not skipped - history.delivered


def at_recovery(merge: bool) -> tuple[ModelPartition, ModelConsumer]:
    """Return the state at the member's recovery: committed offset 70, log end 120."""
    partition = ModelPartition(committed=70)
    partition.produce(120)
    return partition, ModelConsumer(partition, merge=merge, buffer1_limit_bytes=size_of([ModelRecord(0)] * 1000))


def poll_and_commit(consumer: ModelConsumer, count: int) -> list[int]:
    consumer.fetch_by_consumer2(count)
    consumer.fetch_into_buffer1(count)
    offsets = consumer.poll(count)
    consumer.commit()
    return offsets


def test_the_worked_example() -> None:
    """CK-91, CK-51, CK-60, CK-70, CK-72, CK-74."""
    partition, consumer = at_recovery(merge=True)
    assert consumer.consumer1_position == 120
    assert partition.checkpoints == {0: OffsetRange(70, 120), 1: OffsetRange(120, OPEN_END)}
    partition.produce(10)
    seen: list[int] = []
    while len(seen) < 50:
        seen += poll_and_commit(consumer, 7)
        assert partition.committed == seen[-1] + 1
        assert 70 < partition.committed <= 120
    assert seen == list(range(70, 120))
    assert consumer.catch_up is not None
    assert consumer.catch_up.buffer1_bytes > 0  # consumer 1 has read meanwhile
    assert poll_and_commit(consumer, 100)[0] == 120
    consumer.read_all()
    consumer.commit()
    assert consumer.delivered == list(range(70, 130))
    assert partition.committed == 130
    assert partition.checkpoints == {}


def second_crash(merge: bool) -> tuple[ModelPartition, ModelConsumer]:
    partition, consumer = at_recovery(merge)
    consumer.fetch_by_consumer2(20)
    consumer.poll(20)
    consumer.commit()
    partition.produce(80)
    assert (partition.committed, partition.end) == (90, 200)
    return partition, ModelConsumer(partition, merge=merge)


def test_a_second_crash_leaves_two_ranges_or_one() -> None:
    """CK-91, CK-80, CK-82."""
    for merge, ranges in ((False, (OffsetRange(90, 120), OffsetRange(120, 200))), (True, (OffsetRange(90, 200),))):
        partition, consumer = second_crash(merge)
        assert consumer.consumer1_position == 200
        assert consumer.catch_up is not None
        assert consumer.catch_up.ranges == ranges
        assert partition.checkpoints == dict(enumerate([*ranges, OffsetRange(200, OPEN_END)]))
        consumer.read_all()
        assert consumer.delivered == list(range(90, 200))


def test_n_crashes_leave_at_most_n_plus_one_ranges() -> None:
    """CK-81, CK-82."""
    for merge in (False, True):
        partition = ModelPartition(committed=0)
        for crashes in range(5):
            partition.produce(10)
            consumer: Any = ModelConsumer(partition, merge=merge)
            assert len(consumer.catch_up.ranges) == (1 if merge else crashes + 1)
