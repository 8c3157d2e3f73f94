"""The work of `Consumer` when a setting of KIP-842 or KIP-333 is used.

Theory of operation
-------------------
Each call of the user does what is pending and then calls librdkafka, whose own threads fetch and keep the membership in
between. Nothing waits for a broker longer than the timeout of the user's call: queries run in threads that share no
data with kproto, and the next call uses their results. An assigned partition is in one of three modes:

    normal        librdkafka's records and events pass straight to the user.
    undecided     `pending_resets` decides the position; librdkafka does not fetch the partition, or its fetches fail.
    catching up   `parallel_catch_up` delivers; librdkafka's records go to buffer 1.

While all partitions are normal and nothing is pending (`straight_until`), `Consumer.poll` itself calls librdkafka's.
While partitions catch up, `poll` pops records from the run of buffer 2, `consume` passes through what consumer 2
has fetched, and both look at nothing else until `_run_ends_at`. Each event that may change one of these modes calls
`_refresh`, which ends the shortcuts.

librdkafka's consumer has to be polled while records of buffer 2 are delivered: `poll` counts as the heartbeat for
``max.poll.interval.ms``, it runs the callbacks, and it fills buffer 1. `_poll_consumer1` does so every
`CONSUMER1_POLL_INTERVAL_S`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from time import monotonic
from typing import Any

from confluent_kafka import OFFSET_INVALID, OFFSET_STORED, Consumer, KafkaError, KafkaException, Message, TopicPartition

from kproto.client.assignment import Assignment
from kproto.client.broker_queries import BrokerQueries
from kproto.client.commits import Commits
from kproto.client.configuration import Configuration
from kproto.client.events import Events
from kproto.client.initial_positions import InitialPositions
from kproto.client.parallel_catch_up import ParallelCatchUp
from kproto.client.pending_resets import PendingResets
from kproto.client.topic_partitions import (
    PartitionKey,
    are_topic_partitions,
    copy_of,
    partition_of,
    partition_of_message,
)
from kproto.client.user_positions import UserPositions

Assign = Callable[[Collection[TopicPartition], Collection[PartitionKey]], None]
"""Assigns partitions, some of them blocked."""
WAIT_MAX_S = 0.1
"""Longest wait in librdkafka at once: pending resets and consumer 2 have to be served in between."""
BUSY_WAIT_MAX_S = 0.01
"""The same while queries run, or while the checkpoint topic is read or written."""
CONSUMER1_POLL_INTERVAL_S = 0.02
"""How often consumer 1 is polled while records of buffer 2 are ready, unless it has records for the user too."""
CONSUMER1_POLL_RECORDS, POLL_FETCH_AHEAD = 500, 500


class ConsumerDelegate:
    """The state of one consumer beside librdkafka's.

    Args:
        consumer: the user's consumer, as an object whose methods are confluent-kafka's own (`ConfluentMethods`). The
            caller owns it; `close` closes the other clients.
    """

    def __init__(self, consumer: Consumer, configuration: Configuration) -> None:
        self._consumer = consumer
        self.is_closed: bool = False
        settings = configuration.settings
        self._clients = configuration.clients
        self._queries = queries = BrokerQueries(configuration)
        self._events = Events(configuration)
        publish = self._events.publish
        self._assignment = Assignment(consumer, lambda partitions: self.commits.drop_stored(partitions))
        self._parallel: ParallelCatchUp | None = None
        if settings.parallel:
            self._parallel = ParallelCatchUp(
                consumer,
                self._assignment,
                configuration,
                queries,
                lambda partitions: self.commits.store_positions(partitions),
                publish,
            )
        self.positions: UserPositions = UserPositions(
            consumer, self._assignment, self._parallel, auto_store=configuration.auto_store
        )
        initial_positions = InitialPositions(queries, configuration, self._parallel, publish)
        self.commits: Commits = Commits(
            consumer,
            configuration,
            self.positions.to_commit,
            metadata=lambda: initial_positions.metadata,
            on_request=lambda partitions: self._pending.committed(partitions),
            on_success=self._committed,
            limit=None if self._parallel is None else self._parallel.limit_commit,
        )
        self.stores_positions: bool = configuration.stores_positions
        self._pending = PendingResets(
            consumer, settings, queries, self._assignment, initial_positions, self._parallel, publish
        )
        self._partition_ends: dict[PartitionKey, Message] = {}
        """librdkafka's end-of-partition events for partitions that catch up: the user gets them after the records."""
        self._consumer1_polled_at = 0.0
        self._is_unsubscribed = False
        """Whether the user has unsubscribed, while librdkafka has not revoked the partitions yet."""
        self._consumer1_is_ready = False
        """Whether the last poll of consumer 1 returned a message for the user: probably there are more."""
        self._is_turn_of_consumer1 = False

        self._is_normal = True
        """Whether all partitions are in normal mode, with nothing pending."""
        self._postponed: Exception | None = None
        """An exception of the user's callbacks after messages that `consume` returned; the next call raises it."""
        self._deadline = 0.0
        """When the user's call has to return, on the monotonic clock. Callbacks of an assignment wait until then."""
        self._stores_while_normal = self.stores_positions and self.commits.is_automatic
        self.straight_until: float | None = 0.0
        """Until when, on the monotonic clock, `Consumer.poll` only has to call librdkafka's, and to look for errors;
        None: always. It changes with the mode of a partition."""
        self._run: list[Message] = []
        """The current run of buffer 2, next record last: `poll` pops from it before all other work."""
        self._passes_through = False
        """Whether `consume` may return consumer 2's records before all other work."""
        self._fetch_ahead = 0
        """Records that are fetched from consumer 2 at once if fewer are requested."""
        self._run_ends_at = 0.0
        """When `poll` and `consume` do the other work all the same, on the monotonic clock."""

    # -- records

    def poll(self, timeout_s: float) -> Message | None:
        """Return the next message when `straight_until` is over."""
        if self._run and monotonic() < self._run_ends_at:
            return self._run.pop()
        return self._wait_for(self._next(0), timeout_s)

    def continue_poll(self, message: Message | None, timeout_s: float) -> Message | None:
        """Return the next message after librdkafka's poll has returned one, or has none yet."""
        if message is not None:
            message = self._route(message)
        elif not self._is_normal:
            message = self._next(0)
        return self._wait_for(message, timeout_s)

    def _wait_for(self, message: Message | None, timeout_s: float) -> Message | None:
        deadline = None if timeout_s < 0 else monotonic() + timeout_s
        while message is None and (left_s := _left(deadline)) > 0:
            message = self._next(left_s)
        return message

    def consume(self, count: int, timeout_s: float) -> list[Message]:
        deadline = None if timeout_s < 0 else monotonic() + timeout_s
        messages: list[Message] = []
        self._fetch_ahead = 0  # `pass_through` needs an empty buffer 2
        if self._passes_through and monotonic() < self._run_ends_at:
            messages = self._pass_through(count)
            if len(messages) == count:
                return messages
        while True:
            left_s = _left(deadline)
            try:
                more = self._next_messages(count - len(messages), left_s, raise_errors=not messages)
            except Exception as error:
                if not messages:
                    raise
                self._postponed = error
                self._refresh()
                return messages
            messages = messages + more if messages else more
            if len(messages) >= count or left_s <= 0:
                self._begin_run()
                return messages

    def _next(self, wait_s: float) -> Message | None:
        self._fetch_ahead = POLL_FETCH_AHEAD
        messages = self._next_messages(1, wait_s)
        self._begin_run()
        return messages[0] if messages else None

    def _begin_run(self) -> None:
        """Begin the shortcuts of `poll` and `consume` if nothing but consumer 2 has records for the user."""
        if self._parallel is not None and not self._pending.exist and not self._is_unsubscribed:
            if not self._consumer1_is_ready and not self._parallel.delivers_buffer1:
                self._run = self._parallel.current_run()
                self._passes_through = self._parallel.passes_through
            self._run_ends_at = min(self._consumer1_polled_at + CONSUMER1_POLL_INTERVAL_S, self.commits.next_store_at)

    def _end_run(self) -> None:
        self._run = []
        self._passes_through = False

    def _next_messages(self, count: int, wait_s: float, *, raise_errors: bool = True) -> list[Message]:
        """Return up to `count` messages after one pass over all sources.

        With `raise_errors` False, the caller has messages that an exception would lose.
        """
        self._end_run()
        self._deadline = monotonic() + min(wait_s, WAIT_MAX_S)
        self._store_periodically()
        if not self._is_normal:
            self._decide_pending()
            if raise_errors:
                self.call_back()
                self._raise_error()
        if self._is_normal:
            return self._route_all(self._consumer.consume(count, self._at_most_wait_max(wait_s)))
        messages = self._share(count)
        if self._parallel is not None and not self._is_unsubscribed:
            if not messages and self._parallel.consumer2_is_open:
                messages = self._fetch(count, min(self._at_most_wait_max(wait_s), CONSUMER1_POLL_INTERVAL_S))
            messages += self._take_partition_ends(count - len(messages))
            self._refresh()
        return messages or self._route_all(self._wait_for_consumer1(wait_s))

    def _share(self, count: int) -> list[Message]:
        """Return up to `count` messages that are ready.

        Partitions in normal mode and partitions that catch up share the messages equally, as far as both are ready; a
        single message is theirs in turn.
        """
        if self._parallel is None or self._is_unsubscribed:
            return self._poll_consumer1(count)
        self._parallel.serve()
        self._is_turn_of_consumer1 = not self._is_turn_of_consumer1
        is_due = monotonic() - self._consumer1_polled_at >= CONSUMER1_POLL_INTERVAL_S
        messages: list[Message] = []
        if is_due or (self._consumer1_is_ready and (count > 1 or self._is_turn_of_consumer1)):
            messages = self._poll_consumer1((count + 1) // 2)
        if len(messages) < count:
            taken = self._parallel.take(count - len(messages))
            if not taken and self._parallel.consumer2_is_open:
                taken = self._fetch(count - len(messages), 0)
            messages += taken
        return messages or self._poll_consumer1(count)

    def _fetch(self, count: int, wait_s: float) -> list[Message]:
        """Return up to `count` records of partitions that catch up; wait up to `wait_s` for consumer 2."""
        assert self._parallel is not None
        self._parallel.fetch(max(count, self._fetch_ahead), wait_s)
        self._pending.end_failed_catch_ups()
        return self._parallel.take(count)

    def _pass_through(self, count: int) -> list[Message]:
        assert self._parallel is not None
        messages = self._parallel.pass_through(count)
        if len(messages) < count:
            self._end_run()
            self._pending.end_failed_catch_ups()
        return messages

    def _take_partition_ends(self, count: int) -> list[Message]:
        """Return the end-of-partition events of partitions that have left the catch-up."""
        catch_ups = self._parallel.catch_ups if self._parallel is not None else {}
        ready = [partition for partition in self._partition_ends if partition not in catch_ups]
        return [self._partition_ends.pop(partition) for partition in ready[:count]]

    def _poll_consumer1(self, count: int) -> list[Message]:
        """Poll consumer 1, which fills buffer 1; return up to `count` messages for the user."""
        self._consumer1_polled_at = monotonic()
        found: list[Message] = []
        polled = 0
        # librdkafka's callbacks run within its poll and may commit and revoke: so it is not polled again while messages
        # wait here.
        while not found and polled < CONSUMER1_POLL_RECORDS:
            messages = self._consumer.consume(count, 0) if count > 1 else [self._consumer.poll(0)]
            if not messages or messages[0] is None:
                break
            polled += len(messages)
            found = [routed for each in messages if each is not None and (routed := self._route(each)) is not None]
        self._consumer1_is_ready = bool(found)
        return found

    def _wait_for_consumer1(self, wait_s: float) -> list[Message]:
        catches_up = self._parallel is not None and self._parallel.consumer2_is_open
        message = self._consumer.poll(0 if catches_up else self._at_most_wait_max(wait_s))
        return [] if message is None else [message]

    def _at_most_wait_max(self, wait_s: float) -> float:
        is_busy = self._pending.are_queried or (self._parallel is not None and self._parallel.is_busy)
        limit_s = BUSY_WAIT_MAX_S if is_busy else WAIT_MAX_S
        return limit_s if wait_s < 0 else min(wait_s, limit_s)

    def _route_all(self, messages: list[Message]) -> list[Message]:
        if self._is_normal and not any(map(Message.error, messages)):
            return messages
        return [routed for message in messages if (routed := self._route(message)) is not None]

    def _route(self, message: Message) -> Message | None:
        """Return a message of librdkafka if it is the user's now; otherwise keep it and return None."""
        error = message.error()
        is_of_partition = error is None or error.code() == KafkaError._PARTITION_EOF
        if is_of_partition and self._assignment.is_blocked(partition_of_message(message)):
            return None
        if error is None:
            if self._parallel is None or not self._parallel.catch_ups:
                return message
            partition = partition_of_message(message)
            if partition not in self._parallel.catch_ups:
                return message
            self._parallel.consumer1_read(partition, [message])
            self._partition_ends.pop(partition, None)
            return None
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._pending.add_rejected(message)
            self._refresh()
            return None
        if error.code() == KafkaError._PARTITION_EOF and self._parallel is not None:
            partition = partition_of_message(message)
            if partition in self._parallel.catch_ups:
                self._partition_ends[partition] = message
                return None
        return message

    # -- pending work

    def _store_periodically(self) -> None:
        if self.stores_positions and self.commits.store_periodically() and self._parallel is not None:
            self._parallel.write_checkpoints()
        self._note_straight()

    def _decide_pending(self) -> None:
        self._pending.decide()
        self._refresh()

    def call_back(self) -> None:
        """Call the user's callback with the events; its exceptions end the user's call."""
        if self._events.are_waiting:
            try:
                self._events.call_back()
            finally:
                self._refresh()

    def _raise_error(self) -> None:
        postponed, self._postponed = self._postponed, None
        error = postponed or self._pending.take_error()
        if error is not None:
            self._refresh()
            raise error

    def _refresh(self) -> None:
        """End the shortcuts after a change, unless all partitions are normal."""
        self._end_run()
        catches_up = self._parallel is not None and bool(self._parallel.catch_ups or self._parallel.is_busy)
        is_undecided = self._pending.exist or self._events.are_waiting or self._postponed is not None
        self._is_normal = not catches_up and not is_undecided
        self._note_straight()

    def _note_straight(self) -> None:
        if not self._is_normal:
            self.straight_until = 0.0
        else:
            self.straight_until = self.commits.next_store_at if self._stores_while_normal else None

    # -- assignment

    def subscribed(self, *, is_cooperative: bool) -> None:
        """The user has subscribed: assignments come from the group, as differences if it is cooperative."""
        self._assignment.is_cooperative = is_cooperative

    def set_sasl_credentials(self, username: str, password: str) -> None:
        self._clients.set_sasl_credentials(username, password)

    def unsubscribed(self) -> None:
        """The user has unsubscribed: deliver nothing more until partitions are assigned again."""
        self._is_unsubscribed = True
        self._refresh()

    def can_add(self, topic_partitions: Any) -> bool:
        """Return whether librdkafka accepts these partitions in addition to the assigned ones."""
        partitions = self._distinct(topic_partitions)
        return partitions is not None and not any(each in self._assignment for each in partitions)

    def can_remove(self, topic_partitions: Any) -> bool:
        """Return whether librdkafka accepts the removal of these partitions."""
        partitions = self._distinct(topic_partitions)
        return partitions is not None and all(each in self._assignment for each in partitions)

    @staticmethod
    def _distinct(topic_partitions: Any) -> set[PartitionKey] | None:
        """Return the partitions of a list without duplicates, None for any other argument."""
        if not are_topic_partitions(topic_partitions):
            return None
        partitions = set(map(partition_of, topic_partitions))
        return partitions if len(partitions) == len(topic_partitions) else None

    def assign(self, topic_partitions: Collection[TopicPartition]) -> None:
        self.revoked(self._assignment.partitions)
        self._assign(topic_partitions, self._assignment.replace)

    def incremental_assign(self, topic_partitions: Collection[TopicPartition]) -> None:
        self._assign(topic_partitions, self._assignment.add)

    def _assign(self, topic_partitions: Collection[TopicPartition], assign: Assign) -> None:
        """Assign partitions, and begin to decide the position where the user names none."""
        given = [copy_of(each) for each in topic_partitions]
        undecided = [partition_of(each) for each in given if each.offset in (OFFSET_INVALID, OFFSET_STORED)]
        # An undecided partition needs some offset in librdkafka's assignment; nothing is fetched from there. It is not
        # OFFSET_END: if ListOffsets' response comes after `Assignment.move`, librdkafka continues at the end.
        blocked = {partition: TopicPartition(*partition, 0) for partition in undecided}
        targets = {**{partition_of(each): each for each in given}, **blocked}
        try:
            assign(targets.values(), undecided)
        except (KafkaException, RuntimeError):  # for example, the consumer is closed
            self._forget(targets)
            raise
        self._is_unsubscribed = False
        self._pending.begin(undecided)
        self._pending.wait(self._deadline - monotonic())
        self._refresh()

    def revoked(self, partitions: Collection[PartitionKey], *, lost: bool = False) -> None:
        """Partitions are revoked: store the user's positions, unless another member owns the partitions (`lost`).

        librdkafka commits them when it unassigns the partitions.
        """
        if self.stores_positions and not lost:
            self.commits.store_positions(partitions)
        self._forget(partitions)

    def unassign(self) -> None:
        """Store the positions and forget all partitions, before librdkafka's `unassign`."""
        self.revoked(self._assignment.partitions)

    def store_before_close(self) -> None:
        """Store the positions before librdkafka commits them and leaves the group; wait for queries that run."""
        self._queries.close()
        if self.stores_positions:
            self.commits.store_positions()

    def on_commit(self, error: KafkaError | None, topic_partitions: list[TopicPartition]) -> None:
        """librdkafka's callback after each commit."""
        if not self._pending.on_commit(error, topic_partitions):
            self.commits.on_commit(error, topic_partitions)

    def _committed(self, partition: PartitionKey, offset: int) -> None:
        self._pending.committed([partition])
        if self._parallel is not None:
            self._parallel.committed(partition, offset)
            if self._parallel.is_busy or self._events.are_waiting:  # checkpoints are deleted
                self._refresh()

    def close(self) -> None:
        """Close consumer 2 and the checkpoint producer, after librdkafka's consumer is closed."""
        self.is_closed = True
        self._forget(self._assignment.partitions)
        if self._parallel is not None:
            self._parallel.close()

    def _forget(self, partitions: Collection[PartitionKey]) -> None:
        self._pending.remove(partitions)
        for partition in partitions:
            self._partition_ends.pop(partition, None)
        if self._parallel is not None:
            self._parallel.stop(partitions)
        self.positions.forget(partitions)
        self.commits.forget(partitions)
        self._assignment.remove(partitions)
        self._refresh()

    def seek(self, target: TopicPartition) -> None:
        """Seek, and cancel the reset or the catch-up of the partition (CK-36, CK-67)."""
        partition = partition_of(target)
        catches_up = self._parallel is not None and self._parallel.cancel(partition)
        is_undecided = self._pending.cancel(partition)
        self.positions.forget([partition])
        self.commits.drop_stored([partition])
        if is_undecided or catches_up or not self._seek_in_librdkafka(target):
            self._assignment.move([copy_of(target)])
        self._refresh()

    def _seek_in_librdkafka(self, target: TopicPartition) -> bool:
        """Seek; return False if the partition has no position, for which librdkafka's seek does not work."""
        try:
            self._consumer.seek(target)
        except KafkaException as error:
            # The partition has lost its position, and its error waits in librdkafka's queue.
            if error.args[0].code() == KafkaError._STATE and partition_of(target) in self._assignment:
                return False
            raise
        self._assignment.sought(copy_of(target))
        return True

    def pause(self, topic_partitions: Iterable[TopicPartition]) -> None:
        partitions = list(map(partition_of, topic_partitions))
        self._end_run()
        self._assignment.pause(partitions)
        if self._parallel is not None:
            self._parallel.pause(partitions)

    def resume(self, topic_partitions: Iterable[TopicPartition]) -> None:
        partitions = list(map(partition_of, topic_partitions))
        self._assignment.resume(partitions)
        if self._parallel is not None:
            self._parallel.resume(partitions)

    # -- positions

    def store_offsets(self, given: Mapping[str, Any]) -> None:
        """Store offsets for the user, with confluent-kafka's arguments; confluent-kafka refuses invalid ones."""
        offsets = self.commits.offsets_to_store(given)
        if offsets is None or self.is_closed or not self._stores_while_normal:
            self._consumer.store_offsets(**given)
        else:
            self.commits.store(offsets)
        if offsets is not None:
            self.positions.store(offsets)

    def position(self, topic_partitions: list[TopicPartition]) -> list[TopicPartition]:
        return self.positions.position(topic_partitions)


def _left(deadline: float | None) -> float:
    return WAIT_MAX_S if deadline is None else max(0.0, deadline - monotonic())
