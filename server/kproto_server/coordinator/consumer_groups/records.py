"""The records of a change of a consumer group: the difference between two values of `GroupData` (LF-11).

Theory of operation. What is equal in both values is not written. The records of one change are one batch, which the log
has whole or not at all, in Kafka's order: tombstones of members, members, regular expressions, the group epoch,
targets, the assignment epoch, current assignments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records import consumer_group_records as declared
from kproto_server.coordinator.consumer_groups.data import subscribed_topics
from kproto_server.coordinator.epoch_groups.records import MemberKeys, changed_members

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.coordinator.consumer_groups.data import Assignment, ConsumerMember, GroupData
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.epoch_groups.batches import Pair
    from kproto_server.coordinator.version_behavior import OffsetsLogBehavior

KEYS = MemberKeys(
    declared.ConsumerGroupCurrentMemberAssignmentKey,
    declared.ConsumerGroupTargetAssignmentMemberKey,
    declared.ConsumerGroupMemberMetadataKey,
)


def changes(coordinator: GroupCoordinator, group_id: str, before: GroupData, after: GroupData) -> Iterator[Pair]:
    """Yield what a change writes."""
    yield from KEYS.of_removed(group_id, before.members, after.members)
    changed = changed_members(before.members, after.members)
    for member_id, member, _ in [one for one in changed if one.has_other(_metadata)]:
        yield declared.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), _member_value(member)
    for regex in before.resolved:
        if regex not in after.resolved:
            yield declared.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None
    for regex, resolved in after.resolved.items():
        if before.resolved.get(regex) != resolved:
            key = declared.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
            yield (
                key,
                declared.ConsumerGroupRegularExpressionValue(
                    topics=tuple(sorted(resolved.topics)), version=resolved.version, timestamp=resolved.timestamp_ms
                ),
            )
    behavior = coordinator.behavior
    if behavior.writes_partition_metadata and after.metadata_hash != before.metadata_hash:
        key_of_topics = declared.ConsumerGroupPartitionMetadataKey(group_id=group_id)
        yield key_of_topics, _partition_metadata(coordinator, after)
    if after.epoch != before.epoch:
        topics_hash = 0 if behavior.writes_partition_metadata else after.metadata_hash
        yield (
            declared.ConsumerGroupMetadataKey(group_id=group_id),
            declared.ConsumerGroupMetadataValue(epoch=after.epoch, metadata_hash=topics_hash),
        )
    targets = after.targets.items() if after.targets is not before.targets else ()
    for member_id, target in targets:
        if before.targets.get(member_id) is not target:
            yield (
                declared.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
                declared.ConsumerGroupTargetAssignmentMemberValue(
                    topic_partitions=tuple(
                        declared.TopicPartition(topic_id=topic_id, partitions=tuple(sorted(indexes)))
                        for topic_id, indexes in target.items()
                    )
                ),
            )
    if after.assignment_epoch != before.assignment_epoch:
        timestamp_ms = after.assignment_timestamp_ms if behavior.writes_assignment_timestamp else 0
        yield (
            declared.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
            declared.ConsumerGroupTargetAssignmentMetadataValue(
                assignment_epoch=after.assignment_epoch, assignment_timestamp=timestamp_ms
            ),
        )
    for member_id, member, _ in [one for one in changed if one.has_other(_current)]:
        key_of_current = declared.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
        yield key_of_current, _current_value(member, with_epochs=behavior.commits_have_assignment_epochs)


def tombstones(behavior: OffsetsLogBehavior, group_id: str, data: GroupData) -> Iterator[Pair]:
    """Yield the tombstones of a group and of all that belongs to it."""
    target_metadata = declared.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
    yield from KEYS.of_all(group_id, data.members, target_metadata)
    for regex in data.resolved:
        yield declared.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None
    if behavior.writes_partition_metadata:
        yield declared.ConsumerGroupPartitionMetadataKey(group_id=group_id), None
    yield declared.ConsumerGroupMetadataKey(group_id=group_id), None


def _metadata(member: ConsumerMember) -> tuple[object, ...]:
    """Return what the member's metadata record has."""
    return (
        member.group_instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.topics,
        member.regex,
        member.rebalance_timeout_ms,
        member.assignor,
        member.speaks_classic,
        member.session_timeout_ms,
        member.protocols,
    )


def _current(member: ConsumerMember) -> tuple[object, ...]:
    """Return what the member's current assignment record has."""
    return member.epoch, member.previous_epoch, member.state, member.assigned, member.revoking


def _member_value(member: ConsumerMember) -> declared.ConsumerGroupMemberMetadataValue:
    classic = None
    if member.speaks_classic:
        classic = declared.ClassicMemberMetadata(
            session_timeout_ms=member.session_timeout_ms,
            supported_protocols=tuple(
                declared.ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.protocols
            ),
        )
    value = declared.ConsumerGroupMemberMetadataValue(
        instance_id=member.group_instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topics)),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
    )
    return value if classic is None else value.with_classic_member_metadata(classic)


def _current_value(member: ConsumerMember, *, with_epochs: bool) -> declared.ConsumerGroupCurrentMemberAssignmentValue:
    return declared.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_topic_partitions(member, member.assigned, with_epochs=with_epochs),
        partitions_pending_revocation=_topic_partitions(member, member.revoking, with_epochs=with_epochs),
    )


def _topic_partitions(
    member: ConsumerMember, assignment: Assignment, *, with_epochs: bool
) -> tuple[declared.TopicPartitions, ...]:
    written = []
    for topic_id, indexes in assignment.items():
        partitions = tuple(sorted(indexes))
        epochs = tuple(map(member.partition_epochs[topic_id].__getitem__, partitions)) if with_epochs else ()
        written.append(declared.TopicPartitions(topic_id=topic_id, partitions=partitions, assignment_epochs=epochs))
    return tuple(written)


def _partition_metadata(coordinator: GroupCoordinator, data: GroupData) -> declared.ConsumerGroupPartitionMetadataValue:
    """Return the subscribed topics, as 4.0 writes them instead of their hash."""
    known = [coordinator.topics[name] for name in sorted(subscribed_topics(data)) if name in coordinator.topics]
    return declared.ConsumerGroupPartitionMetadataValue(
        topics=tuple(
            declared.TopicMetadata(
                topic_id=topic.topic_id,
                topic_name=topic.name,
                num_partitions=len(topic.partitions),
                partition_metadata=(),
            )
            for topic in known
        )
    )
