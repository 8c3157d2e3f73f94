"""Two extensions of OffsetCommit that no real broker has, off by default: forwarded commits and conditional commits.

Forwarded commits: a node that does not coordinate the group has the node handle the commit that does. A real broker
responds NOT_COORDINATOR.

Conditional commits: a partition of the request may name the offset that the client expects (tagged field
`EXPECTED_OFFSET_TAG`, an int64, from version 8 on; -1: no offset is committed). If any partition has another one, the
commit changes nothing: such partitions get INVALID_REQUEST, which no client repeats, all others
OPERATION_NOT_ATTEMPTED. An offset counts from the moment at which it is appended to the log, so that of two commits
with the same expectation one succeeds. Brokers without the extension ignore the field, so ApiVersions has the feature
`FEATURE` while it is on.

Both replace the handlers in the endpoints of the dispatcher. A broker without them has none of this code.
"""

from __future__ import annotations

from dataclasses import replace
from struct import Struct
from typing import TYPE_CHECKING, Any

from kproto.codes import ErrorCode
from kproto.messages.k08_offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kproto.messages.k18_api_versions import SupportedFeatureKey
from kproto_server.coordinator.commit import commit_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.messages.k08_offset_commit import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )
    from kproto_server.cluster.cluster import Node
    from kproto_server.connection.dispatcher import Dispatcher
    from kproto_server.requests.context import RequestContext
    from kproto_server.requests.endpoint import Endpoint

    Handler = Callable[[Any, RequestContext], Any]

OFFSET_COMMIT, API_VERSIONS = 8, 18
EXPECTED_OFFSET_TAG = 10_000
FEATURE = "conditional.commits.version"
FEATURES_SINCE = 3
"""The version of ApiVersions that has features."""
NO_OFFSET = -1
INT64 = Struct(">q")


def extend(dispatcher: Dispatcher, *, forwards: bool, compares: bool) -> None:
    """Have commits be conditional, be forwarded, or both; before the first request."""
    if compares:
        _compare_offsets(dispatcher)
    if forwards:
        _forward_commits(dispatcher)


def _forward_commits(dispatcher: Dispatcher) -> None:
    """Have each node accept commits of all groups."""

    def wrap(handle: Handler) -> Handler:
        return lambda request, context: handle(request, _at_coordinator(request.group_id, context))

    _replace_handlers(dispatcher, OFFSET_COMMIT, wrap)


def _compare_offsets(dispatcher: Dispatcher) -> None:
    """Have commits compare offsets with those that clients expect."""

    def conditional(handle: Handler) -> Handler:
        return lambda request, context: _refusal(request, context) or handle(request, context)

    def announcing(handle: Handler) -> Handler:
        def announce(request: Any, context: RequestContext) -> Any:
            response = handle(request, context)
            if response.error_code or context.api_version < FEATURES_SINCE:
                return response
            own = SupportedFeatureKey(name=FEATURE, min_version=1, max_version=1)
            return response.replace(supported_features=(*response.supported_features, own))

        return announce

    _replace_handlers(dispatcher, OFFSET_COMMIT, conditional)
    _replace_handlers(dispatcher, API_VERSIONS, announcing)


def _replace_handlers(dispatcher: Dispatcher, api_key: int, wrap: Callable[[Handler], Handler]) -> None:
    """Replace the handlers of an API; the commit cache, which does not ask them, learns nothing.

    An endpoint has another handler while clients have quotas, so it is asked for it with each request.
    """
    kafka_version = dispatcher.state.kafka_version
    low, high = kafka_version.api_versions[api_key]
    for version in range(low, high + 1):
        endpoint = dispatcher.endpoints[api_key, version]
        dispatcher.endpoints[api_key, version] = replace(endpoint, handle=wrap(_handler_of(endpoint)), is_learned=False)


def _handler_of(endpoint: Endpoint) -> Handler:
    return lambda request, context: endpoint.handle(request, context)


def _at_coordinator(group_id: str, context: RequestContext) -> RequestContext:
    """Return the context of a request as it is at the coordinator of a group, if the group has one."""
    node: Node | None = context.cluster.coordinator_of(group_id)
    return context if node is None or not node.alive else replace(context, node=node)


def _refusal(request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse | None:
    """Return the response to a commit whose expectations are not met; None: they are, or it has none."""
    if not any(_expected(one) is not None for topic in request.topics for one in topic.partitions):
        return None
    coordinator, group_id = context.coordinator, request.group_id
    if coordinator.error_at(context.node, group_id):
        return None
    group = coordinator.group(group_id)
    if commit_error(group, request, context.api_version, coordinator.behavior, coordinator.topics):
        return None  # members that are fenced get this error
    current = _current_offsets(request.group_id, context)

    def is_met(topic: OffsetCommitRequestTopic, one: OffsetCommitRequestPartition) -> bool:
        known = context.cluster.topic_by_id(topic.topic_id)
        key = topic.name if known is None else known.name, one.partition_index
        return _expected(one) in (None, current.get(key, NO_OFFSET))

    met = [[is_met(topic, one) for one in topic.partitions] for topic in request.topics]
    if all(all(of_topic) for of_topic in met):
        return None
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=one.partition_index,
                        error_code=ErrorCode.OPERATION_NOT_ATTEMPTED if is_met else ErrorCode.INVALID_REQUEST,
                    )
                    for one, is_met in zip(topic.partitions, of_topic, strict=True)
                ),
            )
            for topic, of_topic in zip(request.topics, met, strict=True)
        )
    )


def _expected(partition: OffsetCommitRequestPartition) -> int | None:
    """Return the offset that the client expects; None: any."""
    for field in partition.unknown_tagged_fields:
        if field.tag == EXPECTED_OFFSET_TAG and len(field.data) == INT64.size:
            return int(INT64.unpack(field.data)[0])
    return None


def _current_offsets(group_id: str, context: RequestContext) -> dict[tuple[str, int], int]:
    """Return the offsets of a group, with those that the log has not settled yet."""
    coordinator = context.coordinator
    found = {
        (topic, index): one.offset
        for topic, of_topic in coordinator.offsets.of_group(group_id).items()
        for index, one in of_topic.items()
    }
    for change in coordinator.log.in_flight():
        if change.group_id == group_id:
            found.update(((topic, index), one.offset) for topic, entries in change.commits for index, one in entries)
    return found
