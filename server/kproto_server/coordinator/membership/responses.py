"""The results of JoinGroup and SyncGroup, and responses that are pending until there is a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from kproto_server.requests.deferred import Completion

if TYPE_CHECKING:
    from kproto.codes import ErrorCode

ERROR_GENERATION = -1
"""The generation of a response with an error; old releases return 0."""


class JoinedMember(NamedTuple):
    """A member in the leader's list of members."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    """The result of a JoinGroup."""

    error: int
    member_id: str
    generation: int = ERROR_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = ""
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


class SyncResult(NamedTuple):
    """The result of a SyncGroup."""

    error: int
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol_name: str | None = None


ResultT = TypeVar("ResultT", JoinResult, SyncResult)


class PendingResponse(Generic[ResultT]):
    """The response to one request, whose result may be known later."""

    __slots__ = ("_superseded", "completion", "result")

    def __init__(self) -> None:
        self.result: ResultT | None = None
        self.completion: Completion = Completion()
        self._superseded: PendingResponse[ResultT] | None = None

    def supersede(self, earlier: PendingResponse[ResultT]) -> None:
        """Take over an earlier pending request of the same member: it gets the same result."""
        self._superseded = earlier

    def complete(self, result: ResultT) -> None:
        """Set the result, unless there is one, and wake the delayed request."""
        if self.result is None:
            self.result = result
            self.completion.complete()
        if self._superseded is not None:
            self._superseded.complete(result)
            self._superseded = None


def rejected_join(error: ErrorCode, member_id: str) -> JoinResult:
    return JoinResult(int(error), member_id)
