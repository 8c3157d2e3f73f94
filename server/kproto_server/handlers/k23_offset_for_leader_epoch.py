"""OffsetForLeaderEpoch (API key 23): return where a leader epoch ended.

A consumer detects by it that its log was truncated: it asks before it reads from an offset that was committed with a
leader epoch (Java clients from 2.1 on).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from kproto_server.handlers._partitions import end_of_epoch, leader_error, with_records
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto_server.deferred import DelayedOperation
    from kproto_server.requests.context import RequestContext


class EpochBehavior(VersionBehavior):
    """What Kafka releases do differently in OffsetForLeaderEpoch."""

    @cached_property
    def epochs_begin_with_records(self) -> bool:
        """Whether a partition that never had a record has no known epoch (measured on 1.1.1 and 2.0.1)."""
        return not self.at_least(2, 0)


def handle(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse | DelayedOperation:
    return with_records([topic.topic for topic in request.topics], context, lambda: _response(request, context))


def _response(request: OffsetForLeaderEpochRequest, context: RequestContext) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(_partition(topic.topic, partition, context) for partition in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _partition(topic_name: str, requested: OffsetForLeaderPartition, context: RequestContext) -> EpochEndOffset:
    topic = context.cluster.topic(topic_name)
    partition = (topic and topic.partition(requested.partition)) or None
    error = leader_error(partition, context.node.node_id, requested.current_leader_epoch)
    end = None if error or partition is None else end_of_epoch(partition, requested.leader_epoch)
    if end is None or (end[1] == 0 and context.behavior(EpochBehavior).epochs_begin_with_records):
        return EpochEndOffset(error_code=error, partition=requested.partition)
    epoch, offset = end
    return EpochEndOffset(
        error_code=ErrorCode.NONE, partition=requested.partition, leader_epoch=epoch, end_offset=offset
    )
