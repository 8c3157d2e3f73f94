"""Groups as record batches: the part of a group that survives a restart (LF-14, EX-50)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.compression import Compression
from kproto.records.coordinator import encode_value
from kproto.records.group_records import GroupMetadataValue, MemberMetadata
from kproto.records.record import Record, encode_records
from kproto_server.coordinator.offsets_log.batches import record_batch
from kproto_server.coordinator.offsets_log.deletions import group_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.version_behavior import OffsetsLogBehavior

NO_TIMESTAMP = -1


def group_batch(
    group: Group,
    now_ms: int,
    behavior: OffsetsLogBehavior,
    compression: Compression = Compression.NONE,
    assignments: Mapping[str, bytes] | None = None,
    removed_keys: Iterable[bytes] = (),
) -> tuple[bytes, int]:
    """Return a classic group as a batch, and the number of records.

    Args:
        assignments: the assignments to write, by member id; None: the members' present ones.
        removed_keys: keys of the group that was in its place, whose tombstones come first.

    Raises:
        EncodeError: a name is too long for the format.
        MissingPackage: the compression needs a package that is not installed.
    """
    records = [Record(key, None) for key in removed_keys]
    records.append(group_record(group, behavior, assignments))
    numbered = [record._replace(offset=number) for number, record in enumerate(records)]
    data = encode_records(numbered, base_timestamp=records[0].timestamp)
    return record_batch(data, len(records), now_ms, behavior.group_base_sequence, compression), len(records)


def group_record(group: Group, behavior: OffsetsLogBehavior, assignments: Mapping[str, bytes] | None = None) -> Record:
    """Return a classic group as a record."""
    return Record(group_key(group.group_id), encode_value(_value(group, assignments), behavior.group_value_version))


def _value(group: Group, assignments: Mapping[str, bytes] | None) -> GroupMetadataValue:
    timestamp_ms = group.state_timestamp_ms
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=NO_TIMESTAMP if timestamp_ms is None else timestamp_ms,
        members=tuple(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata,
                assignment=member.assignment if assignments is None else assignments[member.member_id],
            )
            for member in group.members.values()
        ),
    )
