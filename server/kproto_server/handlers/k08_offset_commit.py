"""OffsetCommit (API key 8): decide, append, sync, apply, respond.

Theory of operation. `handle` has these five steps in this order (OC-36). *Decide*: each partition gets an error or an
entry. *Append*: the entries become one batch of the log of the group's offsets partition. *Sync*: the log calls
``settle`` when the batch is on the disk, or could not be written. *Apply*: only then the offsets are visible.
*Respond*: the response is deferred until the log has settled, and has the log's error for all entries if the write
failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto import registry
from kproto.codes import ErrorCode
from kproto.declaration import ZERO_UUID
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kproto.offset_commit_v4 import decode_v4
from kproto_server.coordinator.change_log import NO_BATCH, Change
from kproto_server.coordinator.commit import (
    commit_error,
    expire_timestamp,
    expires_early,
    limits_of,
    metadata_too_large,
    names_a_member,
    timestamps_of_v1,
)
from kproto_server.coordinator.coordinator import V0_PARTITION
from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.coordinator.write_errors import commit_write_error
from kproto_server.deferred import CloseConnection, DelayedOperation
from kproto_server.handlers._offsets import OffsetsBehavior
from kproto_server.observation.error_codes import reader_of
from kproto_server.requests.endpoint import Endpoint, elements_max

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kproto.messages.k08_offset_commit import OffsetCommitRequest
    from kproto_server.coordinator.change_log import Batch
    from kproto_server.deferred import DeferredResponse
    from kproto_server.observation.observe import Observations
    from kproto_server.releases.kafka_version import KafkaVersion
    from kproto_server.requests.context import RequestContext

TOPIC_IDS_SINCE = 10
"""The first version that identifies topics by id."""
OFFSET_COMMIT = 8
RETENTION_OVERRIDES = range(2, 5)
"""The versions that may have a retention time (D2)."""
TWO_LAYOUTS = 4
"""The version that has two layouts (D1)."""


UNKNOWN_TOPIC_ID = int(ErrorCode.UNKNOWN_TOPIC_ID)
UNKNOWN_TOPIC_OR_PARTITION = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

ANY_PARTITION = (-(2**31), 2**31)

RESPONSES_KEPT_MAX = 65536
"""Bound of `_accepted`. Only releases that do not check partitions can exceed it."""

TopicResponse = tuple[OffsetCommitRequestTopic, list[OffsetCommitResponsePartition]]

_new: Any = tuple.__new__
"""Builds a struct from its values in order, in half the time of its keyword-only constructor."""


class _Accepted(dict[int, OffsetCommitResponsePartition]):
    """The responses of accepted partitions by index: shared values, built at the first use."""

    def __missing__(self, index: int) -> OffsetCommitResponsePartition:
        response = OffsetCommitResponsePartition(partition_index=index, error_code=0)
        if len(self) < RESPONSES_KEPT_MAX:
            self[index] = response
        return response


_accepted = _Accepted()


def _refusal(index: int, error: int) -> OffsetCommitResponsePartition:
    return OffsetCommitResponsePartition(partition_index=index, error_code=error)


Entries = list[tuple[str, list[tuple[int, OffsetAndMetadata]]]]

Decision = tuple[Entries, list[TopicResponse], list[TopicResponse]]
"""The entries to write, the responses for existing partitions, on which the coordinator decides, and the responses for
missing partitions, on which it does not (OC-10 rows 4 to 8)."""


def handle(
    request: OffsetCommitRequest, context: RequestContext
) -> OffsetCommitResponse | DeferredResponse | DelayedOperation:
    coordinator, version = context.coordinator, context.api_version
    if version == 0:
        return _handle_v0(request, context)
    topics, merging = request.topics, context.behavior(OffsetsBehavior)
    if merging.merges_duplicate_partitions:
        topics = _without_duplicates(topics, keeps_empty=merging.returns_unknown_topics_without_partitions)

    # Decide.
    behavior = coordinator.behavior
    group_id = request.group_id
    is_simple = request.generation_id_or_member_epoch < 0
    group = coordinator.groups.get(group_id)
    if group is None and (not is_simple or names_a_member(request)):
        # The group may exist by its offsets alone. For other commits its existence makes no difference.
        group = coordinator.group(group_id)
    partition = coordinator.owned_partition(context.node, group_id)
    if partition is None:
        error = coordinator.not_coordinator_error
    else:
        error = coordinator.unavailable.get(partition, 0) or commit_error(
            group, request, version, behavior, coordinator.topics
        )
    entries, decided, refused = _decide(topics, request, context, error)
    if refused and topics is not request.topics and not merging.merges_unknown_partitions:
        refused = _decide(request.topics, request, context, error)[2]

    if partition is None or not decided:
        return _response(decided, refused)
    if group is not None and group.members and not error and behavior.counts_commits_as_heartbeats:
        group.note_commit(request.member_id, context.now_ms)
    failure = 0

    def settle(log_error: int) -> None:
        # Apply: until append and sync have succeeded, nothing has changed (OC-36).
        nonlocal failure
        failure = log_error
        if not log_error:
            early = expires_early(request, version, limits_of(context.settings.current))
            coordinator.offsets.apply_commit(group_id, entries, expires_early=early)

    # Append. The log syncs.
    log = coordinator.log
    if entries:
        coordinator.append(partition, Change(group_id, settle, entries), *_batch(group_id, entries, context))
    elif is_simple and behavior.offsets_create_group and coordinator.group(group_id) is None:
        # A coordinator creates the group before it checks the partitions, so it exists even if all are refused.
        coordinator.groups.create(group_id, context.now_ms)

    # Respond.
    def respond() -> OffsetCommitResponse:
        return _response(_failed(decided, commit_write_error(failure, behavior)) if failure else decided, refused)

    if failure == ErrorCode.REQUEST_TIMED_OUT:
        return DelayedOperation(context.now_ms + context.settings.current.int("offsets.commit.timeout.ms"), respond)
    return log.then(respond)


def _batch(group_id: str, entries: Entries, context: RequestContext) -> Batch:
    if not context.coordinator.log.keeps:
        return NO_BATCH
    from kproto_server.coordinator.offsets_log.batches import offsets_compression
    from kproto_server.coordinator.offsets_log.commits import commit_batch

    return commit_batch(
        group_id, entries, context.now_ms, context.coordinator.behavior, offsets_compression(context.settings.current)
    )


def _decide(
    topics: Iterable[OffsetCommitRequestTopic], request: OffsetCommitRequest, context: RequestContext, error: int
) -> Decision:
    """Decide on each partition; ``error`` is the coordinator's error for all partitions that exist (OC-10).

    Hot path: the loops use local variables, and unpack structs as the tuples that they are.
    """
    version, now_ms = context.api_version, context.now_ms
    behavior, cluster, limits = context.coordinator.behavior, context.cluster, limits_of(context.settings.current)
    checks_partitions = context.behavior(OffsetsBehavior).checks_partitions_of_commit
    commit_ms, expire_ms = now_ms, expire_timestamp(now_ms, request.retention_time_ms, limits, behavior)
    all_entries: Entries = []
    all_decided: list[TopicResponse] = []
    all_refused: list[TopicResponse] = []
    for topic in topics:
        known = cluster.topic_by_id(topic.topic_id) if version >= TOPIC_IDS_SINCE else cluster.topics.get(topic.name)
        if known is not None:
            name, topic_id, partition_count = known.name, known.topic_id, len(known.partitions)
        elif behavior.stores_any_commit and version > 0:
            name, topic_id, partition_count = topic.name, ZERO_UUID, 0
        else:
            unknown = UNKNOWN_TOPIC_ID if version >= TOPIC_IDS_SINCE else UNKNOWN_TOPIC_OR_PARTITION
            all_refused.append((topic, [_refusal(p.partition_index, unknown) for p in topic.partitions]))
            continue
        first, end = (0, partition_count) if checks_partitions else ANY_PARTITION
        entries: list[tuple[int, OffsetAndMetadata]] = []
        decided: list[OffsetCommitResponsePartition] = []
        refused: list[OffsetCommitResponsePartition] = []
        partitions: Any = topic.partitions
        for index, offset, leader_epoch, timestamp_ms, metadata, _ in partitions:
            if not first <= index < end:
                refused.append(_refusal(index, UNKNOWN_TOPIC_OR_PARTITION))
            elif error:
                decided.append(_refusal(index, error))
            elif metadata and metadata_too_large(metadata, limits.metadata_max_bytes):
                decided.append(_refusal(index, ErrorCode.OFFSET_METADATA_TOO_LARGE))
            else:
                if version == 1:
                    commit_ms, expire_ms = timestamps_of_v1(timestamp_ms, now_ms, limits, behavior)
                # Null metadata is stored and returned as empty (OC-6).
                stored = (offset, leader_epoch, metadata or "", commit_ms, expire_ms, topic_id)
                entries.append((index, _new(OffsetAndMetadata, stored)))
                decided.append(_accepted[index])
        if entries:
            all_entries.append((name, entries))
        if decided:
            all_decided.append((topic, decided))
        if refused:
            all_refused.append((topic, refused))
    return all_entries, all_decided, all_refused


def _without_duplicates(
    topics: Sequence[OffsetCommitRequestTopic], *, keeps_empty: bool
) -> tuple[OffsetCommitRequestTopic, ...]:
    """Return the topics as a map by topic and partition, as old brokers read them: the last entry counts (OC-14)."""
    merged: dict[str, dict[int, OffsetCommitRequestPartition]] = {}
    for topic in topics:
        if topic.partitions or keeps_empty:
            merged.setdefault(topic.name, {}).update((p.partition_index, p) for p in topic.partitions)
    return tuple(
        [
            OffsetCommitRequestTopic(name=name, partitions=tuple(partitions.values()))
            for name, partitions in merged.items()
        ]
    )


def _failed(decided: list[TopicResponse], error: int) -> list[TopicResponse]:
    """Return the responses after a failed write. Refused partitions keep their own errors (OC-10 row 15)."""
    return [
        (
            topic,
            [response if response.error_code else _refusal(response.partition_index, error) for response in responses],
        )
        for topic, responses in decided
    ]


def _response(decided: list[TopicResponse], refused: list[TopicResponse]) -> OffsetCommitResponse:
    """Return the response. Missing partitions come first, with each topic once; without any, the order is the request's
    (OC-14)."""
    responses = decided
    if refused:
        merged: dict[tuple[str, bytes], TopicResponse] = {}
        for topic, partitions in [*refused, *decided]:
            merged.setdefault((topic.name, topic.topic_id), (topic, []))[1].extend(partitions)
        responses = list(merged.values())
    topics = [
        _new(OffsetCommitResponseTopic, (topic.name, topic.topic_id, tuple(partitions), ()))
        for topic, partitions in responses
    ]
    return OffsetCommitResponse(topics=tuple(topics))


def endpoint(api_version: int, kafka_version: KafkaVersion, observations: Observations) -> Endpoint | None:
    """Return the endpoint of a version with a retention time; None: the version has none.

    Raises:
        CloseConnection: Kafka 0.8 does not know the version. It reads versions of other APIs that it does not know as
            the newest one it knows, but not those of OffsetCommit.
    """
    if not kafka_version.serves(OFFSET_COMMIT, api_version):
        raise CloseConnection(f"version {api_version} is not served by Kafka version {kafka_version.name}")
    if api_version not in RETENTION_OVERRIDES:
        return None
    codec = registry.codec(OFFSET_COMMIT, api_version)
    has_two_layouts = api_version == TWO_LAYOUTS

    def on_decoded(decoded: tuple[Any, ...], context: RequestContext) -> None:
        request: OffsetCommitRequest = decoded[0]
        layout = decoded[2] if has_two_layouts else f"v{api_version}"
        observations.commit_layout(
            context.connection, context.client_id, api_version, layout, request.retention_time_ms
        )

    return Endpoint(
        api_version=api_version,
        decode=decode_v4 if has_two_layouts else codec.decode_request,
        elements_max=elements_max(OFFSET_COMMIT),
        on_decoded=on_decoded,
        is_learned=True,
        handle=handle,
        encode=codec.encode_response,
        response_header_version=codec.response_header_version,
        error_codes=reader_of(OffsetCommitResponse),
    )


def _handle_v0(request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse | DeferredResponse:
    """Handle v0, which ZooKeeper stored once: without group and coordinator, in a store of its own (OC-20)."""
    unsupported = context.behavior(OffsetsBehavior).v0_store != "zookeeper"
    topics = request.topics if unsupported else _without_duplicates(request.topics, keeps_empty=False)
    error = ErrorCode.UNSUPPORTED_VERSION if unsupported else 0
    entries, decided, refused = _decide(topics, request, context, error)
    if not entries:
        return _response(decided, refused)
    group_id, log = request.group_id, context.coordinator.log
    failure = 0

    def settle(log_error: int) -> None:
        nonlocal failure
        failure = log_error
        if not log_error:
            context.coordinator.v0_offsets.apply_commit(group_id, entries)

    error = context.coordinator.prepare_v0_log()
    if error:
        settle(error)
    else:
        log.append(V0_PARTITION, Change(group_id, settle), *_batch(group_id, entries, context))
    # All errors of ZooKeeper reached old clients as UNKNOWN_SERVER_ERROR.
    return log.then(
        lambda: _response(_failed(decided, ErrorCode.UNKNOWN_SERVER_ERROR) if failure else decided, refused)
    )
