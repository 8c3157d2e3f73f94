"""Batches of Produce that a log has taken, and their responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k00_produce import BatchIndexAndErrorMessage, LeaderIdAndEpoch, PartitionProduceResponse
from kproto_server.handlers._replica_wait import error_of
from kproto_server.partition_log.producers import NO_PRODUCER_ID, BatchMetadata, sequence_after
from kproto_server.partition_log.validation import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.partition_log.partition_data import Append, PartitionData
    from kproto_server.partition_log.validation import Accepted
    from kproto_server.requests.context import RequestContext

NO_OFFSET = -1
NO_TIMESTAMP = -1


class AppendResult:
    """A batch that was appended to a log; the log may still have to write it."""

    __slots__ = ("_append", "_append_ms", "_replication_error", "partition", "topic")

    error_code = 0

    def __init__(self, topic: Topic, partition: Partition, append: Append, append_ms: int) -> None:
        self.topic: Topic = topic
        self.partition: Partition = partition
        self._append = append
        self._append_ms = append_ms
        self._replication_error: Callable[[], ErrorCode | None] | None = None

    def replicated(self, context: RequestContext) -> tuple[Topic, Partition]:
        """Have the response say whether the batch is replicated when it is made; return the partition."""
        place = self.topic, self.partition
        self._replication_error = lambda: error_of(place, context)
        return place

    def response(self) -> PartitionProduceResponse:
        append = self._append
        if append.error:
            return refused_response(self.partition.index, Refused(ErrorCode(append.error)))
        response = appended_response(self.partition, append.base_offset, self._append_ms)
        if self._replication_error is None:
            return response
        error = self._replication_error()
        return response.replace(error_code=ErrorCode.REQUEST_TIMED_OUT if error is None else error)


def append_batch(
    data: PartitionData, partition: Partition, accepted: Accepted, is_transactional: bool, context: RequestContext
) -> Append:
    """Append a batch that passed all checks, and note it for its producer.

    Raises:
        OSError: the log cannot begin the leader epoch.
    """
    batch, record_count, last_offset_delta, max_timestamp, producer_id, epoch, first_sequence = accepted
    if data.is_in_memory:
        context.log_manager.wrote_to_memory(len(batch))
    append = data.append(batch, last_offset_delta, max_timestamp, partition.leader_epoch, producer_id)
    if producer_id != NO_PRODUCER_ID and not append.error:
        last_sequence = sequence_after(first_sequence, record_count - 1)
        noted = BatchMetadata(first_sequence, last_sequence, append.base_offset, max_timestamp)
        data.producers.add(producer_id, epoch, noted, context.now_ms, is_transactional=is_transactional)
    return append


def appended_response(partition: Partition, base_offset: int, append_ms: int) -> PartitionProduceResponse:
    """Return the response to a batch that the log has."""
    return PartitionProduceResponse(
        index=partition.index,
        error_code=0,
        base_offset=base_offset,
        log_append_time_ms=append_ms,
        log_start_offset=partition.log_start_offset,
    )


def refused_response(
    index: int, refused: Refused, elsewhere: Partition | None = None, *, log_start: int = NO_OFFSET
) -> PartitionProduceResponse:
    """Return the response to records that are not written.

    ``elsewhere``: the partition, if the response names its leader; ``log_start``: its log start offset.
    """
    leader = LeaderIdAndEpoch()
    if elsewhere is not None and refused.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        leader = LeaderIdAndEpoch(leader_id=elsewhere.leader, leader_epoch=elsewhere.leader_epoch)
    return PartitionProduceResponse(
        index=index,
        error_code=refused.error,
        base_offset=NO_OFFSET,
        log_start_offset=log_start if refused.reached_log else NO_OFFSET,
        record_errors=tuple(
            BatchIndexAndErrorMessage(batch_index=error.batch_index, batch_index_error_message=error.message)
            for error in refused.record_errors
        ),
        error_message=refused.message,
        current_leader=leader,
    )
