"""The records that an async consumer has fetched ahead, and the positions of those that it has delivered.

A record is fetched, then delivered: its user processes it. It is finished when the next record is requested; only then
its offset may be committed automatically. Revoking a partition drops all of its records that are not delivered yet.

No method waits, and the caller locks: one thread adds records while another one takes them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from operator import methodcaller
from typing import cast

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from kproto.client.topic_partitions import PartitionKey, partition_of_message, position_after

RECORDS_MAX = 2000
"""Most records to fetch ahead. More are only fetched for a request of more records."""
BYTES_MAX = 16 << 20
"""Size limit of the records that are fetched ahead, by the mean size of the last fetch."""
UNSORTED_MAX = 1000
"""Delivered records after which their positions are noted by partition: in bulk, as that costs more than a delivery."""
ERROR_OF = methodcaller("error")


class FetchedRecords:
    """The records of one consumer, oldest first, and its positions."""

    def __init__(self) -> None:
        self._fetched: deque[Message | Exception] = deque()
        """Not yet delivered. Exceptions have the place in which they are raised."""
        self._errors = 0
        """The number of exceptions in `_fetched`."""
        self._fetched_of_paused: dict[PartitionKey, list[Message]] = {}
        """The same records, of partitions that the user has paused."""
        self._limit = RECORDS_MAX
        self._unsorted: list[Message] = []
        """Delivered, and not yet in `_delivered` and `_finished`; the last `_current` of them are not finished."""
        self._current = 0
        self._delivered: dict[PartitionKey, TopicPartition] = {}
        """The position after the delivered records of each assigned partition."""
        self._finished: dict[PartitionKey, TopicPartition] = {}
        """Positions after the finished records, since the last `take_finished`."""

    # -- fetched records

    def __len__(self) -> int:
        return len(self._fetched)

    @property
    def is_low(self) -> bool:
        """Whether half of the records that are fetched ahead are taken."""
        return len(self._fetched) <= self._limit // 2

    def room(self, requested: int = 0) -> int:
        """Return how many more records to fetch, for a request of this many."""
        return max(self._limit, requested) - len(self._fetched)

    def has(self, count: int) -> bool:
        """Whether a request of this many records can be met, or has to raise an exception."""
        return len(self._fetched) >= count or self._errors > 0

    def add(self, messages: Collection[Message]) -> None:
        """Add fetched records and librdkafka's errors. The end of a partition is no error."""
        if not messages:
            return
        self._limit = max(1, min(RECORDS_MAX, BYTES_MAX * len(messages) // (1 + sum(map(len, messages)))))
        if not self._fetched_of_paused and not any(map(ERROR_OF, messages)):
            self._fetched.extend(messages)
            return
        for message in messages:
            error = message.error()
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF:
                    self.add_exception(KafkaException(error))
            elif partition_of_message(message) in self._fetched_of_paused:
                self._fetched_of_paused[partition_of_message(message)].append(message)
            else:
                self._fetched.append(message)

    def add_exception(self, error: Exception) -> None:
        """Add an exception that a request raises once the records before it are taken."""
        self._fetched.append(error)
        self._errors += 1

    def take_one(self) -> Message | None:
        """Return the next record, or None. Raise an exception that is next."""
        if not self._fetched:
            return None
        record = self._fetched.popleft()
        if isinstance(record, Exception):
            self._errors -= 1
            raise record
        self._unsorted.append(record)
        self._current += 1
        return record

    def take(self, count: int) -> list[Message]:
        """Return up to `count` records, up to the next exception. Raise an exception that is next."""
        count = min(count, len(self._fetched))
        if self._errors:
            of_records = (i for i, each in enumerate(self._fetched) if isinstance(each, Exception))
            count = min(count, max(1, next(of_records)))
            if count == 1:
                record = self.take_one()
                return [] if record is None else [record]
        records: list[Message] = [self._fetched.popleft() for _ in range(count)]  # type: ignore[misc]
        self._unsorted.extend(records)
        self._current += count
        return records

    # -- partitions

    def drop(self, partitions: Collection[PartitionKey]) -> None:
        """Drop the fetched records of these partitions."""
        kept = (
            each
            for each in self._fetched
            if isinstance(each, Exception) or partition_of_message(each) not in partitions
        )
        self._fetched = deque(kept)
        for partition in self._fetched_of_paused.keys() & set(partitions):
            self._fetched_of_paused[partition].clear()

    def drop_all(self) -> None:
        """Drop all fetched records and exceptions."""
        self._fetched.clear()
        self._errors = 0
        for records in self._fetched_of_paused.values():
            records.clear()

    def forget(self, partitions: Collection[PartitionKey]) -> None:
        """Drop the fetched records and the positions of these partitions. A record of theirs that is being processed is
        not finished by the next request, as another member may own the partition."""
        self.drop(partitions)
        self._sort()
        for partition in partitions:
            self._delivered.pop(partition, None)
            self._finished.pop(partition, None)
            self._fetched_of_paused.pop(partition, None)
        self._unsorted = [each for each in self._unsorted if partition_of_message(each) not in partitions]
        self._current = len(self._unsorted)

    def forget_all(self) -> None:
        self.drop_all()
        self.forget({*self.delivered(), *self._fetched_of_paused})

    def sought(self, partition: PartitionKey) -> None:
        """Forget the partition, except that it stays paused."""
        is_paused = partition in self._fetched_of_paused
        self.forget([partition])
        if is_paused:
            self._fetched_of_paused[partition] = []

    @property
    def paused(self) -> Collection[PartitionKey]:
        """The partitions that the user has paused."""
        return self._fetched_of_paused.keys()

    def pause(self, partitions: Iterable[PartitionKey]) -> None:
        """Keep the fetched records of these partitions until `resume`."""
        for partition in partitions:
            self._fetched_of_paused.setdefault(partition, [])
        fetched, self._fetched = self._fetched, deque()
        for each in fetched:
            if not isinstance(each, Exception) and partition_of_message(each) in self._fetched_of_paused:
                self._fetched_of_paused[partition_of_message(each)].append(each)
            else:
                self._fetched.append(each)

    def resume(self, partitions: Iterable[PartitionKey]) -> None:
        for partition in partitions:
            self._fetched.extendleft(reversed(self._fetched_of_paused.pop(partition, [])))

    # -- positions

    def finish(self) -> None:
        """The delivered records are finished."""
        self._current = 0
        if len(self._unsorted) >= UNSORTED_MAX:
            self._sort()

    def is_processing(self, partitions: Collection[PartitionKey]) -> bool:
        """Whether a delivered record of these partitions is not finished."""
        self._sort()
        return any(partition_of_message(each) in partitions for each in self._unsorted)

    def take_finished(self) -> list[TopicPartition]:
        """Return the positions after the finished records, once."""
        self._sort()
        finished, self._finished = self._finished, {}
        return list(finished.values())

    def delivered(self) -> dict[PartitionKey, TopicPartition]:
        """Return the positions after the delivered records."""
        self._sort()
        current = _last_of_each_partition(self._unsorted).items()
        return {**self._delivered, **{partition: position_after(record) for partition, record in current}}

    def _sort(self) -> None:
        """Note the positions after the finished records, and keep only the current ones."""
        count = len(self._unsorted) - self._current
        if count:
            last = _last_of_each_partition(self._unsorted[:count])
            positions = {partition: position_after(record) for partition, record in last.items()}
            self._finished.update(positions)
            self._delivered.update(positions)
            del self._unsorted[:count]


def _last_of_each_partition(records: Iterable[Message]) -> dict[PartitionKey, Message]:
    # Once per record, where `partition_of_message` would cost as much again.
    last = {(record.topic(), record.partition()): record for record in records}
    return cast("dict[PartitionKey, Message]", last)
