"""The groups of a running broker and their offsets, as a test reads, changes and disturbs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import UsageError
from kproto_server.broker.block import EndsWithBlock
from kproto_server.broker.group_members import (
    GroupMember,
    client_ids,
    counts,
    described,
    kind_of,
    members_of,
    share_offsets,
    with_records,
)
from kproto_server.broker.waiting import NotYet, Wait, blocking, check_count, in_coroutine
from kproto_server.coordinator.groups import GroupState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal

    from kproto_server.broker.faults import BrokerFault
    from kproto_server.broker.group_members import GroupDescription
    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.network.server import Server


class BrokerHold(EndsWithBlock):
    """Rebalances of a group that are held. As a context manager, ``with`` or ``async with``, they are released at the
    end of the block."""

    def __init__(self, release: Callable[[], object]) -> None:
        self._release = release

    def release(self) -> None:
        """Have the rebalance go on; further ones are not held."""
        self._release()

    _end = release


class BrokerGroups:
    """The groups of a running broker. Each call runs between two requests."""

    def __init__(self, run: RunInBrokerThread) -> None:
        self._run = run

    def list(self) -> tuple[GroupDescription, ...]:
        """Return the groups, sorted by id."""
        return self._run(lambda server: tuple(sorted(map(described, server.state.coordinator.all_groups()))))

    def state(self, group_id: str) -> str:
        """Return Kafka's name of a group's state; ``"Dead"`` if the group does not exist."""

        def look(server: Server) -> str:
            group = server.state.coordinator.group(group_id)
            return (GroupState.DEAD if group is None else group.state).value

        return self._run(look)

    def members(self, group_id: str) -> tuple[GroupMember, ...]:
        """Return the members of a group with their assignments, sorted by member id."""
        return self._run(lambda server: members_of(server, group_id))

    @blocking
    def wait_stable(
        self, group_id: str, *, members: int | None = None, partitions: int | None = None, timeout_s: float = 30.0
    ) -> Wait[None]:
        """Wait until a group is Stable and has this many members, if given, with this many partitions in all, if given.

        A group may be Stable before its clients know of a topic, and rebalance a moment later; ``partitions`` waits for
        that.

        Raises:
            TimeoutError: ``timeout_s`` of real time have passed; the text describes the group.
            UsageError: ``members``, ``partitions`` or ``timeout_s`` is no number from 0 on.
        """
        for name, count in (("members", members), ("partitions", partitions)):
            if count is not None:
                check_count(count, name)
        wanted = "Stable"
        if members is not None or partitions is not None:
            wanted += " with " + _counted(members, partitions)

        def look() -> NotYet | None:
            state, found, owned = self._run(lambda server: counts(server, group_id))
            if state == GroupState.STABLE.value and members in (None, found) and partitions in (None, owned):
                return None
            seen = _counted(found, None if partitions is None else owned)
            return NotYet(f"group {group_id!r} is {state} with {seen}, not {wanted}")

        return Wait(look, timeout_s)

    @in_coroutine(wait_stable)
    def wait_stable_async(self) -> None:
        """As `wait_stable`, for a coroutine: other tasks run meanwhile."""

    def committed(self, group_id: str) -> dict[tuple[str, int], int]:
        """Return a group's committed offsets by (topic, partition)."""

        def look(server: Server) -> dict[tuple[str, int], int]:
            stored = server.state.coordinator.offsets.of_group(group_id)
            return {(topic, index): one.offset for topic, of_topic in stored.items() for index, one in of_topic.items()}

        return self._run(look)

    def start_offsets(self, group_id: str) -> dict[tuple[str, int], int]:
        """Return the start offsets of a share group by (topic, partition): all records before them are done with.

        As in Kafka, they are those of the last write: the lag counts the records behind them that are done with, too.
        """

        return self._run(lambda server: {name: offset for name, (offset, _) in share_offsets(server, group_id).items()})

    def lag(self, group_id: str) -> dict[tuple[str, int], int]:
        """Return the lag of a group in records by (topic, partition), for topics that exist.

        Of a share group it is the number of records after the start offset that no member is done with.
        """

        def look(server: Server) -> dict[tuple[str, int], int]:
            found = {name: lag for name, (_, lag) in share_offsets(server, group_id).items() if lag >= 0}
            for name, of_topic in server.state.coordinator.offsets.of_group(group_id).items():
                topic = server.state.cluster.topic(name)
                for index, one in of_topic.items():
                    partition = None if topic is None else topic.partition(index)
                    if partition is not None:
                        found[name, index] = partition.high_watermark - one.offset
            return found

        return self._run(look)

    def commit(self, group_id: str, offsets: Mapping[tuple[str, int], int], *, metadata: str = "") -> None:
        """Commit offsets by (topic, partition), as an administrator does; the group is created if it does not exist.

        Raises:
            RequestRefused: the broker refuses one of them: there is no such partition, or the group has members.
            UsageError: an offset is no number from 0 on.
        """
        from kproto_server.broker import group_changes
        from kproto_server.broker.own_requests import when_loaded

        when_loaded(self._run, lambda server: group_changes.commit(server, group_id, offsets, metadata))

    def set_start_offsets(self, group_id: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Set start offsets of a share group by (topic, partition), as an administrator does.

        The group is created if it does not exist.

        Raises:
            RequestRefused: the broker refuses them: there is no such partition, the group has members or is of another
                kind, or the release has no share groups.
            UsageError: an offset is no number from 0 on.
        """
        from kproto_server.broker import group_changes
        from kproto_server.broker.own_requests import when_loaded

        when_loaded(self._run, lambda server: group_changes.set_start_offsets(server, group_id, offsets))

    def delete(self, group_id: str) -> None:
        """Delete a group with its offsets.

        Raises:
            RequestRefused: the broker refuses it: there is no such group, or it has members.
        """
        from kproto_server.broker import group_changes
        from kproto_server.broker.own_requests import when_loaded

        when_loaded(self._run, lambda server: group_changes.delete(server, group_id))

    @blocking
    def wait_committed(
        self, group_id: str, offsets: Mapping[tuple[str, int], int], *, timeout_s: float = 30.0
    ) -> Wait[dict[tuple[str, int], int]]:
        """Wait until a group has committed these offsets by (topic, partition), or later ones; return all it has.

        Raises:
            TimeoutError: ``timeout_s`` of real time have passed; the text has what the group has committed.
            UsageError: ``timeout_s`` is no number from 0 on, there are no offsets to wait for, or the group is a share
                group, which commits none.
        """
        if not offsets:
            raise UsageError("there are no offsets to wait for")

        def look() -> dict[tuple[str, int], int] | NotYet:
            if self._run(lambda server: kind_of(server, group_id)) == "share":
                raise UsageError(f"group {group_id!r} is a share group, which commits no offsets: use wait_lag")
            found = self.committed(group_id)
            missing = {name: offset for name, offset in offsets.items() if found.get(name, -1) < offset}
            if not missing:
                return found
            seen = ", ".join(f"{topic}-{one}: {found.get((topic, one), 'none')}" for topic, one in sorted(missing))
            wanted = ", ".join(f"{topic}-{one}: {offset}" for (topic, one), offset in sorted(missing.items()))
            return NotYet(f"group {group_id!r} has committed {seen}, not {wanted}")

        return Wait(look, timeout_s)

    @in_coroutine(wait_committed)
    def wait_committed_async(self) -> None:
        """As `wait_committed`, for a coroutine: other tasks run meanwhile."""

    @blocking
    def wait_lag(
        self, group_id: str, lag: int = 0, *, topic: str | None = None, timeout_s: float = 30.0
    ) -> Wait[dict[tuple[str, int], int]]:
        """Wait until no partition of a group has a greater lag in records; return the lags.

        With ``topic``, all its partitions that have records count; without, those that the group has offsets of. As in
        Kafka, the markers of transactions count as records.

        Raises:
            TimeoutError: ``timeout_s`` of real time have passed; the text has the lags.
            UsageError: ``lag`` or ``timeout_s`` is no number from 0 on.
        """
        check_count(lag, "lag")

        def look() -> dict[tuple[str, int], int] | NotYet:
            lags = {name: one for name, one in self.lag(group_id).items() if topic in (None, name[0])}
            unread = self._run(lambda server: with_records(server, topic)) - lags.keys()
            if lags and not unread and max(lags.values()) <= lag:
                return lags
            seen = [f"{name}-{index}: {one}" for (name, index), one in sorted(lags.items()) if one > lag]
            seen += [f"{name}-{index}: no offset" for name, index in sorted(unread)]
            return NotYet(f"group {group_id!r} has the lag {', '.join(seen) or 'of no partition'}, not {lag}")

        return Wait(look, timeout_s)

    @in_coroutine(wait_lag)
    def wait_lag_async(self) -> None:
        """As `wait_lag`, for a coroutine: other tasks run meanwhile."""

    @blocking
    def wait_empty(self, group_id: str, *, timeout_s: float = 30.0) -> Wait[None]:
        """Wait until a group has no members, or does not exist.

        Raises:
            TimeoutError: ``timeout_s`` of real time have passed; the text has the members.
            UsageError: ``timeout_s`` is no number from 0 on.
        """

        def look() -> NotYet | None:
            state = self.state(group_id)
            if state in (GroupState.EMPTY.value, GroupState.DEAD.value):
                return None
            ids = self._run(lambda server: client_ids(server, group_id))
            return NotYet(f"group {group_id!r} is {state} with {len(ids)} members ({', '.join(ids)}), not Empty")

        return Wait(look, timeout_s)

    @in_coroutine(wait_empty)
    def wait_empty_async(self) -> None:
        """As `wait_empty`, for a coroutine: other tasks run meanwhile."""

    @blocking
    def wait_state(self, group_id: str, state: str, *, timeout_s: float = 30.0) -> Wait[None]:
        """Wait until a group has a state, by Kafka's name, for example PreparingRebalance.

        Raises:
            TimeoutError: ``timeout_s`` of real time have passed; the text describes the group.
            UsageError: ``timeout_s`` is no number from 0 on, or there is no such state.
        """
        names = [one.value for one in GroupState]
        if state not in names:
            raise UsageError(f"state is one of {', '.join(names)}, not {state!r}")

        def look() -> NotYet | None:
            found, members, _ = self._run(lambda server: counts(server, group_id))
            if found == state:
                return None
            return NotYet(f"group {group_id!r} is {found} with {_counted(members, None)}, not {state}")

        return Wait(look, timeout_s)

    @in_coroutine(wait_state)
    def wait_state_async(self) -> None:
        """As `wait_state`, for a coroutine: other tasks run meanwhile."""

    def hold_rebalance(self, group_id: str, at: Literal["join", "sync"] = "join") -> BrokerHold:
        """Hold the next rebalances of a classic group, which need not exist yet, until they are released.

        ``"join"``: in PreparingRebalance when all members have joined or the time to join is over, before a JoinGroup
        gets its response; ``"sync"``: in CompletingRebalance when the leader has sent its SyncGroup.

        Raises:
            UsageError: there is no such phase, or the group is of another kind: its members reconcile one by one.
        """
        from kproto_server.broker import group_changes

        self._run(lambda server: group_changes.hold(server, group_id, at))
        return BrokerHold(lambda: self.release_rebalance(group_id))

    @blocking
    def wait_held(self, group_id: str, *, members: int | None = None, timeout_s: float = 30.0) -> Wait[None]:
        """Wait until a rebalance is held, with this many members, if given: nothing but its release goes on.

        Raises:
            TimeoutError: ``timeout_s`` of real time have passed; the text describes the group.
            UsageError: ``members`` or ``timeout_s`` is no number from 0 on, or rebalances of the group are not held.
        """
        from kproto_server.broker.group_changes import is_held

        if members is not None:
            check_count(members, "members")

        def look() -> NotYet | None:
            held, (state, found, _) = self._run(lambda server: (is_held(server, group_id), counts(server, group_id)))
            if held and members in (None, found):
                return None
            wanted = "held" if members is None else f"held with {members} members"
            seen = "held" if held else state
            return NotYet(f"group {group_id!r} is {seen} with {_counted(found, None)}, not {wanted}")

        return Wait(look, timeout_s)

    @in_coroutine(wait_held)
    def wait_held_async(self) -> None:
        """As `wait_held`, for a coroutine: other tasks run meanwhile."""

    def release_rebalance(self, group_id: str) -> None:
        """Have a rebalance go on that `hold_rebalance` holds; nothing happens if none is held."""
        from kproto_server.broker import group_changes

        self._run(lambda server: group_changes.release(server, group_id))

    def force_rebalance(self, group_id: str) -> None:
        """Have all members of a group rebalance.

        The members of a classic group join again. The epoch of other groups rises, and their targets are computed
        again; members receive that with their next heartbeats.

        Raises:
            RequestRefused: there is no such group, or the disk does not take the change.
            UsageError: the group has no members.
        """
        from kproto_server.broker import group_changes

        self._run(lambda server: group_changes.force_rebalance(server, group_id))

    def expire_member(self, group_id: str, *, member_id: str | None = None, client_id: str | None = None) -> str:
        """Remove a member as if its session had expired, and return its member id.

        Raises:
            RequestRefused: there is no such group or member.
            UsageError: none or both of the ids are given, or several members have the client id.
        """
        from kproto_server.broker import group_changes

        return self._run(lambda server: group_changes.expire_member(server, group_id, member_id, client_id))

    def freeze_heartbeats(
        self, group_id: str, *, member_id: str | None = None, client_id: str | None = None
    ) -> BrokerFault:
        """Have the heartbeats of a member take no effect, until the fault rule that this returns is removed.

        The client gets responses as if all was well, and its session expires by the broker's clock. Other requests of
        it take effect; of a classic group, a commit is a heartbeat, too.

        Raises:
            RequestRefused: there is no such group or member.
            UsageError: none or both of the ids are given, or several members have the client id.
        """
        from kproto_server.broker import group_changes
        from kproto_server.broker.faults import BrokerFault

        def freeze(server: Server) -> BrokerFault:
            rule = group_changes.heartbeat_rule(server, group_id, member_id, client_id)
            return BrokerFault(self._run, server.faults.add(rule))

        return self._run(freeze)


def _counted(members: int | None, partitions: int | None) -> str:
    counts = [] if members is None else [f"{members} members"]
    return " and ".join(counts if partitions is None else [*counts, f"{partitions} partitions"])
