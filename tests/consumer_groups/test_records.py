"""The records of consumer groups, which differ between releases (LF-11)."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.records import consumer_group_records as declared
from kproto.records.batches import read_batch
from kproto.records.coordinator import UnknownRecord
from kproto.records.offsets_topic import read_offsets_record
from kproto.records.record_batch import RecordBatch
from kproto_server.testing.in_memory import virtual_clock
from tests.consumer_groups.members import Conversation
from tests.consumer_groups.transcripts import SETTINGS, TOPICS
from tests.coordinator.broker_state import new_state
from tests.coordinator.change_logs import RecordingLog
from tests.membership.in_memory_transport import InMemoryTransport

GZIP = 1
REFRESH_MS = 10_001
"""More than the shortest time between two matches of the expressions."""


class BatchLog(RecordingLog):
    """A change log that keeps its batches."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[RecordBatch] = []

    def append(self, partition: int, change: Any, batch: bytes, record_count: int) -> None:
        super().append(partition, change, batch, record_count)
        found = read_batch(batch)
        assert found is not None
        assert isinstance(found[0], RecordBatch)
        self.batches.append(found[0])

    def written(self) -> list[tuple[Any, Any]]:
        """Return keys and values since the last call, without batches."""
        records = [record for batch in self.batches for record in batch.records()]
        self.batches.clear()
        found = [read_offsets_record(record.key, record.value) for record in records]
        return [(one.key, one.value) for one in found if not isinstance(one, UnknownRecord)]


def started(release: str, **settings: str) -> tuple[BatchLog, Conversation]:
    state = new_state(release, topics=TOPICS, settings=SETTINGS | settings, clock=virtual_clock())
    state.coordinator.log = log = BatchLog()
    group = Conversation(InMemoryTransport(state), "g", release=release)
    group.learn_topics(*TOPICS)
    return log, group


def values_of(written: list[tuple[Any, Any]], kind: type) -> list[Any]:
    return [value for key, value in written if isinstance(key, kind)]


@pytest.mark.parametrize(
    ("release", "has_topics", "has_time", "epoch_count"),
    [("4.0", True, False, 0), ("4.2", False, False, 0), ("4.4", False, True, TOPICS["t"])],
)
def test_what_the_log_has_of_a_group_depends_on_the_release(
    release: str, has_topics: bool, has_time: bool, epoch_count: int
) -> None:
    """Topics or a hash of them (KIP-1101), the time of the assignment, and the epochs of the partitions."""
    log, group = started(release)
    group.join("A")
    written = log.written()
    [metadata] = values_of(written, declared.ConsumerGroupMetadataKey)
    assert (metadata.metadata_hash == 0) == has_topics
    topics = values_of(written, declared.ConsumerGroupPartitionMetadataKey)
    assert [[one.topic_name for one in value.topics] for value in topics] == ([["t"]] if has_topics else [])
    [target] = values_of(written, declared.ConsumerGroupTargetAssignmentMetadataKey)
    assert (target.assignment_timestamp > 0) == has_time
    assert has_time or target.assignment_timestamp == 0
    [current] = values_of(written, declared.ConsumerGroupCurrentMemberAssignmentKey)
    assert [len(one.assignment_epochs or ()) for one in current.assigned_partitions] == [epoch_count]
    group.join("B")
    written = log.written()
    assert values_of(written, declared.ConsumerGroupMetadataKey)
    assert not values_of(written, declared.ConsumerGroupPartitionMetadataKey), "the topics have not changed"


@pytest.mark.parametrize("how", ["subscribes", "leaves", "group"])
def test_an_expression_that_no_member_has_any_more_is_removed(how: str) -> None:
    """The other member's stays; a group that is deleted has none."""
    log, group = started("4.4", **{"group.consumer.session.timeout.ms": "45000"})
    group.join("A", None, subscribed_topic_regex="t|u")
    group.beat("A")
    assert results(log) == [("t|u", ("t", "u"))]
    group.join("B", None, subscribed_topic_regex="w")
    group.pass_time(REFRESH_MS)
    group.settle("A", "B")
    assert results(log) == [("t|u", ("t", "u")), ("w", ("w",))]
    if how == "subscribes":
        group.beat("A", subscribed_topic_names=("t",), subscribed_topic_regex="")
    else:
        group.leave("A")
    if how == "group":
        group.leave("B")
    assert results(log) == [("t|u", None), ("w", None)][: 2 if how == "group" else 1]


def results(log: BatchLog) -> list[tuple[str, tuple[str, ...] | None]]:
    """Return the written results of expressions; None: a tombstone."""
    found = [
        (key, value) for key, value in log.written() if isinstance(key, declared.ConsumerGroupRegularExpressionKey)
    ]
    assert {key.group_id for key, _ in found} == {"g"}
    return [(key.regular_expression, None if value is None else value.topics) for key, value in found]


@pytest.mark.parametrize("release", ["4.0", "4.4"])
def test_a_batch_has_the_compression_of_the_offsets_topic(release: str) -> None:
    """The base sequence is 0 (LF-5)."""
    log, group = started(release, **{"offsets.topic.compression.codec": str(GZIP)})
    group.join("A")
    found = [(batch.header.attributes, batch.header.base_sequence) for batch in log.batches]
    assert found
    assert set(found) == {(GZIP, 0)}
