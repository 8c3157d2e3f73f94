"""Offsets and groups that go because someone asked: OffsetDelete, DeleteGroups, and the deletion of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.coordinator.commit import append_error
from kproto_server.coordinator.groups import GroupState
from kproto_server.coordinator.partitioning import OFFSETS_TOPIC, partition_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.offsets import DeletionEntries
    from kproto_server.state import BrokerState


def offset_delete_error(group: Group | None) -> int:
    """Return why no offset of a group may be deleted at all; 0 if it depends on the topic (EX-62)."""
    if group is None or group.state is GroupState.DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.is_empty or group.uses_consumer_protocol:
        return 0
    return ErrorCode.NON_EMPTY_GROUP


def group_delete_error(group: Group | None) -> int:
    """Return why a group may not be deleted; 0 if it may (EX-61)."""
    if group is None or group.state is GroupState.DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return 0 if group.is_empty else ErrorCode.NON_EMPTY_GROUP


def delete_group(state: BrokerState, group_id: str) -> int:
    """Delete a group and its offsets; return the error of the write."""
    doomed = [(topic, list(stored)) for topic, stored in state.offsets.of_group(group_id).items()]
    return _delete(state, group_id, doomed, removes_group=True)


def delete_offsets(state: BrokerState, group_id: str, topics: Mapping[str, Iterable[int]]) -> int:
    """Delete those of these offsets that are stored; return the error of the write."""
    stored = state.offsets.of_group(group_id)
    doomed: list[tuple[str, list[int]]] = []
    for topic, partitions in topics.items():
        there = [partition for partition in dict.fromkeys(partitions) if partition in stored.get(topic, {})]
        if there:
            doomed.append((topic, there))
    if not doomed:
        return 0
    leaves_nothing = sum(len(partitions) for _, partitions in doomed) == sum(map(len, stored.values()))
    return _delete(state, group_id, doomed, removes_group=leaves_nothing and _goes_when_bare(state, group_id))


def _goes_when_bare(state: BrokerState, group_id: str) -> bool:
    group = state.groups.get(group_id)
    return group is not None and group.is_empty and state.profile.deleting_last_offset_removes_group


def forget_topics(state: BrokerState, names: Iterable[str]) -> None:
    """Drop the offsets of deleted topics from every group, whatever its state (EX-60).

    A group whose tombstones cannot be written keeps its offsets: nothing is visible that the log does not have.
    """
    for name in names:
        for group_id in list(state.offsets.groups_with(name)):
            delete_offsets(state, group_id, {name: list(state.offsets.of_group(group_id)[name])})


def _delete(state: BrokerState, group_id: str, topics: DeletionEntries, *, removes_group: bool) -> int:
    """Append, sync, apply."""
    partition = partition_for(group_id, len(state.cluster.topics[OFFSETS_TOPIC].partitions))
    offsets = state.offsets
    log = offsets.log
    failure = log.append_deletion(partition, group_id, topics, removes_group) or log.sync(partition)
    if failure:
        return append_error(failure, state.profile)
    offsets.apply_deletion(group_id, topics)
    if removes_group:
        state.groups.remove(group_id)
    return 0
