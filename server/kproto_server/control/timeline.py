"""The timeline of groups: rebalances and commits, as the kept requests show them.

Theory of operation. Nothing is recorded for it. A member takes part in a rebalance from its JoinGroup to the response
of its SyncGroup; with KIP-848 and its successors, a heartbeat whose response has another epoch shows one. Commits of
one member that follow each other closely are one event with a count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.errors import ProtocolError
from kproto_server.control.results import Result, error_name
from kproto_server.control.schema import INTEGER, STRING, a_list, an_object
from kproto_server.observation.logged import LoggedRequest, NotKept
from kproto_server.observation.named import names_in

if TYPE_CHECKING:
    from collections.abc import Iterable

JOIN, SYNC, LEAVE, EPOCH, COMMIT = "join", "sync", "leave", "epoch", "commit"
KINDS = {8: COMMIT, 11: JOIN, 13: LEAVE, 14: SYNC, 28: COMMIT, 68: EPOCH, 76: EPOCH, 88: EPOCH}
"""By API key."""
COMMITS_WITHIN_MS = 100
"""Commits of one member within this time are one event."""


class TimelineEvent(NamedTuple):
    """What one member of a group did."""

    number: int
    """The number of the request, of several the first one."""
    kind: str
    group_id: str
    member_id: str
    """Empty: a commit without a group, or the first JoinGroup of a member."""
    client_id: str
    time_ms: int
    until_ms: int | None
    """The time of the response; None: there is none yet."""
    generation: int
    """The generation or epoch of the response, or of the request if the response has none; -1: none."""
    request_count: int
    error: str
    """The first error in the response; empty: none."""


def is_of_group(frame: bytes) -> bool:
    """Return whether the request in a frame may be on the timeline."""
    return int.from_bytes(frame[:2], "big") in KINDS


def events_of(requests: Iterable[LoggedRequest]) -> list[TimelineEvent]:
    """Return the events of requests, in their order."""
    found: list[TimelineEvent] = []
    latest_commit: dict[tuple[str, str, str], int] = {}
    for request in requests:
        event = _event(request)
        if event is None:
            continue
        key = event.group_id, event.member_id or event.client_id, event.error
        index = latest_commit.get(key)
        if event.kind == COMMIT:
            if index is not None and event.time_ms - found[index].time_ms < COMMITS_WITHIN_MS:
                found[index] = found[index]._replace(
                    until_ms=event.until_ms, request_count=found[index].request_count + 1
                )
                continue
            latest_commit[key] = len(found)
        found.append(event)
    return found


def _event(logged: LoggedRequest) -> TimelineEvent | None:
    kind = KINDS.get(logged.api_key)
    if kind is None:
        return None
    try:
        request: Any = logged.request
        response: Any = logged.response
    except (ProtocolError, NotKept):
        return None
    if kind == EPOCH and request.member_epoch < 0:
        kind = LEAVE
    generation = _generation(kind, request, response)
    if generation is None:
        return None
    codes = logged.error_codes
    member_id = getattr(request, "member_id", "") or getattr(response, "member_id", "") or ""
    if kind == LEAVE and not member_id:
        member_id = ", ".join(names_in(request).members)
    return TimelineEvent(
        logged.number,
        kind,
        request.group_id,
        member_id,
        logged.client_id,
        logged.time_ms,
        logged.responded_ms,
        generation,
        1,
        error_name(codes[0]) if codes else "",
    )


def _generation(kind: str, request: Any, response: Any) -> int | None:
    """Return the generation or epoch of an event; None: a heartbeat that changes nothing."""
    if kind == EPOCH:
        epoch: int = request.member_epoch if response is None else response.member_epoch
        has_changed = response is not None and (request.member_epoch != epoch or response.error_code)
        return epoch if has_changed else None
    if kind == JOIN:
        return -1 if response is None else int(response.generation_id)
    return int(getattr(request, "generation_id", getattr(request, "generation_id_or_member_epoch", -1)))


_EVENT = an_object(
    {
        **dict.fromkeys(("number", "time_ms", "generation", "request_count"), INTEGER),
        **dict.fromkeys(("kind", "group_id", "member_id", "client_id", "error"), STRING),
        "until_ms": {"type": ["integer", "null"]},
    }
)
TIMELINE = Result(
    "rebalances and commits, oldest first",
    an_object({"events": a_list(_EVENT)}),
    lambda events: {"events": [one._asdict() for one in events]},
)
