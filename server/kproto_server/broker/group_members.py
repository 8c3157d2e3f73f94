"""What a test sees of a group: its members with their assignments, and the lag of a share group."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto_server.coordinator.groups import GroupState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.coordinator.groups import Group, Member
    from kproto_server.network.server import Server


class GroupMember(NamedTuple):
    """A member of a group."""

    member_id: str
    client_id: str
    group_instance_id: str | None
    partitions: tuple[tuple[str, int], ...]
    """Assigned (topic, partition) pairs, sorted; empty if the assignment is not of the consumer protocol.

    Several members of a share group may have the same partition.
    """


class GroupDescription(NamedTuple):
    """A group."""

    group_id: str
    kind: str
    """``"classic"``, ``"consumer"``, ``"share"`` or ``"streams"``."""
    state: str
    """Kafka's name of the state."""
    protocol_type: str
    generation: int
    """The generation of a classic group, or the group epoch."""
    member_count: int


def described(group: Group) -> GroupDescription:
    """Return the description of a group."""
    data = getattr(group, "data", None)
    generation = group.generation if data is None else data.epoch
    protocol_type = group.protocol_type or ""
    return GroupDescription(
        group.group_id, group.kind, group.state.value, protocol_type, generation, len(group.members)
    )


def kind_of(server: Server, group_id: str) -> str | None:
    """Return the kind of a group; None: it does not exist."""
    group = server.state.coordinator.group(group_id)
    return None if group is None else group.kind


def client_ids(server: Server, group_id: str) -> list[str]:
    """Return the client ids of the members of a group."""
    group = server.state.coordinator.group(group_id)
    return [] if group is None else [member.client_id for member in group.members.values()]


def with_records(server: Server, topic: str | None) -> set[tuple[str, int]]:
    """Return the partitions of a topic that have records; None: no partitions."""
    found = None if topic is None else server.state.cluster.topic(topic)
    partitions = [] if found is None else found.partitions
    return {(topic or "", one.index) for one in partitions if one.high_watermark > one.log_start_offset}


def share_offsets(server: Server, group_id: str) -> dict[tuple[str, int], tuple[int, int]]:
    """Return start offsets and lags of a share group, once the first fetch of a partition has chosen its offset."""
    group = server.state.coordinator.group(group_id)
    if group is None or group.kind != "share":
        return {}
    from kproto_server.share_groups.share_states import NO_OFFSET, lag_of

    found = {}
    for key, state in server.state.share_groups.store.states.items():
        topic = server.state.cluster.topic_by_id(key.topic_id) if key.group_id == group_id else None
        partition = None if topic is None else topic.partition(key.partition)
        if topic is not None and partition is not None and state.start_offset != NO_OFFSET:
            found[topic.name, key.partition] = state.start_offset, lag_of(state, partition.data.next_offset)
    return found


def _owned(server: Server, member: Member) -> list[tuple[str, int]]:
    """Return what a member of a consumer group or a share group owns, or is about to receive."""
    assigned: Mapping[bytes, tuple[int, ...]] = member.assigned  # type: ignore[attr-defined]  # of these kinds of groups
    topics = [(server.state.cluster.topic_by_id(topic_id), indexes) for topic_id, indexes in assigned.items()]
    return [(topic.name, index) for topic, indexes in topics if topic is not None for index in indexes]


def _read(server: Server, group: Group, member: Member) -> list[tuple[str, int]]:
    """Return what the active tasks of a member of a streams group read."""
    from kproto_server.coordinator.streams_groups.data import StreamsMember
    from kproto_server.coordinator.streams_groups.endpoints import read_partitions
    from kproto_server.coordinator.streams_groups.group import StreamsGroup

    assert isinstance(group, StreamsGroup), "of this kind"
    assert isinstance(member, StreamsMember), "of this kind"
    if group.configured is None or group.configured.subtopologies is None:
        return []
    topics = read_partitions(member.assigned.active, group.configured.subtopologies, server.state.cluster.topics)
    return [(one.topic, index) for one in topics for index in one.partitions]


def counts(server: Server, group_id: str) -> tuple[str, int, int]:
    """Return the state, the number of members and the number of partitions that they own, at one moment."""
    group = server.state.coordinator.group(group_id)
    if group is None:
        return GroupState.DEAD.value, 0, 0
    return group.state.value, len(group.members), sum(len(one.partitions) for one in members_of(server, group_id))


def members_of(server: Server, group_id: str) -> tuple[GroupMember, ...]:
    """Return the members of a group, sorted by member id."""
    from kproto.errors import DecodeError
    from kproto.records.consumer_protocol import read_assignment

    group = server.state.coordinator.group(group_id)
    if group is None:
        return ()
    found = []
    for member in group.members.values():
        partitions: list[tuple[str, int]] = []
        if group.kind in ("consumer", "share"):
            partitions = _owned(server, member)
        elif group.kind == "streams":
            partitions = _read(server, group, member)
        elif group.uses_consumer_protocol and member.assignment:
            try:
                _, assignment = read_assignment(member.assignment)
            except DecodeError:
                continue
            partitions = [
                (topic.topic, index) for topic in assignment.assigned_partitions for index in topic.partitions
            ]
        instance_id = member.group_instance_id
        found.append(GroupMember(member.member_id, member.client_id, instance_id, tuple(sorted(partitions))))
    return tuple(sorted(found))
