"""WriteTxnMarkers (API key 27): write the markers that end transactions, as coordinators and Admin clients ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k27_write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto_server.coordinator.transactional_offsets import end_offsets
from kproto_server.handlers._partitions import indexed, leader_error
from kproto_server.log_manager.markers import EndMarker, write_marker

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.messages.k27_write_txn_markers import WritableTxnMarker, WriteTxnMarkersRequest
    from kproto_server.deferred import DeferredResponse, DelayedOperation
    from kproto_server.requests.context import RequestContext

NO_EPOCH = -1


def handle(
    request: WriteTxnMarkersRequest, context: RequestContext
) -> WriteTxnMarkersResponse | DeferredResponse | DelayedOperation:
    names = {topic.name for marker in request.markers for topic in marker.topics}
    return indexed(names, context, lambda: _handle(request, context))


def _handle(request: WriteTxnMarkersRequest, context: RequestContext) -> WriteTxnMarkersResponse | DeferredResponse:
    made = [(marker, _written(marker, context)) for marker in request.markers]

    def respond() -> WriteTxnMarkersResponse:
        return WriteTxnMarkersResponse(
            markers=tuple(
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=tuple(
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=tuple(
                                WritableTxnMarkerPartitionResult(partition_index=index, error_code=error())
                                for index, error in zip(topic.partition_indexes, errors, strict=True)
                            ),
                        )
                        for topic, errors in zip(marker.topics, of_topics, strict=True)
                    ),
                )
                for marker, of_topics in made
            )
        )

    return context.coordinator.log.then(respond)


def _written(marker: WritableTxnMarker, context: RequestContext) -> list[list[Callable[[], int]]]:
    """Write a marker to its partitions; return the functions that return their errors once the log has it."""
    said = EndMarker(
        marker.producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        marker.transaction_result,
        marker.transaction_version,
    )
    return [
        [_written_to(topic.name, index, said, context) for index in topic.partition_indexes] for topic in marker.topics
    ]


def _written_to(name: str, index: int, marker: EndMarker, context: RequestContext) -> Callable[[], int]:
    """Write a marker to a partition; return the function that returns its error once the log has it."""
    topic = context.cluster.topic(name)
    partition = (topic and topic.partition(index)) or None
    node_id = context.node.node_id
    has_replica = partition is not None and node_id in partition.replicas
    error: int = leader_error(partition if has_replica else None, node_id, NO_EPOCH)
    if error or topic is None or partition is None:
        return lambda: error
    if name == OFFSETS_TOPIC:
        return _written_to_offsets(index, marker, context)
    append = write_marker(context.log_manager, topic, partition, marker, context.now_ms)
    if isinstance(append, ErrorCode):
        refused = append
        return lambda: refused
    written = append
    return lambda: written.error


def _written_to_offsets(index: int, marker: EndMarker, context: RequestContext) -> Callable[[], int]:
    """Write a marker to an offsets partition, unless the producer has a newer epoch there."""
    pending = context.coordinator.pending_offsets.get(index)
    if pending is not None and marker.producer_epoch < pending.newest_epoch(marker.producer_id):
        return lambda: ErrorCode.INVALID_PRODUCER_EPOCH
    error = 0

    def settle(written: int) -> None:
        nonlocal error
        error = written

    end_offsets(context.coordinator, index, marker, context.now_ms, settle)
    return lambda: error
