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
from kproto_server.handlers._partitions import leader_error
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto.messages.k21_delete_records import DeleteRecordsRequest
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


def handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    offsets: dict[str, dict[int, int]] = {}
    for topic in request.topics:  # of a partition that the request names twice the last offset counts
        offsets.setdefault(topic.name, {}).update({one.partition_index: one.offset for one in topic.partitions})
    topics = tuple(
        DeleteRecordsTopicResult(
            name=name, partitions=tuple(_partition(name, index, offset, context) for index, offset in wanted.items())
        )
        for name, wanted in offsets.items()
    )
    if not context.log_manager.save_start_offsets():
        topics = tuple([one.replace(partitions=tuple(map(_not_saved, one.partitions))) for one in topics])
    return DeleteRecordsResponse(throttle_time_ms=0, topics=topics)


def _not_saved(result: DeleteRecordsPartitionResult) -> DeleteRecordsPartitionResult:
    """Return the result of a partition whose start offset is not on disk."""
    if result.error_code:
        return result
    return result.replace(error_code=ErrorCode.KAFKA_STORAGE_ERROR, low_watermark=NO_OFFSET)


def _partition(topic_name: str, index: int, offset: int, context: RequestContext) -> DeleteRecordsPartitionResult:
    error, low_watermark = _delete(topic_name, index, offset, context)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark, error_code=error)


def _delete(topic_name: str, index: int, offset: int, context: RequestContext) -> tuple[ErrorCode, int]:
    topic = context.cluster.topic(topic_name)
    partition = (topic and topic.partition(index)) or None
    if topic is None or partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_OFFSET
    if topic.internal:
        return ErrorCode.INVALID_TOPIC_EXCEPTION, NO_OFFSET
    error = leader_error(partition, context.node.node_id, NO_EPOCH)
    if error:
        return error, NO_OFFSET
    end = partition.high_watermark
    wanted = end if offset == TO_THE_END else offset
    is_out_of_range = not 0 <= wanted <= end
    if is_out_of_range and context.behavior(DeleteRecordsBehavior).checks_offset_before_policy(wanted):
        return ErrorCode.OFFSET_OUT_OF_RANGE, NO_OFFSET
    policy = topic_config(context.settings.current, topic.configs, "cleanup.policy")
    if "delete" not in policy:
        return ErrorCode.POLICY_VIOLATION, NO_OFFSET
    if is_out_of_range:
        return ErrorCode.OFFSET_OUT_OF_RANGE, NO_OFFSET
    if wanted > partition.log_start_offset:
        try:
            context.log_manager.data_of(topic, partition).delete_before(wanted)
        except OSError:
            return ErrorCode.KAFKA_STORAGE_ERROR, NO_OFFSET
    return ErrorCode.NONE, partition.log_start_offset
