"""Consumer 2 of KIP-333: a consumer without a group membership that reads the catch-up ranges."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter, ne
from time import monotonic

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from kproto.client.confluent_methods import CONSUME_MOVES_POSITIONS
from kproto.client.topic_partitions import PartitionKey, offset_of, partition_of_message, to_topic_partitions
from kproto.errors import KprotoError

logger: logging.Logger = logging.getLogger("kproto.client")

ERROR_OF, POSITION_OF = Message.error, attrgetter("offset")
"""Called for each record, or position, by functions in C."""
POSITIONS_MAX = 32
"""Most partitions whose positions are compared after a fetch: a pass over 500 records costs as much as 50 positions."""
SILENCE_MAX_S = 30.0
"""Longest wait for a record: a client may forget all brokers while they restart, and then it never connects again
(librdkafka's issue 5301)."""


class Consumer2Failed(KprotoError):
    """Consumer 2 can read no more; a new one has to replace it."""


@dataclass(slots=True)
class Fetched:
    """The result of one fetch."""

    runs: list[tuple[PartitionKey, list[Message]]] = field(default_factory=list)
    """Consecutive records of one partition, in fetch order."""
    ends: dict[PartitionKey, int] = field(default_factory=dict)
    """Partitions read up to their current end, with that offset."""
    rejected: dict[PartitionKey, Message] = field(default_factory=dict)
    """librdkafka's errors for positions that are out of range."""


class Consumer2:
    """Reads assigned partitions from given offsets.

    The object owns its librdkafka consumer: the first `assign` creates it; `close` and the end of the last partition
    close it.
    """

    def __init__(self, open_consumer: Callable[[], Consumer]) -> None:
        self._open_consumer = open_consumer
        self._consumer: Consumer | None = None
        self._partitions: set[PartitionKey] = set()
        self._topics: set[str] = set()
        """The topics of all partitions since the consumer was created; see `_runs`."""
        self._compared: list[TopicPartition] = []
        """All partitions since the consumer was created; empty if `_is_one_run` may not compare their positions."""
        self._positions: list[int] = []
        """Their positions after the last comparison."""
        self._paused: set[PartitionKey] = set()
        self._silent_since: float | None = None
        """The first of the fetches without a message, on the monotonic clock."""

    @property
    def is_open(self) -> bool:
        return self._consumer is not None

    def assign(self, positions: Mapping[PartitionKey, TopicPartition]) -> None:
        """Read these partitions from these offsets, in addition to the partitions that are assigned already."""
        if self._consumer is None:
            self._consumer = self._open_consumer()
        self.unassign(positions, close=False)
        self._consumer.incremental_assign(list(positions.values()))
        is_first = not self._topics
        self._partitions.update(positions)
        self._topics.update(topic for topic, _ in positions)
        if (is_first or self._compared) and len(self._partitions) <= POSITIONS_MAX and not CONSUME_MOVES_POSITIONS:
            self._compared = to_topic_partitions(self._partitions)
            self._positions = list(map(POSITION_OF, self._consumer.position(self._compared)))
        else:
            self._compared = []

    def unassign(self, partitions: Collection[PartitionKey], *, close: bool = True) -> None:
        """Stop reading these partitions; unless `close` is False, close the consumer if none is left."""
        removed = [partition for partition in partitions if partition in self._partitions]
        if removed and self._consumer is not None:
            self._consumer.resume(to_topic_partitions(removed))  # librdkafka would keep them paused
            self._consumer.incremental_unassign(to_topic_partitions(removed))
            self._partitions.difference_update(removed)
            self._paused.difference_update(removed)
            self._compared = []  # librdkafka forgets the position of a partition whose records it may still return
        if close and not self._partitions:
            self.close()

    def pause(self, partitions: Collection[PartitionKey]) -> None:
        if self._consumer is not None:
            paused = self._partitions.intersection(partitions)
            self._paused.update(paused)
            self._consumer.pause(to_topic_partitions(paused))

    def resume(self, partitions: Collection[PartitionKey]) -> None:
        if self._consumer is not None:
            self._paused.difference_update(partitions)
            self._consumer.resume(to_topic_partitions(self._partitions.intersection(partitions)))

    def fetch(self, count: int, wait_s: float) -> Fetched:
        """Return up to `count` fetched records; wait up to `wait_s` for the first one.

        Raises:
            Consumer2Failed: the librdkafka consumer is closed, has a fatal error, or has returned nothing for
                `SILENCE_MAX_S` although partitions are not paused.
        """
        fetched = Fetched()
        if self._consumer is None:
            return fetched
        # Between two batches the processor's caches are filled with records: each further function costs much.
        try:
            messages = self._consumer.consume(count, 0)
            if not messages:
                first = self._consumer.poll(wait_s)
                messages = [] if first is None else [first, *self._consumer.consume(count - 1, 0)]
        except RuntimeError as error:  # the consumer is closed
            raise Consumer2Failed(str(error)) from error
        if messages:
            self._silent_since = None
        else:
            self._check_silence()
        if any(map(ERROR_OF, messages)):
            for message in messages:
                self._note_error(message, fetched)
            messages = [message for message in messages if message.error() is None]
        if messages and self._is_one_run():
            fetched.runs = [(partition_of_message(messages[0]), messages)]
        elif messages:
            # librdkafka may still return records of a partition that was unassigned meanwhile.
            runs = [(partition_of_message(run[0]), run) for run in self._runs(messages)]
            fetched.runs = [run for run in runs if run[0] in self._partitions]
        return fetched

    def _check_silence(self) -> None:
        now = monotonic()
        if self._silent_since is None or self._paused == self._partitions:
            self._silent_since = now
        elif now >= self._silent_since + SILENCE_MAX_S:
            raise Consumer2Failed(f"no record for {SILENCE_MAX_S:.0f} s")

    def close(self) -> None:
        self._partitions.clear()
        self._paused.clear()
        self._silent_since = None
        self._topics.clear()
        self._compared = []
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _runs(self, messages: list[Message]) -> list[list[Message]]:
        """Divide the messages where the partition changes.

        librdkafka returns many records of one partition in a row. They are compared in C, and topics only if there is
        more than one: a record must cost next to nothing here (CK-92).
        """
        keys = (Message.partition, Message.topic) if len(self._topics) > 1 else (Message.partition,)
        runs = [messages]
        for key in keys:
            runs = [part for run in runs for part in _divided(run, key)]
        return runs

    def _is_one_run(self) -> bool:
        """Whether all records of the last fetch are of one assigned partition: librdkafka has moved one position only.

        Offsets rise, so each record moves the position of its partition.
        """
        if not self._compared or self._consumer is None:
            return False
        before = self._positions
        self._positions = list(map(POSITION_OF, self._consumer.position(self._compared)))
        moved: int = sum(map(ne, before, self._positions))
        return moved == 1

    def _note_error(self, message: Message, fetched: Fetched) -> None:
        error = message.error()
        if error is None:
            return
        if error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET):
            partition = partition_of_message(message)
            if partition not in self._partitions:
                return  # librdkafka may still return events of a partition that was unassigned, as it does with records
            if error.code() == KafkaError._PARTITION_EOF:
                fetched.ends[partition] = offset_of(message)
            else:
                fetched.rejected[partition] = message
        elif error.fatal():
            raise Consumer2Failed(str(error))
        else:
            logger.info("consumer 2: %s", error)


def _divided(run: list[Message], key: Callable[[Message], object]) -> list[list[Message]]:
    """Divide a run where the key changes; mostly it does not, which a count finds in half of the time."""
    keys = list(map(key, run))
    return [run] if keys.count(keys[0]) == len(keys) else [list(group) for _, group in groupby(run, key)]
