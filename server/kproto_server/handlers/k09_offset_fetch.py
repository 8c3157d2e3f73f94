"""OffsetFetch (API key 9): the committed offsets of one group up to v7, of several groups from v8 on."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kproto.codes import ErrorCode
from kproto.declaration import ZERO_UUID
from kproto.jvm.arithmetic import java_hash
from kproto.jvm.hash_map import in_hash_order
from kproto.messages.k09_offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kproto_server.coordinator.fetch import fetch_error
from kproto_server.deferred import NO_RESPONSE, LargeResponse, lazily, sum_exceeds, then
from kproto_server.handlers._offsets import OffsetsBehavior
from kproto_server.observation.error_codes import error_codes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kproto.messages.k09_offset_fetch import (
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
        OffsetFetchRequestTopic,
        OffsetFetchRequestTopics,
    )
    from kproto_server.coordinator.offsets import OffsetAndMetadata
    from kproto_server.coordinator.pending_offsets import PendingOffsets
    from kproto_server.deferred import DeferredResponse, DelayedOperation
    from kproto_server.requests.context import RequestContext

GROUP_ERROR_SINCE = 2
"""The first version with an error for the whole group (OF-31)."""
GROUPS_SINCE = 8
"""The first version with several groups."""
TOPIC_IDS_SINCE = 10
"""The first version that identifies topics by id."""

SMALL_OFFSETS = 5000
"""Offsets that are returned at once: about 15 ms. A response with more is made in slices. DEVIATION: a commit meanwhile
may be in the offsets of one topic and not in those of another, which a real broker reads under the lock of the group.
"""

SMALL_GROUPS = 500
"""Groups that are returned at once, too."""

NO_OFFSETS: Mapping[int, OffsetAndMetadata] = {}


class RequestedTopic(NamedTuple):
    """A topic of a request, identified by name or id."""

    name: str | None
    """None: no topic has the id."""
    topic_id: bytes
    partition_indexes: Sequence[int]


class PartitionOffset(NamedTuple):
    """The offset of one partition; by default none is committed (OF-10)."""

    partition_index: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: int = 0


class TopicOffsets(NamedTuple):
    """The offsets of one topic."""

    name: str
    topic_id: bytes
    offsets: Sequence[PartitionOffset]


def handle(
    request: OffsetFetchRequest, context: RequestContext
) -> OffsetFetchResponse | LargeResponse | DeferredResponse | DelayedOperation:
    """Return the offsets; with ``require_stable`` after the commits that the log is writing (OF-26)."""
    if len(request.groups) > 1 and context.behavior(OffsetsBehavior).merges_duplicate_groups:
        # A hash map has one request of each group, the last one.
        of_group = {one.group_id: one for one in request.groups}
        request = request.replace(groups=tuple([of_group[one] for one in in_hash_order(of_group, java_hash)]))
    log = context.coordinator.log
    if not request.require_stable or next(iter(log.in_flight()), None) is None:
        return _offsets(request, context)
    if _is_large(request, context):  # only an operation may end with a response in slices
        waiting = then(log.then(lambda: NO_RESPONSE), lambda _: _offsets(request, context))
        return cast("DelayedOperation", waiting)

    def respond() -> OffsetFetchResponse:
        found = _offsets(request, context)
        return cast("OffsetFetchResponse", found.response) if isinstance(found, LargeResponse) else found

    return log.then(respond)


def _offsets(request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse | LargeResponse:
    if context.api_version >= GROUPS_SINCE:
        if _is_large(request, context):
            codes: list[int] = []
            groups = lazily(
                lambda requested: _large_group(requested, context, codes, request.require_stable), request.groups
            )
            return LargeResponse(OffsetFetchResponse(groups=groups), codes)
        stable = request.require_stable
        return OffsetFetchResponse(groups=tuple([_group(requested, context, stable) for requested in request.groups]))
    requested = None if request.topics is None else _by_name(request.topics, context)
    if context.api_version == 1 and not requested and context.behavior(OffsetsBehavior).empty_fetch_returns_all:
        requested = None
    if context.api_version == 0:
        return _response(_v0_offsets(request.group_id, requested or (), context))
    error = context.coordinator.error_at(context.node, request.group_id)
    if not error:
        if requested is None and _are_many([request.group_id], context):
            topics = _all_lazily(
                request.group_id,
                context,
                OffsetFetchResponseTopic,
                OffsetFetchResponsePartition,
                require_stable=request.require_stable,
            )
            return LargeResponse(OffsetFetchResponse(topics=topics))
        found = _found(request.group_id, requested, context)
        response = _response(_stable(request.group_id, found, context) if request.require_stable else found)
        return LargeResponse(response, error_codes(response)) if _is_large(request, context) else response
    # The group's error at the top from v2 on, in each partition before (OF-31).
    if context.api_version >= GROUP_ERROR_SINCE:
        return OffsetFetchResponse(error_code=error)
    return _response([_without_offsets(topic, error) for topic in requested or ()])


def _is_large(request: OffsetFetchRequest, context: RequestContext) -> bool:
    """Return whether the response is made in slices. Requested partitions count, too: metadata may have kilobytes."""
    single: Sequence[Any] = [request] if context.api_version < GROUPS_SINCE else ()
    requested = single or request.groups
    if len(requested) > SMALL_GROUPS or _are_many([one.group_id for one in requested if one.topics is None], context):
        return True
    return sum_exceeds(SMALL_OFFSETS, (len(topic.partition_indexes) for one in requested for topic in one.topics or ()))


def _are_many(group_ids: Iterable[str], context: RequestContext) -> bool:
    """Return whether groups have too many offsets to return them at once."""
    of_group = context.coordinator.offsets.of_group
    return sum_exceeds(SMALL_OFFSETS, (len(stored) for group_id in group_ids for stored in of_group(group_id).values()))


def _large_group(
    requested: OffsetFetchRequestGroup, context: RequestContext, codes: list[int], require_stable: bool
) -> Any:
    """Return a group whose offsets, if all are requested and many, are read when they are encoded."""
    is_large = requested.topics is None and _are_many([requested.group_id], context)
    group = _group(requested.replace(topics=()) if is_large else requested, context, require_stable)
    codes += error_codes(group)
    if not is_large or group.error_code:
        return group
    return group.replace(
        topics=_all_lazily(
            requested.group_id,
            context,
            OffsetFetchResponseTopics,
            OffsetFetchResponsePartitions,
            with_ids=True,
            require_stable=require_stable,
        )
    )


def _all_lazily(
    group_id: str,
    context: RequestContext,
    of_topic: Any,
    of_partition: Any,
    *,
    with_ids: bool = False,
    require_stable: bool,
) -> Any:
    """Return all topics of a group for a `LargeResponse`: those of a topic are read at once, when they are encoded."""
    offsets = context.coordinator.offsets

    def partition(name: str, item: tuple[int, OffsetAndMetadata]) -> Any:
        index, stored = item
        pending = _pending(group_id, context) if require_stable else None
        if pending is not None and (group_id, name, index) in pending:
            return of_partition(
                partition_index=index,
                committed_offset=-1,
                committed_leader_epoch=-1,
                metadata="",
                error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
            )
        return of_partition(
            partition_index=index,
            committed_offset=stored.offset,
            committed_leader_epoch=stored.leader_epoch,
            metadata=stored.metadata,
            error_code=0,
        )

    def topic(name: str) -> Any:
        stored = sorted(offsets.of_group(group_id).get(name, NO_OFFSETS).items())
        known = context.cluster.topics.get(name) if with_ids else None
        topic_id = {"topic_id": known.topic_id if known else ZERO_UUID} if with_ids else {}
        return of_topic(name=name, partitions=lazily(partial(partition, name), stored), **topic_id)

    return lazily(topic, sorted(offsets.of_group(group_id)))


def _response(topics: Iterable[TopicOffsets]) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        topics=tuple(
            [
                OffsetFetchResponseTopic(
                    name=name,
                    partitions=tuple(
                        [
                            OffsetFetchResponsePartition(
                                partition_index=index,
                                committed_offset=offset,
                                committed_leader_epoch=leader_epoch,
                                metadata=metadata,
                                error_code=error,
                            )
                            for index, offset, leader_epoch, metadata, error in offsets
                        ]
                    ),
                )
                for name, _, offsets in topics
            ]
        )
    )


def _group(
    requested: OffsetFetchRequestGroup, context: RequestContext, require_stable: bool = False
) -> OffsetFetchResponseGroup:
    group_id = requested.group_id
    error = context.coordinator.error_at(context.node, group_id)
    if not error:
        error = fetch_error(context.coordinator.groups.get(group_id), requested.member_id, requested.member_epoch)
    if error:
        return OffsetFetchResponseGroup(group_id=group_id, topics=(), error_code=error)
    read = _by_id if context.api_version >= TOPIC_IDS_SINCE else _by_name
    found = _found(group_id, None if requested.topics is None else read(requested.topics, context), context)
    if require_stable:
        found = _stable(group_id, found, context)
    return OffsetFetchResponseGroup(group_id=group_id, topics=tuple([_topic_of_group(topic) for topic in found]))


def _topic_of_group(topic: TopicOffsets) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            [
                OffsetFetchResponsePartitions(
                    partition_index=index,
                    committed_offset=offset,
                    committed_leader_epoch=leader_epoch,
                    metadata=metadata,
                    error_code=error,
                )
                for index, offset, leader_epoch, metadata, error in topic.offsets
            ]
        ),
    )


def _by_name(
    topics: Iterable[OffsetFetchRequestTopic | OffsetFetchRequestTopics], context: RequestContext
) -> list[RequestedTopic]:
    if not context.behavior(OffsetsBehavior).merges_duplicate_partitions:
        return [RequestedTopic(topic.name, ZERO_UUID, topic.partition_indexes) for topic in topics]
    # As in a map by topic and partition, a topic without partitions is left out (OF-17).
    merged: dict[str, dict[int, None]] = {}
    for topic in topics:
        if topic.partition_indexes:
            merged.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return [RequestedTopic(name, ZERO_UUID, tuple(indexes)) for name, indexes in merged.items()]


def _by_id(topics: Iterable[OffsetFetchRequestTopics], context: RequestContext) -> list[RequestedTopic]:
    """Return the topics of these ids, unknown ids last (OF-38)."""
    requested = [(context.cluster.topic_by_id(topic.topic_id), topic) for topic in topics]
    requested.sort(key=lambda pair: pair[0] is None)
    return [
        RequestedTopic(None if known is None else known.name, topic.topic_id, topic.partition_indexes)
        for known, topic in requested
    ]


def _found(group_id: str, requested: Iterable[RequestedTopic] | None, context: RequestContext) -> list[TopicOffsets]:
    """Return the offsets of the requested topics, or all offsets of the group (OF-12)."""
    stored = context.coordinator.offsets.of_group(group_id)
    if requested is None:
        return [_all_of_topic(name, stored[name], context) for name in sorted(stored)]
    unknown_topic_error = context.behavior(OffsetsBehavior).fetch_of_unknown_topic_error
    found = []
    for topic in requested:
        if topic.name is None:
            found.append(_without_offsets(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        elif unknown_topic_error and topic.name not in context.cluster.topics:
            found.append(_without_offsets(topic, unknown_topic_error))
        else:
            partitions = stored.get(topic.name, NO_OFFSETS)
            offsets = [_partition_offset(index, partitions.get(index)) for index in topic.partition_indexes]
            found.append(TopicOffsets(topic.name, topic.topic_id, offsets))
    return found


def _stable(group_id: str, found: list[TopicOffsets], context: RequestContext) -> list[TopicOffsets]:
    """Return offsets with UNSTABLE_OFFSET_COMMIT for those that a transaction may change (OF-25)."""
    pending = _pending(group_id, context)
    if pending is None:
        return found
    return [
        topic._replace(
            offsets=[
                PartitionOffset(one.partition_index, error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
                if (group_id, topic.name, one.partition_index) in pending
                else one
                for one in topic.offsets
            ]
        )
        for topic in found
    ]


def _pending(group_id: str, context: RequestContext) -> PendingOffsets | None:
    """Return the pending offsets that have some of a group; None: the group has none."""
    pending = context.coordinator.pending_offsets_of(group_id)
    return pending if pending is not None and pending.has_group(group_id) else None


def _all_of_topic(name: str, partitions: Mapping[int, OffsetAndMetadata], context: RequestContext) -> TopicOffsets:
    known = context.cluster.topics.get(name)
    offsets = [_partition_offset(index, stored) for index, stored in sorted(partitions.items())]
    return TopicOffsets(name, known.topic_id if known else ZERO_UUID, offsets)


def _partition_offset(index: int, stored: OffsetAndMetadata | None) -> PartitionOffset:
    return (
        PartitionOffset(index)
        if stored is None
        else PartitionOffset(index, stored.offset, stored.leader_epoch, stored.metadata)
    )


def _without_offsets(topic: RequestedTopic, error: int) -> TopicOffsets:
    offsets = [PartitionOffset(index, error=error) for index in topic.partition_indexes]
    return TopicOffsets(topic.name or "", topic.topic_id, offsets)


def _v0_offsets(group_id: str, requested: Iterable[RequestedTopic], context: RequestContext) -> Iterator[TopicOffsets]:
    """Yield the offsets of OffsetCommit v0: without metadata, and with an error for missing offsets (OF-11, OC-20)."""
    if context.behavior(OffsetsBehavior).v0_store != "zookeeper":
        yield from (_without_offsets(topic, ErrorCode.UNSUPPORTED_VERSION) for topic in requested)
        return
    of_group = context.coordinator.v0_offsets.of_group(group_id)
    for topic in requested:
        name = topic.name or ""
        stored = of_group.get(name, NO_OFFSETS) if name in context.cluster.topics else NO_OFFSETS
        offsets = [
            PartitionOffset(index, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if (found := stored.get(index)) is None
            else PartitionOffset(index, found.offset)
            for index in topic.partition_indexes
        ]
        yield TopicOffsets(name, ZERO_UUID, offsets)
