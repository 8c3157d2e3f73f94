"""ShareFetch (API key 78): a member of a share group acquires records, and may acknowledge earlier ones.

Theory of operation. The partitions are those of the member's share session; a request names what it changes, and the
partitions with acknowledgements. These come first. Then each partition with available records is read from the first
of them on, and the member acquires what it has read (`share_groups.acquisition`). Without enough bytes the request
waits, at most ``max_wait_ms``: for appended records, and for records that other members give back.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.messages.k78_share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from kproto_server.deferred import Completion, DelayedOperation, at_turn, in_slices
from kproto_server.handlers._partitions import leader_endpoints, leader_error, topic_names
from kproto_server.handlers._share_requests import acknowledge, acknowledgements_of, is_valid, may_read
from kproto_server.handlers._unreadable import error_of_read
from kproto_server.partition_log.lookup import lookup_budget
from kproto_server.share_groups.acquisition import Wanted, acquire, without
from kproto_server.share_groups.log_batches import aborted_spans, fetched_batches, sliced
from kproto_server.share_groups.partitions import LoadedPartition
from kproto_server.share_groups.sessions import FINAL_EPOCH, INITIAL_EPOCH, TopicIdPartition
from kproto_server.share_groups.share_states import SharePartitionKey
from kproto_server.storage.errors import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from kproto_server.cluster.topics import Partition
    from kproto_server.deferred import DeferredResponse
    from kproto_server.partition_log.decoding import DecodingBudget
    from kproto_server.requests.context import RequestContext
    from kproto_server.share_groups.partitions import Outcome
    from kproto_server.share_groups.sessions import ShareSession

NO_EPOCH = -1
ACQUIRE_MODES = (0, 1)
RECORD_LIMIT = 1
"""The acquire mode in which a member never gets more records than it wants (KIP-1206)."""
SLICE_PARTITIONS = 1000
"""Partitions of a session that are loaded, or read, at one turn: about 10 ms."""
SMALL_PARTITIONS = 50
"""A session with more responds at a turn, if it has waited."""
RESPONSE_MAX_BYTES = 24 << 20
"""As for Fetch. DEVIATION: 55 MB in Kafka (`fetch.max.bytes`)."""


NO_LEADER = LeaderIdAndEpoch(leader_id=0, leader_epoch=0)


class Read(NamedTuple):
    """What the first available offset of a partition has."""

    loaded: LoadedPartition
    partition: Partition
    offset: int
    records: bytes


def handle(
    request: ShareFetchRequest, context: RequestContext
) -> ShareFetchResponse | DelayedOperation | DeferredResponse:
    groups, group_id, member_id = context.share_groups, request.group_id or "", request.member_id or ""
    lock_ms = groups.settings_of(group_id).lock_duration_ms
    if not groups.is_enabled:
        return _refused(ErrorCode.UNSUPPORTED_VERSION)
    if None in (request.group_id, request.member_id) and groups.behavior.fails_without_ids:
        return _refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    wants = request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms
    if not is_valid(request.group_id, request.member_id) or (request.is_renew_ack and any(wants)):
        return _refused(ErrorCode.INVALID_REQUEST)
    acknowledgements = {
        partition: batches for partition, batches in acknowledgements_of(request.topics).items() if batches
    }
    session = _session(request, context, has_acknowledgements=bool(acknowledgements))
    if isinstance(session, ErrorCode):
        refused = _refused(session)
        if session is ErrorCode.SHARE_SESSION_LIMIT_REACHED and request.max_wait_ms > 0:
            # The member sends the request again: it waits as long as for records (measured on 4.2.2 and 4.4.0).
            return DelayedOperation(context.now_ms + request.max_wait_ms, lambda: refused)
        return refused
    outcomes = acknowledge(group_id, member_id, acknowledgements, context, renews=request.is_renew_ack)
    if request.share_session_epoch == FINAL_EPOCH:
        groups.end_session(context.node.node_id, session, context.now_ms)
    if request.share_session_epoch == FINAL_EPOCH or request.is_renew_ack:
        return context.coordinator.log.then(lambda: _response([], outcomes, None, context, lock_ms))
    is_unknown_mode = request.share_acquire_mode not in ACQUIRE_MODES and session.partitions
    if is_unknown_mode or (groups.behavior.fails_on_unknown_topics and _has_unknown_topic(session, context)):
        return _refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    return in_slices(_Fetch(request, session, outcomes, context, lock_ms).steps(), context.now_ms)


def _has_unknown_topic(session: ShareSession, context: RequestContext) -> bool:
    return any(context.cluster.topic_by_id(one.topic_id) is None for one in session.partitions)


def _session(
    request: ShareFetchRequest, context: RequestContext, *, has_acknowledgements: bool
) -> ShareSession | ErrorCode:
    """Return the session of a request, with the changes of the request, or why the request is refused."""
    group_id, member_id, epoch = request.group_id or "", request.member_id or "", request.share_session_epoch
    sessions = context.share_groups.sessions(context.node.node_id)
    named = list(acknowledgements_of(request.topics))
    if epoch == INITIAL_EPOCH:
        if has_acknowledgements:
            return ErrorCode.INVALID_REQUEST
        return sessions.open(group_id, member_id, named, context.connection)
    session = sessions.resume(group_id, member_id, epoch)
    if isinstance(session, ErrorCode) or epoch == FINAL_EPOCH:
        return session
    forgotten = [
        TopicIdPartition(topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions
    ]
    if not sessions.update(session, named, forgotten):
        return ErrorCode.SHARE_SESSION_LIMIT_REACHED
    session.next_epoch()
    return session


class _Fetch:
    """One request that fetches, and may wait."""

    def __init__(
        self,
        request: ShareFetchRequest,
        session: ShareSession,
        outcomes: dict[TopicIdPartition, Outcome],
        context: RequestContext,
        lock_ms: int,
    ) -> None:
        self._request = request
        self._session = session
        self._outcomes = outcomes
        self._context = context
        self._lock_ms = lock_ms
        self._errors: dict[TopicIdPartition, PartitionData] = {}
        self._loaded: dict[TopicIdPartition, tuple[LoadedPartition, Partition]] = {}
        self._deadline_ms = context.now_ms + request.max_wait_ms
        self._completion = Completion()
        self._waits_in: list[tuple[dict[Callable[[], object], None], Callable[[], object]]] = []

    def steps(self) -> Generator[None, None, ShareFetchResponse | DelayedOperation | DeferredResponse]:
        """Load the partitions of the session in slices, and return the response or the operation that waits."""
        yield from self._index_steps()
        budget = lookup_budget()
        for number, one in enumerate(self._rotated(), start=1):
            yield from self._load(one, budget)
            if number % SLICE_PARTITIONS == 0:
                yield
        request = self._request
        wants_nothing = not self._loaded or not request.max_records or not request.max_bytes
        may_wait = not wants_nothing and request.max_wait_ms > 0
        return (yield from self._respond_or_wait(may_wait=may_wait))

    def _rotated(self) -> Iterator[TopicIdPartition]:
        """Yield the partitions of the session; each request begins with another one."""
        partitions = list(self._session.partitions)
        start = self._request.share_session_epoch % len(partitions) if partitions else 0
        yield from partitions[start:]
        yield from partitions[:start]

    def _load(self, one: TopicIdPartition, budget: DecodingBudget) -> Generator[None, None, None]:
        context = self._context
        outcome = self._outcomes.get(one)
        if outcome is not None and outcome.error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            # Fenced by the acknowledgements of this request: the next one loads the share partition again.
            self._errors[one] = _partition(one.partition, ErrorCode.NONE, b"")
            return
        topic = context.cluster.topic_by_id(one.topic_id)
        partition = (topic and topic.partition(one.partition)) or None
        found_error = leader_error(partition, context.node.node_id, NO_EPOCH)
        is_new = topic is None and one.topic_id not in self._session.known_topics
        error = ErrorCode.UNKNOWN_TOPIC_ID if is_new else found_error
        if topic is not None:
            self._session.known_topics.add(one.topic_id)
            if not may_read(topic.name, context):
                self._errors[one] = _partition(one.partition, ErrorCode.TOPIC_AUTHORIZATION_FAILED, b"")
                return
        if topic is not None and partition is not None and not error:
            key = SharePartitionKey(self._session.group_id, *one)
            partitions = context.share_groups.partitions
            found: LoadedPartition | ErrorCode | None = partitions.known(key)
            if found is None:
                try:
                    found = yield from partitions.load(key, partition, context.now_ms, budget)
                except UNREADABLE as unreadable:
                    found = error_of_read(unreadable, topic.name, one.partition)
            if isinstance(found, LoadedPartition):
                self._loaded[one] = found, partition
                return
            error = ErrorCode.NONE if found is None else found  # None: the next request loads it
        self._errors[one] = _failed(one.partition, error, partition)

    def _unload(self, one: TopicIdPartition, unreadable: Exception) -> None:
        """Give a partition whose log cannot be read an error in the response, as Fetch does."""
        del self._loaded[one]
        topic = self._context.cluster.topic_by_id(one.topic_id)
        error = error_of_read(unreadable, topic.name if topic else "", one.partition)
        self._errors[one] = _partition(one.partition, error, b"")

    def _index_steps(self) -> Iterator[None]:
        if self._context.log_manager.unindexed:
            names = topic_names([one.topic_id for one in self._session.partitions], self._context)
            yield from self._context.log_manager.index_steps(names)

    def _lacks_index(self, one: TopicIdPartition) -> bool:
        """Whether a topic was compacted, and has many batches to index before one is read."""
        unindexed = self._context.log_manager.unindexed
        return bool(unindexed) and not unindexed.keys().isdisjoint(topic_names([one.topic_id], self._context))

    # Waiting.

    def _respond_or_wait(
        self, *, may_wait: bool
    ) -> Generator[None, None, ShareFetchResponse | DelayedOperation | DeferredResponse]:
        yield from self._index_steps()
        if not may_wait or (yield from self._is_enough()):
            return (yield from self._respond())
        self._completion = Completion(on_abandoned=self._stop_waiting)
        for one, (loaded, partition) in self._loaded.items():
            look = partial(self._look, one)
            for waiters in (partition.make_data().waiters, loaded.waiters):
                waiters[look] = None
                self._waits_in.append((waiters, look))
        return DelayedOperation(self._deadline_ms, self._end_wait, self._completion)

    def _is_enough(self) -> Generator[None, None, bool]:
        size_bytes, loaded_count = 0, len(self._loaded)
        for number, (_, read) in enumerate(self._reads(), start=1):
            size_bytes += len(read.records)
            if not _is_in_range(read) or size_bytes >= self._request.min_bytes:
                return True
            if number % SLICE_PARTITIONS == 0:
                yield
        return len(self._loaded) < loaded_count  # a log cannot be read: its error does not wait

    def _look(self, one: TopicIdPartition) -> None:
        """Go on if a partition has available records now. Looking at all of them would take as long as the request."""
        loaded, _ = self._loaded[one]
        if not self._completion.is_complete and loaded.share.can_acquire:
            if self._lacks_index(one):
                self._completion.complete()
                return
            try:
                read = self._read(one, 1, is_first=True)
            except UNREADABLE:  # the response has the partition's error
                self._completion.complete()
                return
            if read.records or not _is_in_range(read):
                self._completion.complete()

    def _stop_waiting(self) -> None:
        for waiters, look in self._waits_in:
            waiters.pop(look, None)
        self._waits_in.clear()

    def _end_wait(self) -> ShareFetchResponse | DelayedOperation | DeferredResponse:
        """Respond, or wait on: records have come, but not enough. Otherwise it is the deadline, or the client's end."""
        self._stop_waiting()
        now_ms = self._context.coordinator.clock.now_ms()
        may_wait = self._completion.is_complete and now_ms < self._deadline_ms

        def go_on() -> ShareFetchResponse | DelayedOperation | DeferredResponse:
            return in_slices(self._respond_or_wait(may_wait=may_wait), now_ms)

        # Records may end the wait of many clients at once.
        return at_turn(go_on, now_ms) if len(self._loaded) > SMALL_PARTITIONS else go_on()

    # Reading and acquiring.

    def _reads(self) -> Iterator[tuple[TopicIdPartition, Read]]:
        """Read each partition that has available records from the first of them on, when it is asked for.

        A partition whose log cannot be read is left out.
        """
        able = [one for one, (loaded, _) in self._loaded.items() if loaded.share.can_acquire]
        limit = min(self._request.max_bytes, RESPONSE_MAX_BYTES)
        is_first = True
        for one in able:
            try:
                read = self._read(one, limit // len(able), is_first=is_first)
            except UNREADABLE as unreadable:
                self._unload(one, unreadable)
                continue
            yield one, read
            is_first = is_first and not read.records

    def _read(self, one: TopicIdPartition, limit: int, *, is_first: bool) -> Read:
        loaded, partition = self._loaded[one]
        offset = loaded.share.next_fetch_offset()
        end_offset = partition.data.last_stable_offset if self._reads_committed else None
        if self._request.min_bytes <= 1:
            # No later record can be acquired; their bytes only count for more than one byte.
            end = partition.data.end_of_batch(max(offset, loaded.share.end_offset) + self._request.max_records)
            end_offset = end if end_offset is None else min(end, end_offset)
        records = partition.data.read(offset, limit, min_one_batch=is_first, end_offset=end_offset)
        return Read(loaded, partition, offset, records)

    @property
    def _reads_committed(self) -> bool:
        return self._context.share_groups.settings_of(self._session.group_id).reads_committed

    def _respond(self) -> Generator[None, None, ShareFetchResponse | DeferredResponse]:
        request, left = self._request, self._request.max_records
        found: dict[TopicIdPartition, PartitionData] = {}
        if request.max_records and request.max_bytes:
            for number, (one, read) in enumerate(self._reads(), start=1):
                try:
                    found[one], count = self._acquire(one, read, left)
                except UNREADABLE as unreadable:
                    self._unload(one, unreadable)
                else:
                    left -= count
                if number % SLICE_PARTITIONS == 0:
                    yield
        found |= self._errors
        context, lock_ms, outcomes = self._context, self._lock_ms, self._outcomes
        session = None if request.share_session_epoch == INITIAL_EPOCH else self._session
        ordered = [(one, found[one]) for one in self._rotated() if one in found]
        return context.coordinator.log.then(lambda: _response(ordered, outcomes, session, context, lock_ms))

    def _acquire(self, one: TopicIdPartition, read: Read, left: int) -> tuple[PartitionData, int]:
        """Acquire the records of a partition; return its part of the response, and how many records it has."""
        share, data = read.loaded.share, read.partition.data
        if not _is_in_range(read):
            share.log_starts_at(data.start_offset)
            return _partition(one.partition, ErrorCode.NONE, b""), 0
        batches = fetched_batches(read.records)
        now_ms = self._context.coordinator.clock.now_ms()
        wanted = Wanted(
            self._session.member_id,
            left,
            self._request.batch_size,
            now_ms + self._lock_ms,
            self._request.share_acquire_mode == RECORD_LIMIT,
        )
        acquired = acquire(share, read.offset, [batch.span for batch in batches], wanted)
        self._context.share_groups.partitions.acquired(read.loaded)
        if acquired and self._reads_committed:
            known = data.transactions.aborted_in(read.offset, data.end_of_read(read.offset, len(read.records)))
            aborted = [(transaction.first_offset, transaction.producer_id) for transaction in known]
            spans = aborted_spans(read.records, batches, aborted)
            share.archive_acquired(spans)
            acquired = without(acquired, spans)
        if not acquired:
            return _partition(one.partition, ErrorCode.NONE, b""), 0
        part = _partition(one.partition, ErrorCode.NONE, sliced(read.records, batches, acquired))
        ranges = tuple(
            AcquiredRecords(
                first_offset=span.first_offset, last_offset=span.last_offset, delivery_count=span.delivery_count
            )
            for span in acquired
        )
        return part.replace(acquired_records=ranges), sum(r.last_offset - r.first_offset + 1 for r in ranges)


def _is_in_range(read: Read) -> bool:
    return read.partition.log_start_offset <= read.offset <= read.partition.high_watermark


def _partition(index: int, error: ErrorCode, records: bytes) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=error,
        error_message=None,
        acknowledge_error_code=ErrorCode.NONE,
        current_leader=NO_LEADER,
        records=records,
        acquired_records=(),
    )


def _failed(index: int, error: ErrorCode, partition: Partition | None) -> PartitionData:
    part = _partition(index, error, b"")
    if partition is not None and error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
        return part.replace(current_leader=leader)
    return part


def _refused(error: ErrorCode) -> ShareFetchResponse:
    return ShareFetchResponse(
        throttle_time_ms=0, error_code=error, acquisition_lock_timeout_ms=0, responses=(), node_endpoints=()
    )


def _response(
    found: list[tuple[TopicIdPartition, PartitionData]],
    outcomes: dict[TopicIdPartition, Outcome],
    session: ShareSession | None,
    context: RequestContext,
    lock_ms: int,
) -> ShareFetchResponse:
    """Return the response. ``session``: leaves out what its member knows; None: the response has all partitions."""
    parts = {}
    for one, part in found:
        must = session is None or session.must_return(
            one, has_records=bool(part.records), is_error=bool(part.error_code)
        )
        if must:
            parts[one] = part
    for one, outcome in outcomes.items():
        part = parts.get(one, _partition(one.partition, ErrorCode.NONE, b""))
        parts[one] = part.replace(acknowledge_error_code=outcome.error, acknowledge_error_message=outcome.message)
    topics = tuple(
        ShareFetchableTopicResponse(topic_id=topic_id, partitions=tuple(parts[one] for one in of_topic))
        for topic_id, of_topic in groupby(sorted(parts, key=lambda one: one.topic_id), key=lambda one: one.topic_id)
    )
    leaders = {part.current_leader.leader_id for part in parts.values()}
    return ShareFetchResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        acquisition_lock_timeout_ms=lock_ms,
        responses=topics,
        node_endpoints=leader_endpoints(NodeEndpoint, leaders, context),
    )
