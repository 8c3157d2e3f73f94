"""AlterReplicaLogDirs (API key 34): move replicas to another directory of their broker (KIP-113), which has only one.

Source:
    Responses of 2.8.2, 3.9.2 and 4.4.0 to the same request (fixtures/reassignments).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k34_alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from kproto.messages.k34_alter_replica_log_dirs import AlterReplicaLogDirsRequest
    from kproto_server.requests.context import RequestContext

FUTURE_SUFFIX = f"{'0' * 32}-future"
"""An id and what a directory of a moving replica ends with; its name begins with topic, partition and a dot."""
FILE_NAME_MAX = 255


def handle(request: AlterReplicaLogDirsRequest, context: RequestContext) -> AlterReplicaLogDirsResponse:
    errors: dict[str, dict[int, ErrorCode]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            of_topic = errors.setdefault(topic.name, {})
            of_topic.update((index, _error(directory.path, topic.name, index, context)) for index in topic.partitions)
    return AlterReplicaLogDirsResponse(
        throttle_time_ms=0,
        results=tuple(
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=tuple(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error)
                    for index, error in partitions.items()
                ),
            )
            for name, partitions in errors.items()
        ),
    )


def _error(path: str, name: str, index: int, context: RequestContext) -> ErrorCode:
    if len(f"{name}-{index}.") + len(FUTURE_SUFFIX) > FILE_NAME_MAX:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path != context.log_manager.log_dir:
        return ErrorCode.LOG_DIR_NOT_FOUND
    topic = context.cluster.topic(name)
    partition = topic.partition(index) if topic is not None else None
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    has_replica = context.node.node_id in partition.replicas
    return ErrorCode.NONE if has_replica else ErrorCode.REPLICA_NOT_AVAILABLE
