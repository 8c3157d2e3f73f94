"""Live migration (`group.consumer.migration.policy`): a classic group becomes a consumer group.

Theory of operation. When a member of KIP-848 joins a classic group of consumers, the group becomes a consumer group:
its members keep their assignments and stay classic members (`classic_members`), which take part in the reconciliation
by JoinGroup and SyncGroup. `downgrading` has the way back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal
from kproto_server.coordinator.consumer_groups.consumer_protocol import assignment_of, subscription_of
from kproto_server.coordinator.consumer_groups.data import ConsumerMember, GroupData
from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
from kproto_server.coordinator.consumer_groups.reconciliation import partition_epochs
from kproto_server.coordinator.consumer_groups.targets import hash_of_topics
from kproto_server.coordinator.consumer_groups.timers import DEADLINES
from kproto_server.coordinator.epoch_groups.group import SESSION
from kproto_server.coordinator.membership.unloading import fail_pending

if TYPE_CHECKING:
    from kproto_server.coordinator.consumer_groups.data import Assignment
    from kproto_server.coordinator.consumer_groups.limits import ConsumerLimits
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group, Member

CONSUMER = "consumer"
CUSTOM_ASSIGNOR = (
    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor "
    "before re-attempting the upgrade"
)


def upgrade(
    coordinator: GroupCoordinator, group: Group, limits: ConsumerLimits, now_ms: int
) -> ConsumerGroup | Refusal:
    """Return a classic group with members as a consumer group, which is not registered yet, or why it stays classic.

    Its members' pending requests end with REBALANCE_IN_PROGRESS: the members join again, as classic members.
    """
    reason = ""
    if not limits.upgrades:
        reason = "online upgrade is disabled"
    elif group.protocol_type != CONSUMER:
        reason = "the group does not use the consumer embedded protocol"
    elif len(group.members) > limits.size_max:
        reason = "the group size exceeds the consumer group maximum size"
    if reason:
        return _refused(group, reason)
    fail_pending(group, ErrorCode.REBALANCE_IN_PROGRESS)
    upgraded = ConsumerGroup(group.group_id, now_ms)
    members: dict[str, ConsumerMember] = {}
    targets: dict[str, Assignment] = {}
    for member in group.members.values():
        converted = _converted(coordinator, group, member)
        if isinstance(converted, Refusal):
            return converted
        members[member.member_id] = converted
        targets[member.member_id] = converted.assigned
    data = GroupData(epoch=group.generation, members=members, assignment_epoch=group.generation, targets=targets)
    if not coordinator.behavior.writes_partition_metadata:  # 4.0 does not look at the topics yet
        data = data._replace(metadata_hash=hash_of_topics(coordinator, data))
    upgraded.apply(data, now_ms)
    for converted in members.values():
        deadline_ms = now_ms + converted.session_timeout_ms
        DEADLINES.set(coordinator, upgraded, converted.member_id, SESSION, deadline_ms)
    return upgraded


def _refused(group: Group, reason: str) -> Refusal:
    message = f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}."
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _converted(coordinator: GroupCoordinator, group: Group, member: Member) -> ConsumerMember | Refusal:
    """Return a member with its present assignment, or why the group cannot be upgraded."""
    metadata = member.metadata_for(group.protocol_name) if group.protocol_name else member.protocols[0][1]
    subscription = subscription_of(coordinator, metadata)
    given = assignment_of(coordinator, member.assignment)
    if given is not None and given.user_data:
        return _refused(group, CUSTOM_ASSIGNOR)
    if subscription is None or given is None:
        return _refused(group, "the embedded consumer protocol is malformed")
    assignment = given.partitions
    return ConsumerMember(
        member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=member.protocols,
        epoch=group.generation,
        previous_epoch=group.generation,
        speaks_classic=True,
        rack_id=subscription.rack_id,
        topics=subscription.topics,
        assigned=assignment,
        partition_epochs=partition_epochs({}, assignment, {}, group.generation),
    )
