"""Fetch (API key 1): records from an offset on, or a wait for them (BA-70..77).

A fetch that finds less than ``min_bytes`` is parked for ``max_wait_ms``; whatever is appended meanwhile has it look
again. An error of a partition's log ends the wait at once; a partition that does not exist does so only where no other
is left, as real brokers have it.

What a request with a session fetches is what the session has (`topic_log.fetch_sessions`).
"""

from __future__ import annotations

from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.messages.k01_fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
)
from kproto.messages.k01_fetch import (
    PartitionData as PartitionAnswer,
)
from kproto_server.handlers._partitions import end_of_epoch, leader_error, nodes_with_ids, topic_to_read
from kproto_server.partition_log.conversion import down_converted
from kproto_server.partition_log.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, RequestedPartition
from kproto_server.releases.release import VersionBehavior
from kproto_server.requests.deferred import Completion, DelayedOperation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.partition_log.fetch_sessions import FetchSession
    from kproto_server.partition_log.partition_data import PartitionData
    from kproto_server.requests.context import RequestContext

TIMESTAMPS_SINCE, MAX_BYTES_SINCE, BATCHES_SINCE = 2, 3, 4
SESSIONS_SINCE = 7
FOLLOWERS_SINCE = 11
"""From here on consumers may read from any replica (KIP-392)."""
DIVERGENCE_SINCE = 12
"""From here on a fetcher may say in which epoch it has read last, and is told where its log leaves the leader's."""
IDS_SINCE = 13
LEADER_HINTS_SINCE = 16
"""From here on an answer names the leader that a client should have asked (KIP-951)."""

NO_EPOCH = -1
NO_LIMIT = 2**31 - 1
UNKNOWN_OFFSET = -1
IN_LINE = EpochEndOffset()
"""What the fetcher has read is what the log holds."""


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


class FetchBehavior(VersionBehavior):
    """What Kafka releases do differently in Fetch."""

    def unknown_topic_error(self, api_version: int) -> ErrorCode:
        """Return the error for a topic or partition name that does not exist: UNKNOWN_TOPIC_OR_PARTITION, but by
        mistake UNSUPPORTED_COMPRESSION_TYPE in 2.1 below v10 (BA-74; measured on 2.1.1 and 2.2.2)."""
        if self.release == (2, 1) and api_version < 10:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    @cached_property
    def aborted_transactions_of_missing_partition(self) -> tuple[()] | None:
        """The list of aborted transactions for a partition that does not exist: empty from 3.0 on, before null
        (measured on 2.8.2 and 3.0.2)."""
        return () if self.at_least(3, 0) else None

    @cached_property
    def records_beside_unsupported_compression(self) -> bytes | None:
        """The records field beside UNSUPPORTED_COMPRESSION_TYPE: null from 3.0 on, before empty (measured on 2.8.2 and
        3.0.2)."""
        return None if self.at_least(3, 0) else b""

    @cached_property
    def returns_last_stable_offset_to_all(self) -> bool:
        """Whether consumers that read uncommitted records receive the last stable offset, too, instead of -1 (measured
        on 2.0.1 and 2.1.1)."""
        return self.at_least(2, 1)

    @cached_property
    def sessions_check_leader_epochs(self) -> bool:
        """Whether later fetches of a session check the leader epoch that the consumer knows; the first fetch always
        does (measured on 2.4.1 and 2.5.1)."""
        return self.at_least(2, 5)


def handle(request: FetchRequest, context: RequestContext) -> FetchResponse | DelayedOperation:
    fetch = _begin(request, context)
    if isinstance(fetch, ErrorCode):
        return FetchResponse(error_code=fetch, responses=())
    reads = fetch.read()
    if request.max_wait_ms > 0 and not fetch.is_enough(reads):
        return _LongPoll(fetch).wait()
    return fetch.response(reads)


def _begin(request: FetchRequest, context: RequestContext) -> Fetch | ErrorCode:
    """Find out what is to be fetched, by itself or in a session (BA-76)."""
    by_topic_id = context.api_version >= IDS_SINCE
    wanted = [
        RequestedPartition(topic.topic, topic.topic_id, partition)
        for topic in request.topics
        # A partition that stands twice counts once, as it stands last.
        for partition in {partition.partition: partition for partition in topic.partitions}.values()
    ]
    if context.api_version < SESSIONS_SINCE:
        return Fetch(request, wanted, None, context)
    sessions = context.log_manager.fetch_sessions(context.node.node_id)
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if request.session_id != NO_SESSION:
            sessions.close(request.session_id)
        opens = request.session_epoch == INITIAL_EPOCH
        return Fetch(
            request, wanted, sessions.open(wanted, context.now_ms, by_topic_id=by_topic_id) if opens else None, context
        )
    session = sessions.resume(request.session_id, request.session_epoch, context.now_ms, by_topic_id=by_topic_id)
    if isinstance(session, ErrorCode):
        return session
    forgotten = [
        (topic.topic, topic.topic_id, number) for topic in request.forgotten_topics_data for number in topic.partitions
    ]
    session.update(wanted, forgotten)
    if not len(session):
        sessions.close(session.session_id)
        return Fetch(request, wanted, None, context)
    session.next_epoch()
    wanted = list(session.requested())
    if not context.behavior(FetchBehavior).sessions_check_leader_epochs:
        wanted = [one._replace(fetch=one.fetch.replace(current_leader_epoch=NO_EPOCH)) for one in wanted]
    return Fetch(request, wanted, session, context, is_incremental=True)


class Fetch:
    """One request: what it fetches, and how its answer is put together."""

    def __init__(
        self,
        request: FetchRequest,
        wanted: list[RequestedPartition],
        session: FetchSession | None,
        context: RequestContext,
        *,
        is_incremental: bool = False,
    ) -> None:
        self.request = request
        self.context = context
        self._wanted = wanted
        self._session = session
        self._is_incremental = is_incremental

    def topic(self, wanted: RequestedPartition) -> Topic | None:
        context = self.context
        if context.api_version < IDS_SINCE:
            return topic_to_read(wanted.topic, context)
        topic = context.cluster.topic_by_id(wanted.topic_id)
        return topic and topic_to_read(topic.name, context)

    def partitions(self) -> Iterator[Partition]:
        """Yield those that there are."""
        for wanted in self._wanted:
            topic = self.topic(wanted)
            partition = topic and topic.partition(wanted.fetch.partition)
            if partition:
                yield partition

    def read(self) -> list[Read]:
        """Return what there is now."""
        request, context = self.request, self.context
        budget = Budget(request.max_bytes if context.api_version >= MAX_BYTES_SINCE else NO_LIMIT)
        return [_partition(self.topic(wanted), wanted.fetch, request, budget, context) for wanted in self._wanted]

    def is_enough(self, reads: list[Read]) -> bool:
        """Whether nobody has to wait: something is wrong, or there is as much as was asked for."""
        existing = [read for read in reads if not read.is_missing]
        if not existing or any(read.data.error_code or read.data.diverging_epoch != IN_LINE for read in existing):
            return True
        return sum(len(read.data.records or b"") for read in existing) >= self.request.min_bytes

    def response(self, reads: list[Read]) -> FetchResponse:
        session = self._session
        answers: list[tuple[RequestedPartition, PartitionAnswer]] = []
        for wanted, read in zip(self._wanted, reads, strict=True):
            is_news = session is None or session.must_return(wanted, read.data)
            if is_news or not self._is_incremental:
                answers.append((wanted, read.data))
        topics = [
            FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=tuple(data for _, data in of_topic))
            for (name, topic_id), of_topic in groupby(answers, key=lambda pair: (pair[0].topic, pair[0].topic_id))
        ]
        return FetchResponse(
            session_id=NO_SESSION if session is None else session.session_id,
            responses=tuple(topics),
            node_endpoints=_endpoints(reads, self.context),
        )


class _LongPoll:
    """A fetch that waits for enough to be appended."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._waker = Completion(on_abandon=self._forget)
        self._data: list[PartitionData] = []
        self._reads: list[Read] | None = None
        """What ended the wait."""

    def wait(self) -> DelayedOperation:
        self._data = [partition.make_data() for partition in self._fetch.partitions()]
        for data in self._data:
            data.waiters[self._appended] = None
        context = self._fetch.context
        return DelayedOperation(context.now_ms + self._fetch.request.max_wait_ms, self._answer, self._waker)

    def _appended(self) -> None:
        """Something was appended to a partition: it is the end of the wait if it is enough."""
        if self._reads is None:
            reads = self._fetch.read()
            if self._fetch.is_enough(reads):
                self._reads = reads
                self._waker.wake()

    def _forget(self) -> None:
        for data in self._data:
            data.waiters.pop(self._appended, None)

    def _answer(self) -> FetchResponse:
        self._forget()
        return self._fetch.response(self._reads or self._fetch.read())


def _partition(
    topic: Topic | None, asked: FetchPartition, request: FetchRequest, budget: Budget, context: RequestContext
) -> Read:
    if topic is None and context.api_version >= IDS_SINCE:
        return _missing(asked, ErrorCode.UNKNOWN_TOPIC_ID, context)
    partition = topic and topic.partition(asked.partition)
    if not partition:
        return _missing(asked, context.behavior(FetchBehavior).unknown_topic_error(context.api_version), context)
    error = _error(partition, asked, context)
    if error:
        return Read(_failed(partition, asked, error, context), is_missing=False)
    diverging = _diverging(partition, asked, context)
    records = _records(partition, asked, budget, context) if diverging == IN_LINE else b""
    if records is None:
        failed = _failed(partition, asked, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, context)
        return Read(
            failed.replace(records=context.behavior(FetchBehavior).records_beside_unsupported_compression),
            is_missing=False,
        )
    knows_stable = request.isolation_level or context.behavior(FetchBehavior).returns_last_stable_offset_to_all
    return Read(
        PartitionAnswer(
            partition_index=asked.partition,
            error_code=ErrorCode.NONE,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.high_watermark if knows_stable else UNKNOWN_OFFSET,
            log_start_offset=partition.log_start_offset,
            diverging_epoch=diverging,
            aborted_transactions=() if request.isolation_level and diverging == IN_LINE else None,
            records=records,
        ),
        is_missing=False,
    )


def _records(partition: Partition, asked: FetchPartition, budget: Budget, context: RequestContext) -> bytes | None:
    """Read what there is, as far as it may be; the first records of an answer whatever their size (BA-72). None: they
    are compressed as this version does not know."""
    whole = budget.is_untouched and context.api_version >= MAX_BYTES_SINCE
    limit = min(asked.partition_max_bytes, budget.left)
    records = partition.data.read(asked.fetch_offset, limit, whole=whole)
    if not records and limit > 0 and context.api_version < MAX_BYTES_SINCE:
        # Before version 3 a batch that is too large was cut off, and the client asked again for more.
        records = partition.data.read(asked.fetch_offset, 0, whole=True)[:limit]
    if records and context.api_version < BATCHES_SINCE:
        converted = down_converted(
            records, asked.fetch_offset, magic=0 if context.api_version < TIMESTAMPS_SINCE else 1
        )
        if converted is None:
            return None
        records = converted
    budget.take(len(records))
    return records


def _error(partition: Partition, asked: FetchPartition, context: RequestContext) -> ErrorCode:
    any_replica = context.api_version >= FOLLOWERS_SINCE
    error = leader_error(partition, context.node.node_id, asked.current_leader_epoch, any_replica=any_replica)
    if error:
        return error
    if _tells_epoch(asked, context):  # then an end before the offset is no error, but where they diverge
        in_range = asked.fetch_offset >= partition.log_start_offset
        in_range = in_range and asked.last_fetched_epoch <= partition.leader_epoch
    else:
        in_range = partition.log_start_offset <= asked.fetch_offset <= partition.high_watermark
    return ErrorCode.NONE if in_range else ErrorCode.OFFSET_OUT_OF_RANGE


def _tells_epoch(asked: FetchPartition, context: RequestContext) -> bool:
    """Whether the fetcher says in which epoch it has read last; a session may remember it from a later version."""
    return asked.last_fetched_epoch >= 0 and context.api_version >= DIVERGENCE_SINCE


def _diverging(partition: Partition, asked: FetchPartition, context: RequestContext) -> EpochEndOffset:
    """Where the log of one who has read up to here, in that epoch, leaves this one (KIP-595)."""
    end = end_of_epoch(partition, asked.last_fetched_epoch) if _tells_epoch(asked, context) else None
    if end is None or (end[0] == asked.last_fetched_epoch and end[1] >= asked.fetch_offset):
        return IN_LINE
    return EpochEndOffset(epoch=end[0], end_offset=end[1])


def _missing(asked: FetchPartition, error: int, context: RequestContext) -> Read:
    data = PartitionAnswer(
        partition_index=asked.partition,
        error_code=error,
        high_watermark=UNKNOWN_OFFSET,
        aborted_transactions=context.behavior(FetchBehavior).aborted_transactions_of_missing_partition,
        records=b"",
    )
    return Read(data, is_missing=True)


def _failed(partition: Partition, asked: FetchPartition, error: ErrorCode, context: RequestContext) -> PartitionAnswer:
    leader = LeaderIdAndEpoch()
    if context.api_version >= LEADER_HINTS_SINCE and error in (
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


def _endpoints(reads: list[Read], context: RequestContext) -> tuple[NodeEndpoint, ...]:
    """Tell the addresses of the leaders that the answer points to."""
    leaders = {read.data.current_leader.leader_id for read in reads}
    nodes = nodes_with_ids(context.cluster, leaders)
    return tuple(NodeEndpoint(node_id=n.node_id, host=n.host, port=n.port, rack=n.rack) for n in nodes)
