"""Answers to JoinGroup and SyncGroup that are not known yet, and what they are once they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from kproto.codes import ErrorCode
from kproto_server.requests.deferred import Completion

if TYPE_CHECKING:
    from kproto_server.coordinator.groups import Protocols

ERROR_GENERATION = -1
"""The generation in an answer that has none; old releases say 0."""


class JoinRequest(NamedTuple):
    """Who asks to join, and with what."""

    group_id: str
    member_id: str
    """Empty: it has none yet."""
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    requires_known_member_id: bool
    """Whether a new member is first told its id, and has to come again with it (GP-14)."""
    supports_skipping_assignment: bool
    """Whether a leader that comes back understands that there is nothing to assign (GP-34)."""


class JoinedMember(NamedTuple):
    """A member as the leader is told of it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    """What a JoinGroup comes to."""

    error: int
    member_id: str
    generation: int = ERROR_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = ""
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


class SyncRequest(NamedTuple):
    """Who asks for its assignment, and, from the leader, everybody's."""

    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: dict[str, bytes]


class SyncResult(NamedTuple):
    """What a SyncGroup comes to."""

    error: int
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol_name: str | None = None


R = TypeVar("R", JoinResult, SyncResult)


class PendingResponse(Generic[R]):
    """The answer to one request, now or later."""

    __slots__ = ("_before", "completion", "result")

    def __init__(self) -> None:
        self.result: R | None = None
        self.completion = Completion()
        self._before: PendingResponse[R] | None = None

    def replaces(self, before: PendingResponse[R] | None) -> None:
        """Note the request that the same member left waiting: it gets the same answer."""
        self._before = before

    def complete(self, result: R) -> None:
        """Say what the request has come to; the first word counts."""
        if self.result is None:
            self.result = result
            self.completion.wake()
        if self._before is not None:
            self._before.complete(result)
            self._before = None


def rejected_join(error: ErrorCode, member_id: str) -> JoinResult:
    return JoinResult(int(error), member_id)
