"""Live migration (`group.consumer.migration.policy`): a consumer group becomes a classic group.

Theory of operation. When the last member of KIP-848 leaves, the group becomes a classic group, with the target
assignment as its assignment, and rebalances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.change_log import NO_BATCH
from kproto_server.coordinator.consumer_groups.consumer_protocol import assignment_bytes
from kproto_server.coordinator.epoch_groups.writing import append, replace_group
from kproto_server.coordinator.groups import Group, GroupState, Member
from kproto_server.coordinator.membership import members as classic_members
from kproto_server.coordinator.membership.limits import group_limits_of
from kproto_server.coordinator.membership.protocols import select_protocol, subscribed_topics_of
from kproto_server.coordinator.membership.rebalance import prepare_rebalance
from kproto_server.coordinator.membership.timers import schedule
from kproto_server.deferred import NO_RESPONSE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kproto_server.coordinator.consumer_groups.data import ConsumerMember, GroupData
    from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
    from kproto_server.coordinator.consumer_groups.limits import ConsumerLimits
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.epoch_groups.group import Write
    from kproto_server.deferred import NoResponse

CONSUMER = "consumer"


def downgrade(
    coordinator: GroupCoordinator,
    group: ConsumerGroup,
    others: Sequence[ConsumerMember],
    limits: ConsumerLimits,
    now_ms: int,
) -> Write | None:
    """Make a group a classic one of the members that stay, and begin a rebalance; None: it stays as it is."""
    if not may_downgrade(coordinator, others, limits):
        return None
    classic = _classic_group(coordinator, group, others, group.data, now_ms)
    written = _replace(coordinator, group, classic, group.data, now_ms)
    _rebalance(coordinator, classic)
    return written


def downgrade_joined(coordinator: GroupCoordinator, group: ConsumerGroup, data: GroupData, now_ms: int) -> Write:
    """Make a group a classic one whose last member of KIP-848, a static one, is replaced by a classic member.

    It rebalances if its target assignment is older than its epoch, from 4.1 on.
    """
    classic = _classic_group(coordinator, group, data.members.values(), data, now_ms)
    written = _replace(coordinator, group, classic, group.logged, now_ms)
    if data.epoch > data.assignment_epoch and coordinator.behavior.downgrade_precedes_assignment:
        _rebalance(coordinator, classic)
    elif not written.error:
        schedule(coordinator, classic)
    return written


def _rebalance(coordinator: GroupCoordinator, classic: Group) -> None:
    """Begin a rebalance once the log has the group: members that join before wait, and get no generation of it."""
    if classic.state is GroupState.STABLE:
        classic.state = GroupState.PREPARING_REBALANCE

    def begin() -> NoResponse:
        if coordinator.groups.get(classic.group_id) is classic:
            classic.state = GroupState.STABLE
            prepare_rebalance(coordinator, classic, coordinator.clock.now_ms())
            schedule(coordinator, classic)
        return NO_RESPONSE

    coordinator.log.then(begin)


def may_downgrade(coordinator: GroupCoordinator, others: Sequence[ConsumerMember], limits: ConsumerLimits) -> bool:
    """Return whether a group of these members becomes a classic one."""
    size_max = group_limits_of(coordinator.settings.current).size_max
    return limits.downgrades and len(others) <= size_max and all(member.speaks_classic for member in others)


def _classic_group(
    coordinator: GroupCoordinator, group: ConsumerGroup, members: Iterable[ConsumerMember], data: GroupData, now_ms: int
) -> Group:
    classic = Group(group.group_id, now_ms)
    classic.protocol_type = CONSUMER
    classic.generation = group.data.epoch  # without the change that a joining member makes
    for one in members:
        classic.add_member(
            Member(
                one.member_id,
                group_instance_id=one.group_instance_id,
                client_id=one.client_id,
                client_host=one.client_host,
                session_timeout_ms=one.session_timeout_ms,
                rebalance_timeout_ms=one.rebalance_timeout_ms,
                protocols=one.protocols,
            )
        )
    classic.protocol_name = select_protocol(classic)
    for member in classic.members.values():
        member.metadata = member.metadata_for(classic.protocol_name)
        target = data.targets.get(member.member_id, {})
        member.assignment = assignment_bytes(coordinator, target, member.metadata)
    classic.state = GroupState.STABLE
    classic.subscribed_topics = subscribed_topics_of(classic)
    return classic


def _replace(
    coordinator: GroupCoordinator, group: ConsumerGroup, classic: Group, logged: GroupData, now_ms: int
) -> Write:
    """Register the classic group in place of the consumer group, and write both."""
    batch = NO_BATCH
    if coordinator.log.keeps:
        from kproto_server.coordinator.consumer_groups.records import tombstones
        from kproto_server.coordinator.epoch_groups.batches import batch_of, encoded
        from kproto_server.coordinator.offsets_log.groups import group_record

        records = encoded(tombstones(coordinator.behavior, group.group_id, logged))
        batch = batch_of(coordinator, [*records, group_record(classic, coordinator.behavior)], now_ms)
    settle_registry = replace_group(coordinator, group, classic)
    for member in classic.members.values():
        classic_members.extend_session(classic, member, now_ms)
    return append(coordinator, group, group.data, batch, settle_registry, now_ms)
