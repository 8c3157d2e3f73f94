"""`kproto.client.Consumer` for async code, on trio and on asyncio through anyio.

::

    async with Consumer({"bootstrap.servers": servers, "group.id": "billing"}) as consumer:
        await consumer.subscribe(["orders"])
        async for record in consumer:
            await process(record)

Records
-------
A thread polls librdkafka all the time (`background_polls`) and keeps the fetched records until they are delivered, so a
cancelled wait loses no record. A record is *finished* when the next record is requested, or when the ``async with``
block ends without an exception. Automatic commits commit finished records only. So a record whose `process` is
cancelled is delivered again to the next owner of the partition.

Rebalances
----------
A rebalance does not wait for `process`. Fetched records of revoked partitions are dropped. The new owner of a partition
gets the record again that is being processed at this moment, as it is not finished. With
``subscribe(..., finish_record=True)`` the revocation waits until the record is finished, and so does the rebalance.

A program that hangs
--------------------
``max.poll.interval.ms`` is the longest time between a record and the request for the next one, as for other consumers;
waiting for a record counts as a request. When the time has passed, the consumer leaves the group, ``on_revoke`` is
called, and other members get its partitions. This happens even if the event loop is blocked. The next request raises
`KafkaException` with the code ``_MAX_POLL_EXCEEDED``; the request after that waits in the group again.
"""

from __future__ import annotations

import math
import weakref
from functools import partial
from time import monotonic
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.lowlevel
import anyio.to_thread
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from kproto.client import configuration
from kproto.client.async_calls import AsyncCalls
from kproto.client.background_polls import BackgroundPolls
from kproto.client.consumer import RebalanceCallback
from kproto.client.topic_partitions import partition_of, position_after

DEFAULTS: dict[str, Any] = {"fetch.queue.backoff.ms": 10}
"""librdkafka's default, 1000, lets a program wait for records that takes them faster than this."""
CHECKPOINT_INTERVAL_S = 0.001
"""How long records are delivered without a checkpoint."""
FETCH_AHEAD = 500
"""Records that `next_record` and `poll` fetch at once in the event loop."""
CONSUME_MAX = 1_000_000
"""Of confluent-kafka."""

__all__ = ["Consumer"]


class Consumer(AsyncCalls):
    """`kproto.client.Consumer` with async methods. One task iterates; other tasks may call the other methods meanwhile.

    The caller owns the consumer and closes it, by `aclose` or by ``async with``.

    Cancellation:
        As of `AsyncCalls`: a call that has begun completes.

    Args:
        config: as of `kproto.client.Consumer`. Its callbacks and those of `subscribe` are plain functions, called in a
            thread. The next request raises their exceptions.

    Raises:
        ConfigError: (a `ValueError`) a setting has an invalid value; the message names the setting.
        TypeError: a callback cannot be called.
    """

    def __init__(self, config: dict[str, Any], /, **kwargs: Any) -> None:
        super().__init__(BackgroundPolls({**DEFAULTS, **config, **kwargs}))
        self._checkpoint_at = 0.0
        weakref.finalize(self, self._polls.abandon).atexit = False

    async def __aenter__(self) -> Self:
        """Return the consumer.

        Cancellation:
            Not a checkpoint.
        """
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the consumer. After an exception, the last delivered records do not count as finished.

        Cancellation:
            As of `aclose`.
        """
        if error is None:
            with self._polls.locked() as records:
                records.finish()
        await self.aclose()

    async def aclose(self) -> None:
        """Commit the finished records if commits are automatic, and leave the group. A second call does nothing.

        Cancellation:
            Shielded: the consumer is closed in any case.
        """
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._polls.close)

    # -- records

    def __aiter__(self) -> Self:
        return self

    async def next_record(self) -> Message:
        """Return the next record; from now on the record before counts as finished. ``async for`` calls it.

        Raises:
            NoOffsetForPartition, OffsetOutOfRange, UnsupportedBroker: as of `kproto.client.Consumer.poll`.
            KafkaException: an error that `kproto.client.Consumer.poll` returns as a message. The end of a partition is
                no error.
            RuntimeError: the consumer is closed.

        Cancellation:
            Loses no record: the next call delivers the fetched records. A checkpoint when it waits, and otherwise once
            in a millisecond.
        """
        now = monotonic()
        if now >= self._checkpoint_at:
            now = await self._checkpoint()
        record = self._polls.next_record(now)
        if record is None:
            record = self._fetch_next(now)
        while record is None:
            await self._wait(1)
            record = self._polls.next_record(monotonic())
        return record

    __anext__ = next_record

    async def poll(self, timeout: float | None = -1) -> Message | None:
        """Return the next record, or None after the timeout in seconds (None, or less than 0: no timeout).

        Raises:
            NoOffsetForPartition, OffsetOutOfRange, UnsupportedBroker, KafkaException, RuntimeError: as of
                `next_record`.

        Cancellation:
            Loses no record: the next call delivers the fetched records.
        """
        now = monotonic()
        if now >= self._checkpoint_at:
            now = await self._checkpoint()
        record = self._polls.next_record(now)
        if record is None:
            record = self._fetch_next(now)
        if record is None and timeout != 0:
            with _timeout_scope(timeout):
                await self._wait(1)
            record = self._polls.next_record(monotonic())
        return record

    async def consume(self, num_messages: int = 1, timeout: float | None = -1) -> list[Message]:
        """Return this many records, or those that there are after the timeout. The records before count as finished.

        Raises:
            NoOffsetForPartition, OffsetOutOfRange, UnsupportedBroker, KafkaException, RuntimeError: as of
                `next_record`. The records that were fetched before the error come first, even if they are fewer.
            ValueError: less than 0 or more than 1,000,000 records are requested.

        Cancellation:
            As of `next_record`.
        """
        if not 0 <= num_messages <= CONSUME_MAX:
            raise ValueError("num_messages must be between 0 and 1000000 (1M)")
        if monotonic() >= self._checkpoint_at:
            await self._checkpoint()
        self._polls.begin_request()
        self._polls.fetch_now(num_messages)
        if timeout != 0 and not self._polls.has(num_messages):
            with _timeout_scope(timeout):
                await self._wait(num_messages)
        return self._polls.take(num_messages)

    def _fetch_next(self, now: float) -> Message | None:
        """Return the next record if librdkafka has one."""
        self._polls.fetch_now(FETCH_AHEAD)
        return self._polls.next_record(now)

    async def _checkpoint(self) -> float:
        """Return the time after it, on the monotonic clock.

        Cancellation:
            Loses no record; those that were delivered before are finished.
        """
        self._polls.begin_request()
        await anyio.lowlevel.checkpoint()
        now = monotonic()
        self._checkpoint_at = now + CHECKPOINT_INTERVAL_S
        return now

    # -- partitions

    async def subscribe(
        self,
        topics: list[str],
        on_assign: RebalanceCallback | None = None,
        on_revoke: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
        *,
        finish_record: bool = False,
    ) -> None:
        """As confluent-kafka's `subscribe`. Fetched records of revoked partitions are not delivered.

        Args:
            finish_record: a revocation first waits until the delivered records of the revoked partitions are finished,
                at most until ``max.poll.interval.ms`` has passed since their request. ``on_revoke`` is called after it.
                The program may commit meanwhile. Partitions that are lost are not waited for.

        Cancellation:
            As of the class.
        """
        callbacks = (on_assign, on_revoke, on_lost)
        await self._call(self._polls.subscribe, topics, *callbacks, finish_record=finish_record)

    async def unsubscribe(self) -> None:
        """As confluent-kafka's `unsubscribe`. Fetched records are dropped.

        Cancellation:
            As of the class.
        """
        await self._call(self._polls.unsubscribe)

    async def assign(self, partitions: list[TopicPartition]) -> None:
        """As confluent-kafka's `assign`. Fetched records are dropped.

        Cancellation:
            As of the class.
        """
        await self._call(self._polls.assign, partial(self._consumer.assign, partitions))

    async def unassign(self) -> None:
        """As confluent-kafka's `unassign`. Fetched records are dropped.

        Cancellation:
            As of the class.
        """
        await self._call(self._polls.assign, self._consumer.unassign)

    async def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """As confluent-kafka's `incremental_assign`.

        Cancellation:
            As of the class.
        """
        await self._call(self._consumer.incremental_assign, partitions)

    async def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """As confluent-kafka's `incremental_unassign`. Fetched records of the partitions are dropped.

        Cancellation:
            As of the class.
        """

        def unassign() -> None:
            self._polls.store_finished()
            self._polls.forget({partition_of(each) for each in partitions})
            self._consumer.incremental_unassign(partitions)

        await self._call(unassign)

    async def seek(self, partition: TopicPartition) -> None:
        """As confluent-kafka's `seek`. Fetched records of the partition are dropped.

        Cancellation:
            As of the class.
        """

        def seek() -> None:
            self._consumer.seek(partition)
            with self._polls.locked() as records:
                records.sought(partition_of(partition))

        await self._call(seek)

    async def pause(self, partitions: list[TopicPartition]) -> None:
        """As confluent-kafka's `pause`. Fetched records of the partitions are kept until `resume`.

        Cancellation:
            As of the class.
        """
        await self._call(self._polls.pause, {partition_of(each) for each in partitions})

    async def resume(self, partitions: list[TopicPartition]) -> None:
        """As confluent-kafka's `resume`.

        Cancellation:
            As of the class.
        """
        await self._call(self._polls.resume, {partition_of(each) for each in partitions})

    async def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return the positions after the delivered records.

        Cancellation:
            As of the class.
        """

        def position() -> list[TopicPartition]:
            results = self._consumer.position(partitions)
            with self._polls.locked() as records:
                delivered = records.delivered()
            for result in results:
                if partition_of(result) in delivered:
                    result.offset = delivered[partition_of(result)].offset
            return results

        return await self._call(position)

    # -- commits

    async def commit(
        self, message: Message | None = None, offsets: list[TopicPartition] | None = None, asynchronous: bool = False
    ) -> list[TopicPartition]:
        """Commit the offset after a record, offsets, or the positions after all delivered records, the last included.

        With ``enable.auto.offset.store`` off, the latter are the offsets of `store_offsets`. Wait for the response and
        return the results; if `asynchronous`, return none, at once: the response goes to the callback ``on_commit``.

        Cancellation:
            As of the class: a commit that has begun is carried out.
        """
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        if message is not None:
            offsets = [position_after(message)]
        elif offsets is None and self._polls.stores_finished:
            with self._polls.locked() as records:
                offsets = list(records.delivered().values())
            if not offsets:
                await anyio.lowlevel.checkpoint()
                return []
        return await self._call(self._commit, offsets, asynchronous)

    def _commit(self, offsets: list[TopicPartition] | None, asynchronous: bool) -> list[TopicPartition]:
        given: dict[str, Any] = {} if offsets is None else {"offsets": offsets}
        try:
            results: list[TopicPartition] | None = self._consumer.commit(**given, asynchronous=asynchronous)
        except KafkaException as error:
            if offsets is not None or error.args[0].code() != KafkaError._NO_OFFSET:
                raise
            results = None
        return results or []

    async def store_offsets(self, message: Message | None = None, offsets: list[TopicPartition] | None = None) -> None:
        """Store the offsets of processed records, with ``enable.auto.offset.store`` off.

        Raises:
            KafkaException: ``enable.auto.offset.store`` is on; the consumer stores the offsets.

        Cancellation:
            As of the class.
        """
        if self._polls.stores_finished:
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG, f"{configuration.AUTO_STORE} is on"))
        given = {"message": message, "offsets": offsets}
        arguments: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        await self._call(self._consumer.store_offsets, **arguments)


def _timeout_scope(timeout: float | None) -> anyio.CancelScope:
    return anyio.move_on_after(math.inf if timeout is None or timeout < 0 else timeout)
