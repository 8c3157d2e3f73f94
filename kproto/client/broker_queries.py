"""Queries to the brokers: the data that the decisions need.

Each query has a time limit and raises `KafkaException` on a timeout and on an error code in the response. The caller
decides when to repeat the query.

Queries wait for brokers, so they run in threads, with consumers of their own: confluent-kafka lets a second thread
wait while a consumer is polled, and its `list_topics` within a callback ends the process at the next event of the same
`poll`, a line for ``logger`` for example. The metadata of a client that subscribes to nothing can be 5 minutes old;
`partitions_of_topic` refreshes it, as otherwise the client knows no leader of a new partition. An admin client is not
used, as its `list_consumer_group_offsets` ends the process if brokers hang.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from typing import Concatenate, ParamSpec, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition, Uuid
from confluent_kafka.admin import AdminClient

from kproto.client.configuration import Configuration
from kproto.client.decisions.resets import LogBounds
from kproto.client.topic_partitions import PartitionKey, partition_of, to_topic_partitions

EARLIEST_TIMESTAMP, LATEST_TIMESTAMP = -2, -1
"""ListOffsets' timestamps for the log start and the log end."""
FUTURE_TIMESTAMP = 2**62
NO_TOPIC_ID = (str(None), str(Uuid(0, 0)))
THREAD_QUERY_LIMIT_S = 5.0
"""Limit of a query in a thread."""
CLOSE_LIMIT_S = 1.0
"""Longest wait of `close` for the threads; they end by themselves."""
WITHOUT_RESPONSE = frozenset(
    {KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._WAIT_COORD}
)
"""librdkafka's errors for a query that no broker has responded to. They come at the query's limit."""

P = ParamSpec("P")
T = TypeVar("T")


class BrokerQueries:
    """The queries of one consumer.

    The object owns the clients of the queries: the first query creates one, which later queries use again; `close`
    closes them. A client is replaced after a query without a response: while brokers restart, a client may forget all
    of them, and then it never connects again (librdkafka's issue 5301). The admin client has no close: it ends when
    nothing refers to it.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._admin: AdminClient | None = None
        self._clients: list[Consumer] = []
        """Clients that no thread uses."""
        self._threads: set[threading.Thread] = set()
        self._is_closed = False
        self._ended = threading.Event()

    def in_thread(self, query: Callable[Concatenate[Consumer, P], T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a query in a thread, with a client that no other thread uses."""
        future: Future[T] = Future()

        def run() -> None:
            failed: Consumer | None = None
            try:
                self._check_open()
                client = self._take_client()
                try:
                    future.set_result(query(client, *args, **kwargs))
                except KafkaException as error:
                    failed = client if error.args[0].code() in WITHOUT_RESPONSE else None
                    raise
                finally:
                    if failed is None:
                        self._clients.append(client)
            except BaseException as error:  # noqa: BLE001 - raised where the result is used
                future.set_exception(error)
            self._ended.set()
            if failed is not None:
                failed.close()
            if self._is_closed:
                self._close_clients()
            self._threads.discard(threading.current_thread())

        thread = threading.Thread(target=run, name="kproto.client query", daemon=True)
        self._threads.add(thread)
        thread.start()
        return future

    def poll(self) -> None:
        """Run the user's callbacks for the clients that no thread uses.

        A callback may start a query or close the consumer: meanwhile the polled clients are not to be had.
        """
        clients, self._clients = self._clients, []
        try:
            for each in clients:
                each.poll(0)
        finally:
            self._clients += clients
            if self._is_closed:
                self._close_clients()

    def wait(self, limit_s: float) -> None:
        """Wait until a query in a thread ends."""
        self._ended.wait(limit_s)
        self._ended.clear()

    def close(self) -> None:
        """Start no more queries, and close the clients; those that hang are closed when their query ends."""
        self._is_closed = True
        if sys.is_finalizing():  # no thread can start any more
            self._close_clients()
            return
        closer = threading.Thread(target=self._close_clients, name="kproto.client close", daemon=True)
        closer.start()
        deadline = time.monotonic() + CLOSE_LIMIT_S
        for thread in (closer, *self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def _check_open(self) -> None:
        if self._is_closed:
            raise KafkaException(KafkaError(KafkaError._DESTROY, "the consumer is closed"))

    def _take_client(self) -> Consumer:
        try:
            return self._clients.pop()
        except IndexError:
            return self._configuration.clients.query_consumer(self._configuration.for_queries())

    def _close_clients(self) -> None:
        self._admin = None
        while self._clients:
            self._take_client().close()

    @property
    def admin(self) -> AdminClient:
        """The admin client, created on first use.

        Raises:
            KafkaException: the consumer is closed.
        """
        self._check_open()
        if self._admin is None:
            self._admin = self._configuration.clients.admin(self._configuration.for_connection())
        return self._admin


def partitions_of_topic(client: Consumer, topic: str, limit_s: float) -> list[PartitionKey]:
    """Return all partitions of a topic. The client's metadata is up to date after that."""
    metadata = client.list_topics(topic, timeout=limit_s).topics[topic]
    if metadata.error is not None or not metadata.partitions:
        raise KafkaException(metadata.error or KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
    return [(topic, partition) for partition in sorted(metadata.partitions)]


def committed(
    client: Consumer, partitions: Collection[PartitionKey], limit_s: float
) -> dict[PartitionKey, TopicPartition]:
    """Return the group's committed offsets, without the partitions that have none."""
    results = client.committed(to_topic_partitions(partitions), timeout=limit_s)
    _raise_error(results)
    return {partition_of(result): result for result in results if result.offset >= 0}


def log_bounds(client: Consumer, partitions: Collection[PartitionKey], limit_s: float) -> dict[PartitionKey, LogBounds]:
    starts, ends = (
        _list_offsets(client, partitions, timestamp, limit_s) for timestamp in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP)
    )
    # Retention may move the start between the two queries, and past the last stable offset.
    return {each: LogBounds(start=min(starts[each], ends[each]), end=ends[each]) for each in partitions}


def log_bounds_of_any(
    client: Consumer, partitions: Collection[PartitionKey], limit_s: float
) -> dict[PartitionKey, LogBounds]:
    """Return the log bounds of partitions that the client may not know yet."""
    for topic in {topic for topic, _ in partitions}:
        partitions_of_topic(client, topic, limit_s)
    return log_bounds(client, partitions, limit_s)


def first_record_is_older(
    client: Consumer, partitions: Collection[PartitionKey], time_ms: int, limit_s: float
) -> dict[PartitionKey, bool]:
    """Return whether each partition's first record is older than a time, without partitions of no timestamps.

    The partitions are those of one topic.

    Of ListOffsets' responses, confluent-kafka's consumer returns the offset only. The first record is older if a later
    one is the first with at least that time.
    """
    since = _offsets_by_time(client, partitions, time_ms, limit_s)
    # Queried second: if retention deletes records in between, the first record counts as new.
    first = _offsets_by_time(client, partitions, 0, limit_s)
    if since is None or first is None:
        return {}
    return {each: since[each] < 0 or since[each] > at for each, at in first.items() if at >= 0}


def finds_offsets_by_time(client: Consumer, topic: str, limit_s: float) -> bool:
    """Return whether the leader of one of the topic's partitions finds offsets by timestamp, as ListOffsets v1 does.

    librdkafka asks older brokers by ListOffsets v0, whose response for a time in the future is the log end. In newer
    versions no offset has that time.
    """
    metadata = client.list_topics(topic, timeout=limit_s).topics[topic]
    if not metadata.partitions:  # a broker that has just started does not know the topic yet
        raise KafkaException(metadata.error or KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
    # A leader that hangs delays the decisions, but not each time.
    leaders = [number for number, each in metadata.partitions.items() if each.leader >= 0]
    partition = random.choice(leaders or list(metadata.partitions))  # noqa: S311
    offsets = _offsets_by_time(client, [(topic, partition)], FUTURE_TIMESTAMP, limit_s)
    return offsets is None or offsets[topic, partition] < 0


def group_metadata(client: Consumer, limit_s: float) -> list[str | None]:
    """Return the metadata of all committed offsets of the group."""
    topics = client.list_topics(timeout=limit_s).topics
    partitions = [(name, partition) for name, topic in topics.items() for partition in topic.partitions]
    return [each.metadata for each in committed(client, partitions, limit_s).values()] if partitions else []


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _raise_error(results: Iterable[TopicPartition]) -> None:
    for result in results:
        if result.error is not None:
            raise KafkaException(result.error)


def _list_offsets(
    client: Consumer, partitions: Collection[PartitionKey], timestamp: int, limit_s: float
) -> dict[PartitionKey, int]:
    results = client.offsets_for_times(
        [TopicPartition(topic, partition, timestamp) for topic, partition in partitions], timeout=limit_s
    )
    _raise_error(results)
    return {partition_of(result): result.offset for result in results}


def _offsets_by_time(
    client: Consumer, partitions: Collection[PartitionKey], time_ms: int, limit_s: float
) -> dict[PartitionKey, int] | None:
    """Return the first offset of at least this time in each partition of a topic; None if the topic has no timestamps.

    The ``message.format.version`` of such a topic is older than 0.10.0.
    """
    try:
        return _list_offsets(client, partitions, time_ms, limit_s)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT:
            return None
        raise
