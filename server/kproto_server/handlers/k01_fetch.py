"""Fetch (API key 1): records from an offset on, or a wait for them (BA-70..77).

A fetch that finds less than ``min_bytes`` is parked for ``max_wait_ms``; whatever is appended meanwhile has it look
again. An error of a partition's log ends the wait at once; a partition that does not exist does so only where no other
is left, as real brokers have it.

DEVIATION: no fetch sessions. The answer's session id is always 0, which tells a client to go on without (BA-76).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.messages.k01_fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
)
from kproto.messages.k01_fetch import (
    PartitionData as PartitionAnswer,
)
from kproto_server.call import Wait, Waker
from kproto_server.handlers._partitions import leader_error
from kproto_server.topic_log.conversion import down_converted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.call import Call
    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.topic_log.partition_data import PartitionData

TIMESTAMPS_SINCE, MAX_BYTES_SINCE, BATCHES_SINCE = 2, 3, 4
SESSIONS_SINCE = 7
FOLLOWERS_SINCE = 11
"""From here on consumers may read from any replica (KIP-392)."""
IDS_SINCE = 13
LEADER_HINTS_SINCE = 16
"""From here on an answer names the leader that a client should have asked (KIP-951)."""

FINAL_EPOCH = -1
INITIAL_EPOCH = 0

NO_EPOCH = -1
NO_LIMIT = 2**31 - 1
UNKNOWN_OFFSET = -1


class Budget:
    """What is left of the bytes that an answer may have."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.is_untouched = True

    def take(self, size: int) -> None:
        if size:
            self.is_untouched = False
            self.left = max(0, self.left - size)


class Read(NamedTuple):
    """What became of one partition of the request."""

    data: PartitionAnswer
    is_missing: bool
    """The partition does not exist: it takes no part in the wait."""


def handle(request: FetchRequest, call: Call) -> FetchResponse | Wait:
    refusal = _session_error(request, call.api_version)
    if refusal:
        return FetchResponse(error_code=refusal, responses=())
    response, can_wait = _fetch(request, call)
    if can_wait and request.max_wait_ms > 0 and _size(response) < request.min_bytes:
        return _LongPoll(request, call).wait()
    return response


class _LongPoll:
    """A fetch that waits for enough to be appended."""

    def __init__(self, request: FetchRequest, call: Call) -> None:
        self._request = request
        self._call = call
        self._waker = Waker(on_abandon=self._forget)
        self._data: list[PartitionData] = []

    def wait(self) -> Wait:
        self._listen()
        return Wait(self._call.now_ms + self._request.max_wait_ms, self._answer, self._waker)

    def _listen(self) -> None:
        self._data = [partition.make_data() for partition in _partitions(self._request, self._call)]
        for data in self._data:
            data.waiters[self._appended] = None

    def _appended(self) -> None:
        """Something was appended to a partition: it is the end of the wait if it is enough."""
        response, can_wait = _fetch(self._request, self._call)
        if not can_wait or _size(response) >= self._request.min_bytes:
            self._waker.wake()

    def _forget(self) -> None:
        for data in self._data:
            data.waiters.pop(self._appended, None)

    def _answer(self) -> FetchResponse:
        self._forget()
        return _fetch(self._request, self._call)[0]


def _partitions(request: FetchRequest, call: Call) -> Iterator[Partition]:
    """Yield the partitions that a request names and that there are."""
    by_id, cluster = call.api_version >= IDS_SINCE, call.state.cluster
    for asked in request.topics:
        topic = cluster.topic_by_id(asked.topic_id) if by_id else cluster.topic(asked.topic)
        for named in asked.partitions:
            partition = topic and topic.partition(named.partition)
            if partition:
                yield partition


def _size(response: FetchResponse) -> int:
    return sum(len(partition.records or b"") for topic in response.responses for partition in topic.partitions)


def _session_error(request: FetchRequest, api_version: int) -> ErrorCode:
    """Refuse a request that goes on with a session: there are none."""
    if api_version >= SESSIONS_SINCE and request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    return ErrorCode.NONE


def _fetch(request: FetchRequest, call: Call) -> tuple[FetchResponse, bool]:
    """Return the answer as of now, and whether a client has to wait for it: nothing is wrong, and nothing is there."""
    topics = []
    reads: list[Read] = []
    budget = Budget(request.max_bytes if call.api_version >= MAX_BYTES_SINCE else NO_LIMIT)
    for asked in request.topics:
        of_topic = list(_topic(asked, request, budget, call))
        reads += of_topic
        topics.append(
            FetchableTopicResponse(
                topic=asked.topic, topic_id=asked.topic_id, partitions=tuple(read.data for read in of_topic)
            )
        )
    existing = [read for read in reads if not read.is_missing]
    can_wait = bool(existing) and not any(read.data.error_code for read in existing)
    return FetchResponse(responses=tuple(topics), node_endpoints=_endpoints(reads, call)), can_wait


def _topic(asked: FetchTopic, request: FetchRequest, budget: Budget, call: Call) -> Iterator[Read]:
    by_id = call.api_version >= IDS_SINCE
    cluster = call.state.cluster
    topic = cluster.topic_by_id(asked.topic_id) if by_id else cluster.topic(asked.topic)
    # A partition that stands twice counts once, as it stands last.
    for partition in {partition.partition: partition for partition in asked.partitions}.values():
        yield _partition(topic, partition, request, budget, call)


def _partition(topic: Topic | None, asked: FetchPartition, request: FetchRequest, budget: Budget, call: Call) -> Read:
    if topic is None and call.api_version >= IDS_SINCE:
        return _missing(asked, ErrorCode.UNKNOWN_TOPIC_ID, call)
    partition = topic and topic.partition(asked.partition)
    if not partition:
        return _missing(asked, call.state.profile.unknown_topic_fetch_error(call.api_version), call)
    error = _error(partition, asked, call)
    if error:
        return Read(_failed(partition, asked, error, call), is_missing=False)
    return Read(
        PartitionAnswer(
            partition_index=asked.partition,
            error_code=ErrorCode.NONE,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.high_watermark,
            log_start_offset=partition.log_start_offset,
            aborted_transactions=() if request.isolation_level else None,
            records=_records(partition, asked, budget, call),
        ),
        is_missing=False,
    )


def _records(partition: Partition, asked: FetchPartition, budget: Budget, call: Call) -> bytes:
    """Read what there is, as far as it may be; the first records of an answer whatever their size (BA-72)."""
    whole = budget.is_untouched and call.api_version >= MAX_BYTES_SINCE
    limit = min(asked.partition_max_bytes, budget.left)
    records = partition.data.read(asked.fetch_offset, limit, whole=whole)
    if not records and limit > 0 and call.api_version < MAX_BYTES_SINCE:
        # Before version 3 a batch that is too large was cut off, and the client asked again for more.
        records = partition.data.read(asked.fetch_offset, 0, whole=True)[:limit]
    if records and call.api_version < BATCHES_SINCE:
        records = down_converted(records, asked.fetch_offset, magic=0 if call.api_version < TIMESTAMPS_SINCE else 1)
    budget.take(len(records))
    return records


def _error(partition: Partition, asked: FetchPartition, call: Call) -> ErrorCode:
    any_replica = call.api_version >= FOLLOWERS_SINCE
    error = leader_error(partition, call.node.node_id, asked.current_leader_epoch, any_replica=any_replica)
    if error:
        return error
    in_range = partition.log_start_offset <= asked.fetch_offset <= partition.high_watermark
    if not in_range or asked.last_fetched_epoch > partition.leader_epoch:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    return ErrorCode.NONE


def _missing(asked: FetchPartition, error: int, call: Call) -> Read:
    data = PartitionAnswer(
        partition_index=asked.partition,
        error_code=error,
        high_watermark=UNKNOWN_OFFSET,
        aborted_transactions=() if call.state.profile.missing_partition_lists_no_aborts else None,
        records=b"",
    )
    return Read(data, is_missing=True)


def _failed(partition: Partition, asked: FetchPartition, error: ErrorCode, call: Call) -> PartitionAnswer:
    leader = LeaderIdAndEpoch()
    if call.api_version >= LEADER_HINTS_SINCE and error in (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
    ):
        leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
    return PartitionAnswer(
        partition_index=asked.partition,
        error_code=error,
        high_watermark=UNKNOWN_OFFSET,
        current_leader=leader,
        aborted_transactions=None,
        records=b"",
    )


def _endpoints(reads: list[Read], call: Call) -> tuple[NodeEndpoint, ...]:
    """Tell the addresses of the leaders that the answer points to."""
    leaders = {read.data.current_leader.leader_id for read in reads}
    nodes = (node for node in call.state.cluster.alive_nodes() if node.node_id in leaders)
    return tuple(NodeEndpoint(node_id=n.node_id, host=n.host, port=n.port, rack=n.rack) for n in nodes)
