"""The results of JoinGroup and SyncGroup, and responses that are pending until there is a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from kproto_server.deferred import Completion

if TYPE_CHECKING:
    from kproto.codes import ErrorCode

ERROR_GENERATION = -1
"""The generation of a response with an error; old releases return 0."""


EARLIER_MIN = 16
"""Repeated requests of one member that are kept, at least, before those of ended connections are dropped."""


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

    __slots__ = ("_completion", "_earlier", "_purge_at", "result")

    def __init__(self) -> None:
        self.result: ResultT | None = None
        self._completion: Completion | None = None
        """Made when it is asked for: about half of the requests get their results at once."""
        self._earlier: list[PendingResponse[ResultT]] | None = None
        """Earlier pending requests of the same member: they get the same result."""
        self._purge_at = EARLIER_MIN
        """The number of these at which those of connections that have ended are dropped."""

    @property
    def completion(self) -> Completion:
        """Wakes the delayed request."""
        if self._completion is None:
            self._completion = Completion()
            if self.result is not None:
                self._completion.complete()
        return self._completion

    def supersede(self, earlier: PendingResponse[ResultT]) -> None:
        """Take over an earlier pending request of the same member, with those that it has taken over."""
        all_earlier, earlier._earlier = earlier._earlier or [], None
        all_earlier.append(earlier)
        self._purge_at = earlier._purge_at
        if len(all_earlier) >= self._purge_at:
            all_earlier = [one for one in all_earlier if not one.completion.is_abandoned]
            self._purge_at = max(EARLIER_MIN, 2 * len(all_earlier))
        self._earlier = all_earlier

    def complete(self, result: ResultT) -> None:
        """Set the result, unless there is one, and wake the delayed request."""
        if self.result is None:
            self.result = result
            if self._completion is not None:
                self._completion.complete()
        if self._earlier is not None:
            all_earlier, self._earlier = self._earlier, None
            for one in all_earlier:
                one.complete(result)


def rejected_join(error: ErrorCode, member_id: str) -> JoinResult:
    return JoinResult(int(error), member_id)
