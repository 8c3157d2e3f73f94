"""Share sessions: which partitions a member of a share group fetches from a broker, and in which order of requests.

Theory of operation. As in fetch sessions, a request with epoch 0 opens a session with its partitions, and later ones
name only what changes: partitions to add, and to forget. Their epochs are 1, 2, ...; ShareAcknowledge counts too. Epoch
-1 closes the session. A member has one session on each broker; a new one replaces it. A session ends with its
connection: what the member has acquired is released then. A group without a session on a broker, after the end of a
connection that had one, has no share partition in use there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
EPOCH_MAX = 2**31 - 1
SESSION_PARTITIONS_MAX = 5000
"""Partitions of one session. What is not done in slices takes 60 ms for as many, and the end of the connection
releases all of them at once."""
PARTITIONS_MAX = 200_000
"""Partitions of all sessions of a broker; Kafka limits the number of sessions only. One takes about 500 bytes."""


class TopicIdPartition(NamedTuple):
    """A partition of a topic that is given by its id."""

    topic_id: bytes
    partition: int


class ShareSession:
    """The partitions that one member fetches from one broker."""

    __slots__ = ("connection", "epoch", "group_id", "known_topics", "member_id", "partitions")

    def __init__(
        self, group_id: str, member_id: str, partitions: Iterable[TopicIdPartition], connection: object
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.connection: object = connection
        """The connection whose end ends the session."""
        self.epoch: int = 1
        """The epoch that the next request must have."""
        self.partitions: dict[TopicIdPartition, bool] = dict.fromkeys(partitions, False)
        """In the order in which they are read; whether the next response must have the partition."""
        self.known_topics: set[bytes] = set()
        """The ids of topics that existed when the session got them."""

    def update(self, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]) -> None:
        """Apply the changes of a request."""
        for partition in added:
            self.partitions.setdefault(partition, True)
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def next_epoch(self) -> None:
        self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1

    def must_return(self, partition: TopicIdPartition, *, has_records: bool, is_error: bool) -> bool:
        """Return whether the response must have a partition; one with records is read last the next time."""
        must = self.partitions.get(partition)
        if must is None:
            return True  # a later request has removed it
        if has_records:
            del self.partitions[partition]
        self.partitions[partition] = is_error
        return must or has_records or is_error


class ShareSessions:
    """The share sessions of one broker."""

    def __init__(self, count_max: int) -> None:
        """``count_max``: `group.share.max.share.sessions`."""
        self._count_max = count_max
        self._by_member: dict[tuple[str, str], ShareSession] = {}
        self._groups: dict[object, set[str]] = {}
        """The groups whose sessions a connection has opened."""

    def __len__(self) -> int:
        return len(self._by_member)

    def get(self, group_id: str, member_id: str) -> ShareSession | None:
        return self._by_member.get((group_id, member_id))

    def open(
        self, group_id: str, member_id: str, partitions: Iterable[TopicIdPartition], connection: object
    ) -> ShareSession | ErrorCode:
        """Return a new session, which replaces the member's other one, or an error if there are too many."""
        self.close(group_id, member_id)
        if len(self._by_member) >= self._count_max:
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        session = ShareSession(group_id, member_id, partitions, connection)
        if not self._has_room(len(session.partitions), len(session.partitions)):
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        self._by_member[group_id, member_id] = session
        self._groups.setdefault(connection, set()).add(group_id)
        return session

    def update(
        self, session: ShareSession, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]
    ) -> bool:
        """Apply the changes of a request; return whether there is room for them. Otherwise nothing changes."""
        new = set(added) - session.partitions.keys()
        if new and not self._has_room(len(session.partitions) + len(new), len(new)):
            return False
        session.update(added, forgotten)
        return True

    def _has_room(self, count: int, new_count: int) -> bool:
        """Return whether a session may have a number of partitions, of which some are new."""
        if count > SESSION_PARTITIONS_MAX:
            return False
        return sum(len(session.partitions) for session in self._by_member.values()) + new_count <= PARTITIONS_MAX

    def resume(self, group_id: str, member_id: str, epoch: int) -> ShareSession | ErrorCode:
        """Return the session of a later request, or the error that makes the member open a new one."""
        session = self.get(group_id, member_id)
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch not in (session.epoch, FINAL_EPOCH):
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        return session

    def close(self, group_id: str, member_id: str) -> ShareSession | None:
        """Remove a session and return it."""
        return self._by_member.pop((group_id, member_id), None)

    def end_connection(self, connection: object) -> tuple[list[ShareSession], set[str]]:
        """Return the open sessions of a connection, which has ended, and the groups of all that it has opened."""
        groups = self._groups.pop(connection, None)
        if groups is None:
            return [], set()
        return [session for session in self._by_member.values() if session.connection is connection], groups

    def without_sessions(self, group_ids: Iterable[str]) -> set[str]:
        """Return those of some groups that have no session."""
        return set(group_ids).difference(group_id for group_id, _ in self._by_member)
