"""OffsetCommit (API key 8): decide, append, sync, apply, reply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.codes import ErrorCode
from kproto.declaration import ZERO_UUID
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kproto_server.coordinator.change_log import NO_BATCH, Change
from kproto_server.coordinator.commit import (
    append_error,
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
from kproto_server.handlers._offsets import OffsetsBehavior

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kproto.messages.k08_offset_commit import OffsetCommitRequest
    from kproto_server.coordinator.change_log import Batch
    from kproto_server.requests.context import RequestContext
    from kproto_server.requests.deferred import DeferredResponse

TOPIC_IDS = 10
"""The first version that names topics by id."""

UNKNOWN_TOPIC_ID = int(ErrorCode.UNKNOWN_TOPIC_ID)
UNKNOWN_TOPIC_OR_PARTITION = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

ANY_PARTITION = (-(2**31), 2**31)

ANSWERS_KEPT_MAX = 65536
"""Answers to accepted partitions are kept; only a release that does not check partitions could be asked for more."""

Answer = tuple[OffsetCommitRequestTopic, list[OffsetCommitResponsePartition]]

_new: Any = tuple.__new__
"""Makes a struct of its values in order, in half the time of its keyword-only constructor."""


class _Accepted(dict[int, OffsetCommitResponsePartition]):
    """What an accepted partition is answered, by its number: values, made when first needed."""

    def __missing__(self, index: int) -> OffsetCommitResponsePartition:
        answer = OffsetCommitResponsePartition(partition_index=index, error_code=0)
        if len(self) < ANSWERS_KEPT_MAX:
            self[index] = answer
        return answer


_accepted = _Accepted()


def _refusal(index: int, error: int) -> OffsetCommitResponsePartition:
    return OffsetCommitResponsePartition(partition_index=index, error_code=error)


Entries = list[tuple[str, list[tuple[int, OffsetAndMetadata]]]]

Decision = tuple[Entries, list[Answer], list[Answer]]
"""What is to be written; the answers for partitions that exist, on which the coordinator decided; and for those that do
not, of which it is not asked (OC-10 rows 4 to 8)."""


def handle(request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse | DeferredResponse:
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
    if group is None and (not is_simple or names_a_member(request)):  # to others it is the same whether it is there
        group = coordinator.group(group_id)
    partition = coordinator.owned_partition(context.node, group_id)
    if partition is None:
        error = coordinator.not_coordinator_error
    else:
        error = coordinator.unavailable.get(partition, 0) or commit_error(group, request, version, behavior)
    entries, answered, refused = _decide(topics, request, context, error)
    if refused and topics is not request.topics and not merging.merges_unknown_partitions:
        refused = _decide(request.topics, request, context, error)[2]

    if partition is None or not answered:
        return _response(answered, refused)
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

    # Append; the log syncs.
    log = coordinator.log
    if entries:
        log.append(partition, Change(group_id, settle, entries), *_batch(group_id, entries, context))
    elif is_simple and behavior.offsets_create_group and coordinator.group(group_id) is None:
        # Found or made before its partitions are looked at: it is there even if all of them were refused.
        coordinator.groups.create(group_id, context.now_ms)

    # Reply.
    def reply() -> OffsetCommitResponse:
        return _response(_failed(answered, append_error(failure, behavior)) if failure else answered, refused)

    return log.then(reply)


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
    """Judge each partition; ``error`` is the coordinator's for all that exist (OC-10).

    This is the hot path: what the loops need is looked up before them, and structs are taken apart as the tuples that
    they are.
    """
    version, now_ms = context.api_version, context.now_ms
    behavior, cluster, limits = context.coordinator.behavior, context.cluster, limits_of(context.settings.current)
    checks_partitions = context.behavior(OffsetsBehavior).checks_partitions_of_commit
    commit_ms, expire_ms = now_ms, expire_timestamp(now_ms, request.retention_time_ms, limits, behavior)
    all_entries: Entries = []
    all_answered: list[Answer] = []
    all_refused: list[Answer] = []
    for topic in topics:
        known = cluster.topic_by_id(topic.topic_id) if version >= TOPIC_IDS else cluster.topics.get(topic.name)
        if known is not None:
            name, topic_id, partition_count = known.name, known.topic_id, len(known.partitions)
        elif behavior.stores_any_commit and version > 0:
            name, topic_id, partition_count = topic.name, ZERO_UUID, 0
        else:
            unknown = UNKNOWN_TOPIC_ID if version >= TOPIC_IDS else UNKNOWN_TOPIC_OR_PARTITION
            all_refused.append((topic, [_refusal(p.partition_index, unknown) for p in topic.partitions]))
            continue
        first, end = (0, partition_count) if checks_partitions else ANY_PARTITION
        entries: list[tuple[int, OffsetAndMetadata]] = []
        answered: list[OffsetCommitResponsePartition] = []
        refused: list[OffsetCommitResponsePartition] = []
        partitions: Any = topic.partitions
        for index, offset, leader_epoch, timestamp_ms, metadata, _ in partitions:
            if not first <= index < end:
                refused.append(_refusal(index, UNKNOWN_TOPIC_OR_PARTITION))
            elif error:
                answered.append(_refusal(index, error))
            elif metadata and metadata_too_large(metadata, limits.metadata_max_bytes):
                answered.append(_refusal(index, ErrorCode.OFFSET_METADATA_TOO_LARGE))
            else:
                if version == 1:
                    commit_ms, expire_ms = timestamps_of_v1(timestamp_ms, now_ms, limits, behavior)
                # Null metadata is stored and returned as empty (OC-6).
                stored = (offset, leader_epoch, metadata or "", commit_ms, expire_ms, topic_id)
                entries.append((index, _new(OffsetAndMetadata, stored)))
                answered.append(_accepted[index])
        if entries:
            all_entries.append((name, entries))
        if answered:
            all_answered.append((topic, answered))
        if refused:
            all_refused.append((topic, refused))
    return all_entries, all_answered, all_refused


def _without_duplicates(
    topics: Sequence[OffsetCommitRequestTopic], *, keeps_empty: bool
) -> tuple[OffsetCommitRequestTopic, ...]:
    """The topics as old brokers read them, into a map by topic and partition: the last entry counts (OC-14)."""
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


def _failed(answered: list[Answer], error: int) -> list[Answer]:
    """The answers after the write failed: what was refused for itself keeps its error (OC-10 row 15)."""
    return [
        (
            topic,
            [answer if answer.error_code else _refusal(answer.partition_index, error) for answer in answers],
        )
        for topic, answers in answered
    ]


def _response(answered: list[Answer], refused: list[Answer]) -> OffsetCommitResponse:
    """Partitions that do not exist come first, each topic once; without any, all is as it was asked (OC-14)."""
    answers = answered
    if refused:
        merged: dict[tuple[str, bytes], Answer] = {}
        for topic, partitions in [*refused, *answered]:
            merged.setdefault((topic.name, topic.topic_id), (topic, []))[1].extend(partitions)
        answers = list(merged.values())
    topics = [
        _new(OffsetCommitResponseTopic, (topic.name, topic.topic_id, tuple(partitions), ()))
        for topic, partitions in answers
    ]
    return OffsetCommitResponse(topics=tuple(topics))


def _handle_v0(request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse | DeferredResponse:
    """What was once written to ZooKeeper: no group, no coordinator, and a store of its own (OC-20)."""
    unsupported = context.behavior(OffsetsBehavior).v0_store != "zookeeper"
    topics = request.topics if unsupported else _without_duplicates(request.topics, keeps_empty=False)
    error = ErrorCode.UNSUPPORTED_VERSION if unsupported else 0
    entries, answered, refused = _decide(topics, request, context, error)
    if not entries:
        return _response(answered, refused)
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
    # ZooKeeper's errors came to old clients as this one.
    return log.then(
        lambda: _response(_failed(answered, ErrorCode.UNKNOWN_SERVER_ERROR) if failure else answered, refused)
    )
