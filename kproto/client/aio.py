"""`kproto.client.Consumer` for async code, on trio and on asyncio through anyio.

::

    async with Consumer({"bootstrap.servers": servers, "group.id": "billing"}) as consumer:
        await consumer.subscribe(["orders"])
        async for record in consumer:
            await process(record)

Theory of operation
-------------------
A worker thread calls librdkafka for at most `POLL_WAIT_S` at a time. The object keeps fetched records until it delivers
them, so a cancelled wait loses no record. With automatic commits, a record counts as processed when the next record is
requested or when the ``async with`` block ends without an exception. So a record whose `process` is cancelled is
delivered again to the next owner of the partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from kproto.client import consumer as blocking
from kproto.client.configuration import AUTO_STORE
from kproto.client.decisions.settings import boolean
from kproto.client.topic_partitions import (
    PartitionKey,
    next_offset,
    partition_of,
    partition_of_message,
    position_after,
    topic_partitions_at,
)

T = TypeVar("T")
POLL_WAIT_S = 0.05
"""Longest call of librdkafka's poll, and so the longest delay of a cancellation."""
BATCH_MAX_RECORDS = 500

__all__ = ["Consumer"]


class Consumer:
    """`kproto.client.Consumer` with async methods. One task iterates; other tasks may call the other methods meanwhile.

    The caller owns the consumer and closes it, by `aclose` or by ``async with``.

    Cancellation:
        One call at a time runs in a worker thread. A call that is cancelled while it waits for its turn has no effect.
        A call that runs is not interrupted: it completes and returns, and the cancellation takes effect afterwards.

    Args:
        config: as of `kproto.client.Consumer`. Its callbacks and those of `subscribe` are plain functions; a worker
            thread calls them while a task waits for a record.

    Raises:
        ConfigError: (a `ValueError`) a setting has an invalid value; the message names the setting.
    """

    def __init__(self, config: dict[str, Any], /, **kwargs: Any) -> None:
        merged = {**config, **kwargs}
        self._stores_processed = boolean(merged.get(AUTO_STORE, True)) is not False
        """Whether delivered records are stored for commits once processed. If not, the user calls `store_offsets`."""
        self._consumer = blocking.Consumer({**merged, AUTO_STORE: False})
        self._turn = anyio.Lock()
        self._fetched: deque[Message] = deque()
        """Fetched and not yet delivered."""
        self._fetched_of_paused: dict[PartitionKey, list[Message]] = {}
        """The same, of partitions that the user has paused."""
        self._processed: dict[PartitionKey, int] = {}
        """Positions after the processed records, since librdkafka last stored them."""
        self._delivered: dict[PartitionKey, int] = {}
        """Positions after the delivered records of assigned partitions."""
        self._current: Message | None = None
        """The last delivered record; the user may still process it."""

    async def __aenter__(self) -> Self:
        """Return the consumer.

        Cancellation:
            Not a checkpoint.
        """
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the consumer. After an exception, the last delivered record does not count as processed.

        Cancellation:
            As of `aclose`.
        """
        if error is None:
            self._finish_current()
        await self.aclose()

    async def aclose(self) -> None:
        """Commit the processed records if commits are automatic, and leave the group.

        Cancellation:
            Shielded: the consumer is closed in any case.
        """
        with anyio.CancelScope(shield=True):
            await self._in_thread(self._close)

    # -- records

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        """Return the next record.

        Cancellation:
            As of `next_record`.
        """
        return await self.next_record()

    async def next_record(self) -> Message:
        """Return the next record; from now on the record before counts as processed.

        Raises:
            NoOffsetForPartition, OffsetOutOfRange: as of `kproto.client.Consumer.poll`.
            KafkaException: an error that `kproto.client.Consumer.poll` returns as a message. The end of a partition is
                no error.

        Cancellation:
            Loses no record: the next call delivers the fetched records.
        """
        self._finish_current()
        await anyio.lowlevel.checkpoint()
        while not self._fetched:
            await self._in_thread(self._fetch)
        record = self._fetched.popleft()
        error = record.error()
        if error is not None:
            raise KafkaException(error)
        self._current = record
        self._delivered[partition_of_message(record)] = next_offset(record)
        return record

    # -- partitions

    async def subscribe(
        self,
        topics: list[str],
        on_assign: blocking.RebalanceCallback | None = None,
        on_revoke: blocking.RebalanceCallback | None = None,
        on_lost: blocking.RebalanceCallback | None = None,
    ) -> None:
        """As confluent-kafka's `subscribe`. Fetched records of revoked partitions are not delivered.

        Cancellation:
            As of the class.
        """

        def revoked(member: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
            self._store_processed()
            if on_revoke is not None:
                on_revoke(member, partitions)
            self._forget([partition_of(each) for each in partitions])

        def lost(member: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
            callback = on_lost or on_revoke
            if callback is not None:
                callback(member, partitions)
            self._forget([partition_of(each) for each in partitions])

        given: dict[str, Any] = {} if on_assign is None else {"on_assign": on_assign}
        await self._call(self._consumer.subscribe, topics, on_revoke=revoked, on_lost=lost, **given)

    async def unsubscribe(self) -> None:
        """As confluent-kafka's `unsubscribe`.

        Cancellation:
            As of the class.
        """
        await self._call(self._consumer.unsubscribe)

    async def assign(self, partitions: list[TopicPartition]) -> None:
        """As confluent-kafka's `assign`. Fetched records are dropped.

        Cancellation:
            As of the class.
        """
        await self._reassign(partial(self._consumer.assign, partitions))

    async def unassign(self) -> None:
        """As confluent-kafka's `unassign`. Fetched records are dropped.

        Cancellation:
            As of the class.
        """
        await self._reassign(self._consumer.unassign)

    async def assignment(self) -> list[TopicPartition]:
        """As confluent-kafka's `assignment`.

        Cancellation:
            As of the class.
        """
        return await self._call(self._consumer.assignment)

    async def seek(self, partition: TopicPartition) -> None:
        """As confluent-kafka's `seek`. Fetched records of the partition are dropped.

        Cancellation:
            As of the class.
        """

        def seek() -> None:
            self._consumer.seek(partition)
            is_paused = partition_of(partition) in self._fetched_of_paused
            self._forget([partition_of(partition)])
            if is_paused:
                self._fetched_of_paused[partition_of(partition)] = []

        await self._call(seek)

    async def pause(self, partitions: list[TopicPartition]) -> None:
        """As confluent-kafka's `pause`. Fetched records of the partitions are kept until `resume`.

        Cancellation:
            As of the class.
        """

        def pause() -> None:
            self._consumer.pause(partitions)
            for partition in map(partition_of, partitions):
                kept = [each for each in self._fetched if _is_record_of(each, partition)]
                self._fetched = deque(each for each in self._fetched if not _is_record_of(each, partition))
                self._fetched_of_paused.setdefault(partition, []).extend(kept)

        await self._call(pause)

    async def resume(self, partitions: list[TopicPartition]) -> None:
        """As confluent-kafka's `resume`.

        Cancellation:
            As of the class.
        """

        def resume() -> None:
            for partition in map(partition_of, partitions):
                self._fetched.extendleft(reversed(self._fetched_of_paused.pop(partition, [])))
            self._consumer.resume(partitions)

        await self._call(resume)

    async def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return the positions after the delivered records.

        Cancellation:
            As of the class.
        """
        results = await self._call(self._consumer.position, partitions)
        for result in results:
            result.offset = self._delivered.get(partition_of(result), result.offset)
        return results

    async def get_watermark_offsets(self, partition: TopicPartition) -> tuple[int, int]:
        """As confluent-kafka's `get_watermark_offsets`.

        Cancellation:
            As of the class.
        """
        return await self._call(self._consumer.get_watermark_offsets, partition)

    # -- commits

    async def commit(
        self, message: Message | None = None, offsets: list[TopicPartition] | None = None
    ) -> list[TopicPartition]:
        """Commit and wait for the response. Without arguments, commit all delivered records, the last one included.

        Cancellation:
            As of the class: a commit that has begun is carried out.
        """
        if message is not None:
            offsets = [position_after(message)]
        elif offsets is None:
            offsets = topic_partitions_at(self._delivered.items())
        if not offsets:
            await anyio.lowlevel.checkpoint()
            return []
        results: list[TopicPartition] = await self._call(self._consumer.commit, offsets=offsets, asynchronous=False)
        return results

    async def committed(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """As confluent-kafka's `committed`.

        Cancellation:
            As of the class.
        """
        return await self._call(self._consumer.committed, partitions)

    async def store_offsets(self, offsets: list[TopicPartition]) -> None:
        """Store the offsets of processed records, with ``enable.auto.offset.store`` off.

        Cancellation:
            As of the class.
        """
        await self._call(self._consumer.store_offsets, offsets=offsets)

    # -- internals

    async def _call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a function with arguments in a worker thread.

        Cancellation:
            As of the class.
        """
        return await self._in_thread(partial(function, *args, **kwargs))

    async def _in_thread(self, function: Callable[[], T]) -> T:
        """Run a function in a worker thread, one at a time.

        Cancellation:
            As of the class: the lock is only released when the function has ended.
        """
        async with self._turn:
            return await anyio.to_thread.run_sync(function)

    async def _reassign(self, function: Callable[[], None]) -> None:
        """Drop all fetched records and run a function that replaces the assignment.

        Cancellation:
            As of the class.
        """

        def reassign() -> None:
            self._store_processed()
            self._forget(list(self._delivered), all_records=True)
            function()

        await self._call(reassign)

    def _finish_current(self) -> None:
        record, self._current = self._current, None
        if record is not None:
            self._processed[partition_of_message(record)] = next_offset(record)

    def _fetch(self) -> None:
        # Runs in the worker thread and keeps the records in the object: a cancelled caller loses none.
        self._store_processed()
        first = self._consumer.poll(POLL_WAIT_S)
        messages = [] if first is None else [first, *self._consumer.consume(BATCH_MAX_RECORDS, 0)]
        for message in messages:
            error = message.error()
            if error is None and partition_of_message(message) in self._fetched_of_paused:
                self._fetched_of_paused[partition_of_message(message)].append(message)
            elif error is None or error.code() != KafkaError._PARTITION_EOF:
                self._fetched.append(message)

    def _store_processed(self) -> None:
        """Store the offsets of processed records in librdkafka, for automatic commits."""
        processed, self._processed = self._processed, {}
        if processed and self._stores_processed:
            self._consumer.store_offsets(offsets=topic_partitions_at(processed.items()))

    def _forget(self, partitions: Collection[PartitionKey], *, all_records: bool = False) -> None:
        gone = set(partitions)
        kept = (each for each in self._fetched if each.error() is not None or partition_of_message(each) not in gone)
        self._fetched = deque() if all_records else deque(kept)
        for partition in gone:
            self._delivered.pop(partition, None)
            self._processed.pop(partition, None)
            self._fetched_of_paused.pop(partition, None)
        if self._current is not None and partition_of_message(self._current) in gone:
            self._current = None

    def _close(self) -> None:
        self._store_processed()
        self._consumer.close()


def _is_record_of(message: Message, partition: PartitionKey) -> bool:
    return message.error() is None and partition_of_message(message) == partition
