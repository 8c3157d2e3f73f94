"""confluent-kafka's Consumer with the offset resets of KIP-842 and the parallel catch-up of KIP-333."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, cast

import confluent_kafka
from confluent_kafka import Message, TopicPartition

from kproto.client import configuration
from kproto.client.engine import Engine
from kproto.client.places import place_of

RebalanceCallback = Callable[["confluent_kafka.Consumer", list[TopicPartition]], None]
CONFLUENT_POLL, CONFLUENT_CONSUME = confluent_kafka.Consumer.poll, confluent_kafka.Consumer.consume
"""Called for each record, where `super` would cost as much as the rest."""


class Consumer(confluent_kafka.Consumer):
    """`confluent_kafka.Consumer`, which it replaces: same configuration, methods and callbacks.

    Settings of its own, beside confluent-kafka's:

    ``auto.offset.reset.on.no.initial.offset``
        Where to start in a partition of which the group has no offset: ``none`` (default: as ``auto.offset.reset``
        says), ``latest``, ``earliest``; ``latest_on_start`` or ``earliest_on_start`` if the group starts with the
        topic, else as ``auto.offset.reset`` says; ``safe_latest``: at the end if the first record is older than the
        group, else from the first. ``auto.offset.reset.on.initial.offset`` is the same.
    ``auto.offset.reset.on.invalid.offset``
        Where to go from a position out of range: ``none`` (default: as ``auto.offset.reset`` says) or ``nearest``.
    ``commit.reset.position``
        Whether the strategies that look at the group's start commit the position at once, which they need to recognise
        it later (default true).
    ``enable.parallel.rebalance``
        Read on at the log's end as soon as a partition is assigned, and catch up with what is before by a second
        consumer; the records still come in order (default false).
    ``parallel.rebalance.buffer.bytes``
        How much of the new may wait for the old, per partition (default: ``fetch.max.bytes``).
    ``parallel.rebalance.merge``
        Whether what several crashes have left is one range (default true), or one for each crash.

    ``auto.offset.reset`` may be ``none``, which is confluent-kafka's ``error``. A consumer with none of the new
    settings does just what confluent-kafka's does. With ``enable.parallel.rebalance`` or ``safe_latest`` automatic
    commits are made in `poll` and `consume`, and when partitions go, not by a thread.

    Raises:
        ConfigError: (a ValueError) a setting has a value that it cannot have; the message names it.
        KafkaException, ValueError: as confluent-kafka.
    """

    _engine: Engine | None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        consumer = super().__new__(cls)
        consumer._engine = None
        return consumer

    def __init__(self, config: dict[str, Any] | None = None, /, **kwargs: Any) -> None:
        read = configuration.read({**(config or {}), **kwargs})
        super().__init__(read.for_consumer(self._on_commit))
        if read.is_used:
            self._engine = Engine(cast("confluent_kafka.Consumer", super()), read)
        self._is_cooperative = read.is_cooperative
        self._callbacks: dict[str, RebalanceCallback | None] = {}
        self._assigned_in_callback = False

    # -- records

    def poll(self, timeout: float = -1) -> Message | None:
        """As confluent-kafka's.

        Raises:
            NoOffsetForPartition, OffsetOutOfRange: partitions have no position, and the settings name none. They stay
                assigned, and `seek` gives them one; the next call goes on with the others.
        """
        engine = self._engine
        return CONFLUENT_POLL(self, timeout) if engine is None else engine.poll(timeout)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """As confluent-kafka's; raises what `poll` does, if there is no record to return."""
        if self._engine is None:
            return CONFLUENT_CONSUME(self, num_messages, timeout)
        return self._engine.consume(num_messages, timeout)

    # -- partitions

    def subscribe(
        self,
        topics: list[str],
        on_assign: RebalanceCallback | None = None,
        on_revoke: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        given = {"on_assign": on_assign, "on_revoke": on_revoke, "on_lost": on_lost}
        callbacks = {name: callback for name, callback in given.items() if callback is not None}
        if self._engine is None:
            super().subscribe(topics, **callbacks)
            return
        super().subscribe(topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)
        self._callbacks.update(callbacks)
        self._engine.comes_from_group(is_cooperative=self._is_cooperative)

    def assign(self, partitions: list[TopicPartition]) -> None:
        self._assigned_in_callback = True
        if self._engine is None:
            super().assign(partitions)
        else:
            self._engine.assign(partitions, incremental=False)

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        self._assigned_in_callback = True
        if self._engine is None:
            super().incremental_assign(partitions)
        else:
            self._engine.assign(partitions, incremental=True)

    def unassign(self) -> None:
        if self._engine is not None:
            self._engine.unassign()
        super().unassign()

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        if self._engine is not None:
            self._engine.revoked([place_of(each) for each in partitions])
        super().incremental_unassign(partitions)

    def seek(self, partition: TopicPartition) -> None:
        if self._engine is None:
            super().seek(partition)
        else:
            self._engine.seek(partition)

    def pause(self, partitions: list[TopicPartition]) -> None:
        if self._engine is None:
            super().pause(partitions)
        else:
            self._engine.pause([place_of(each) for each in partitions])

    def resume(self, partitions: list[TopicPartition]) -> None:
        if self._engine is None:
            super().resume(partitions)
        else:
            self._engine.resume([place_of(each) for each in partitions])

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        if self._engine is None:
            return super().position(partitions)
        return self._engine.positions.tell(partitions)

    # -- commits

    def commit(self, message: Message | None = None, offsets: Any = None, asynchronous: bool = True) -> Any:
        given = {"message": message, "offsets": offsets}
        arguments: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if self._engine is None or not self._engine.commits_itself:
            commit: Callable[..., Any] = super().commit
            return commit(**arguments, asynchronous=asynchronous)
        return self._engine.commits.commit({**arguments, "asynchronous": asynchronous})

    def store_offsets(self, message: Message | None = None, offsets: list[TopicPartition] | None = None) -> None:
        if message is not None:
            super().store_offsets(message=message)
            offsets = [TopicPartition(str(message.topic()), message.partition() or 0, (message.offset() or 0) + 1)]
        else:
            super().store_offsets(offsets=offsets)
        if self._engine is not None:
            self._engine.positions.store(offsets or [])

    # -- the end

    def close(self) -> None:
        if self._engine is not None:
            self._engine.commit_at_end()
        super().close()
        if self._engine is not None:
            self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # -- what librdkafka tells

    def _on_assign(self, consumer: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        """The user's callback may assign the partitions at positions of its own; if not, they are assigned after it."""
        originals = [TopicPartition(each.topic, each.partition, each.offset) for each in partitions]
        self._assigned_in_callback = False
        try:
            self._call_back("on_assign", partitions)
        finally:
            if not self._assigned_in_callback:
                (self.incremental_assign if self._is_cooperative else self.assign)(originals)

    def _on_revoke(self, consumer: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        assert self._engine is not None
        places = [place_of(each) for each in partitions]
        self._call_back("on_revoke", partitions)
        self._engine.revoked(places)

    def _on_lost(self, consumer: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        assert self._engine is not None
        places = [place_of(each) for each in partitions]
        self._call_back("on_lost" if "on_lost" in self._callbacks else "on_revoke", partitions)
        self._engine.revoked(places, lost=True)

    def _call_back(self, name: str, partitions: list[TopicPartition]) -> None:
        callback = self._callbacks.get(name)
        if callback is not None:
            callback(self, partitions)

    def _on_commit(self, error: Any, partitions: list[TopicPartition]) -> None:
        assert self._engine is not None
        self._engine.commits.on_commit(error, partitions)
