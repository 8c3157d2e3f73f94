"""Queries of a running broker's groups and offsets, for tests."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.coordinator.groups import GroupState

if TYPE_CHECKING:
    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.network.server import Server

CHECK_S = 0.005
"""How often `wait_stable` looks at the group."""


class GroupMember(NamedTuple):
    """A member of a group."""

    member_id: str
    client_id: str
    group_instance_id: str | None
    partitions: tuple[tuple[str, int], ...]
    """Assigned (topic, partition) pairs, sorted; empty if the assignment is not of the consumer protocol."""


class BrokerGroups:
    """The groups of a running broker. Each call runs between two requests."""

    def __init__(self, run: RunInBrokerThread) -> None:
        self._run = run

    def state(self, group_id: str) -> str:
        """Return Kafka's name of a group's state; ``"Dead"`` if the group does not exist."""

        def look(server: Server) -> str:
            group = server.state.coordinator.group(group_id)
            return (GroupState.DEAD if group is None else group.state).value

        return self._run(look)

    def members(self, group_id: str) -> tuple[GroupMember, ...]:
        """Return the members of a group with their assignments, sorted by member id."""
        return self._run(lambda server: _members(server, group_id))

    def wait_stable(
        self, group_id: str, *, members: int | None = None, partitions: int | None = None, timeout_s: float = 30.0
    ) -> None:
        """Wait until a group is Stable and has this many members, if given, with this many partitions in all, if given.

        A group may be Stable before its clients know of a topic, and rebalance a moment later; ``partitions`` waits for
        that.

        Raises:
            TimeoutError: ``timeout_s`` of real time have passed; the text describes the group.
        """
        wanted = "Stable"
        if members is not None or partitions is not None:
            wanted += " with " + _counted(members, partitions)
        deadline = time.monotonic() + timeout_s
        pause = threading.Event()
        while True:
            state, found, owned = self._run(lambda server: _counts(server, group_id))
            if state == GroupState.STABLE.value and members in (None, found) and partitions in (None, owned):
                return
            if time.monotonic() > deadline:
                seen = _counted(found, None if partitions is None else owned)
                raise TimeoutError(f"group {group_id!r} is {state} with {seen}, not {wanted}")
            pause.wait(CHECK_S)

    def committed(self, group_id: str) -> dict[tuple[str, int], int]:
        """Return a group's committed offsets by (topic, partition)."""

        def look(server: Server) -> dict[tuple[str, int], int]:
            stored = server.state.coordinator.offsets.of_group(group_id)
            return {(topic, index): one.offset for topic, of_topic in stored.items() for index, one in of_topic.items()}

        return self._run(look)

    def lag(self, group_id: str) -> dict[tuple[str, int], int]:
        """Return the lag of a group in records by (topic, partition), for topics that exist."""

        def look(server: Server) -> dict[tuple[str, int], int]:
            found: dict[tuple[str, int], int] = {}
            for name, of_topic in server.state.coordinator.offsets.of_group(group_id).items():
                topic = server.state.cluster.topic(name)
                for index, one in of_topic.items():
                    partition = None if topic is None else topic.partition(index)
                    if partition is not None:
                        found[name, index] = partition.high_watermark - one.offset
            return found

        return self._run(look)


def _counts(server: Server, group_id: str) -> tuple[str, int, int]:
    """Return the state, the number of members and the number of partitions that they own, at one moment."""
    group = server.state.coordinator.group(group_id)
    if group is None:
        return GroupState.DEAD.value, 0, 0
    return group.state.value, len(group.members), sum(len(one.partitions) for one in _members(server, group_id))


def _counted(members: int | None, partitions: int | None) -> str:
    counts = [] if members is None else [f"{members} members"]
    return " and ".join(counts if partitions is None else [*counts, f"{partitions} partitions"])


def _members(server: Server, group_id: str) -> tuple[GroupMember, ...]:
    from kproto.errors import DecodeError
    from kproto.records.consumer_protocol import read_assignment

    group = server.state.coordinator.group(group_id)
    if group is None:
        return ()
    found = []
    for member in group.members.values():
        partitions: list[tuple[str, int]] = []
        if group.uses_consumer_protocol and member.assignment:
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
