"""The records that an async consumer has fetched ahead, and the positions of those that it has delivered.

A record is fetched, then delivered: its user processes it. It is finished when the next record is requested; only then
its offset may be committed automatically. Revoking a partition drops all of its records that are not delivered yet.

No method waits, and the caller locks: one thread adds records while another one takes them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from typing import TypeAlias, cast

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from kproto.client.topic_partitions import PartitionKey, partition_of_message, position_after

RECORDS_MAX = 2000
"""Most records to fetch ahead. More are only fetched for a request of more records."""
BYTES_MAX = 16 << 20
"""Size limit of the records that are fetched ahead, by the mean size of the last fetch."""
SIZES_EVERY = 16
"""The mean size of fetched records is that of each sixteenth: the size of a record takes longer than its delivery."""
UNSORTED_MAX = 500
"""Delivered records after which their positions are noted by partition: in bulk, as that costs more than a delivery."""
ERROR_OF, TOPIC_OF, PARTITION_OF = Message.error, Message.topic, Message.partition
"""Called for each record by functions in C, at a quarter of the time of a loop."""

Entry: TypeAlias = Message | Exception


class FetchedRecords:
    """The records of one consumer, oldest first, and its positions.

    Records stay in the batches in which they were fetched, so that most work is done once for a batch.
    """

    def __init__(self) -> None:
        self._batch: list[Message] = []
        """The oldest batch, next record last."""
        self._later: deque[list[Message] | Exception] = deque()
        """Further batches, none of them empty. Exceptions have the place in which they are raised."""
        self._later_count = 0
        """The number of records and exceptions in `_later`."""
        self._errors = 0
        """The number of exceptions in `_later`."""
        self._fetched_of_paused: dict[PartitionKey, list[Message]] = {}
        """The records of partitions that the user has paused; they are in no batch."""
        self._limit = RECORDS_MAX
        self._unsorted: list[Message] = []
        """Delivered, and not yet in `_delivered` and `_finished`; the last `_current` of them are not finished."""
        self._current = 0
        self._delivered: dict[PartitionKey, TopicPartition] = {}
        """The position after the finished records of each assigned partition."""
        self._finished: dict[PartitionKey, TopicPartition] = {}
        """Positions after the finished records, since the last `take_finished`."""

    # -- fetched records

    def __len__(self) -> int:
        return len(self._batch) + self._later_count

    @property
    def is_low(self) -> bool:
        """Whether half of the records that are fetched ahead are taken."""
        return len(self._batch) + self._later_count <= self._limit // 2

    def room(self, requested: int = 0) -> int:
        """Return how many more records to fetch, for a request of this many."""
        return max(self._limit, requested) - len(self)

    def has(self, count: int) -> bool:
        """Whether a request of this many records can be met, or has to raise an exception."""
        return len(self) >= count or self._errors > 0

    def add(self, messages: list[Message]) -> None:
        """Add fetched records and librdkafka's errors. The end of a partition is no error."""
        if not messages:
            return
        sizes = list(map(len, messages[::SIZES_EVERY]))
        self._limit = max(1, min(RECORDS_MAX, BYTES_MAX * len(sizes) // (1 + sum(sizes))))
        if self._fetched_of_paused or any(map(ERROR_OF, messages)):
            self._append(self._sorted(messages))
        else:
            self._later.append(messages)
            self._later_count += len(messages)

    def _sorted(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Keep the records of paused partitions; yield the others and exceptions, those of librdkafka's errors too."""
        for each in entries:
            error = None if isinstance(each, Exception) else each.error()
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF:
                    yield KafkaException(error)
            elif isinstance(each, Exception) or partition_of_message(each) not in self._fetched_of_paused:
                yield each
            else:
                self._fetched_of_paused[partition_of_message(each)].append(each)

    def _append(self, entries: Iterable[Entry]) -> None:
        batch: list[Message] = []
        for each in entries:
            if isinstance(each, Exception):
                self._later.append(each)
                self._errors += 1
                batch = []
            else:
                if not batch:
                    self._later.append(batch)
                batch.append(each)
            self._later_count += 1

    def add_exception(self, error: Exception) -> None:
        """Add an exception that a request raises once the records before it are taken."""
        self._append([error])

    def take_one(self) -> Message | None:
        """Return the next record, or None. Raise an exception that is next."""
        if not self._batch and not self._begin_batch():
            return None
        record = self._batch.pop()
        self._unsorted.append(record)
        self._current += 1
        return record

    def take(self, count: int) -> list[Message]:
        """Return up to `count` records, up to the next exception. Raise an exception that is next."""
        records: list[Message] = []
        while (missing := count - len(records)) and (self._batch or self._begin_batch(raises=not records)):
            records += self._batch[: -missing - 1 : -1]
            del self._batch[-missing:]
        self._unsorted += records
        self._current += len(records)
        return records

    def _begin_batch(self, *, raises: bool = True) -> bool:
        """Begin the next batch; return whether there is one. An exception that is next is raised, or stays there."""
        if not self._later or (not raises and isinstance(self._later[0], Exception)):
            return False
        entry = self._later.popleft()
        if isinstance(entry, Exception):
            self._later_count -= 1
            self._errors -= 1
            raise entry
        entry.reverse()
        self._batch = entry
        self._later_count -= len(entry)
        return True

    def _take_entries(self) -> list[Entry]:
        """Return and remove all fetched records and exceptions, oldest first."""
        entries: list[Entry] = self._batch[::-1]  # type: ignore[assignment]
        for each in self._later:
            entries += [each] if isinstance(each, Exception) else each
        self._drop_batches()
        return entries

    def _drop_batches(self) -> None:
        self._batch = []
        self._later.clear()
        self._later_count = self._errors = 0

    # -- partitions

    def drop(self, partitions: Collection[PartitionKey]) -> None:
        """Drop the fetched records of these partitions."""
        self._append(
            each
            for each in self._take_entries()
            if isinstance(each, Exception) or partition_of_message(each) not in partitions
        )
        for partition in self._fetched_of_paused.keys() & set(partitions):
            self._fetched_of_paused[partition].clear()

    def drop_all(self) -> None:
        """Drop all fetched records and exceptions."""
        self._drop_batches()
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
        self._append(self._sorted(self._take_entries()))

    def resume(self, partitions: Iterable[PartitionKey]) -> None:
        for partition in partitions:
            self._append([*self._fetched_of_paused.pop(partition, []), *self._take_entries()])

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

    def finished(self) -> list[TopicPartition]:
        """Return the positions after all finished records of the assigned partitions."""
        self._sort()
        return list(self._delivered.values())

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


def _last_of_each_partition(records: list[Message]) -> dict[PartitionKey, Message]:
    if not records:
        return {}
    topics, numbers = list(map(TOPIC_OF, records)), list(map(PARTITION_OF, records))
    # librdkafka returns the records of a partition in long runs. A loop over all records takes six times as long.
    if topics.count(topics[0]) < len(topics):
        last = dict(zip(zip(topics, numbers, strict=True), records, strict=True))
    elif numbers.count(numbers[0]) < len(numbers):
        by_number = dict(zip(numbers, records, strict=True))
        last = {(topics[0], number): each for number, each in by_number.items()}
    else:
        last = {(topics[0], numbers[0]): records[-1]}
    return cast("dict[PartitionKey, Message]", last)
