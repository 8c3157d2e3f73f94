"""Checks of the rights that a request needs, from which `table` makes those of each API.

A check gets a request and what follows it: further checks, then the API's handler. It returns an error, or the result
of what follows, perhaps for a part of the request, with errors for the other part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kproto import registry
from kproto.codes import ErrorCode
from kproto.declaration import fields_of
from kproto.messages import APIS
from kproto_server.deferred import (
    CloseConnection,
    DeferredResponse,
    DelayedOperation,
    LargeResponse,
    NoResponse,
    Piece,
    Shaped,
    in_slices,
    then,
)
from kproto_server.faults.items import (
    TOPIC,
    TOPIC_ID,
    ErrorItems,
    empty_response,
    error_response,
    has_field,
    level_of,
    place_of,
)
from kproto_server.handlers._controller import not_controller
from kproto_server.handlers._error_responses import ITSELF, ErrorResponse, Items, build
from kproto_server.releases.release import VersionBehavior
from kproto_server.security.acls import Operation

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Mapping

    from kproto_server.authorization.rights import Rights
    from kproto_server.deferred import Result
    from kproto_server.requests.context import RequestContext


class Asked(NamedTuple):
    """A request, with what its checks need."""

    request: Any
    context: RequestContext
    rights: Rights

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic with an id; None: there is none."""
        topic = self.context.cluster.topic_by_id(topic_id)
        return None if topic is None else topic.name

    def has_topic(self, operation: Operation, topic: Any, field: str = "name") -> bool:
        """Return whether the client may do an operation on the topic of a request's item.

        Unknown ids are left to the handler, which returns UNKNOWN_TOPIC_ID.
        """
        name = getattr(topic, field, None) or self.topic_name(getattr(topic, "topic_id", b""))
        return name is None or self.rights.on_topic(operation, name)


Item = TypeVar("Item")
Perform = Callable[[Any], Any]
"""What follows a check: given the request, returns a handler's result."""
Check = Callable[[Asked, Perform], Any]


def changed(result: Any, change: Callable[[Any], Any]) -> Any:
    """Return a handler's result whose response is changed, now or when it is made."""
    if isinstance(result, DelayedOperation):
        return result._replace(respond=lambda: changed(result.respond(), change))
    if isinstance(result, DeferredResponse):
        respond = result._respond
        result._respond = lambda: changed(respond(), change)
        return result
    if isinstance(result, LargeResponse):
        return LargeResponse(change(result.response), result.error_codes)
    if isinstance(result, (NoResponse, Piece, Shaped, bytes, bytearray)):
        return result
    return change(result)


SLICE_ELEMENTS = 2000
"""Elements of a large response that are tested at once: about 10 ms."""


def changed_in_slices(
    result: Any,
    change: Callable[[Any], Any],
    slices: Callable[[LargeResponse], Generator[None, None, LargeResponse]],
    now_ms: int,
) -> Any:
    """As `changed`; ``slices`` changes a large response."""
    if isinstance(result, DelayedOperation):
        return result._replace(respond=lambda: changed_in_slices(result.respond(), change, slices, now_ms))
    if isinstance(result, LargeResponse):
        return in_slices(slices(result), now_ms)
    return changed(result, change)


def filtered(result: Any, array: str, test: Callable[[Any], bool], now_ms: int) -> Any:
    """Return a handler's result whose response has some elements of an array; a large one is filtered in slices."""
    return changed_in_slices(
        result,
        lambda response: response.replace(**{array: tuple(filter(test, getattr(response, array)))}),
        lambda large: _filtered(large, array, test),
        now_ms,
    )


def _filtered(result: LargeResponse, array: str, test: Callable[[Any], bool]) -> Generator[None, None, LargeResponse]:
    kept = []
    for number, one in enumerate(getattr(result.response, array), start=1):
        if test(one):
            kept.append(one)
        if number % SLICE_ELEMENTS == 0:
            yield
    return result._replace(response=result.response.replace(**{array: tuple(kept)}))


def parted(items: Iterable[Item], is_allowed: Callable[[Item], bool]) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Return the items of a request that are allowed, and the others, both in their order."""
    allowed: list[Item] = []
    denied: list[Item] = []
    for item in items:
        (allowed if is_allowed(item) else denied).append(item)
    return tuple(allowed), tuple(denied)


class ClusterRightsBehavior(VersionBehavior):
    """The error messages of requests that need rights on the cluster (measured on 2.0.1, 2.7.2, 2.8.2 and 4.4.0)."""

    def message(self, api_key: int, operation: Operation) -> str | None:
        """Return the error message for a client that may not do an operation.

        DEVIATION: Kafka's text has the request as Java prints it.
        """
        name = APIS[api_key]
        if self.is_kraft and api_key in CONTROLLERS:
            return f"Request {name} needs {operation.name} permission."
        if api_key in WITH_REQUEST:
            return f"Request {name} is not authorized."
        without = WITHOUT_MESSAGE if self.is_kraft else WITHOUT_MESSAGE_BEFORE_KRAFT
        is_without = api_key in without or (api_key == ALTER_CLIENT_QUOTAS and not self.at_least(2, 8))
        return None if is_without else KAFKAS


CONTROLLERS = frozenset({43, 45, 46, 51, 57, 64, 80, 81})
"""The API keys of requests that KRaft's controller authorizes."""
WITH_REQUEST = frozenset({29, 30, 31, 45, 46})
"""The API keys of requests that Kafka quotes."""
ALTER_CLIENT_QUOTAS = 49
WITHOUT_MESSAGE = frozenset({48})
WITHOUT_MESSAGE_BEFORE_KRAFT = frozenset({43, 48, 51})


class Everything:
    """Selects all items of a request."""

    def has(self, about: Mapping[str, Any]) -> bool:
        """Return True."""
        return True


class DeniedTopics:
    """Selects the items of topics on which the client may not do an operation."""

    def __init__(self, asked: Asked, operation: Operation, left: Collection[str] = ()) -> None:
        """``left``: names of topics that the handler refuses for another reason, which a broker looks for first."""
        self._left = left
        self._rights = asked.rights
        self._cluster = asked.context.cluster
        self._operation = operation

    def has(self, about: Mapping[str, Any]) -> bool:
        """Return whether an item is about such a topic; one that is about no topic may have one within it."""
        name = about.get(TOPIC)
        if name is None and TOPIC_ID in about:
            topic = self._cluster.topic_by_id(about[TOPIC_ID])
            name = None if topic is None else topic.name
        if name is None:
            return TOPIC_ID not in about
        return name not in self._left and not self._rights.on_topic(self._operation, name)


EVERYTHING = Everything()


KAFKAS = ""
"""As an error message: Kafka's for the error."""
PLAIN_SINCE = 68
"""The first API key whose response to a refused request has nothing beside the error: fields have their defaults."""
STATES = Items(
    "results", "topics", {"topic_id": "topic_id"}, Items("partitions", "partitions", {"partition": "partition"})
)
RESULTS: dict[int, tuple[Items, ...]] = {
    34: (
        Items(
            "results",
            "dirs.topics",
            {"topic_name": "name"},
            Items("partitions", "partitions", {"partition_index": ITSELF}),
        ),
    ),
    43: (
        Items(
            "replica_election_results",
            "topic_partitions",
            {"topic": "topic"},
            Items("partition_result", "partitions", {"partition_id": ITSELF}),
        ),
    ),
    45: (
        Items(
            "responses",
            "topics",
            {"name": "name"},
            Items("partitions", "partitions", {"partition_index": "partition_index"}),
        ),
    ),
    49: (
        Items(
            "entries",
            "entries",
            {},
            Items("entity", "entity", {"entity_type": "entity_type", "entity_name": "entity_name"}),
        ),
    ),
    51: (Items("results", "deletions", {"user": "name"}), Items("results", "upsertions", {"user": "name"})),
    **dict.fromkeys(range(83, 88), (STATES,)),
}
"""The items of responses whose fields beside the error have their defaults, by API key."""


def refused(asked: Asked, error: ErrorCode, message: str | None = KAFKAS) -> Any:
    """Return the response to a request all of which is refused; ``message``: where the response has one."""
    key, version = asked.context.api_key, asked.context.api_version
    text = error.message if message == KAFKAS else message
    if key >= PLAIN_SINCE or key in RESULTS:
        values = {"error_code": error, "error_message": text}
        response: Any = empty_response(key, version)
        if key in RESULTS:
            described = ErrorResponse(error, items=RESULTS[key], values={"error_message": text})
            response = build(described, asked.request, type(response), version)
        if key == 88:
            response = response.replace(status=())
        given = {name: value for name, value in values.items() if has_field(key, version, name)}
        return response.replace(**given)
    place = place_of(error, _ANY, "response", key, version)
    if place is not None:
        response = error_response(error, asked.request, key, version)
        return response.replace(error_message=text) if hasattr(response, "error_message") else response
    level = place_of(error, _ANY, "items", key, version)
    if level is None or isinstance(level, str):
        return empty_response(key, version)
    return empty_response(key, version).replace(
        **_outermost(ErrorItems(error, EVERYTHING, level, key, version, message), asked.request)
    )


def _outermost(items: ErrorItems, request: Any) -> dict[str, Any]:
    level = level_of(items.api_key, items.version)
    assert level is not None, "an API whose items get errors"
    return {level.array: items.made_from(request)}


def on_cluster(*operations: Operation) -> Check:
    """Return a check for any of these operations on the cluster."""

    def check(asked: Asked, perform: Perform) -> Any:
        if any(asked.rights.on_cluster(operation) for operation in operations):
            return perform(asked.request)
        message = asked.context.behavior(ClusterRightsBehavior).message(asked.context.api_key, operations[0])
        return refused(asked, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, message)

    return check


def on_controller(check: Check) -> Check:
    """Return a check that ZooKeeper brokers make if they are the controller: the others refuse all of the request."""

    def on_this(asked: Asked, perform: Perform) -> Any:
        return perform(asked.request) if not_controller(asked.context) else check(asked, perform)

    return on_this


def on_group(operation: Operation, message: str | None = KAFKAS) -> Check:
    """Return a check for an operation on the request's group."""

    def check(asked: Asked, perform: Perform) -> Any:
        if asked.rights.on_group(operation, asked.request.group_id):
            return perform(asked.request)
        return refused(asked, ErrorCode.GROUP_AUTHORIZATION_FAILED, message)

    return check


def on_transactional_id(operation: Operation) -> Check:
    """Return a check for an operation on the request's transactional id."""

    def check(asked: Asked, perform: Perform) -> Any:
        if asked.rights.on_transactional_id(operation, asked.request.transactional_id):
            return perform(asked.request)
        return refused(asked, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    return check


def on_topics(operation: Operation, message: str | None = KAFKAS, left: Collection[str] = ()) -> Check:
    """Return a check for an operation on each topic of a request: the others have errors in the response.

    ``left``: names of topics that the handler refuses for another reason, which a broker looks for first.
    """

    def check(asked: Asked, perform: Perform) -> Any:
        key, version = asked.context.api_key, asked.context.api_version
        error, denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED, DeniedTopics(asked, operation, left)
        level = place_of(error, _ANY, "items", key, version)
        assert level is not None, "an API with topics"
        assert not isinstance(level, str), "the items have errors"
        items = ErrorItems(error, denied, level, key, version, message)
        made = items.made_from(asked.request)
        if not made:
            return perform(asked.request)
        rest = items.without(asked.request)
        if rest is None:
            return empty_response(key, version).replace(**_outermost(items, asked.request))
        return changed(perform(rest), lambda response: _merged(items, response, made))

    return check


def _merged(items: ErrorItems, response: Any, made: Any) -> Any:
    return response if getattr(response, "error_code", 0) else items.merged(response, made)


def closes_without_acks(asked: Asked, perform: Perform) -> Any:
    """Close the connection if a Produce with ``acks=0`` is refused or has denied topics, which no response can say.

    Raises:
        CloseConnection: it is.
    """
    if asked.request.acks != 0:
        return perform(asked.request)
    has_denied = not all(asked.has_topic(Operation.WRITE, topic) for topic in asked.request.topic_data)

    def check_end(result: Result) -> Result:
        if has_denied or not isinstance(result, NoResponse):
            raise CloseConnection("Produce with acks=0 failed, and it has no response for the error")
        return result

    return then(perform(asked.request), check_end)


class _AnyTopic(NamedTuple):
    """What `place_of` asks of a selection."""

    topic: str | None = None
    partition: int | None = None


_ANY: Any = _AnyTopic()


def element_struct(api_key: int, array: str) -> Any:
    """Return the struct of the elements of an array of a response."""
    field = next(one for one in fields_of(registry.response_class(api_key)) if one.name == array)
    assert field.type.element is not None
    return field.type.element.struct
