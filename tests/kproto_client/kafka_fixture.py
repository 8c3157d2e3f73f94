"""The broker of the client tests: its topics, records and committed offsets, of kproto or of any Kafka release."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]

from kproto.client import Consumer
from tests.kproto_client.decision_tables import END, START
from tests.waiting import wait_until

NUMBERS = itertools.count()
LIMIT_S = 90.0
FAST_SETTINGS: dict[str, Any] = {
    "heartbeat.interval.ms": 100,
    "session.timeout.ms": 6000,
    "fetch.wait.max.ms": 20,
    "fetch.queue.backoff.ms": 10,
    "topic.metadata.refresh.interval.ms": 300,
    "auto.commit.interval.ms": 200,
    "enable.partition.eof": True,
}
"""Short intervals for tests. The end-of-partition event shows a position in a partition without further records."""

CLASSIC_SETTINGS = ("heartbeat.interval.ms", "session.timeout.ms", "partition.assignment.strategy")
"""Settings of members that librdkafka refuses with ``group.protocol=consumer`` (KIP-848)."""
SHORT_HEARTBEATS = {"group.consumer.min.heartbeat.interval.ms": "300", "group.consumer.heartbeat.interval.ms": "300"}
"""The broker's settings of KIP-848's members, which have none of their own."""

Case = tuple[Callable[..., None], tuple[Any, ...]]
"""A function of a `KafkaFixture`, and its further arguments."""
CALLBACKS = frozenset({"on_commit", "event_cb", "logger"})
COORDINATOR_ERRORS = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError._WAIT_COORD,
    }
)
"""Errors of a commit while the broker prepares the group's coordinator."""


def cases(*functions: Callable[[KafkaFixture], None]) -> dict[str, Case]:
    """Return the cases of these functions by readable names."""
    return {function.__name__.replace("_", " "): (function, ()) for function in functions}


def unique_name(prefix: str) -> str:
    """Return a name for a topic or a group that no other test uses."""
    return f"{prefix}-{next(NUMBERS)}-{time.time_ns() % 1_000_000}"


@dataclass
class KafkaFixture:
    """A running broker with an admin client and a producer."""

    bootstrap: str
    connection: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of all clients."""
    admin: AdminClient = field(init=False)
    producer: Producer = field(init=False)

    def __post_init__(self) -> None:
        connection: dict[str, Any] = {"bootstrap.servers": self.bootstrap, "log_level": 0, **self.connection}
        self.admin = AdminClient(connection)
        self.producer = Producer({**connection, "linger.ms": 5})

    def topic(self, partitions: int = 1, **config: str) -> str:
        topic = unique_name("topic")
        self.create(topic, partitions, **config)
        return topic

    def create(self, topic: str, partitions: int = 1, **config: str) -> None:
        configs = {key.replace("_", "."): value for key, value in config.items()}
        self._wait(self.admin.create_topics([NewTopic(topic, partitions, 1, config=configs)]))
        self.wait_for_partitions(topic, partitions)

    def recreate(self, topic: str) -> None:
        """Delete the topic, and create it as soon as the deletion is complete."""
        self._wait(self.admin.delete_topics([topic], operation_timeout=LIMIT_S))
        wait_until(lambda: topic not in self.admin.list_topics(timeout=LIMIT_S).topics, f"the deletion of {topic}")

        wait_until(lambda: self._is_created(topic, KafkaError.TOPIC_ALREADY_EXISTS), f"the second creation of {topic}")

    def wait_for_session(self) -> None:
        """Wait until the broker creates topics again: after a hang, one with ZooKeeper has lost its session (-1)."""
        topic = unique_name("topic")
        wait_until(lambda: self._is_created(topic, KafkaError.UNKNOWN), "the session with ZooKeeper")

    def _is_created(self, topic: str, temporary_error: int) -> bool:
        """Create a topic; return False if that fails with this error."""
        try:
            self.create(topic)
        except KafkaException as error:
            if error.args[0].code() == temporary_error:
                return False
            raise
        return True

    def expand(self, topic: str, partitions: int) -> None:
        self._wait(self.admin.create_partitions([NewPartitions(topic, partitions)]))
        self.wait_for_partitions(topic, partitions)

    def wait_for_partitions(self, topic: str, count: int) -> None:
        """Wait until the producer's metadata has a leader of each partition."""

        def complete() -> bool:
            metadata = self.producer.list_topics(topic, timeout=LIMIT_S).topics.get(topic)
            return metadata is not None and sum(each.leader > 0 for each in metadata.partitions.values()) == count

        wait_until(complete, f"{topic} with {count} partitions")

    def write(
        self, topic: str, count: int, partition: int = 0, timestamp: int | None = None, keys: Sequence[bytes] = ()
    ) -> None:
        """Write records; of each in turn the next key, if keys are given."""
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failures.append(error)

        times: dict[str, Any] = {} if timestamp is None else {"timestamp": timestamp}
        for number in range(count):
            key = keys[number % len(keys)] if keys else None
            self.producer.produce(topic, b"x", key, partition=partition, on_delivery=delivered, **times)
        self.producer.flush(LIMIT_S)
        assert not failures

    def delete_records_before(self, topic: str, offset: int, partition: int = 0) -> None:
        self._wait(self.admin.delete_records([TopicPartition(topic, partition, offset)]))

    def log(self, partitions: int = 1, *, timestamp: int | None = None) -> str:
        """Create a topic whose partition 0 has S = 100 and E = 500, as in the decision tables.

        A real broker looks for records to delete 30 s after its start: those with an old timestamp stay nevertheless.
        """
        topic = self.topic(partitions, retention_ms="-1")
        self.write(topic, END, timestamp=timestamp)
        self.delete_records_before(topic, START)
        return topic

    def empty_log(self, partitions: int = 1) -> str:
        """Create a topic whose partition 0 has S = E = 100."""
        topic = self.topic(partitions)
        self.write(topic, START)
        self.delete_records_before(topic, START)
        return topic

    def commit(self, group: str, topic: str, offset: int, partition: int = 0, metadata: str = "") -> None:
        consumer = confluent_kafka.Consumer(self._config(group))
        topic_partition = TopicPartition(topic, partition, offset, metadata)
        results: list[TopicPartition] = []

        def committed() -> bool:
            try:
                results[:] = consumer.commit(offsets=[topic_partition], asynchronous=False)
            except KafkaException as error:
                if error.args[0].code() in COORDINATOR_ERRORS:
                    return False
                raise
            return True

        wait_until(committed, f"a commit of {group}")
        consumer.close()
        assert results[0].error is None

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        offset = self.committed_with_metadata(group, topic, partition).offset
        return offset if offset >= 0 else None

    def committed_with_metadata(self, group: str, topic: str, partition: int = 0) -> TopicPartition:
        consumer = confluent_kafka.Consumer(self._config(group))
        (result,) = consumer.committed([TopicPartition(topic, partition)], timeout=LIMIT_S)
        consumer.close()
        return result

    def delete_group(self, group: str) -> None:
        self._wait(self.admin.delete_consumer_groups([group]))

    @contextmanager
    def consumer(self, group: str, **config: Any) -> Iterator[Consumer]:
        """Open kproto's consumer; setting names have underscores instead of dots."""
        consumer = Consumer(self.config(group, **config))
        try:
            yield consumer
        finally:
            consumer.close()

    def config(self, group: str, **config: Any) -> dict[str, Any]:
        settings = {key if key in CALLBACKS else key.replace("_", "."): value for key, value in config.items()}
        settings = {**self._config(group), **FAST_SETTINGS, **settings}
        if settings.get("group.protocol") == "consumer":
            settings = {name: value for name, value in settings.items() if name not in CLASSIC_SETTINGS}
        return settings

    def _config(self, group: str) -> dict[str, Any]:
        return {"bootstrap.servers": self.bootstrap, "group.id": group, "log_level": 0, **self.connection}

    @staticmethod
    def _wait(futures: dict[Any, Any]) -> None:
        for future in futures.values():
            future.result(LIMIT_S)


def start_position(consumer: confluent_kafka.Consumer, partition: int = 0) -> int | str:
    """Return the offset of the first record or of the end-of-partition event, or the name of the raised error."""
    limit = time.monotonic() + LIMIT_S
    while time.monotonic() < limit:
        try:
            message = consumer.poll(0.1)
        except KafkaException as raised:
            return type(raised).__name__
        if message is None:
            continue
        error = message.error()
        if error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:
            return "error"
        if message.partition() == partition and (error is None or error.code() == KafkaError._PARTITION_EOF):
            offset = message.offset()
            assert offset is not None
            return offset
    raise AssertionError("the consumer reads nothing")


def read(consumer: confluent_kafka.Consumer, count: int, partition: int | None = None) -> list[int]:
    """Return the offsets of the next records, of one partition or of all."""
    offsets: list[int] = []
    limit = time.monotonic() + LIMIT_S
    while len(offsets) < count:
        assert time.monotonic() < limit, f"only {len(offsets)} of {count} records: {offsets[-3:]}"
        message = consumer.poll(0.1)
        if message is not None and message.error() is None and partition in (None, message.partition()):
            offset = message.offset()
            assert offset is not None
            offsets.append(offset)
    return offsets


def wait_for_assignment(consumer: confluent_kafka.Consumer, count: int) -> None:
    """Poll until `count` partitions are assigned; fail if a record is delivered meanwhile."""

    def assigned() -> bool:
        message = consumer.poll(0.02)
        assert message is None or message.error() is not None
        return len(consumer.assignment()) == count

    wait_until(assigned, f"an assignment of {count} partitions")
