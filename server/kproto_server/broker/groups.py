"""Groups and offsets of a broker in your own process, as a test asks for them."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.coordinator.groups import GroupState

if TYPE_CHECKING:
    from kproto_server.broker.broker import Broker
    from kproto_server.network.server import Server

CHECK_S = 0.005
"""How often a group is looked at while somebody waits for it."""


class GroupMember(NamedTuple):
    """A member of a group, as it is now."""

    member_id: str
    client_id: str
    group_instance_id: str | None
    partitions: tuple[tuple[str, int], ...]
    """(topic, partition) that it was assigned, sorted; none if its assignment is not a consumer's."""


class BrokerGroups:
    """The groups of a running broker. Every call is carried out between two requests."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def state(self, group_id: str) -> str:
        """Return Kafka's name of the state that a group is in; ``"Dead"`` for one that does not exist."""

        def look(server: Server) -> str:
            group = server.state.group(group_id)
            return (GroupState.DEAD if group is None else group.state).value

        return self._broker._call(look)

    def members(self, group_id: str) -> tuple[GroupMember, ...]:
        """Return the members of a group, with what they were assigned, by member id."""
        return self._broker._call(lambda server: _members(server, group_id))

    def wait_stable(
        self, group_id: str, *, members: int | None = None, partitions: int | None = None, timeout_s: float = 30.0
    ) -> None:
        """Wait until a group is Stable, with so many members if told, which own so many partitions in all if told.

        Clients may be Stable before they know of a topic, and share it out a moment later: ``partitions`` waits for
        that.

        Raises:
            TimeoutError: it is not, after ``timeout_s`` of real time; the text says how it is.
        """
        wanted = "Stable"
        if members is not None or partitions is not None:
            wanted += " with " + _counted(members, partitions)
        deadline = time.monotonic() + timeout_s
        pause = threading.Event()
        while True:
            state, found, owned = self._broker._call(lambda server: _counts(server, group_id))
            if state == GroupState.STABLE.value and members in (None, found) and partitions in (None, owned):
                return
            if time.monotonic() > deadline:
                told = _counted(found, None if partitions is None else owned)
                raise TimeoutError(f"group {group_id!r} is {state} with {told}, not {wanted}")
            pause.wait(CHECK_S)

    def committed(self, group_id: str) -> dict[tuple[str, int], int]:
        """Return a group's committed offsets by (topic, partition)."""

        def look(server: Server) -> dict[tuple[str, int], int]:
            stored = server.state.offsets.of_group(group_id)
            return {(topic, index): one.offset for topic, of_topic in stored.items() for index, one in of_topic.items()}

        return self._broker._call(look)

    def lag(self, group_id: str) -> dict[tuple[str, int], int]:
        """Return by (topic, partition) how many records are behind each committed offset; of topics that exist."""

        def look(server: Server) -> dict[tuple[str, int], int]:
            found: dict[tuple[str, int], int] = {}
            for name, of_topic in server.state.offsets.of_group(group_id).items():
                topic = server.state.cluster.topic(name)
                for index, one in of_topic.items():
                    partition = None if topic is None else topic.partition(index)
                    if partition is not None:
                        found[name, index] = partition.high_watermark - one.offset
            return found

        return self._broker._call(look)


def _counts(server: Server, group_id: str) -> tuple[str, int, int]:
    """State, members and partitions that they own, all of one moment."""
    group = server.state.group(group_id)
    if group is None:
        return GroupState.DEAD.value, 0, 0
    return group.state.value, len(group.members), sum(len(one.partitions) for one in _members(server, group_id))


def _counted(members: int | None, partitions: int | None) -> str:
    told = [] if members is None else [f"{members} members"]
    return " and ".join(told if partitions is None else [*told, f"{partitions} partitions"])


def _members(server: Server, group_id: str) -> tuple[GroupMember, ...]:
    from kproto.errors import DecodeError
    from kproto.records.consumer_protocol import read_assignment

    group = server.state.group(group_id)
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
