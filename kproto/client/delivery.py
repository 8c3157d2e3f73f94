"""Delivers the messages of all sources to the user: of librdkafka's consumer, and of the buffers of partitions that
catch up.

Theory of operation
-------------------
While all partitions are in normal mode and nothing is pending (`straight_until`), `Consumer.poll` and
`Consumer.consume` themselves call librdkafka's. While partitions catch up, `poll` pops records from the run of
buffer 2, `consume` passes through what consumer 2 has fetched, and both look at nothing else until `_run_ends_at`. Each
event that may change one of the modes calls `refresh`, which ends the shortcuts.

librdkafka's consumer has to be polled while records of buffer 2 are delivered: `poll` counts as the heartbeat for
``max.poll.interval.ms``, it runs the callbacks, and it fills buffer 1. `_poll_consumer1` does so every
`CONSUMER1_POLL_INTERVAL_S`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from time import monotonic

from confluent_kafka import Consumer, KafkaError, Message

from kproto.client.assignment import Assignment
from kproto.client.broker_queries import BrokerQueries
from kproto.client.commits import Commits
from kproto.client.events import Events
from kproto.client.further_clients import FurtherClients
from kproto.client.parallel_catch_up import ParallelCatchUp
from kproto.client.pending_resets import PendingResets
from kproto.client.topic_partitions import PartitionKey, partition_of_message
from kproto.client.user_positions import UserPositions

WAIT_MAX_S = 0.1
"""Longest wait in librdkafka at once: pending resets and consumer 2 have to be served in between."""
BUSY_WAIT_MAX_S = 0.01
"""The same while queries run, or while the checkpoint topic is read or written."""
CONSUMER1_POLL_INTERVAL_S = 0.02
"""How often consumer 1 is polled while records of buffer 2 are ready, unless it has records for the user too."""
CALLBACK_INTERVAL_S = 0.05
"""The same while it can have no record for the user: then the poll is for callbacks and the membership."""
CONSUMER1_POLL_RECORDS, POLL_FETCH_AHEAD = 500, 500


class Delivery:
    """The messages of one consumer, in the order in which the user gets them.

    Args:
        consumer: an object whose methods are confluent-kafka's own.
        parallel: the partitions that catch up; None without KIP-333.
        stores_positions: whether kproto stores the positions for librdkafka's commits.
    """

    def __init__(
        self,
        consumer: Consumer,
        assignment: Assignment,
        commits: Commits,
        positions: UserPositions,
        pending: PendingResets,
        parallel: ParallelCatchUp | None,
        events: Events,
        queries: BrokerQueries,
        clients: FurtherClients,
        *,
        stores_positions: bool,
    ) -> None:
        self._consumer = consumer
        self._assignment = assignment
        self._commits = commits
        self._positions = positions
        self._pending = pending
        self._parallel = parallel
        self._events = events
        self._queries = queries
        self._clients = clients
        self._stores_positions = stores_positions
        self._stores_while_normal = stores_positions and commits.is_automatic
        self._partition_ends: dict[PartitionKey, Message] = {}
        """librdkafka's end-of-partition events for partitions that catch up: the user gets them after the records."""
        self._consumer1_polled_at = 0.0
        self.is_unsubscribed: bool = False
        """Whether the user has unsubscribed, while librdkafka has not revoked the partitions yet."""
        self._consumer1_is_ready = False
        """Whether the last poll of consumer 1 returned a message for the user: probably there are more."""
        self._is_turn_of_consumer1 = False

        self._is_normal = True
        """Whether all partitions are in normal mode, with nothing pending."""
        self._postponed: Exception | None = None
        """An exception of the user's callbacks after messages that `consume` returned; the next call raises it."""
        self.deadline: float = 0.0
        """When the user's call has to return, on the monotonic clock. Callbacks of an assignment wait until then."""
        self.straight_until: float | None = 0.0
        """Until when, on the monotonic clock, `Consumer.poll` and `Consumer.consume` only have to call librdkafka's and
        to look for errors; None: always. It changes with the mode of a partition."""
        self._run: list[Message] = []
        """The current run of buffer 2, next record last: `poll` pops from it before all other work."""
        self._passes_through = False
        """Whether `consume` may return consumer 2's records before all other work."""
        self._fetch_ahead = 0
        """Records that are fetched from consumer 2 at once if fewer are requested."""
        self._run_ends_at = 0.0
        """When `poll` and `consume` do the other work all the same, on the monotonic clock."""

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
        messages: list[Message] = []
        if self._passes_through and monotonic() < self._run_ends_at:
            assert self._parallel is not None
            messages = self._parallel.pass_through(count)
            if len(messages) == count:
                return messages
            self.end_run()
            self._pending.end_failed_catch_ups()
        return self._collect(messages, count, timeout_s)

    def continue_consume(self, messages: list[Message], count: int, timeout_s: float) -> list[Message]:
        """Return up to `count` messages after librdkafka's consume has returned these."""
        messages = self._route_all(messages)
        return messages if len(messages) >= count else self._collect(messages, count, timeout_s)

    def _collect(self, messages: list[Message], count: int, timeout_s: float) -> list[Message]:
        """Return `count` messages, the first of which are given, or those that there are after the timeout."""
        deadline = None if timeout_s < 0 else monotonic() + timeout_s
        self._fetch_ahead = 0  # `pass_through` needs an empty buffer 2
        while True:
            left_s = _left(deadline)
            self._positions.in_hand = messages
            try:
                more = self._next_messages(count - len(messages), left_s)
            except Exception as error:
                if not messages:
                    raise
                self._postponed = error
                self.refresh()
                return messages
            finally:
                self._positions.in_hand = []
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
        if self._parallel is not None and not self._pending.exist and not self.is_unsubscribed:
            if not self._consumer1_is_ready and not self._parallel.delivers_buffer1:
                self._run = self._parallel.current_run()
                self._passes_through = self._parallel.passes_through
            interval_s = CONSUMER1_POLL_INTERVAL_S
            if self._parallel.holds_all(self._assignment.partitions):
                interval_s = CALLBACK_INTERVAL_S
            self._run_ends_at = min(self._consumer1_polled_at + interval_s, self._commits.next_store_at)

    def end_run(self) -> None:
        self._run = []
        self._passes_through = False

    def _next_messages(self, count: int, wait_s: float) -> list[Message]:
        """Return up to `count` messages after one pass over all sources."""
        self.end_run()
        self.deadline = monotonic() + min(wait_s, WAIT_MAX_S)
        self._store_periodically()
        if not self._is_normal:
            self._decide_pending()
            if not self._positions.in_hand:  # an exception would lose them
                self.call_back()
                self._raise_error()
        if self._is_normal:
            return self._route_all(self._consumer.consume(count, self._at_most_wait_max(wait_s)))
        messages = self._share(count)
        if self._parallel is not None and not self.is_unsubscribed:
            if not messages and self._parallel.consumer2_is_open:
                messages = self._fetch(count, min(self._at_most_wait_max(wait_s), CONSUMER1_POLL_INTERVAL_S))
            messages += self._take_partition_ends(count - len(messages))
            self.refresh()
        return messages or self._route_all(self._wait_for_consumer1(wait_s))

    def _share(self, count: int) -> list[Message]:
        """Return up to `count` messages that are ready.

        Partitions in normal mode and partitions that catch up share the messages equally, as far as both are ready; a
        single message is theirs in turn.
        """
        if self._parallel is not None:
            self._parallel.serve()
        if self._parallel is None or self.is_unsubscribed:
            return self._poll_consumer1(count)
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
        is_of_partition = error is None or error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET)
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
            self.refresh()
            return None
        if error.code() == KafkaError._PARTITION_EOF and self._parallel is not None:
            partition = partition_of_message(message)
            if partition in self._parallel.catch_ups:
                self._partition_ends[partition] = message
                return None
        return message

    # -- pending work

    def _store_periodically(self) -> None:
        if self._stores_positions and self._commits.store_periodically() and self._parallel is not None:
            self._parallel.write_checkpoints()
        self._clients.poll(self._queries.poll)
        self._note_straight()

    def _decide_pending(self) -> None:
        self._pending.decide()
        self.refresh()

    def call_back(self) -> None:
        """Call the user's callback with the events; its exceptions end the user's call."""
        if self._events.are_waiting:
            try:
                self._events.call_back()
            finally:
                self.refresh()

    def _raise_error(self) -> None:
        postponed, self._postponed = self._postponed, None
        error = postponed or self._pending.take_error()
        if error is not None:
            self.refresh()
            raise error

    def refresh(self) -> None:
        """End the shortcuts after a change, unless all partitions are normal."""
        self.end_run()
        catches_up = self._parallel is not None and bool(self._parallel.catch_ups or self._parallel.is_busy)
        catches_up = catches_up or bool(self._partition_ends)
        is_undecided = self._pending.exist or self._events.are_waiting or self._postponed is not None
        self._is_normal = not catches_up and not is_undecided
        self._note_straight()

    def _note_straight(self) -> None:
        if not self._is_normal:
            self.straight_until = 0.0
        else:
            next_store_at = self._commits.next_store_at if self._stores_while_normal else math.inf
            until = min(next_store_at, self._clients.next_poll_at)
            self.straight_until = None if until == math.inf else until

    def forget(self, partitions: Iterable[PartitionKey]) -> None:
        """Forget partitions that are revoked or sought."""
        for partition in partitions:
            self._partition_ends.pop(partition, None)


def _left(deadline: float | None) -> float:
    return WAIT_MAX_S if deadline is None else max(0.0, deadline - monotonic())
