"""Consumer groups from their records: collected while a log is read, made at its end (EX-52)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records import consumer_group_records as declared
from kproto_server.coordinator.consumer_groups.data import (
    ConsumerMember,
    GroupData,
    MemberState,
    ResolvedRegex,
    replace,
)
from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
from kproto_server.coordinator.consumer_groups.reconciliation import partition_epochs
from kproto_server.coordinator.subscribed_topics import hash_of, topic_hash

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto.records.coordinator import CoordinatorRecord
    from kproto_server.coordinator.consumer_groups.data import Assignment

STATES = {int(state): state for state in MemberState}


class RestoredConsumerGroup:
    """The records of a group so far; the newest of each key counts."""

    def __init__(self) -> None:
        self.is_deleted: bool = False
        self._epoch = self._metadata_hash = 0
        self._partition_metadata_hash = 0
        """Of the subscribed topics in the log of a 4.0, which has no hash of them."""
        self._assignment_epoch = self._assignment_timestamp_ms = 0
        self._members: dict[str, ConsumerMember] = {}
        self._current: dict[str, declared.ConsumerGroupCurrentMemberAssignmentValue] = {}
        self._targets: dict[str, Assignment] = {}
        self._resolved: dict[str, ResolvedRegex] = {}

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply the next record; a record without a value is a tombstone."""
        match record.key, record.value:
            case declared.ConsumerGroupMetadataKey(), None:
                self.is_deleted = True
            case _, declared.ConsumerGroupMetadataValue() as value:
                self._epoch, self._metadata_hash = value.epoch, value.metadata_hash
            case declared.ConsumerGroupPartitionMetadataKey(), None:
                self._partition_metadata_hash = 0
            case _, declared.ConsumerGroupPartitionMetadataValue() as value:
                hashes = {one.topic_name: topic_hash(*_without_racks(one)) for one in value.topics}
                self._partition_metadata_hash = hash_of(hashes)
            case declared.ConsumerGroupMemberMetadataKey() as key, None:
                self._members.pop(key.member_id, None)
            case declared.ConsumerGroupMemberMetadataKey() as key, declared.ConsumerGroupMemberMetadataValue() as value:
                self._members[key.member_id] = _member(key.member_id, value)
            case declared.ConsumerGroupTargetAssignmentMetadataKey(), None:
                self._assignment_epoch = 0
            case _, declared.ConsumerGroupTargetAssignmentMetadataValue() as value:
                self._assignment_epoch = value.assignment_epoch
                self._assignment_timestamp_ms = value.assignment_timestamp
            case declared.ConsumerGroupTargetAssignmentMemberKey() as key, None:
                self._targets.pop(key.member_id, None)
            case (
                declared.ConsumerGroupTargetAssignmentMemberKey() as key,
                declared.ConsumerGroupTargetAssignmentMemberValue() as value,
            ):
                self._targets[key.member_id] = _assignment(value.topic_partitions)
            case declared.ConsumerGroupCurrentMemberAssignmentKey() as key, None:
                self._current.pop(key.member_id, None)
            case (
                declared.ConsumerGroupCurrentMemberAssignmentKey() as key,
                declared.ConsumerGroupCurrentMemberAssignmentValue() as value,
            ):
                self._current[key.member_id] = value
            case declared.ConsumerGroupRegularExpressionKey() as key, None:
                self._resolved.pop(key.regular_expression, None)
            case (
                declared.ConsumerGroupRegularExpressionKey() as key,
                declared.ConsumerGroupRegularExpressionValue() as value,
            ):
                resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
                self._resolved[key.regular_expression] = resolved

    def make(self, group_id: str, now_ms: int, first_epoch: int) -> ConsumerGroup:
        """Return the group; it is not registered. ``first_epoch``: the epochs of which the log has no record."""
        group = ConsumerGroup(group_id, now_ms)
        group.restore(
            GroupData(
                epoch=self._epoch or first_epoch,
                metadata_hash=self._metadata_hash or self._partition_metadata_hash,
                members={
                    member_id: _with_current(member, self._current.get(member_id))
                    for member_id, member in self._members.items()
                },
                assignment_epoch=self._assignment_epoch or first_epoch,
                targets=self._targets,
                resolved=self._resolved,
                assignment_timestamp_ms=self._assignment_timestamp_ms,
            ),
            now_ms,
        )
        return group


def _without_racks(topic: declared.TopicMetadata) -> tuple[str, bytes, tuple[tuple[str, ...], ...]]:
    """Return a topic as `topic_hash` takes it."""
    return topic.topic_name, topic.topic_id, ((),) * topic.num_partitions


def _member(member_id: str, value: declared.ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    classic = value.classic_member_metadata
    protocols = () if classic is None else classic.supported_protocols
    return ConsumerMember(
        member_id,
        group_instance_id=value.instance_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        session_timeout_ms=0 if classic is None else classic.session_timeout_ms,
        protocols=tuple((known.name, known.metadata) for known in protocols),
        speaks_classic=classic is not None,
        rack_id=value.rack_id,
        topics=frozenset(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex,
        assignor=value.server_assignor,
    )


def _with_current(
    member: ConsumerMember, value: declared.ConsumerGroupCurrentMemberAssignmentValue | None
) -> ConsumerMember:
    if value is None:
        return member
    assigned, revoking = _assignment(value.assigned_partitions), _assignment(value.partitions_pending_revocation)
    written = {
        (topic.topic_id, index): epoch
        for topic in (*value.assigned_partitions, *value.partitions_pending_revocation)
        for index, epoch in zip(topic.partitions, topic.assignment_epochs or (), strict=False)
    }
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=STATES.get(value.state, MemberState.UNKNOWN),
        assigned=assigned,
        revoking=revoking,
        partition_epochs=partition_epochs(written, assigned, revoking, value.member_epoch),
    )


def _assignment(topics: Iterable[declared.TopicPartition] | Iterable[declared.TopicPartitions]) -> Assignment:
    return {topic.topic_id: frozenset(topic.partitions) for topic in topics}
