"""Rows of `ASSIGNMENT_RECORDS`: the partitions of members, from the records of classic and KIP-848 groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.arrow.decoding import micros
from kproto.arrow.range_records import range_rows
from kproto.arrow.record_rows import GROUP_TYPE
from kproto.arrow.reference import kind_of_damage
from kproto.arrow.schemas import ASSIGNMENT_RECORDS
from kproto.errors import DecodeError
from kproto.jvm.uuid_text import uuid_text
from kproto.logs.batches import reason_of
from kproto.records import consumer_group_records as consumer
from kproto.records import group_records as classic
from kproto.records.consumer_protocol import PROTOCOL_TYPE, read_assignment
from kproto.records.coordinator import UnknownRecord, read_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from kproto.arrow.record_rows import Row
    from kproto.logs.batches import PlacedBatch
    from kproto.logs.ranges import OffsetRange
    from kproto.records.coordinator import RecordTypes
    from kproto.records.record import Record

CURRENT_ASSIGNMENT_TYPE = 8
READ_TYPES: RecordTypes = {
    GROUP_TYPE: (classic.GroupMetadataKey, classic.GroupMetadataValue),
    CURRENT_ASSIGNMENT_TYPE: (
        consumer.ConsumerGroupCurrentMemberAssignmentKey,
        consumer.ConsumerGroupCurrentMemberAssignmentValue,
    ),
}
Owned = tuple[str | None, str | None, int | None, bool | None]
"""Topic, topic id, partition, and whether the member has to give it up."""
NOTHING: Owned = (None, None, None, None)


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
            member = key.member_id
            yield from ((*identity, key.group_id, "consumer", member, *row) for row in _of_member(member, value))


def _of_classic(value: classic.GroupMetadataValue | None) -> Iterator[Row]:
    is_empty = True
    if value is not None and value.protocol_type == PROTOCOL_TYPE:
        for member in value.members:
            for topic, partition in _assigned(member.assignment):
                is_empty = False
                yield (member.member_id, value.generation, topic, None, partition, False)
    if is_empty:
        yield (None, None if value is None else value.generation, *NOTHING)


def _assigned(assignment: bytes) -> list[tuple[str, int]]:
    """Return the partitions of a member; none before the leader has assigned any, or if they cannot be decoded."""
    try:
        _, found = read_assignment(assignment)
    except DecodeError:
        return []
    return [(topic.topic, partition) for topic in found.assigned_partitions for partition in topic.partitions]


def _of_member(member: str, value: consumer.ConsumerGroupCurrentMemberAssignmentValue | None) -> Iterator[Row]:
    if value is None:
        yield (member, None, *NOTHING)
        return
    parts = ((value.assigned_partitions, False), (value.partitions_pending_revocation, True))
    owned: list[Owned] = [
        (None, uuid_text(topic.topic_id), partition, is_revoked)
        for topics, is_revoked in parts
        for topic in topics
        for partition in topic.partitions
    ]
    yield from ((member, value.member_epoch, *one) for one in owned or [NOTHING])
