"""Rows of `ASSIGNMENT_RECORDS`: the partitions of members, from the records of groups of all kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.arrow.decoding import micros
from kproto.arrow.range_records import range_rows
from kproto.arrow.record_rows import GROUP_TYPE, SHARE, STREAMS
from kproto.arrow.reference import kind_of_damage
from kproto.arrow.schemas import ASSIGNMENT_RECORDS
from kproto.errors import DecodeError
from kproto.jvm.uuid_text import uuid_text
from kproto.logs.batches import reason_of
from kproto.records import consumer_group_records as consumer
from kproto.records import group_records as classic
from kproto.records import share_group_records as share
from kproto.records import streams_group_records as streams
from kproto.records.consumer_protocol import PROTOCOL_TYPE, read_assignment
from kproto.records.coordinator import UnknownRecord, read_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from kproto.arrow.record_rows import Row
    from kproto.logs.batches import PlacedBatch
    from kproto.logs.ranges import OffsetRange
    from kproto.records.coordinator import RecordTypes
    from kproto.records.record import Record

    MemberValue = (
        consumer.ConsumerGroupCurrentMemberAssignmentValue
        | share.ShareGroupCurrentMemberAssignmentValue
        | streams.StreamsGroupCurrentMemberAssignmentValue
    )

READ_TYPES: RecordTypes = {
    GROUP_TYPE: (classic.GroupMetadataKey, classic.GroupMetadataValue),
    8: (consumer.ConsumerGroupCurrentMemberAssignmentKey, consumer.ConsumerGroupCurrentMemberAssignmentValue),
    14: (share.ShareGroupCurrentMemberAssignmentKey, share.ShareGroupCurrentMemberAssignmentValue),
    22: (streams.StreamsGroupCurrentMemberAssignmentKey, streams.StreamsGroupCurrentMemberAssignmentValue),
}
Owned = tuple[str | None, str | None, int | None, bool | None, str | None, str | None]
"""Topic, topic id, partition, whether the member has to give it up, subtopology, and kind of task."""
NOTHING: Owned = (None,) * 6


def assignment_rows(wanted: OffsetRange, *, check_crc: bool) -> Iterator[pa.RecordBatch]:
    """Return the rows of a range.

    Raises:
        CorruptLog, NoLog, MissingPackage, OSError: while iterating: as `kproto.arrow.reading.RangeReader`.
    """
    return range_rows(wanted, ASSIGNMENT_RECORDS, _rows, check_crc=check_crc)


def _rows(log_partition: int | None, placed: PlacedBatch, record: Record) -> Iterator[Row]:
    """Yield a row for each partition of each member in a record, or one without a partition."""
    try:
        found = read_record(READ_TYPES, record.key, record.value)
    except DecodeError as error:
        raise placed.damage(kind_of_damage(record), reason_of(error), record.offset) from None
    if isinstance(found, UnknownRecord):
        return
    identity: tuple[Any, ...] = (log_partition, record.offset, micros(record.timestamp))
    match found.key, found.value:
        case classic.GroupMetadataKey() as key, value:
            assert value is None or isinstance(value, classic.GroupMetadataValue), "READ_TYPES pairs them"
            yield from ((*identity, key.group, "classic", "", *row) for row in _of_classic(value))
        case consumer.ConsumerGroupCurrentMemberAssignmentKey() as key, value:
            assert value is None or isinstance(value, consumer.ConsumerGroupCurrentMemberAssignmentValue)
            revoked = () if value is None else value.partitions_pending_revocation
            owned = () if value is None else _partitions(value.assigned_partitions, revoked)
            yield from ((*identity, key.group_id, "consumer", *row) for row in _of_member(key.member_id, value, owned))
        case share.ShareGroupCurrentMemberAssignmentKey() as key, value:
            assert value is None or isinstance(value, share.ShareGroupCurrentMemberAssignmentValue)
            owned = () if value is None else _partitions(value.assigned_partitions, ())
            yield from ((*identity, key.group_id, SHARE, *row) for row in _of_member(key.member_id, value, owned))
        case streams.StreamsGroupCurrentMemberAssignmentKey() as key, value:
            assert value is None or isinstance(value, streams.StreamsGroupCurrentMemberAssignmentValue)
            owned = () if value is None else _tasks(value)
            yield from ((*identity, key.group_id, STREAMS, *row) for row in _of_member(key.member_id, value, owned))


def _of_classic(value: classic.GroupMetadataValue | None) -> Iterator[Row]:
    is_empty = True
    if value is not None and value.protocol_type == PROTOCOL_TYPE:
        for member in value.members:
            for topic, partition in _assigned(member.assignment):
                is_empty = False
                yield (member.member_id, value.generation, topic, None, partition, False, None, None)
    if is_empty:
        yield (None, None if value is None else value.generation, *NOTHING)


def _assigned(assignment: bytes) -> list[tuple[str, int]]:
    """Return the partitions of a member; none before the leader has assigned any, or if they cannot be decoded."""
    try:
        _, found = read_assignment(assignment)
    except DecodeError:
        return []
    return [(topic.topic, partition) for topic in found.assigned_partitions for partition in topic.partitions]


def _of_member(member: str, value: MemberValue | None, owned: Iterable[Owned]) -> Iterator[Row]:
    epoch = None if value is None else value.member_epoch
    yield from ((member, member, epoch, *one) for one in list(owned) or [NOTHING])


def _partitions(
    assigned: Iterable[consumer.TopicPartitions | share.TopicPartition], revoked: Iterable[consumer.TopicPartitions]
) -> Iterator[Owned]:
    for topics, is_revoked in ((assigned, False), (revoked, True)):
        for topic in topics:
            topic_id = uuid_text(topic.topic_id)
            yield from ((None, topic_id, partition, is_revoked, None, None) for partition in topic.partitions)


def _tasks(value: streams.StreamsGroupCurrentMemberAssignmentValue) -> Iterator[Owned]:
    for kind, owned, revoked in (
        ("active", value.active_tasks, value.active_tasks_pending_revocation),
        ("standby", value.standby_tasks, value.standby_tasks_pending_revocation),
        ("warmup", value.warmup_tasks, value.warmup_tasks_pending_revocation),
    ):
        for tasks, is_revoked in ((owned, False), (revoked, True)):
            for task in tasks:
                named = (task.subtopology_id, kind)
                yield from ((None, None, partition, is_revoked, *named) for partition in task.partitions)
