"""confluent-kafka's `Consumer` with the offset resets of KIP-842 and the parallel catch-up of KIP-333."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import monotonic
from types import TracebackType
from typing import Any, Self

import confluent_kafka
from confluent_kafka import Message, TopicPartition

from kproto.client import configuration
from kproto.client.confluent_methods import CONSUME_MOVES_POSITIONS, ConfluentMethods
from kproto.client.delegate import ConsumerDelegate
from kproto.client.delivery import Delivery
from kproto.client.topic_partitions import are_topic_partitions, partition_of, to_topic_partitions

RebalanceCallback = Callable[["confluent_kafka.Consumer", list[TopicPartition]], None]
CONFLUENT_POLL, CONFLUENT_CONSUME = confluent_kafka.Consumer.poll, confluent_kafka.Consumer.consume
"""Called once per record, where `super()` would cost as much as the rest of the call."""
ERROR_OF = Message.error
"""Called for each record by functions in C."""
NOT_GIVEN: Any = object()
"""Default of arguments for which a release of confluent-kafka refuses None."""


class Consumer(confluent_kafka.Consumer):
    """A replacement of `confluent_kafka.Consumer` with the same configuration, methods and callbacks.

    The caller owns the consumer and closes it, by `close` or as a context manager.

    Additional settings:

    ``auto.offset.reset.on.no.initial.offset``
        The start position in a partition without a committed offset: ``none`` (default: ``auto.offset.reset``
        decides), ``latest`` or ``earliest``; ``latest_on_start`` or ``earliest_on_start`` at the group start, while
        ``auto.offset.reset`` decides for partitions that are added later; ``safe_latest``: the end at the group start
        if the first record is older than the group, the first record otherwise, so that no record of a partition that
        is added later is skipped. Alias: ``auto.offset.reset.on.initial.offset``. A group starts with each topic of
        which no partition has a committed offset.
    ``auto.offset.reset.on.invalid.offset``
        The position after an offset out of range: ``none`` (default: ``auto.offset.reset`` decides) or ``nearest``.
    ``commit.reset.position``
        Whether the strategies that depend on the group start commit the reset position at once (default true). Without
        that commit they cannot recognize the group start later.
    ``enable.parallel.rebalance``
        Continue at the log end as soon as a partition is assigned, and read the records from the committed offset up
        to there with a second consumer; records are still delivered in order (default false).
    ``parallel.rebalance.buffer.bytes``
        Size limit, per partition, of the newer records that wait for the older ones (default: ``fetch.max.bytes``).
    ``parallel.rebalance.merge``
        Whether the catch-up ranges that several crashes left are merged into one (default true).
    ``parallel.rebalance.order``
        ``partition`` (default): newer records wait for all older ones of their partition, so the lag is not lower than
        without the catch-up. ``key``: they wait for the older records of their key only; the next owner after a crash
        delivers them again.
    ``event_cb``
        A function that is called with each `Event`: resets, catch-ups, checkpoints. `poll`, `consume` and `close` call
        it and raise its exceptions. Without any of the settings above there are no events.

    ``auto.offset.reset`` accepts ``none``, confluent-kafka's ``error``. Without any of these settings the consumer
    behaves exactly as confluent-kafka's. With one, `assign` and `poll` do not wait for brokers: a second client queries
    the start position of a partition in threads, and the partition is assigned meanwhile, without a position. With
    ``enable.parallel.rebalance`` or ``safe_latest``, automatic commits commit the user's positions of the last calls of
    `poll` and `consume`: the records before the returned ones.

    Raises:
        ConfigError: (a `ValueError`) a setting has an invalid value; the message names the setting.
        TypeError: a callback cannot be called.
        KafkaException, ValueError: as of confluent-kafka.
    """

    _delegate: ConsumerDelegate | None
    _delivery: Delivery | None
    """Of the delegate."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # librdkafka's callbacks may use them before the end of this function.
        self._delegate = self._delivery = None
        given = args[0] if args else {}
        if len(args) > 1 or not isinstance(given, dict) or not (given or kwargs):
            super().__init__(*args, **kwargs)  # raises
        divided = configuration.read({**given, **kwargs})
        on_commit = _CommitCallback()
        super().__init__(divided.for_consumer(on_commit))
        if divided.uses_proposals:
            self._confluent = ConfluentMethods(self)
            self._delegate = ConsumerDelegate(self._confluent.as_consumer, divided)
            self._delivery = self._delegate.delivery
            on_commit.delegate = self._delegate
            self._process_id = os.getpid()
        elif type(self) is Consumer:
            self.__class__ = _PlainConsumer
        self._is_cooperative = divided.is_cooperative
        self._callbacks: dict[str, RebalanceCallback | None] = {}
        self._assigned_in_callback = False

    # -- records

    def poll(self, timeout: float = -1) -> Message | None:
        """As confluent-kafka's `poll`.

        Raises:
            NoOffsetForPartition, OffsetOutOfRange: partitions have no position, and no setting names one. The
                partitions stay assigned, and `seek` sets their position; the next call continues with the others.
            UnsupportedBroker: the same, as the brokers are older than Kafka 0.10.1 and the setting is ``safe_latest``.
        """
        delivery = self._delivery
        if delivery is None:
            return CONFLUENT_POLL(self, timeout)
        until = delivery.straight_until
        if until is None or monotonic() < until:
            # Here, and not in a function of `Delivery`: each call of one adds 8 % to librdkafka's poll. With a timeout,
            # librdkafka looks at the clock before it looks for a record.
            message = CONFLUENT_POLL(self, 0.0)
            # librdkafka's callbacks run within its poll and may have changed the mode.
            if message is not None and message.error() is None and delivery.straight_until is until:
                return message
            return delivery.continue_poll(message, timeout)
        return delivery.poll(timeout)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """As confluent-kafka's `consume`.

        Raises:
            NoOffsetForPartition, OffsetOutOfRange, UnsupportedBroker: as of `poll`, and only if there is no record to
                return.
        """
        delivery = self._delivery
        if delivery is None:
            return CONFLUENT_CONSUME(self, num_messages, timeout)
        until = delivery.straight_until
        if CONSUME_MOVES_POSITIONS or (until is not None and monotonic() >= until):
            return delivery.consume(num_messages, timeout)
        messages = CONFLUENT_CONSUME(self, num_messages, 0.0)  # here, as in `poll`
        if len(messages) == num_messages and delivery.straight_until is until and not any(map(ERROR_OF, messages)):
            return messages
        return delivery.continue_consume(messages, num_messages, timeout)

    # -- partitions

    def subscribe(
        self,
        topics: list[str],
        on_assign: RebalanceCallback | None = NOT_GIVEN,
        on_revoke: RebalanceCallback | None = NOT_GIVEN,
        on_lost: RebalanceCallback | None = NOT_GIVEN,
    ) -> None:
        given = {"on_assign": on_assign, "on_revoke": on_revoke, "on_lost": on_lost}
        callbacks = {name: callback for name, callback in given.items() if callback is not NOT_GIVEN}
        if self._delegate is None or not all(map(callable, callbacks.values())):
            super().subscribe(topics, **callbacks)
            return
        # librdkafka keeps functions of the class: methods of the object would keep a dropped consumer alive.
        own: Any = type(self)
        super().subscribe(topics, on_assign=own._on_assign, on_revoke=own._on_revoke, on_lost=own._on_lost)
        self._callbacks = callbacks
        self._delegate.subscribed(is_cooperative=self._is_cooperative)

    def unsubscribe(self) -> None:
        super().unsubscribe()
        if self._delegate is not None:
            self._delegate.unsubscribed()

    def assign(self, partitions: list[TopicPartition], /) -> None:
        self._assigned_in_callback = True
        delegate = self._delegate_while_open
        if delegate is None or not are_topic_partitions(partitions):
            super().assign(partitions)
        else:
            delegate.assign(partitions)

    def incremental_assign(self, partitions: list[TopicPartition], /) -> None:
        self._assigned_in_callback = True
        delegate = self._delegate_while_open
        if delegate is None or not delegate.can_add(partitions):
            super().incremental_assign(partitions)
        else:
            delegate.incremental_assign(partitions)

    @property
    def _delegate_while_open(self) -> ConsumerDelegate | None:
        """The delegate, None once `close` has begun.

        The first `assign` in a callback of `close` lets librdkafka terminate its consumer group. A further call at that
        moment gets no response and waits forever (librdkafka's issue 4884), and the delegate makes several.
        """
        delegate = self._delegate
        return None if delegate is None or delegate.is_closing else delegate

    def unassign(self) -> None:
        self._assigned_in_callback = True
        if self._delegate is not None:
            self._delegate.unassign()
        super().unassign()

    def incremental_unassign(self, partitions: list[TopicPartition], /) -> None:
        self._assigned_in_callback = True
        if self._delegate is not None and self._delegate.can_remove(partitions):
            self._delegate.revoked(list(map(partition_of, partitions)))
        super().incremental_unassign(partitions)

    def seek(self, partition: TopicPartition) -> None:
        delegate = self._delegate_while_open
        if delegate is None or not isinstance(partition, TopicPartition):
            super().seek(partition)
        else:
            delegate.seek(partition)

    def pause(self, partitions: list[TopicPartition]) -> None:
        if self._delegate is None or not are_topic_partitions(partitions):
            super().pause(partitions)
        else:
            self._delegate.pause(partitions)

    def resume(self, partitions: list[TopicPartition]) -> None:
        if self._delegate is None or not are_topic_partitions(partitions):
            super().resume(partitions)
        else:
            self._delegate.resume(partitions)

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return super().position(partitions) if self._delegate is None else self._delegate.position(partitions)

    # -- commits

    def commit(self, *args: Any, **kwargs: Any) -> Any:
        """As confluent-kafka's ``commit(message=None, offsets=None, asynchronous=True)``.

        Takes any arguments, since confluent-kafka's older name of ``asynchronous`` is ``async``.
        """
        delegate = self._delegate
        if delegate is not None and delegate.stores_positions:
            return delegate.commits.commit(*args, **kwargs)
        commit: Callable[..., Any] = super().commit
        results = commit(*args, **kwargs)
        return results if delegate is None or results is None else delegate.commits.note(results)

    def store_offsets(
        self, message: Message | None = NOT_GIVEN, offsets: list[TopicPartition] | None = NOT_GIVEN
    ) -> None:
        given = {"message": message, "offsets": offsets}
        arguments: dict[str, Any] = {name: value for name, value in given.items() if value is not NOT_GIVEN}
        if self._delegate is None:
            super().store_offsets(**arguments)
        else:
            self._delegate.store_offsets(arguments)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        super().set_sasl_credentials(username, password)
        if self._delegate is not None:
            self._delegate.set_sasl_credentials(username, password)

    # -- close

    def close(self) -> None:
        delegate = self._delegate
        if delegate is None or delegate.is_closed:
            super().close()
            return
        delegate.store_before_close()
        try:
            super().close()
        finally:  # a callback of librdkafka may raise
            delegate.close()
            delegate.delivery.call_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # Without this, the second client and the group's membership would last until the session times out. A child
        # process has no threads of librdkafka that could close anything.
        delegate = self._delegate
        if delegate is not None and not delegate.is_closed and self._process_id == os.getpid():
            with self._confluent.held(self):
                self.close()

    # -- callbacks of librdkafka

    def _on_assign(self, partitions: list[TopicPartition]) -> None:
        # The user's callback may assign the partitions at its own positions; otherwise they are assigned here.
        originals = [TopicPartition(each.topic, each.partition, each.offset) for each in partitions]
        self._assigned_in_callback = False
        try:
            self._call_back("on_assign", partitions)
        finally:
            if not self._assigned_in_callback:
                (self.incremental_assign if self._is_cooperative else self.assign)(originals)

    def _on_revoke(self, partitions: list[TopicPartition]) -> None:
        self._revoke("on_revoke", partitions, lost=False)

    def _on_lost(self, partitions: list[TopicPartition]) -> None:
        self._revoke("on_lost" if "on_lost" in self._callbacks else "on_revoke", partitions, lost=True)

    def _revoke(self, callback: str, partitions: list[TopicPartition], *, lost: bool) -> None:
        assert self._delegate is not None
        revoked = list(map(partition_of, partitions))  # before the user's callback may change the list
        self._assigned_in_callback = False
        try:
            self._call_back(callback, partitions)
        finally:
            self._delegate.revoked(revoked, lost=lost)
            if not self._assigned_in_callback:
                # confluent-kafka would, but not if the user has sought a partition: that may be an assignment.
                if self._is_cooperative:
                    super().incremental_unassign(to_topic_partitions(revoked))
                else:
                    super().unassign()

    def _call_back(self, name: str, partitions: list[TopicPartition]) -> None:
        callback = self._callbacks.get(name)
        if callback is not None:
            callback(self, partitions)


class _PlainConsumer(Consumer):
    """A consumer without the additional settings: a method in Python would add 15 % to librdkafka's poll."""

    poll = CONFLUENT_POLL
    consume = CONFLUENT_CONSUME


class _CommitCallback:
    """librdkafka's callback after each commit, for a consumer that is not complete yet."""

    delegate: ConsumerDelegate | None = None

    def __call__(self, error: Any, partitions: list[TopicPartition]) -> None:
        if self.delegate is not None:
            self.delegate.on_commit(error, partitions)
