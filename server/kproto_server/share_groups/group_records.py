"""The records of a share group in `__consumer_offsets`: what a change writes (LF-11); `group_loading` restores it.

What is equal before and after a change is not written. The records of one change are one batch, which the log has whole
or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records import share_group_records as declared
from kproto_server.coordinator.epoch_groups.records import MemberKeys, changed_members

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kproto_server.coordinator.epoch_groups.batches import Pair
    from kproto_server.share_groups.data import Assignment, ShareData, ShareMember, TopicPartitions

KEYS = MemberKeys(
    declared.ShareGroupCurrentMemberAssignmentKey,
    declared.ShareGroupTargetAssignmentMemberKey,
    declared.ShareGroupMemberMetadataKey,
)
STABLE = 0
"""The state of all members in the log."""


def changes(group_id: str, before: ShareData, after: ShareData) -> Iterator[Pair]:
    """Yield what a change writes."""
    yield from KEYS.of_removed(group_id, before.members, after.members)
    changed = changed_members(before.members, after.members)
    for member_id, member, _ in [one for one in changed if one.has_other(_metadata)]:
        yield declared.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), _metadata(member)
    if after.epoch != before.epoch:
        yield (
            declared.ShareGroupMetadataKey(group_id=group_id),
            declared.ShareGroupMetadataValue(epoch=after.epoch, metadata_hash=after.metadata_hash),
        )
    for member_id, target in after.targets.items():
        known = before.targets.get(member_id)
        if known is not target and known != target:
            yield (
                declared.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
                declared.ShareGroupTargetAssignmentMemberValue(topic_partitions=_topic_partitions(target)),
            )
    if after.assignment_epoch != before.assignment_epoch:
        yield (
            declared.ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
            declared.ShareGroupTargetAssignmentMetadataValue(
                assignment_epoch=after.assignment_epoch, assignment_timestamp=after.assignment_ms
            ),
        )
    for member_id, member, _ in [one for one in changed if one.has_other(_current)]:
        yield declared.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), _current(member)
    if after.initialized is not before.initialized:
        yield (
            declared.ShareGroupStatePartitionMetadataKey(group_id=group_id),
            declared.ShareGroupStatePartitionMetadataValue(
                initializing_topics=(), initialized_topics=_initialized(after.initialized), deleting_topics=()
            ),
        )


def _metadata(member: ShareMember) -> declared.ShareGroupMemberMetadataValue:
    return declared.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
    )


def _current(member: ShareMember) -> declared.ShareGroupCurrentMemberAssignmentValue:
    return declared.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=STABLE,
        assigned_partitions=_topic_partitions(member.assigned),
    )


def _topic_partitions(assignment: Assignment) -> tuple[declared.TopicPartition, ...]:
    return tuple(
        declared.TopicPartition(topic_id=topic_id, partitions=partitions) for topic_id, partitions in assignment.items()
    )


def _initialized(topics: Mapping[bytes, TopicPartitions]) -> tuple[declared.TopicPartitionsInfo, ...]:
    return tuple(
        declared.TopicPartitionsInfo(
            topic_id=topic_id, topic_name=topic.name, partitions=tuple(sorted(topic.partitions))
        )
        for topic_id, topic in topics.items()
    )
