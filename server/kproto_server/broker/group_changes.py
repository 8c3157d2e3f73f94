"""What a test changes in groups: offsets as an administrator writes them, and rebalances, sessions and heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.codes import ErrorCode
from kproto.errors import UsageError
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto_server.broker.own_requests import RequestRefused, ask, check, coordinator_of
from kproto_server.coordinator.epoch_groups.group import EpochGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.coordinator.epoch_groups.deadlines import Deadlines
    from kproto_server.coordinator.groups import Group, Member
    from kproto_server.coordinator.membership.phases import HeldPhase
    from kproto_server.network.server import Server

    Offsets = Mapping[tuple[str, int], int]
    """Offsets by (topic, partition)."""

OFFSET_COMMIT, DELETE_GROUPS, ALTER_SHARE_GROUP_OFFSETS = 8, 2, 0
"""The newest versions to use: OffsetCommit 10 has no topic names, and the epochs of 9 are those of members."""
HEARTBEATS = {
    "classic": "Heartbeat",
    "consumer": "ConsumerGroupHeartbeat",
    "share": "ShareGroupHeartbeat",
    "streams": "StreamsGroupHeartbeat",
}
"""The API of the heartbeats, by kind of group; classic members of a consumer group have that of a classic one."""
OFFSET_MAX = 2**63 - 1


def group_named(server: Server, group_id: str) -> Group:
    """Return a group.

    Raises:
        RequestRefused: it does not exist.
    """
    group = server.state.coordinator.group(group_id)
    if group is None:
        raise RequestRefused(f"group {group_id!r}", ErrorCode.GROUP_ID_NOT_FOUND, "there is no such group")
    return group


def _by_topic(offsets: Offsets) -> dict[str, list[tuple[int, int]]]:
    """Return partitions with their offsets, by topic."""
    found: dict[str, list[tuple[int, int]]] = {}
    for (topic, partition), offset in offsets.items():
        if type(offset) is not int or not 0 <= offset <= OFFSET_MAX:
            raise UsageError(f"the offset of {topic}-{partition} is a number from 0 on, not {offset!r}")
        found.setdefault(topic, []).append((partition, offset))
    return found


def commit(server: Server, group_id: str, offsets: Offsets, metadata: str) -> None:
    """Commit offsets as an administrator does.

    Raises:
        RequestRefused: the broker refuses one of them; the others are committed.
        UsageError: an offset is no number from 0 on.
    """
    topics = tuple(
        OffsetCommitRequestTopic(
            name=topic,
            partitions=tuple(
                OffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata=metadata
                )
                for partition, offset in partitions
            ),
        )
        for topic, partitions in _by_topic(offsets).items()
    )
    subject = f"group {group_id!r}"
    node = coordinator_of(server, OFFSETS_TOPIC, group_id, subject)
    response = ask(server, OffsetCommitRequest(group_id=group_id, topics=topics), OFFSET_COMMIT, node.node_id)
    group = server.state.coordinator.group(group_id)
    for topic in response.topics:
        for one in topic.partitions:
            message = None
            if one.error_code == ErrorCode.UNKNOWN_MEMBER_ID and group is not None and group.members:
                message = f"the group has {len(group.members)} members, and only they may commit"
            elif one.error_code and group is not None and group.kind == "share":
                message = "a share group commits no offsets: set its start offsets"
            check(f"{subject}, {topic.name}-{one.partition_index}", one.error_code, message)


def set_start_offsets(server: Server, group_id: str, offsets: Offsets) -> None:
    """Set start offsets of a share group as an administrator does.

    Raises:
        RequestRefused: the broker refuses them, or one of them.
        UsageError: an offset is no number from 0 on.
    """
    from kproto.messages.k91_alter_share_group_offsets import (
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsRequestPartition,
        AlterShareGroupOffsetsRequestTopic,
    )

    topics = tuple(
        AlterShareGroupOffsetsRequestTopic(
            topic_name=topic,
            partitions=tuple(
                AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=offset)
                for partition, offset in partitions
            ),
        )
        for topic, partitions in _by_topic(offsets).items()
    )
    subject = f"group {group_id!r}"
    node = coordinator_of(server, OFFSETS_TOPIC, group_id, subject)
    request = AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics)
    response = ask(server, request, ALTER_SHARE_GROUP_OFFSETS, node.node_id)
    check(subject, response.error_code, response.error_message)
    for topic in response.responses:
        for one in topic.partitions:
            check(f"{subject}, {topic.topic_name}-{one.partition_index}", one.error_code, one.error_message)


def delete(server: Server, group_id: str) -> None:
    """Delete a group as an administrator does.

    Raises:
        RequestRefused: the broker refuses it: there is no such group, or it has members.
    """
    from kproto.messages.k42_delete_groups import DeleteGroupsRequest

    subject = f"group {group_id!r}"
    node = coordinator_of(server, OFFSETS_TOPIC, group_id, subject)
    request = DeleteGroupsRequest(groups_names=(group_id,))
    for result in ask(server, request, DELETE_GROUPS, node.node_id).results:
        check(subject, result.error_code)


def hold(server: Server, group_id: str, phase: HeldPhase) -> None:
    """Hold the rebalances of a classic group.

    Raises:
        UsageError: there is no such phase, or the group is of another kind.
    """
    from kproto_server.coordinator.membership.phases import Hold

    if phase not in ("join", "sync"):
        raise UsageError(f"at is join or sync, not {phase!r}")
    coordinator = server.state.coordinator
    group = coordinator.group(group_id)
    if group is not None and group.kind != "classic":
        raise UsageError(
            f"group {group_id!r} is a {group.kind} group, whose members reconcile one by one: "
            "there is no JoinGroup and no SyncGroup to hold"
        )
    if group_id in coordinator.holds:
        release(server, group_id)
    coordinator.holds[group_id] = Hold(phase)


def is_held(server: Server, group_id: str) -> bool:
    """Return whether a rebalance of a group is held at present.

    Raises:
        UsageError: rebalances of the group are not held.
    """
    from kproto_server.coordinator.groups import GroupState
    from kproto_server.coordinator.membership.phases import HeldJoin

    coordinator = server.state.coordinator
    hold, group = coordinator.holds.get(group_id), coordinator.groups.get(group_id)
    if hold is None:
        raise UsageError(f"rebalances of group {group_id!r} are not held: begin with hold_rebalance")
    if group is None or hold.phase == "join":
        return group is not None and isinstance(group.phase, HeldJoin)
    has_assignments = hold.assignments is not None and hold.assignments[0] == group.generation
    return has_assignments and group.state is GroupState.COMPLETING_REBALANCE


def release(server: Server, group_id: str) -> bool:
    """Have a held rebalance go on; return whether rebalances of the group were held."""
    from kproto_server.coordinator.membership.holding import release

    return release(server.state.coordinator, group_id, server.state.clock.now_ms())


def force_rebalance(server: Server, group_id: str) -> None:
    """Have all members of a group join again, or raise its epoch.

    Raises:
        RequestRefused: there is no such group, or the log does not take the change.
        UsageError: the group has no members.
    """
    coordinator, now_ms = server.state.coordinator, server.state.clock.now_ms()
    group: Any = group_named(server, group_id)
    if not group.members:
        raise UsageError(f"group {group_id!r} has no members that could rebalance")
    if isinstance(group, EpochGroup):
        from kproto_server.coordinator.epoch_groups.writing import write

        written = write(coordinator, group, group.data._replace(epoch=group.data.epoch + 1), now_ms)
        server.drain()
        check(f"group {group_id!r}", written.error)
        return
    from kproto_server.coordinator.membership import timers
    from kproto_server.coordinator.membership.rebalance import prepare_rebalance_or_complete_join

    prepare_rebalance_or_complete_join(coordinator, group, now_ms)
    timers.schedule(coordinator, group)


def expire_member(server: Server, group_id: str, member_id: str | None, client_id: str | None) -> str:
    """Remove a member as if its session had expired; return its id.

    Raises:
        RequestRefused: there is no such group or member.
        UsageError: none or both of the ids are given, or several members have the client id.
    """
    group: Any = group_named(server, group_id)
    member = chosen_member(group, member_id, client_id)
    coordinator = server.state.coordinator
    if isinstance(group, EpochGroup):
        _deadlines_of(server, group).expire(coordinator, group, member.member_id)
        server.drain()
    else:
        from kproto_server.coordinator.membership import timers

        timers.expire(coordinator, group, member)
    return member.member_id


def _deadlines_of(server: Server, group: EpochGroup[Any]) -> Deadlines[Any]:
    if group.kind == "share":
        return server.state.share_groups.members.deadlines
    if group.kind == "streams":
        from kproto_server.coordinator.streams_groups import timers as streams_timers

        return streams_timers.DEADLINES
    from kproto_server.coordinator.consumer_groups import timers as consumer_timers

    return consumer_timers.DEADLINES


def chosen_member(group: Group, member_id: str | None, client_id: str | None) -> Member:
    """Return the only member of a group with a member id or a client id.

    Raises:
        RequestRefused: there is no such member; the text lists all.
        UsageError: none or both of the ids are given, or several members have the client id.
    """
    if (member_id is None) == (client_id is None):
        raise UsageError("name one member, by member_id or by client_id")
    found = [
        one
        for one in group.members.values()
        if (one.member_id if client_id is None else one.client_id) == (member_id or client_id)
    ]
    if len(found) > 1:
        ids = ", ".join(repr(one.member_id) for one in found)
        raise UsageError(f"{len(found)} members have the client id {client_id!r}: name one by member_id: {ids}")
    if not found:
        listed = ", ".join(f"{one.member_id!r} of client {one.client_id!r}" for one in group.members.values())
        wanted = f"member {member_id!r}" if client_id is None else f"member of client {client_id!r}"
        message = f"there is no {wanted}; the group has {listed or 'no members'}"
        raise RequestRefused(f"group {group.group_id!r}", ErrorCode.UNKNOWN_MEMBER_ID, message)
    return found[0]


def heartbeat_rule(server: Server, group_id: str, member_id: str | None, client_id: str | None) -> dict[str, Any]:
    """Return the fault rule that freezes the heartbeats of a member, or of a client in all its memberships.

    Raises:
        RequestRefused: there is no such group or member.
        UsageError: none or both of the ids are given, or several members have the client id.
    """
    group = group_named(server, group_id)
    member = chosen_member(group, member_id, client_id)
    kind = "classic" if group.kind == "consumer" and member.speaks_classic else group.kind
    chosen = {"member": member.member_id} if client_id is None else {"client_id": client_id}
    return {"api": HEARTBEATS[kind], "group": group_id, "freeze": True, **chosen}
