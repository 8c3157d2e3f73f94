"""AlterPartitionReassignments (API key 45): move partitions to other brokers (KIP-455).

Partitions move at once, as all brokers of a cluster share their data; so no move can be canceled.

Source:
    Responses of 2.8.2, 3.9.2 and 4.4.0 to the same requests (fixtures/reassignments).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kproto_server.cluster.topics import Refusal
from kproto_server.handlers._controller import not_controller

if TYPE_CHECKING:
    from kproto.messages.k45_alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        ReassignablePartition,
    )
    from kproto_server.requests.context import RequestContext

MOVED = Refusal(ErrorCode.NONE)


def handle(request: AlterPartitionReassignmentsRequest, context: RequestContext) -> AlterPartitionReassignmentsResponse:
    is_kraft = context.kafka_version.is_kraft
    if not_controller(context):
        error = ErrorCode.NOT_CONTROLLER
        return AlterPartitionReassignmentsResponse(
            throttle_time_ms=0, error_code=error, error_message=error.message, responses=()
        )
    results: dict[str, list[tuple[int, Refusal]]] = {}
    for topic in request.topics:
        found = results.setdefault(topic.name, [])
        partitions = topic.partitions if is_kraft else {one.partition_index: one for one in topic.partitions}.values()
        for one in partitions:
            result = _move(topic.name, one, request.allow_replication_factor_change, context)
            found.append((one.partition_index, result))
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=ErrorCode.NONE,
        error_message=None if is_kraft and request.topics else "",
        responses=tuple(
            ReassignableTopicResponse(
                name=name,
                partitions=tuple(
                    ReassignablePartitionResponse(
                        partition_index=index, error_code=result.error, error_message=result.message
                    )
                    for index, result in found
                ),
            )
            for name, found in results.items()
        ),
    )


def _move(name: str, requested: ReassignablePartition, allows_factor_change: bool, context: RequestContext) -> Refusal:
    """Move a partition; the error of a success is NONE."""
    cluster, is_kraft = context.cluster, context.kafka_version.is_kraft
    topic, index = cluster.topic(name), requested.partition_index
    partition = topic.partition(index) if topic is not None else None
    if requested.replicas is None and not is_kraft:
        error = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        return Refusal(error, error.message)
    if partition is None:
        refusal = None if is_kraft or requested.replicas is None else cluster.check_replicas(requested.replicas)
        if refusal is not None:  # ZooKeeper: looked at before the partition (measured on 2.8.2)
            return refusal
        message = "The partition does not exist."
        if is_kraft:
            missing = f"a topic named {name}" if topic is None else f"partition {name}:{index}"
            message = f"Unable to find {missing}."
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if requested.replicas is None:
        return Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    return cluster.reassign(partition, requested.replicas, allows_factor_change=allows_factor_change) or MOVED
