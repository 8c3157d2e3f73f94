"""What a fault rule does to a request: functions of the request and of the broker's time, without I/O.

Theory of operation. `act` gets a `Faulty` request: what the rule does, the request, and `perform`, which has the API's
handler handle a request. It returns the result that the connection sends or waits for. Most actions change the response
that `perform` returns. It may come at once, after a delay, or after a sync of the log; `deferred.then` applies a change
to it whenever it comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kproto import registry
from kproto.codes import ErrorCode
from kproto.headers import response_frame
from kproto.message import Response
from kproto.messages.k18_api_versions import ApiVersion, ApiVersionsResponse
from kproto_server.deferred import (
    NO_RESPONSE,
    Completion,
    DelayedOperation,
    LargeResponse,
    NoResponse,
    Piece,
    Shaped,
    soon,
    then,
)
from kproto_server.faults import changes
from kproto_server.faults.items import (
    PARTITION,
    READS,
    TOPIC_ID,
    ErrorItems,
    Selection,
    empty_response,
    error_response,
    place_of,
)
from kproto_server.faults.rule import API_VERSIONS, DELAY, FIND_COORDINATOR
from kproto_server.observation.conditions import KEYS
from kproto_server.throttling.responses import throttled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kproto.message import Request
    from kproto_server.cluster.node import Node
    from kproto_server.deferred import Result
    from kproto_server.faults.checked_rule import Action
    from kproto_server.faults.rules import Circumstances, Rule

PRODUCE, FETCH, SHARE_FETCH = 0, 1, 78
KINDS_OF_HEARTBEATS = {68: "consumer", 76: "share", 88: "streams"}
NEGATIVE = 0x80
"""The sign bit of the first byte of a size."""


class Faulty(NamedTuple):
    """A request that a rule acts on."""

    rule: Rule
    selection: Selection
    request: Request
    known: Request | None
    """The request with all that it is about: an incremental Fetch does not name the partitions of its session. None:
    that is not known, and an error stands in the response itself."""
    context: Circumstances
    nodes: Mapping[int, Node]
    """The nodes of the broker; empty: rules name none."""
    perform: Callable[[Request], Result]
    """Has the handler handle a request."""
    now_ms: Callable[[], int]

    @property
    def action(self) -> Action:
        """What the rule does."""
        return self.rule.rule.action

    @property
    def reason(self) -> str:
        """Why the connection closes, for the log."""
        return f"fault rule {self.rule.number}"


def act(faulty: Faulty) -> Result:
    """Return what the connection sends or waits for instead of the handler's result."""
    action = faulty.action
    delay_ms = action.value if action.kind == DELAY else action.delay_ms
    if not delay_ms:
        return _act(faulty, None)
    if action.is_after:
        return then(
            faulty.perform(faulty.request), lambda result: _wait(faulty, delay_ms, lambda: _act(faulty, result))
        )
    return _wait(faulty, delay_ms, lambda: _act(faulty, None))


def _wait(faulty: Faulty, duration_ms: int, respond: Callable[[], Result]) -> DelayedOperation:
    return DelayedOperation(faulty.now_ms() + duration_ms, respond)


def _soon(faulty: Faulty, result: Result) -> DelayedOperation:
    return soon(result, faulty.now_ms())


def _act(faulty: Faulty, performed: Result | None) -> Result:
    """Act now; ``performed``: the result of the request if it has taken effect, else None."""
    action = faulty.action

    def perform() -> Result:
        return faulty.perform(faulty.request) if performed is None else performed

    if action.kind == DELAY:
        return perform()
    if action.kind == "freeze":
        return _frozen(faulty) or perform()
    if action.kind == "error":
        return _error(faulty, performed)
    if action.kind in ("no_response", "close", "reset"):
        if action.is_after:
            return then(perform(), lambda _: _soon(faulty, _end(faulty)))
        return _soon(faulty, _end(faulty))
    return then(perform(), lambda result: _changed(faulty, result))


def _frozen(faulty: Faulty) -> Response | None:
    """Return the response to a heartbeat that takes no effect; None: the member joins or leaves with it."""
    request: Any = faulty.request
    response: Any = registry.response_class(faulty.context.api_key)
    kind = KINDS_OF_HEARTBEATS.get(faulty.context.api_key)
    if kind is None:
        return response(throttle_time_ms=0, error_code=0)  # type: ignore[no-any-return]  # of the API's class
    if request.member_epoch <= 0:
        return None
    fields: dict[str, Any] = (
        {"status": None, "task_offset_interval_ms": 0, "endpoint_information_epoch": request.endpoint_information_epoch}
        if kind == "streams"
        else {}
    )
    interval_ms = faulty.context.settings.current.int(f"group.{kind}.heartbeat.interval.ms")
    found: Response = response(
        throttle_time_ms=0,
        error_code=0,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        heartbeat_interval_ms=interval_ms,
        **fields,
    )
    return found


def _end(faulty: Faulty) -> Result:
    if faulty.action.kind == "no_response":
        return DelayedOperation(None, lambda: NO_RESPONSE, Completion())
    return Piece(b"", close_reason=faulty.reason, resets=faulty.action.kind == "reset")


# Errors.


def _error(faulty: Faulty, performed: Result | None) -> Result:
    action, context = faulty.action, faulty.context
    key, version = context.api_key, context.api_version
    place = "response" if faulty.known is None else action.place
    target = place_of(action.value, faulty.selection, place, key, version)
    is_after = action.is_after
    if performed is None and (is_after or target is None):
        performed = faulty.perform(faulty.request)
    if key == PRODUCE and not faulty.request.acks:  # type: ignore[attr-defined]  # a ProduceRequest
        return _soon(faulty, Piece(b"", close_reason=faulty.reason))  # how a broker reports an error without a response
    if key == API_VERSIONS and action.value == ErrorCode.UNSUPPORTED_VERSION:
        return _downgrade(faulty) if performed is None else then(performed, lambda _: _downgrade(faulty))
    if target is None:  # this version has no place for the error
        assert performed is not None
        return performed
    if isinstance(target, str):
        failed = error_response(action.value, faulty.request, key, version)
        return failed if performed is None else then(performed, lambda result: _instead(result, failed))
    items = ErrorItems(action.value, faulty.selection, target, key, version)
    assert faulty.known is not None, "the error stands in items"
    additions = items.made_from(faulty.known)
    if performed is None and key in READS:
        performed = faulty.perform(_read(faulty.request, items))
    elif performed is None:
        rest = items.without(faulty.request)
        performed = empty_response(key, version) if rest is None else faulty.perform(rest)
    return then(performed, lambda result: _merged(result, items, additions))


def _read(request: Any, items: ErrorItems) -> Request:
    """Return a request of `READS` that does not wait for records: brokers do not wait if there is an error.

    A member of a share group acquires no records with it, and acknowledges none of the selected partitions.
    """
    if items.api_key == FETCH:
        return request.replace(max_wait_ms=0)  # type: ignore[no-any-return]  # of its API's class
    if items.api_key != SHARE_FETCH:
        return request  # type: ignore[no-any-return]
    has = items.selection.has

    def unacknowledged(topic: Any) -> Any:
        if not has({TOPIC_ID: topic.topic_id}):
            return topic
        partitions = (
            one.replace(acknowledgement_batches=()) if has({PARTITION: one.partition_index}) else one
            for one in topic.partitions
        )
        return topic.replace(partitions=tuple(partitions))

    topics = tuple(map(unacknowledged, request.topics))
    return request.replace(max_wait_ms=0, max_records=0, max_bytes=0, topics=topics)  # type: ignore[no-any-return]


def _downgrade(faulty: Faulty) -> Result:
    """Return the ApiVersions response of a broker that does not serve the version: in v0, which every client reads,
    with the versions of ApiVersions that the client may use instead (KIP-511)."""
    context = faulty.context
    low, high = context.kafka_version.api_versions[API_VERSIONS]
    own = ApiVersion(api_key=API_VERSIONS, min_version=low, max_version=max(low, min(high, context.api_version - 1)))
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(own,))

    def in_v0(frame: bytes) -> Piece:
        return Piece(response_frame(int.from_bytes(frame[4:8], "big", signed=True), 0, response.encode(0)))

    return _soon(faulty, Shaped(response, in_v0))


def _instead(result: Result, failed: Response) -> Result:
    return result if isinstance(result, NoResponse) else failed


def _merged(result: Result, items: ErrorItems, additions: tuple[Any, ...]) -> Result:
    response = _response_in(result)
    return result if response is None else items.merged(response, additions)


def _response_in(result: Result) -> Response | None:
    """Return a response; None: there is none (Produce with acks=0)."""
    if isinstance(result, LargeResponse):
        return result.response
    return result if isinstance(result, Response) else None


# Changes of a response.


def _changed(faulty: Faulty, result: Result) -> Result:
    response = _response_in(result)
    if response is None:
        return result
    action = faulty.action
    match action.kind:
        case "throttle_ms":
            return _throttled(faulty, response, action.value)
        case "truncate_bytes":
            return _soon(faulty, Shaped(response, lambda frame: _truncated(faulty, frame)))
        case "chunk_bytes":
            return _soon(faulty, Shaped(response, lambda frame: _chunk(faulty, frame, 0)))
        case "corrupt" if action.value == "length":
            return _soon(faulty, Shaped(response, _with_negative_size))
        case "corrupt":
            return changes.with_wrong_checksums(response)  # type: ignore[no-any-return]  # of the response's class
        case "unknown_tags":
            is_flexible = response._flexible.covers(faulty.context.api_version)
            return changes.with_unknown_tags(response) if is_flexible else response
        case "magic":
            return changes.with_magic(response, action.value)  # type: ignore[no-any-return]
        case "empty" | "null":
            version, is_null = faulty.context.api_version, action.kind == "null"
            return changes.with_emptied(response, action.value, version, is_null=is_null)  # type: ignore[no-any-return]
        case "max_versions":
            by_key = {KEYS[name]: version for name, version in action.value.items()}
            return changes.with_max_versions(response, by_key)  # type: ignore[no-any-return]
    return _redirected(faulty, response)


def _throttled(faulty: Faulty, response: Response, throttle_ms: int) -> Result:
    return throttled(
        changes.throttled(response, throttle_ms), throttle_ms, faulty.now_ms(), faulty.context.kafka_version
    )


def _truncated(faulty: Faulty, frame: bytes) -> Piece:
    return Piece(frame[: faulty.action.value], close_reason=faulty.reason)


def _chunk(faulty: Faulty, frame: bytes, start: int) -> Piece:
    end, interval_ms = start + faulty.action.value, faulty.action.chunk_interval_ms
    chunk = frame[start:end]
    return Piece(chunk, _wait(faulty, interval_ms, lambda: _chunk(faulty, frame, end)) if end < len(frame) else None)


def _with_negative_size(frame: bytes) -> Piece:
    return Piece(bytes([frame[0] | NEGATIVE]) + frame[1:])


def _redirected(faulty: Faulty, response: Any) -> Response:
    """Return a response with other leaders or coordinators: former ones, or the node that the rule names."""
    action, context, former = faulty.action, faulty.context, faulty.rule.leaders
    listener = context.connection.listener
    nodes = faulty.nodes
    named = None if action.kind == "stale" else nodes[action.value]

    def node_of(key: str, key_type: int) -> Node | None:
        return named or nodes.get(former.coordinator(key, key_type))  # type: ignore[arg-type]  # None is no node id

    def leader_of(topic: str, partition: int) -> tuple[int, int] | None:
        return former.of.get((topic, partition)) if named is None else (named.node_id, -1)

    def is_about(topic: str, partition: int) -> bool:
        return faulty.selection.has({"name": topic, "partition": partition})

    if context.api_key == FIND_COORDINATOR:
        version = context.api_version
        return changes.with_coordinators(response, faulty.request, version, listener, node_of)  # type: ignore[no-any-return]
    changed = changes.with_leaders(response, is_about, leader_of)
    return changes.with_nodes(changed, former.nodes if named is None else (named,), listener)  # type: ignore[no-any-return]
