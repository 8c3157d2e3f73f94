"""Fetch (API key 1): return the records from an offset on, or wait for them (BA-70..77).

Theory of operation. A request names partitions, or only changes the partitions of its fetch session
(`partition_log.fetch_sessions`). All of them are read at once, within the size limits of the request. The response is
due at once if a partition has an error, if the records have ``min_bytes``, or if no partition exists. Otherwise the
request becomes a delayed operation for at most ``max_wait_ms``: each append to one of its partitions completes the
operation if there are enough bytes now. The response has the records that exist when it is made.

Size limits are soft: the first batch of a response is returned whatever its size, so that a consumer always makes
progress (BA-72).

Consumers that read committed records receive none from the last stable offset on, and with the records the aborted
transactions among them (BA-75). The end of a transaction raises the last stable offset: it is an append, too.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k01_fetch import FetchableTopicResponse, FetchRequest, FetchResponse, NodeEndpoint
from kproto.messages.k01_fetch import PartitionData as PartitionResponse
from kproto_server.configuration.topic_configs import topic_config
from kproto_server.deferred import CloseConnection, Completion, DelayedOperation, at_turn, in_slices
from kproto_server.handlers._fetched_partition import (
    IDS_SINCE,
    MAX_BYTES_SINCE,
    NO_DIVERGENCE,
    Budget,
    Read,
    error_of,
    has_diverged,
    not_compressed_for,
    read_partition,
    readable_bytes,
)
from kproto_server.handlers._partitions import leader_endpoints, topic_names, with_records
from kproto_server.handlers._unreadable import error_of_read
from kproto_server.partition_log.conversion import conversion
from kproto_server.partition_log.decoding import CONTENT_MAX_BYTES, DecodingBudget
from kproto_server.partition_log.fetch_behavior import FetchBehavior
from kproto_server.partition_log.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, RequestedPartition
from kproto_server.storage.errors import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.partition_log.fetch_sessions import FetchSession
    from kproto_server.partition_log.partition_data import PartitionData
    from kproto_server.requests.context import RequestContext

TIMESTAMPS_SINCE, BATCHES_SINCE, SESSIONS_SINCE = 2, 4, 7

ISOLATION_LEVELS = (0, 1)
NO_EPOCH = -1
CONVERSION = "message.downconversion.enable"
NO_LIMIT = 2**31 - 1
RESPONSE_MAX_BYTES = 24 << 20
"""What a response has at most, unless its first batch is larger: to copy it takes 40 ms. DEVIATION: 55 MB in Kafka from
2.5 on (`fetch.max.bytes`, KIP-541), no limit of the broker before."""
CONVERTED_MAX_BYTES = 1 << 20
"""The same for old versions, whose records are converted one by one: bytes before the conversion."""
CONVERTED_RECORDS_MAX = 15_000
"""Records that are converted for a response, at most, in 150 ms; more only to find the first one for the response."""
SLICE_RECORDS = 3_000
"""After so many, other connections are served."""
SMALL_BYTES = 2 << 20
"""A response with more records than that waits for its turn: to copy them takes several milliseconds."""


def handle(request: FetchRequest, context: RequestContext) -> FetchResponse | DelayedOperation:
    if request.isolation_level not in ISOLATION_LEVELS:
        return _refuse_isolation_level(request, context)
    fetch = _begin(request, context)
    if isinstance(fetch, ErrorCode):
        return FetchResponse(error_code=fetch, responses=())
    return with_records(fetch.topic_names(), context, lambda: _read(fetch, _respond))


def _read(
    fetch: Fetch, respond: Callable[[Fetch, list[Read]], FetchResponse | DelayedOperation]
) -> FetchResponse | DelayedOperation:
    """Read what a request fetches, at a turn if it is large, and respond."""
    if fetch.is_large():
        return at_turn(lambda: respond(fetch, fetch.read()), fetch.context.now_ms)
    return respond(fetch, fetch.read())


def _refuse_isolation_level(request: FetchRequest, context: RequestContext) -> FetchResponse | DelayedOperation:
    """Return the error of an unknown isolation level, if a partition exists.

    Raises:
        CloseConnection: the release does not read such a request.
    """
    behavior, version = context.behavior(FetchBehavior), context.api_version
    if not behavior.responds_to_unknown_isolation_level:
        raise CloseConnection(f"Fetch: no isolation level {request.isolation_level}")
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    known = Fetch(request, _requested(request), None, context)
    if request.topics and not any(known.partitions()):
        return known.respond(known.read())
    if version >= IDS_SINCE:
        return FetchResponse(error_code=error, responses=())
    failed = known.respond([not_compressed_for(fetch, context, error) for _, _, fetch in _requested(request)])
    assert isinstance(failed, FetchResponse), "nothing to convert in versions with isolation levels"
    return failed.replace(error_code=error if version >= SESSIONS_SINCE else ErrorCode.NONE)


def _requested(request: FetchRequest) -> list[RequestedPartition]:
    """Return the partitions that a request names; of a duplicate partition the last one counts."""
    topics = request.topics
    requested = [
        RequestedPartition(topic.topic, topic.topic_id, partition)
        for topic in topics
        for partition in {partition.partition: partition for partition in topic.partitions}.values()
    ]
    if len(topics) > 1 and len({(topic.topic, topic.topic_id) for topic in topics}) < len(topics):
        return list({one.key: one for one in requested}.values())
    return requested


def _respond(fetch: Fetch, reads: list[Read]) -> FetchResponse | DelayedOperation:
    lacking_bytes = fetch.lacking_after(reads) if fetch.request.max_wait_ms > 0 else 0
    return _DelayedFetch(fetch, lacking_bytes).wait() if lacking_bytes else fetch.respond(reads)


def _begin(request: FetchRequest, context: RequestContext) -> Fetch | ErrorCode:
    """Return what the request fetches, with or without a session (BA-76), or the error of its session."""
    by_topic_id = context.api_version >= IDS_SINCE
    requested = _requested(request)
    if context.api_version < SESSIONS_SINCE:
        return Fetch(request, requested, None, context)
    sessions = context.log_manager.fetch_sessions(context.node.node_id)
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if request.session_id != NO_SESSION:
            sessions.close(request.session_id)
        session = None
        if request.session_epoch == INITIAL_EPOCH:
            session = sessions.open(requested, context.now_ms, by_topic_id=by_topic_id)
        return Fetch(request, requested, session, context)
    resumed = sessions.resume(request.session_id, request.session_epoch, context.now_ms, by_topic_id=by_topic_id)
    if isinstance(resumed, ErrorCode):
        return resumed
    session = resumed
    forgotten = [
        (topic.topic, topic.topic_id, number) for topic in request.forgotten_topics_data for number in topic.partitions
    ]
    if not sessions.update(session, requested, forgotten):
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if not len(session):
        # The consumer fetches nothing any more: its session ends.
        sessions.close(session.session_id)
        return Fetch(request, requested, None, context)
    session.next_epoch()
    requested = list(session.requested())
    if not context.behavior(FetchBehavior).sessions_check_leader_epochs:
        requested = [one._replace(fetch=one.fetch.replace(current_leader_epoch=NO_EPOCH)) for one in requested]
    return Fetch(request, requested, session, context, is_incremental=True)


class Fetch:
    """One request: the partitions that it fetches, and its response."""

    def __init__(
        self,
        request: FetchRequest,
        requested: list[RequestedPartition],
        session: FetchSession | None,
        context: RequestContext,
        *,
        is_incremental: bool = False,
    ) -> None:
        self.request = request
        self.context = context
        self._requested = requested
        self._session = session
        self._is_incremental = is_incremental

    def _topic(self, requested: RequestedPartition) -> Topic | None:
        context = self.context
        if context.api_version < IDS_SINCE:
            return context.cluster.topic(requested.topic)
        return context.cluster.topic_by_id(requested.topic_id)

    def topic_names(self) -> set[str]:
        """Return the names of the topics that it fetches, as far as they are known."""
        if self.context.api_version < IDS_SINCE:
            return {one.topic for one in self._requested}
        return topic_names([one.topic_id for one in self._requested], self.context)

    def lacks_index(self) -> bool:
        """Whether a topic was compacted, and has many batches to index before one is read."""
        unindexed = self.context.log_manager.unindexed
        return bool(unindexed) and not unindexed.keys().isdisjoint(self.topic_names())

    def partitions(self) -> Iterator[Partition]:
        """Yield the partitions that exist."""
        for requested in self._requested:
            topic = self._topic(requested)
            partition = topic and topic.partition(requested.fetch.partition)
            if partition:
                yield partition

    @property
    def _max_bytes(self) -> int:
        """The bytes of records that the response may have, by the request and by the broker."""
        api_version = self.context.api_version
        limit = RESPONSE_MAX_BYTES if api_version >= BATCHES_SINCE else CONVERTED_MAX_BYTES
        return min(self.request.max_bytes if api_version >= MAX_BYTES_SINCE else NO_LIMIT, limit)

    def is_large(self) -> bool:
        """Return whether the partitions have more records for the response than may be copied at once."""
        left = SMALL_BYTES
        if self._max_bytes <= left:
            return False
        for requested in self._requested:
            fetch, topic = requested.fetch, self._topic(requested)
            partition = topic and topic.partition(fetch.partition)
            if partition and fetch.fetch_offset < partition.high_watermark:
                left -= readable_bytes(partition, fetch, self.request.isolation_level)
                if left < 0:
                    return True
        return False

    def read(self) -> list[Read]:
        """Read all partitions, within the limits of the request."""
        request, context = self.request, self.context
        budget = Budget(self._max_bytes)
        return [read_partition(self._topic(one), one.fetch, request, budget, context) for one in self._requested]

    def lacking_after(self, reads: list[Read]) -> int:
        """Return how many bytes are missing until the response is due; 0: there are as many as requested, or a
        partition has an error."""
        existing = [read for read in reads if not read.is_missing]
        if not existing or any(read.data.error_code or read.data.diverging_epoch != NO_DIVERGENCE for read in existing):
            return 0
        size = sum(len(read.data.records or b"") for read in existing)
        # Batches are whole here, and those of Kafka are truncated: it counts the bytes up to the limit.
        return self.lacking_bytes(len(existing)) if 0 < size < self._min_bytes else max(0, self._min_bytes - size)

    @property
    def _min_bytes(self) -> int:
        return min(self.request.min_bytes, self._max_bytes)

    def lacking_bytes(self, existing: int) -> int:
        """Return the same as `lacking_after` by the sizes of batches: nothing is read.

        ``existing``: how many partitions existed at the request. If there are fewer, the response is due.
        """
        lacking = self._min_bytes
        for requested in self._requested:
            fetch, topic = requested.fetch, self._topic(requested)
            partition = topic and topic.partition(fetch.partition)
            if not partition:
                continue
            existing -= 1
            if error_of(partition, fetch, self.context) or has_diverged(partition, fetch, self.context):
                return 0
            lacking -= readable_bytes(partition, fetch, self.request.isolation_level)
            if lacking <= 0:
                return 0
        return 0 if existing > 0 else lacking

    def respond(self, reads: list[Read]) -> FetchResponse | DelayedOperation:
        """Return the response with what was read; an old version's records are converted first, in slices."""
        if self.context.api_version >= BATCHES_SINCE:
            return self._response(reads)
        return in_slices(self._converted(reads), self.context.now_ms)

    def _converted(self, reads: list[Read]) -> Generator[None, None, FetchResponse]:
        """Convert the records. When the budget is used up, further partitions get none."""
        budget = DecodingBudget(CONVERTED_RECORDS_MAX, CONTENT_MAX_BYTES, SLICE_RECORDS)
        converted = []
        for requested, read in zip(self._requested, reads, strict=True):
            if not read.is_missing and self._forbids_conversion(requested, read):
                converted.append(not_compressed_for(requested.fetch, self.context, ErrorCode.UNSUPPORTED_VERSION))
            elif read.data.records:
                converted.append((yield from self._converted_read(requested, read, read.data.records, budget)))
            else:
                converted.append(read)
        return self._response(converted)

    def _forbids_conversion(self, requested: RequestedPartition, read: Read) -> bool:
        context, topic = self.context, self._topic(requested)
        has_records = read.data.records or context.behavior(FetchBehavior).refuses_to_convert_nothing
        if topic is None or not has_records or read.data.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
            return False
        return topic_config(context.settings.of(context.node.node_id), topic.configs, CONVERSION).lower() == "false"

    def _converted_read(
        self, requested: RequestedPartition, read: Read, batches: bytes, budget: DecodingBudget
    ) -> Generator[None, None, Read]:
        fetch, context = requested.fetch, self.context
        if budget.is_used_up:
            return read._replace(data=read.data.replace(records=b""))
        magic = 0 if context.api_version < TIMESTAMPS_SINCE else 1
        try:
            records = yield from conversion(batches, fetch.fetch_offset, magic=magic, budget=budget)
        except UNREADABLE as error:
            return not_compressed_for(fetch, context, error_of_read(error, requested.topic, fetch.partition))
        if records is None:
            return not_compressed_for(fetch, context)
        return read._replace(data=read.data.replace(records=records))

    def _response(self, reads: list[Read]) -> FetchResponse:
        session = self._session
        returned: list[tuple[RequestedPartition, PartitionResponse]] = []
        for requested, read in zip(self._requested, reads, strict=True):
            # The session has to know what a full response returns, too.
            must_return = session is None or session.must_return(requested, read.data)
            if must_return or not self._is_incremental:
                returned.append((requested, read.data))
        topics = [
            FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=tuple(data for _, data in of_topic))
            for (name, topic_id), of_topic in groupby(returned, key=lambda pair: (pair[0].topic, pair[0].topic_id))
        ]
        return FetchResponse(
            session_id=NO_SESSION if session is None else session.session_id,
            responses=tuple(topics),
            node_endpoints=_leader_endpoints(reads, self.context),
        )


class _DelayedFetch:
    """A fetch that waits for appended records.

    It is a waiter of all its partitions until the response is made, or the connection ends.
    """

    def __init__(self, fetch: Fetch, lacking_bytes: int) -> None:
        self._fetch = fetch
        self._deadline_ms = fetch.context.now_ms + fetch.request.max_wait_ms
        self._completion = Completion()
        self._data: list[PartitionData] = []
        self._size = 0
        """Bytes of all partitions."""
        self._lacking = lacking_bytes
        """At least so many bytes are missing until the response is due."""
        self._lacks_index = False
        """Whether the operation is complete as a partition was compacted: it waits on behind the steps of its index."""

    def wait(self) -> DelayedOperation:
        self._completion = Completion(on_abandoned=self._stop_waiting)
        self._data = [partition.make_data() for partition in self._fetch.partitions()]
        for data in self._data:
            data.waiters[self._appended] = None
        self._size = sum(data.size_bytes for data in self._data)
        return DelayedOperation(self._deadline_ms, self._end_wait, self._completion)

    def _appended(self) -> None:
        """Called after each append to one of the partitions: end the wait if the records suffice.

        Nothing is read here, since an append may end the wait of many clients; and the batches are looked at only if
        they can be enough. What is no append has another reason: the end of a transaction, a deletion, a new leader.
        """
        if self._completion.is_complete:
            return
        if self._fetch.lacks_index():
            self._lacks_index = True
            self._completion.complete()
            return
        size = sum(data.size_bytes for data in self._data)
        appended, self._size = size - self._size, size
        self._lacking -= appended
        if appended <= 0 or self._lacking <= 0 or self._fetch.request.isolation_level:
            self._lacking = self._fetch.lacking_bytes(len(self._data))
            if not self._lacking:
                self._completion.complete()

    def _stop_waiting(self) -> None:
        for data in self._data:
            data.waiters.pop(self._appended, None)

    def _end_wait(self) -> FetchResponse | DelayedOperation:
        self._stop_waiting()
        return with_records(self._fetch.topic_names(), self._fetch.context, self._response)

    def _response(self) -> FetchResponse | DelayedOperation:
        fetch = self._fetch
        if self._lacks_index and fetch.context.coordinator.clock.now_ms() < self._deadline_ms:
            self._lacks_index = False
            self._lacking = fetch.lacking_bytes(len(self._data))
            if self._lacking:
                return self.wait()
        return _read(fetch, Fetch.respond)


def _leader_endpoints(reads: list[Read], context: RequestContext) -> tuple[NodeEndpoint, ...]:
    """Return the addresses of the leaders that the response names."""
    leaders = {read.data.current_leader.leader_id for read in reads}
    return leader_endpoints(NodeEndpoint, leaders, context)
