"""Polls a blocking consumer in a thread of its own: it hears of a rebalance while its user processes a record.

Theory of operation
-------------------
librdkafka runs the callbacks of a rebalance only within its poll, and the members that join wait for them. So the
thread polls at least every `TICK_S`, and keeps the fetched records. While these are full, it polls every `FULL_TICK_S`
and takes one record each time. If they are full for `PAUSE_AFTER_S`, the partitions are paused: then librdkafka's poll
returns no record. A pause costs much: librdkafka drops what it has fetched of the partitions, and may fetch nothing for
a second after they are resumed.

librdkafka takes these polls for polls of the user, and would keep a member whose user hangs. So the thread itself
measures the time since the user's last request: after ``max.poll.interval.ms`` the member leaves the group. The next
request raises librdkafka's error of that case and joins again.

The thread makes all calls of the consumer but one: those of `submit` between two polls, and while a revocation waits
for a record that is being processed. confluent-kafka lets a second thread wait as long as another one polls. `_lock`
guards the fetched records; it is held for microseconds, as the event loop takes it too, and never during a call.

The exception is `fetch_now`: the event loop itself takes the records that librdkafka has, without a wait. From the
thread, records take 1.4 times the CPU time: both threads need the interpreter, and its garbage collector examines the
records that wait in between. But librdkafka's poll may call each callback, and the user's callbacks are called in the
thread, as they may block. So if there are any, `fetch_now` does nothing. The thread or the event loop holds `_turn`
while it calls the consumer; the event loop never waits for it.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from kproto.client import configuration
from kproto.client.configuration import AUTO_STORE, CALLBACK_SETTINGS, EVENT_CALLBACK
from kproto.client.consumer import Consumer, RebalanceCallback
from kproto.client.decisions.settings import boolean
from kproto.client.fetched_records import FetchedRecords
from kproto.client.further_clients import LOGGER
from kproto.client.topic_partitions import PartitionKey, partition_of, partition_of_message, to_topic_partitions

logger: logging.Logger = logging.getLogger("kproto.client")

POLL_WAIT_S = 0.05
"""Longest call of librdkafka's poll, and so the longest wait of a call."""
TICK_S = 0.05
"""Longest time without a poll, unless the fetched records are full."""
FULL_TICK_S = 0.5
"""The same while they are full, and partitions are not paused."""
PAUSE_AFTER_S = 5.0
"""How long they are full before partitions are paused: a resume costs up to a second."""
FETCH_NOW_MAX = 1000
"""Most records that are fetched at once in the event loop, which takes half a millisecond."""
MAX_POLL_INTERVAL = "max.poll.interval.ms"
MAX_POLL_INTERVAL_DEFAULT_MS = 300_000


class BackgroundPolls:
    """The polls of one consumer, and its fetched records.

    The caller owns the object and ends it, by `close` or by `abandon`.

    Args:
        config: of `kproto.client.Consumer`.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self.stores_finished: bool = boolean(config.get(AUTO_STORE, True)) is not False
        """Whether the offsets of finished records are stored for commits. If not, the user calls `store_offsets`."""
        names = (*CALLBACK_SETTINGS, EVENT_CALLBACK)
        callbacks = {name: self._guarded(config[name]) for name in names if callable(config.get(name))}
        given = {**config, **callbacks, AUTO_STORE: False}
        self.consumer: Consumer = Consumer(given)
        read = configuration.read(given)
        self._commits_before_close = (
            self.stores_finished and read.auto_commit and not read.is_cooperative and not read.stores_positions
        )
        self.records: FetchedRecords = FetchedRecords()
        self._max_poll_interval_s = float(config.get(MAX_POLL_INTERVAL, MAX_POLL_INTERVAL_DEFAULT_MS)) / 1000
        calls_user = LOGGER in read.librdkafka or any(map(callable, read.librdkafka.values()))
        self._may_call_user = read.uses_proposals or calls_user
        """Whether a poll may call functions of the user, or those of the proposals, apart from a rebalance."""
        self._fetches_now = not self._may_call_user
        """Whether `fetch_now` may poll."""
        self._turn = threading.Lock()
        """Held while the consumer is called."""
        self._wants_turn = False
        """Whether the thread waits for `_turn`."""
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        """Notified when the thread has something to do."""
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._has_ended = False
        self._calls: deque[Callable[[], object]] = deque()
        """The calls of `submit`, in their order."""
        self._failure: BaseException | None = None
        """What the close of the consumer has raised."""
        self._waiting: dict[object, tuple[int, Callable[[], object]]] = {}
        """The requests that wait: how many records they need, and the function that ends the wait."""
        self._requested_at = monotonic()
        self._is_requested = False
        """Whether a request since the last poll has left few records, or has ended a wait for it."""
        self._waits_for_finish = False
        self._join: Callable[[], None] | None = None
        """Subscribes again; None while the user is not subscribed."""
        self._left_at: float | None = None
        """When the member left the group, because there was no request; None while it has not."""
        self._held: set[PartitionKey] = set()
        """Paused by this object, as the fetched records are full."""
        self._full_since: float | None = None
        """Since when the fetched records are full, on the monotonic clock; None while they are not."""
        self._has_revoked = False
        """Whether partitions were revoked within the current poll."""

    # -- requests of records: called in the event loop

    def next_record(self, now: float) -> Message | None:
        """Finish the delivered records, and return the next record or None.

        Raises:
            KafkaException, RuntimeError: as of `kproto.client.aio.Consumer.next_record`.
        """
        with self._lock:
            self._begin_request(now)
            return self.records.take_one()

    def take(self, count: int) -> list[Message]:
        """Return up to `count` records.

        Raises:
            KafkaException, RuntimeError: as of `kproto.client.aio.Consumer.next_record`.
        """
        with self._lock:
            return self.records.take(count)

    def begin_request(self) -> None:
        """Finish the delivered records."""
        with self._lock:
            self._begin_request(monotonic())

    def _begin_request(self, now: float) -> None:
        if self._is_closing:
            raise RuntimeError("Consumer closed")
        self._requested_at = now
        records = self.records
        records.finish()
        if self._waits_for_finish or (not self._is_requested and not self._fetches_now and records.is_low):
            self._is_requested = True
            self._changed.notify()

    def fetch_now(self, count: int) -> None:
        """Fetch the records that a request of this many lacks, as far as librdkafka has them, without the thread."""
        if not self._fetches_now or self._wants_turn or not self._turn.acquire(blocking=False):
            return
        try:
            with self._lock:
                missing = min(count, FETCH_NOW_MAX) - len(self.records)
            if missing > 0 and self._thread is not None and self._left_at is None and not self._is_closing:
                self._resume(self._held)
                self._add(self._owned(lambda: self.consumer.consume(missing, 0)))
        except Exception as error:  # noqa: BLE001  # in its place, as those of the thread's polls
            self._add_exception(error)
        finally:
            self._turn.release()

    def has(self, count: int) -> bool:
        """Whether a request of this many records ends without a wait."""
        with self._lock:
            return self._is_closing or self.records.has(count)

    @contextmanager
    def waiting(self, count: int, wake: Callable[[], object]) -> Iterator[None]:
        """Call `wake`, in any thread, once a request of this many records can be met; not after the block."""
        request = object()
        with self._lock:
            self._waiting[request] = count, wake
            self._is_requested = True
            self._changed.notify()
            self._wake()
        try:
            yield
        finally:
            with self._lock:
                self._waiting.pop(request, None)
                self._requested_at = monotonic()

    def _wake(self) -> None:
        ready = [each for each, (count, _) in self._waiting.items() if self._is_closing or self.records.has(count)]
        for request in ready:
            _, wake = self._waiting.pop(request)
            self._requested_at = monotonic()
            with suppress(RuntimeError):  # its event loop is closed
                wake()

    # -- calls of the consumer: in the thread

    def submit(self, call: Callable[[], object]) -> None:
        """Let the thread call a function that raises nothing. After `close`, the function is called at once."""
        self.start()
        with self._lock:
            is_running = self._thread is not None and not self._has_ended
            if is_running:
                self._calls.append(call)
                self._changed.notify()
        if not is_running:
            call()

    def _make_calls(self) -> None:
        while self._calls:
            self._calls.popleft()()

    @contextmanager
    def locked(self) -> Iterator[FetchedRecords]:
        """Keep the event loop and the polls from the fetched records within the block."""
        with self._lock:
            yield self.records

    def subscribe(
        self,
        topics: list[str],
        on_assign: RebalanceCallback | None,
        on_revoke: RebalanceCallback | None,
        on_lost: RebalanceCallback | None,
        *,
        finish_record: bool,
    ) -> None:
        for name, callback in (("on_assign", on_assign), ("on_revoke", on_revoke), ("on_lost", on_lost)):
            if callback is not None and not callable(callback):
                raise TypeError(f"{name} expects a callable")

        def revoked(member: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
            keys = {partition_of(each) for each in partitions}
            with self._lock:
                self.records.drop(keys)
            if finish_record:
                self._wait_until_finished(keys)
            self.store_finished()
            if on_revoke is not None:
                self._guarded(on_revoke)(member, partitions)
            self.forget(keys)

        def lost(member: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
            keys = {partition_of(each) for each in partitions}
            with self._lock:
                self.records.drop(keys)
            callback = on_lost or on_revoke
            if callback is not None:
                self._guarded(callback)(member, partitions)
            self.forget(keys)

        given: dict[str, Any] = {} if on_assign is None else {"on_assign": self._guarded(on_assign)}

        def join() -> None:
            self.consumer.subscribe(topics, on_revoke=revoked, on_lost=lost, **given)
            self._join, self._left_at, self._requested_at = join, None, monotonic()

        self._fetches_now = False
        join()
        self._fetches_now = not (self._may_call_user or finish_record or on_assign or on_revoke or on_lost)

    def unsubscribe(self) -> None:
        self.consumer.unsubscribe()
        self._join = self._left_at = None
        with self._lock:
            self.records.drop_all()

    def assign(self, function: Callable[[], None]) -> None:
        """Drop everything and run a function that replaces the assignment."""
        self.store_finished()
        self._resume(self._held)
        with self._lock:
            self.records.forget_all()
        function()

    def forget(self, partitions: Collection[PartitionKey]) -> None:
        """Forget partitions that are revoked."""
        self._has_revoked = True
        self._resume(self._held & set(partitions))
        with self._lock:
            self.records.forget(partitions)

    def pause(self, partitions: Collection[PartitionKey]) -> None:
        # librdkafka skips a partition that it does not know yet, and goes on fetching it after the assignment.
        assigned = self._assigned()
        with self._lock:
            self.records.pause(assigned.intersection(partitions))
        self._held.difference_update(partitions)
        self.consumer.pause(to_topic_partitions(partitions))

    def resume(self, partitions: Collection[PartitionKey]) -> None:
        with self._lock:
            self.records.resume(partitions)
        self._held.difference_update(partitions)
        self.consumer.resume(to_topic_partitions(partitions))

    def store_finished(self) -> None:
        """Store the offsets of finished records in librdkafka, for commits."""
        with self._lock:
            finished = self.records.take_finished()
        if finished and self.stores_finished:
            self.consumer.store_offsets(offsets=finished)

    def _commit_finished(self) -> None:
        """Store the offsets of finished records, and commit them if `close` might commit them too late.

        `Consumer.close` does so by itself if it stores positions; see `ConsumerDelegate.store_before_close`.
        """
        self.store_finished()
        with self._lock:
            finished = self.records.finished()
        if finished and self._commits_before_close:
            self.consumer.commit(offsets=finished, asynchronous=True)

    # -- the thread

    def start(self) -> None:
        """Start polling, unless the thread runs."""
        with self._lock:
            if self._thread is None and not self._is_closing:
                self._thread = threading.Thread(target=self._run, name="kproto consumer polls", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Stop polling and close the consumer; a second call only waits for that."""
        self.start()
        with self._lock:
            self._is_closing = True
            self._changed.notify()
            self._wake()
        assert self._thread is not None
        self._thread.join()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def abandon(self) -> None:
        """Close the consumer soon. Takes no lock: the garbage collector may call it in any thread."""
        self._is_closing = True

    def _run(self) -> None:
        while not self._is_closing:
            self._wants_turn = True
            with self._turn:
                self._wants_turn = False
                self._make_calls()
                with self._lock:
                    self._is_requested = False
                    is_waited_for = bool(self._waiting)
                self._poll(is_waited_for)
            with self._lock:
                self._wake()
                if not self._waiting:
                    tick_s = TICK_S if self._full_since is None or self._held else FULL_TICK_S
                    self._changed.wait_for(lambda: self._is_requested or self._calls or self._is_closing, tick_s)
        try:
            with self._turn:  # `fetch_now` does nothing any more
                try:
                    self._commit_finished()
                finally:
                    self.consumer.close()
        except BaseException as error:  # noqa: BLE001  # `close` raises it
            self._failure = error
        with self._lock:
            self._has_ended = True
        self._make_calls()

    def _poll(self, is_waited_for: bool) -> None:
        try:
            if self._join is not None:
                self._leave_or_join(self._join, is_waited_for)
            self.store_finished()
            for messages in self._fetch(is_waited_for):
                self._add(messages)
        except Exception as error:  # noqa: BLE001  # the user gets it with the next request
            self._add_exception(error)

    def _add(self, messages: list[Message]) -> None:
        with self._lock:
            self.records.add(messages)

    def _add_exception(self, error: Exception) -> None:
        with self._lock:
            self.records.add_exception(error)

    def _fetch(self, is_waited_for: bool) -> Iterator[list[Message]]:
        with self._lock:
            room = self.records.room(max((count for count, _ in self._waiting.values()), default=0))
            is_low = self.records.is_low
        now = monotonic()
        self._full_since = None if room > 0 else (self._full_since or now)
        if self._full_since is not None and now >= self._full_since + PAUSE_AFTER_S:
            self._hold()
        elif is_low or is_waited_for:
            self._resume(self._held)
        messages = self._owned(lambda: self.consumer.consume(max(1, room), 0))
        yield messages
        if not messages and is_waited_for:
            first = self._owned(lambda: [each for each in [self.consumer.poll(POLL_WAIT_S)] if each is not None])
            yield first
            if first:
                yield self._owned(lambda: self.consumer.consume(max(1, room), 0))

    def _owned(self, call: Callable[[], list[Message]]) -> list[Message]:
        """Return the messages of a call, without those of partitions that are revoked within it."""
        self._has_revoked = False
        messages = call()
        if not self._has_revoked:
            return messages
        assigned = self._assigned()
        return [each for each in messages if each.error() is not None or partition_of_message(each) in assigned]

    def _assigned(self) -> set[PartitionKey]:
        return {partition_of(each) for each in self.consumer.assignment()}

    def _hold(self) -> None:
        """Pause the partitions that are not paused."""
        with self._lock:
            paused = self._held | set(self.records.paused)
        to_hold = self._assigned() - paused
        if to_hold:
            self.consumer.pause(to_topic_partitions(to_hold))
            self._held |= to_hold

    def _resume(self, held: Collection[PartitionKey]) -> None:
        if held:
            self.consumer.resume(to_topic_partitions(held))
            self._held = self._held - set(held)

    # -- the user's code

    def _guarded(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callback whose exceptions the next request raises: in a poll, they would lose records."""

        def guarded(*args: Any) -> Any:
            try:
                return callback(*args)
            except Exception as error:
                if self._is_closing:
                    raise
                self._add_exception(error)

        return guarded

    def _wait_until_finished(self, partitions: Collection[PartitionKey]) -> None:
        """Wait until no record of these partitions is being processed, or its user hangs. Within a poll."""

        def finished() -> bool:
            return self._is_closing or not self.records.is_processing(partitions)

        with self._lock:
            self._waits_for_finish = True
            while not finished() and (left_s := self._requested_at + self._max_poll_interval_s - monotonic()) > 0:
                self._changed.wait_for(lambda: self._calls or finished(), left_s)
                self._lock.release()
                try:
                    self._make_calls()
                finally:
                    self._lock.acquire()
            self._waits_for_finish = False

    def _leave_or_join(self, join: Callable[[], None], is_waited_for: bool) -> None:
        """Leave the group if the user hangs, and join it again at the next request."""
        if self._left_at is not None:
            if is_waited_for or self._requested_at > self._left_at:
                join()
            return
        now = monotonic()
        if is_waited_for or now - self._requested_at <= self._max_poll_interval_s:
            return
        text = f"no record was requested for {self._max_poll_interval_s * 1000:.0f} ms ({MAX_POLL_INTERVAL})"
        logger.warning("%s: the consumer leaves the group until the next request", text)
        self.consumer.unsubscribe()
        self._left_at = now
        with self._lock:
            self.records.drop_all()
            self.records.add_exception(KafkaException(KafkaError(KafkaError._MAX_POLL_EXCEEDED, text)))
