"""A producer and a consumer of librdkafka that connect first and then move a number of messages.

Their settings are the defaults, except for batches of a known size and queues that never fill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from bench.model import BenchError
from bench.peers.server import HOST

PATIENCE_SECONDS = 60.0
WARNING = 4  # syslog's number; lower levels log the end of every client
QUEUE_KB = 1 << 20
PRODUCER = {"linger.ms": 5, "queue.buffering.max.kbytes": QUEUE_KB, "queue.buffering.max.messages": 10_000_000}
CONSUMER = {
    "group.id": "bench",
    "enable.auto.commit": False,
    "queued.max.messages.kbytes": QUEUE_KB,
    "queued.min.messages": 10_000_000,
}
READ_AT_ONCE = 10_000
BATCH_OVERHEAD_BYTES = 61
MESSAGE_OVERHEAD_BYTES = 40
"""An upper limit of a message's overhead in a batch, by librdkafka's own estimate."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a batch."""

    message_bytes: int
    messages: int

    def __str__(self) -> str:
        return f"{self.messages:,} x {self.message_bytes:,} bytes a batch"


@dataclass(frozen=True, slots=True)
class Load:
    """Batches of one size."""

    size: Size
    batches: int

    @property
    def messages(self) -> int:
        return self.batches * self.size.messages


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a server; the batches go to its partitions in turn."""

    port: int
    name: str
    partitions: int
    security: Mapping[str, Any] = field(default_factory=dict)
    """The client's settings for TLS and SASL."""

    @property
    def server(self) -> dict[str, Any]:
        return {"bootstrap.servers": f"{HOST}:{self.port}", "log_level": WARNING, **self.security}

    @contextmanager
    def there(self) -> Iterator[None]:
        """Create the topic; on leaving, delete it, so that one run at a time uses disk and memory."""
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        admin = AdminClient(self.server)
        for made in admin.create_topics([NewTopic(self.name, self.partitions, 1)]).values():
            made.result(PATIENCE_SECONDS)
        try:
            yield
        finally:
            for gone in admin.delete_topics([self.name]).values():
                gone.result(PATIENCE_SECONDS)


def library_version() -> str:
    """Return the version of librdkafka.

    Raises:
        BenchError: librdkafka is not installed, so nothing can be measured.
    """
    try:
        from confluent_kafka import libversion
    except ImportError as missing:
        raise BenchError("the client is missing: confluent-kafka is not installed in this Python") from missing
    return str(libversion()[0])


@contextmanager
def producing(topic: Topic, load: Load) -> Iterator[Callable[[], int]]:
    """Connect a producer; give a function that produces all messages and returns the number of acknowledged ones."""
    from confluent_kafka import Producer

    size = load.size
    # The number of messages fills a batch; its size limit is larger.
    room = BATCH_OVERHEAD_BYTES + size.messages * (size.message_bytes + MESSAGE_OVERHEAD_BYTES)
    producer = Producer({**topic.server, **PRODUCER, "batch.num.messages": size.messages, "batch.size": room})
    producer.list_topics(topic.name, PATIENCE_SECONDS)
    value = b"x" * size.message_bytes
    failed: list[object] = []

    def on_delivery(error: object, _message: object) -> None:
        if error is not None:
            failed.append(error)

    def move() -> int:
        name, last = topic.name, size.messages - 1
        for number in range(load.batches):
            partition = number % topic.partitions
            for _ in range(last):
                producer.produce(name, value, partition=partition)
            producer.produce(name, value, partition=partition, on_delivery=on_delivery)  # same for the whole batch
            producer.poll(0)
        left = producer.flush(PATIENCE_SECONDS)
        return load.messages - left - len(failed) * size.messages

    yield move


@contextmanager
def consuming(topic: Topic, load: Load) -> Iterator[Callable[[], int]]:
    """Connect a consumer; give a function that reads the topic whole and returns the number of messages."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({**topic.server, **CONSUMER})
    consumer.list_topics(topic.name, PATIENCE_SECONDS)

    def move() -> int:
        consumer.assign([TopicPartition(topic.name, index, OFFSET_BEGINNING) for index in range(topic.partitions)])
        found, deadline = 0, monotonic() + PATIENCE_SECONDS
        while found < load.messages and monotonic() < deadline:
            messages = consumer.consume(min(READ_AT_ONCE, load.messages - found), 0.1)
            found += sum(1 for message in messages if message.error() is None)
        return found

    try:
        yield move
    finally:
        consumer.close()
