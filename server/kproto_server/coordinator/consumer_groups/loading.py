"""Consumer groups from their records: collected while a log is read, made at its end (EX-52)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kproto.records import consumer_group_records as declared
from kproto_server.coordinator.consumer_groups.data import (
    NO_VERSION,
    ConsumerMember,
    GroupData,
    MemberState,
    ResolvedRegex,
    replace,
)
from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
from kproto_server.coordinator.consumer_groups.reconciliation import epochs_of, partition_epochs
from kproto_server.coordinator.epoch_groups.newest_records import RestoredEpochGroup
from kproto_server.coordinator.subscribed_topics import hash_of, topic_hash

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto.records.coordinator import CoordinatorKey
    from kproto_server.coordinator.consumer_groups.data import Assignment, PartitionEpochs

STATES = {int(state): state for state in MemberState}


class RestoredConsumerGroup(RestoredEpochGroup):
    """The records of a group so far; the newest of each key counts."""

    metadata_key: ClassVar[type[CoordinatorKey]] = declared.ConsumerGroupMetadataKey

    def make(self, group_id: str, now_ms: int, first_epoch: int) -> ConsumerGroup:
        """Return the group; it is not registered. ``first_epoch``: the epochs of which the log has no record."""
        of_group, by_name = self.of_group, self.by_name
        metadata: declared.ConsumerGroupMetadataValue | None = of_group(declared.ConsumerGroupMetadataKey)
        target: declared.ConsumerGroupTargetAssignmentMetadataValue | None = of_group(
            declared.ConsumerGroupTargetAssignmentMetadataKey
        )
        current = by_name(declared.ConsumerGroupCurrentMemberAssignmentKey)
        known: dict[frozenset[str], frozenset[str]] = {}
        group = ConsumerGroup(group_id, now_ms)
        group.restore(
            GroupData(
                epoch=(metadata and metadata.epoch) or first_epoch,
                metadata_hash=(metadata and metadata.metadata_hash) or self._hash_of_topics(),
                members={
                    member_id: _with_current(_member(member_id, value, known), current.get(member_id))
                    for member_id, value in by_name(declared.ConsumerGroupMemberMetadataKey).items()
                },
                assignment_epoch=(target and target.assignment_epoch) or first_epoch,
                targets={
                    member_id: _assignment(value.topic_partitions)
                    for member_id, value in by_name(declared.ConsumerGroupTargetAssignmentMemberKey).items()
                },
                resolved={
                    regex: ResolvedRegex(frozenset(value.topics), NO_VERSION, value.timestamp)
                    for regex, value in by_name(declared.ConsumerGroupRegularExpressionKey).items()
                },
                assignment_timestamp_ms=target.assignment_timestamp if target else 0,
            ),
            now_ms,
        )
        return group

    def _hash_of_topics(self) -> int:
        """Return the hash of the subscribed topics in the log of a 4.0, which has the topics instead of the hash."""
        value: declared.ConsumerGroupPartitionMetadataValue | None = self.of_group(
            declared.ConsumerGroupPartitionMetadataKey
        )
        return hash_of({one.topic_name: topic_hash(*_without_racks(one)) for one in value.topics}) if value else 0


def _without_racks(topic: declared.TopicMetadata) -> tuple[str, bytes, tuple[tuple[str, ...], ...]]:
    """Return a topic as `topic_hash` takes it."""
    return topic.topic_name, topic.topic_id, ((),) * topic.num_partitions


def _member(
    member_id: str, value: declared.ConsumerGroupMemberMetadataValue, known: dict[frozenset[str], frozenset[str]]
) -> ConsumerMember:
    """Return a member. Members with the same topics have the same set, out of ``known``."""
    topics = frozenset(value.subscribed_topic_names)
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
        topics=known.setdefault(topics, topics),
        regex=value.subscribed_topic_regex,
        assignor=value.server_assignor,
    )


def _with_current(
    member: ConsumerMember, value: declared.ConsumerGroupCurrentMemberAssignmentValue | None
) -> ConsumerMember:
    if value is None:
        return member
    assigned, revoking = _assignment(value.assigned_partitions), _assignment(value.partitions_pending_revocation)
    written: PartitionEpochs = {}
    for topic in (*value.assigned_partitions, *value.partitions_pending_revocation):
        epochs = zip(topic.partitions, topic.assignment_epochs or (), strict=False)
        written.setdefault(topic.topic_id, {}).update(epochs)
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=STATES.get(value.state, MemberState.UNKNOWN),
        assigned=assigned,
        revoking=revoking,
        partition_epochs=partition_epochs(
            epochs_of(written, assigned, revoking), assigned, revoking, value.member_epoch
        ),
    )


def _assignment(topics: Iterable[declared.TopicPartition] | Iterable[declared.TopicPartitions]) -> Assignment:
    return {topic.topic_id: frozenset(topic.partitions) for topic in topics}
