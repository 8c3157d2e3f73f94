"""The consumer for async code, on trio and on asyncio (through anyio).

::

    async with Consumer({"bootstrap.servers": servers, "group.id": "billing"}) as consumer:
        await consumer.subscribe(["orders"])
        async for record in consumer:
            await process(record)

librdkafka is asked in a worker thread, a fraction of a second at a time. What it has given is kept here until it is
handed out, so a cancelled wait loses no record; and a record counts as processed, for automatic commits, only when the
next one is asked for or the ``async with`` block ends without an exception. So a task that is cancelled within
``process`` will see its record again.
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
from kproto.client.core.settings import boolean
from kproto.client.places import Place, partitions_at, place_of, place_of_message

T = TypeVar("T")
WAIT_S = 0.05
"""How long librdkafka may keep the thread, and so how late a cancellation can be."""
BATCH = 500

__all__ = ["Consumer"]


class Consumer:
    """`kproto.client.Consumer` for one task that iterates; other tasks may call the other methods meanwhile.

    Args:
        config: as of `kproto.client.Consumer`. Its callbacks, and those of `subscribe`, are plain functions; they are
            called in a worker thread, while a task waits for a record.

    Raises:
        ConfigError: (a ValueError) a setting has a value that it cannot have; the message names it.
    """

    def __init__(self, config: dict[str, Any], /, **kwargs: Any) -> None:
        merged = {**config, **kwargs}
        self._stores = boolean(merged.get(AUTO_STORE, True)) is not False
        """Whether it is ours to say what was processed; else the user does, by `store_offsets`."""
        self._consumer = blocking.Consumer({**merged, AUTO_STORE: False})
        self._one_at_a_time = anyio.Lock()
        self._records: deque[Message] = deque()
        """What was fetched, and not handed out."""
        self._paused: dict[Place, list[Message]] = {}
        """The same, of partitions that the user has paused."""
        self._processed: dict[Place, int] = {}
        """The offsets after what was processed since the last time that librdkafka was told."""
        self._handed_out: dict[Place, int] = {}
        """The offsets after what was handed out, of the partitions that we have."""
        self._current: Message | None = None
        """What was handed out last, and may still be worked on."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self._finish_current()
        await self.aclose()

    async def aclose(self) -> None:
        """Commit what was processed, if commits are automatic, and leave the group.

        Cancellation:
            It is carried out nevertheless.
        """
        with anyio.CancelScope(shield=True):
            await self._in_thread(self._close)

    # -- records

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        return await self.next_record()

    async def next_record(self) -> Message:
        """The next record; the one before counts as processed from now on.

        Raises:
            KafkaException: what `kproto.client.Consumer.poll` raises, and the errors that it returns as messages; that
                a partition has come to its end is none.

        Cancellation:
            Nothing is lost: what was fetched is handed out by the next call.
        """
        self._finish_current()
        await anyio.lowlevel.checkpoint()
        while not self._records:
            await self._in_thread(self._fetch)
        record = self._records.popleft()
        error = record.error()
        if error is not None:
            raise KafkaException(error)
        self._current = record
        self._handed_out[place_of_message(record)] = _after(record)
        return record

    # -- partitions

    async def subscribe(
        self,
        topics: list[str],
        on_assign: blocking.RebalanceCallback | None = None,
        on_revoke: blocking.RebalanceCallback | None = None,
        on_lost: blocking.RebalanceCallback | None = None,
    ) -> None:
        """As confluent-kafka's; records of partitions that go are not handed out any more."""

        def revoked(member: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
            self._store()
            if on_revoke is not None:
                on_revoke(member, partitions)
            self._forget([place_of(each) for each in partitions])

        def lost(member: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
            callback = on_lost or on_revoke
            if callback is not None:
                callback(member, partitions)
            self._forget([place_of(each) for each in partitions])

        given: dict[str, Any] = {} if on_assign is None else {"on_assign": on_assign}
        await self._call(self._consumer.subscribe, topics, on_revoke=revoked, on_lost=lost, **given)

    async def unsubscribe(self) -> None:
        await self._call(self._consumer.unsubscribe)

    async def assign(self, partitions: list[TopicPartition]) -> None:
        def assign() -> None:
            self._store()
            self._forget(list(self._handed_out), all_records=True)
            self._consumer.assign(partitions)

        await self._call(assign)

    async def unassign(self) -> None:
        def unassign() -> None:
            self._store()
            self._forget(list(self._handed_out), all_records=True)
            self._consumer.unassign()

        await self._call(unassign)

    async def assignment(self) -> list[TopicPartition]:
        return await self._call(self._consumer.assignment)

    async def seek(self, partition: TopicPartition) -> None:
        """As confluent-kafka's; what was fetched of this partition is dropped."""

        def seek() -> None:
            self._consumer.seek(partition)
            was_paused = place_of(partition) in self._paused
            self._forget([place_of(partition)])
            if was_paused:
                self._paused[place_of(partition)] = []

        await self._call(seek)

    async def pause(self, partitions: list[TopicPartition]) -> None:
        """As confluent-kafka's; what was fetched of these partitions waits."""

        def pause() -> None:
            self._consumer.pause(partitions)
            for place in map(place_of, partitions):
                waiting = [each for each in self._records if _is_of(each, place)]
                self._records = deque(each for each in self._records if not _is_of(each, place))
                self._paused.setdefault(place, []).extend(waiting)

        await self._call(pause)

    async def resume(self, partitions: list[TopicPartition]) -> None:
        def resume() -> None:
            for place in map(place_of, partitions):
                self._records.extendleft(reversed(self._paused.pop(place, [])))
            self._consumer.resume(partitions)

        await self._call(resume)

    async def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """The offsets after what was handed out."""
        found = await self._call(self._consumer.position, partitions)
        for each in found:
            each.offset = self._handed_out.get(place_of(each), each.offset)
        return found

    async def get_watermark_offsets(self, partition: TopicPartition) -> tuple[int, int]:
        return await self._call(self._consumer.get_watermark_offsets, partition)

    # -- commits

    async def commit(
        self, message: Message | None = None, offsets: list[TopicPartition] | None = None
    ) -> list[TopicPartition]:
        """Commit, and wait until it is done: what was handed out, the last record included, unless told otherwise.

        Cancellation:
            The commit is carried out nevertheless.
        """
        if message is not None:
            offsets = partitions_at([(place_of_message(message), _after(message))])
        elif offsets is None:
            offsets = partitions_at(self._handed_out.items())
        if not offsets:
            await anyio.lowlevel.checkpoint()
            return []
        answers: list[TopicPartition] = await self._call(self._consumer.commit, offsets=offsets, asynchronous=False)
        return answers

    async def committed(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return await self._call(self._consumer.committed, partitions)

    async def store_offsets(self, offsets: list[TopicPartition]) -> None:
        """Say what was processed, with ``enable.auto.offset.store`` off."""
        await self._call(self._consumer.store_offsets, offsets=offsets)

    # -- inside

    async def _call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        return await self._in_thread(partial(function, *args, **kwargs))

    async def _in_thread(self, function: Callable[[], T]) -> T:
        """One call at a time; a cancelled one still ends before the next begins."""
        async with self._one_at_a_time:
            return await anyio.to_thread.run_sync(function)

    def _finish_current(self) -> None:
        record, self._current = self._current, None
        if record is not None:
            self._processed[place_of_message(record)] = _after(record)

    def _fetch(self) -> None:
        """In the thread: keep what comes, so that it is there whoever still waits for it."""
        self._store()
        first = self._consumer.poll(WAIT_S)
        messages = [] if first is None else [first, *self._consumer.consume(BATCH, 0)]
        for message in messages:
            error = message.error()
            if error is None and place_of_message(message) in self._paused:
                self._paused[place_of_message(message)].append(message)
            elif error is None or error.code() != KafkaError._PARTITION_EOF:
                self._records.append(message)

    def _store(self) -> None:
        """Tell librdkafka what was processed: that is what automatic commits say."""
        processed, self._processed = self._processed, {}
        if processed and self._stores:
            self._consumer.store_offsets(offsets=partitions_at(processed.items()))

    def _forget(self, places: Collection[Place], *, all_records: bool = False) -> None:
        gone = set(places)
        kept = (each for each in self._records if each.error() is not None or place_of_message(each) not in gone)
        self._records = deque() if all_records else deque(kept)
        for place in gone:
            self._handed_out.pop(place, None)
            self._processed.pop(place, None)
            self._paused.pop(place, None)
        if self._current is not None and place_of_message(self._current) in gone:
            self._current = None

    def _close(self) -> None:
        self._store()
        self._consumer.close()


def _after(record: Message) -> int:
    offset = record.offset()
    assert offset is not None
    return offset + 1


def _is_of(record: Message, place: Place) -> bool:
    return record.error() is None and place_of_message(record) == place
