"""OffsetCommit (API key 8): decide, append, sync, apply, reply."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kproto_server.coordinator.commit import (
    append_error,
    commit_error,
    expire_timestamp,
    limits_of,
    metadata_too_large,
    timestamps_of_v1,
)
from kproto_server.coordinator.offsets import CommitBatch, OffsetAndMetadata
from kproto_server.coordinator.partitioning import owned_partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kproto.messages.k08_offset_commit import OffsetCommitRequest
    from kproto_server.call import Call

TOPIC_IDS = 10
"""The first version that names topics by id."""

Answer = tuple[OffsetCommitRequestTopic, list[OffsetCommitResponsePartition]]

_new_offset = OffsetAndMetadata._make


@lru_cache(maxsize=4096)
def partition_answer(partition_index: int, error_code: int) -> OffsetCommitResponsePartition:
    """Return a partition's answer; answers are values, and the same few are given all the time."""
    return OffsetCommitResponsePartition(partition_index=partition_index, error_code=error_code)


class Decision(NamedTuple):
    """What becomes of each partition of a request."""

    entries: list[tuple[str, list[tuple[int, OffsetAndMetadata]]]]
    """What is to be written."""
    answered: list[Answer]
    """Partitions that exist: the coordinator decided."""
    refused: list[Answer]
    """Partitions that do not: the coordinator was not asked (OC-10 rows 4 to 8)."""


def handle(request: OffsetCommitRequest, call: Call) -> OffsetCommitResponse:
    state, version, profile = call.state, call.api_version, call.state.profile
    if version == 0:
        return _handle_v0(request, call)
    topics = _without_duplicates(request.topics) if profile.merges_duplicate_partitions else request.topics

    # Decide.
    group_id = request.group_id
    group = state.groups.get(group_id)
    partition = owned_partition(state.cluster, call.node, group_id)
    if partition is None:
        error: int = ErrorCode.NOT_COORDINATOR
    else:
        error = commit_error(group, request, version, profile)
    decision = _decide(topics, request, call, error)

    if partition is not None and not error and decision.answered:
        if decision.entries:
            batch = CommitBatch(group_id, decision.entries)
            offsets = state.offsets
            # Append and sync: until both have succeeded, nothing has changed (OC-36).
            failure = offsets.log.append(partition, batch) or offsets.log.sync(partition)
            if failure:
                return _response(_failed(decision.answered, append_error(failure, profile)), decision.refused)
            # Apply.
            offsets.apply(batch)
        if group is None:
            state.groups.create(group_id, call.now_ms)

    # Reply.
    return _response(decision.answered, decision.refused)


def _decide(
    topics: Iterable[OffsetCommitRequestTopic], request: OffsetCommitRequest, call: Call, error: int
) -> Decision:
    """Judge each partition; ``error`` is the coordinator's for all that exist (OC-10)."""
    version, now_ms = call.api_version, call.now_ms
    profile, cluster, limits = call.state.profile, call.state.cluster, limits_of(call.state.settings)
    commit_ms, expire_ms = now_ms, expire_timestamp(now_ms, request.retention_time_ms, limits, profile)
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= TOPIC_IDS else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    decision = Decision([], [], [])
    for topic in topics:
        known = cluster.topic_by_id(topic.topic_id) if version >= TOPIC_IDS else cluster.topics.get(topic.name)
        if known is None:
            decision.refused.append((topic, [partition_answer(p.partition_index, unknown) for p in topic.partitions]))
            continue
        count = len(known.partitions) if profile.checks_partitions_of_commit else 1 << 31
        topic_id = known.topic_id
        entries: list[tuple[int, OffsetAndMetadata]] = []
        answered: list[OffsetCommitResponsePartition] = []
        refused: list[OffsetCommitResponsePartition] = []
        for asked in topic.partitions:
            index = asked.partition_index
            metadata = asked.committed_metadata or ""  # null is stored and returned as empty (OC-6)
            if index >= count or (index < 0 and profile.checks_partitions_of_commit):
                refused.append(partition_answer(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            elif error:
                answered.append(partition_answer(index, error))
            elif metadata and metadata_too_large(metadata, limits.metadata_max_bytes):
                answered.append(partition_answer(index, ErrorCode.OFFSET_METADATA_TOO_LARGE))
            else:
                if version == 1:
                    commit_ms, expire_ms = timestamps_of_v1(asked.commit_timestamp, now_ms, limits, profile)
                epoch = asked.committed_leader_epoch
                stored = (asked.committed_offset, epoch, metadata, commit_ms, expire_ms, topic_id)
                entries.append((index, _new_offset(stored)))
                answered.append(partition_answer(index, 0))
        if entries:
            decision.entries.append((known.name, entries))
        if answered:
            decision.answered.append((topic, answered))
        if refused:
            decision.refused.append((topic, refused))
    return decision


def _without_duplicates(topics: Sequence[OffsetCommitRequestTopic]) -> Sequence[OffsetCommitRequestTopic]:
    """The topics as old brokers read them, into a map by topic and partition: the last entry counts (OC-14)."""
    merged: dict[str, dict[int, OffsetCommitRequestPartition]] = {}
    for topic in topics:
        if topic.partitions:
            merged.setdefault(topic.name, {}).update((p.partition_index, p) for p in topic.partitions)
    return [
        OffsetCommitRequestTopic(name=name, partitions=tuple(partitions.values()))
        for name, partitions in merged.items()
    ]


def _failed(answered: list[Answer], error: int) -> list[Answer]:
    """The answers after the write failed: what was refused for itself keeps its error (OC-10 row 15)."""
    return [
        (
            topic,
            [answer if answer.error_code else partition_answer(answer.partition_index, error) for answer in answers],
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
    return OffsetCommitResponse(
        topics=tuple(
            [
                OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions))
                for topic, partitions in answers
            ]
        )
    )


def _handle_v0(request: OffsetCommitRequest, call: Call) -> OffsetCommitResponse:
    """What was once written to ZooKeeper: no group, no coordinator, no log, and a store of its own (OC-20)."""
    state = call.state
    unsupported = state.profile.offset_commit_v0_store != "zookeeper"
    topics = request.topics if unsupported else _without_duplicates(request.topics)
    decision = _decide(topics, request, call, ErrorCode.UNSUPPORTED_VERSION if unsupported else 0)
    if decision.entries:
        state.v0_offsets.apply(CommitBatch(request.group_id, decision.entries))
    return _response(decision.answered, decision.refused)
