"""DeleteRecords (API key 21): raise a partition's log start offset; records below it cannot be read (KIP-107)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k21_delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kproto_server.configuration.topic_configs import topic_config
from kproto_server.handlers._partitions import indexed, leader_error
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto.messages.k21_delete_records import DeleteRecordsRequest
    from kproto_server.deferred import DelayedOperation
    from kproto_server.requests.context import RequestContext

NO_EPOCH = -1
NO_OFFSET = -1
TO_THE_END = -1
"""As an offset: delete all records."""


class DeleteRecordsBehavior(VersionBehavior):
    """What Kafka releases do differently in DeleteRecords."""

    def checks_offset_before_policy(self, offset: int) -> bool:
        """Return whether an offset that is out of range is reported before a cleanup policy that does not delete: any
        offset up to 1.0, negative ones up to 2.0 (measured on 1.0.2 and 1.1.1, and on 2.0.1 and 2.1.1)."""
        return not self.at_least(2, 1) if offset < 0 else not self.at_least(1, 1)


def handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse | DelayedOperation:
    return indexed([topic.name for topic in request.topics], context, lambda: _handle(request, context))


def _handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    offsets: dict[str, dict[int, int]] = {}
    for topic in request.topics:  # of a partition that the request names twice the last offset counts
        offsets.setdefault(topic.name, {}).update({one.partition_index: one.offset for one in topic.partitions})
    starts: dict[tuple[str, int], int] = {}
    errors = {
        name: {index: _check(name, index, offset, starts, context) for index, offset in wanted.items()}
        for name, wanted in offsets.items()
    }
    # Saved first: a failed write changes nothing.
    failed = ErrorCode.NONE if context.log_manager.save_start_offsets(starts) else ErrorCode.KAFKA_STORAGE_ERROR
    topics = tuple(
        DeleteRecordsTopicResult(
            name=name,
            partitions=tuple(_delete(name, index, error or failed, starts, context) for index, error in found.items()),
        )
        for name, found in errors.items()
    )
    return DeleteRecordsResponse(throttle_time_ms=0, topics=topics)


def _check(
    topic_name: str, index: int, offset: int, starts: dict[tuple[str, int], int], context: RequestContext
) -> ErrorCode:
    """Note the start offset that a partition gets, or return an error."""
    topic = context.cluster.topic(topic_name)
    partition = (topic and topic.partition(index)) or None
    if topic is None or partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic.internal:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    error = leader_error(partition, context.node.node_id, NO_EPOCH)
    if error:
        return error
    end = partition.high_watermark
    start = end if offset == TO_THE_END else offset
    is_out_of_range = not 0 <= start <= end
    if is_out_of_range and context.behavior(DeleteRecordsBehavior).checks_offset_before_policy(start):
        return ErrorCode.OFFSET_OUT_OF_RANGE
    policy = topic_config(context.settings.current, topic.configs, "cleanup.policy")
    if "delete" not in policy:
        return ErrorCode.POLICY_VIOLATION
    if is_out_of_range:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if start > partition.log_start_offset:
        try:
            context.log_manager.data_of(topic, partition).refresh_index()
        except OSError:
            return ErrorCode.KAFKA_STORAGE_ERROR
        starts[topic_name, index] = start
    return ErrorCode.NONE


def _delete(
    topic_name: str, index: int, error: ErrorCode, starts: dict[tuple[str, int], int], context: RequestContext
) -> DeleteRecordsPartitionResult:
    """Raise the start offset of a partition, unless there is an error; return the partition's result."""
    low_watermark = NO_OFFSET
    if not error:
        partition = context.cluster.topics[topic_name].partitions[index]
        if (topic_name, index) in starts:
            partition.data.delete_before(starts[topic_name, index])
        low_watermark = partition.log_start_offset
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark, error_code=error)
