"""Members of a random history: blocking, async and plain consumers, whose calls are measured.

A member makes random calls in a thread of its own until it is stopped, and then closes its consumer. `Watch` collects
what the members deliver, how long their calls take beyond their timeouts, and what must not happen.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException, Message, TopicPartition

from kproto.client import Consumer, NoOffsetForPartition, aio
from kproto.client.background_polls import BackgroundPolls

LONGEST_EXCESS_S = 0.5
"""Of a call over its timeout. A query of the client waits for a hung broker for 5 s."""
LEAVE_LIMIT_S = 5.0
"""How long librdkafka's `close` waits for the response to LeaveGroup."""
CLOSE_EXCESS_S = 1.5
"""Of `close` over that of confluent-kafka; a second of it waits for the queries that run."""
JOIN_LIMIT_S = 60.0
"""Of the end of a member beyond that of its close. With restarts, confluent-kafka's close may never end."""
SESSION_S = 10.0
HANG_S = (0.3, 3.0)
LAG_STEP_S = 0.02
LAG_MIN_S = 0.005
"""Shortest lag of the machine that counts."""
LAGS_KEPT = 200_000
"""More than an hour of steps: a call may take minutes on a machine that has no time for this process."""
THREADS_OF_A_CALL = 4
"""Threads that run one after the other until a call returns: the caller, the thread that polls, librdkafka's and the
broker's. Each of them may be as late as the thread that measures the lag of the machine."""
LINES_KEPT = 150
"""Of the log of a member, for the report of lost partitions."""
COLLECTIONS = (dict, set, list, bool)
STATISTICS_INTERVAL_MS = 500
STATISTICS = ("fetch_state", "fetchq_cnt", "query_offset", "next_offset", "app_offset", "stored_offset", "hi_offset")
"""Of a partition, for the report of a stall."""


LIBRDKAFKA_LOSS = "OffsetCommit error: Illegal generation"
"""In librdkafka's log: a commit behind a JoinGroup that librdkafka has given up, as the topic has changed since, loses
the partitions of any consumer."""


class LastLines(logging.Handler):
    """Keeps the last lines of librdkafka's log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{time.monotonic():.2f} {record.getMessage()}")


class Watch:
    """What the members of one process have seen.

    Args:
        request_hang: lets the broker hang for this many seconds.
        longest_outage_s: of the broker, by a hang or a restart.
        finds_losses: whether no hang is so long that a member may lose its partitions. The log of a member decides
            whether the loss is librdkafka's: members without a log are only counted.
        logs: whether every member keeps the last lines of librdkafka's log, and is looked at for losses.
    """

    def __init__(
        self, request_hang: Callable[[float], object], longest_outage_s: float, *, finds_losses: bool, logs: bool
    ) -> None:
        self.request_hang = request_hang
        self.longest_outage_s = longest_outage_s
        self.finds_losses = finds_losses
        self.logs = logs
        self.longest: dict[str, float] = {}
        """By name of the call: the longest time over its timeout."""
        self.counts: Counter[str] = Counter()
        self.findings: list[str] = []
        self._lags: deque[tuple[float, float]] = deque(maxlen=LAGS_KEPT)
        threading.Thread(target=self._measure_lag, daemon=True).start()

    @contextmanager
    def measured(self, name: str, limit_s: float = 0.0, excess_s: float = LONGEST_EXCESS_S) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            over_s = time.monotonic() - started - limit_s
            self.longest[name] = max(self.longest.get(name, 0.0), over_s)
            self.counts["calls"] += 1
            if over_s > excess_s:
                self.check(
                    f"{name} took {over_s:.2f} s longer than its timeout of {limit_s:.2f} s", over_s - excess_s, started
                )

    def check(self, text: str, late_s: float, started: float) -> None:
        """Note the finding, unless the machine explains so many seconds since the start."""
        lag_s = self.lag_since(started)
        if late_s > THREADS_OF_A_CALL * lag_s:
            self.findings.append(f"{text}; lag of the machine {lag_s:.2f} s")
        else:
            self.counts["calls not checked, as the machine was late"] += 1

    def _measure_lag(self) -> None:
        """Note how late a thread of this process runs on this machine."""
        while True:
            started = time.monotonic()
            time.sleep(LAG_STEP_S)
            now = time.monotonic()
            lag_s = now - started - LAG_STEP_S
            if lag_s > LAG_MIN_S:
                self.note_lag(now, lag_s)

    def note_lag(self, now: float, lag_s: float) -> None:
        self._lags.append((now, lag_s))
        self.longest["lag of the machine"] = max(self.longest.get("lag of the machine", 0.0), lag_s)

    def lag_since(self, started: float) -> float:
        """Return the sum of the lags that have ended since then."""
        return sum(lag_s for ended, lag_s in self._lags.copy() if ended >= started)


class Member:
    """The base of the members.

    Args:
        config: of the consumer.
        delivered: called with each record.
    """

    kind = ""

    def __init__(
        self, config: dict[str, Any], topic: str, seed: int, watch: Watch, delivered: Callable[[Message], None]
    ) -> None:
        self._statistics: dict[str, Any] = {}
        """The last statistics of librdkafka, if the members keep their logs."""
        self._config = config
        if watch.logs:
            statistics = {"stats_cb": self._note_statistics, "statistics.interval.ms": STATISTICS_INTERVAL_MS}
            self._config = {**config, **statistics}
        self._topic = topic
        self._random = random.Random(seed)  # noqa: S311 - reproducible
        self._watch = watch
        self._delivered = delivered
        self._lines = LastLines()
        self._consumer: confluent_kafka.Consumer | None = None
        self._polls: BackgroundPolls | None = None
        self._stop = threading.Event()
        self._stores = config.get("enable.auto.offset.store") is False
        self._read: list[Message] = []
        self._thread = threading.Thread(target=self._run_watched, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let the member close its consumer soon."""
        self._stop.set()

    def join(self) -> None:
        self.stop()
        asked_at = time.monotonic()
        self._thread.join(self._close_limit_s() + JOIN_LIMIT_S)
        self._thread.join(THREADS_OF_A_CALL * self._watch.lag_since(asked_at))
        if self.is_alive:
            self._watch.counts[f"members that do not end ({self.kind})"] += 1
            if self.kind != "plain":
                self._watch.findings.append(f"a member does not end\n{self.state()}")

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def state(self) -> str:
        """Return what the member knows of its partitions, and the last lines of its log, for the report of a stall."""
        delegate = getattr(self._consumer, "_delegate", None)
        known: dict[str, object] = {}
        if delegate is not None:
            for part in (delegate.delivery, delegate._assignment, delegate._pending):
                known.update({name: each for name, each in vars(part).items() if isinstance(each, COLLECTIONS)})
        if self._polls is not None:
            known.update({name: each for name, each in vars(self._polls).items() if isinstance(each, COLLECTIONS)})
            known["fetched"] = len(self._polls.records)
        partitions = self._statistics.get("topics", {}).get(self._topic, {}).get("partitions", {})
        positions = {each: {name: of[name] for name in STATISTICS} for each, of in partitions.items()}
        lines = "\n".join(self._lines.lines)
        return f"{self.kind} with {self._config}: stops {self._stop.is_set()}, {known}, {positions}\n{lines}"

    def _note_statistics(self, text: str) -> None:
        self._statistics = json.loads(text)

    def _run_watched(self) -> None:
        try:
            self._run()
        except Exception as error:  # noqa: BLE001 - a finding
            self._watch.findings.append(f"{self.kind} with {self._config}: {error!r}")

    def _run(self) -> None:
        raise NotImplementedError

    def _logger(self) -> logging.Logger:
        logger = logging.Logger("librdkafka", logging.DEBUG)
        logger.addHandler(self._lines)
        return logger

    def _hang_perhaps(self, share: float) -> None:
        if self._random.random() < share:
            self._watch.request_hang(self._random.uniform(*HANG_S))

    @contextmanager
    def _refused(self) -> Iterator[None]:
        """Count what librdkafka refuses, such as a seek in a partition that was just revoked."""
        try:
            yield
        except KafkaException as error:
            self._watch.counts[f"refused {error.args[0].name()}"] += 1

    def _close_limit_s(self) -> float:
        """Return how long confluent-kafka's `close` may take.

        It waits for the last commit. That one waits for the end of the hang, and in a cooperative rebalance for the
        other members, at most until the session of one that has ended times out.
        """
        return self._watch.longest_outage_s + SESSION_S + LEAVE_LIMIT_S

    def _on_lost(self, _: object, __: list[TopicPartition]) -> None:
        lines = list(self._lines.lines)
        if any(LIBRDKAFKA_LOSS in line for line in lines):
            self._watch.counts[f"assignments lost by a commit in a rebalance ({self.kind})"] += 1
            return
        if THREADS_OF_A_CALL * self._watch.lag_since(time.monotonic() - SESSION_S) > SESSION_S / 2:
            self._watch.counts[f"lost assignments not checked, as the machine was late ({self.kind})"] += 1
            return
        self._watch.counts[f"lost assignments ({self.kind})"] += 1
        if self._watch.finds_losses and lines and (self.kind == "aio" or self._watch.logs):
            text = "\n".join(lines)
            self._watch.findings.append(f"{self.kind} with {self._config} has lost partitions\n{text}")


class BlockingMember(Member):
    kind = "blocking"

    def _run(self) -> None:
        consumer = self._consumer = self._open()
        consumer.subscribe([self._topic], on_assign=self._on_assign, on_lost=self._on_lost)
        while not self._stop.is_set():
            self._step(consumer)
        self._hang_perhaps(0.3)
        with self._watch.measured(f"close ({self.kind})", self._close_limit_s(), CLOSE_EXCESS_S):
            consumer.close()

    def _open(self) -> confluent_kafka.Consumer:
        if "debug" not in self._config and self._random.random() < 0.7:
            return Consumer(self._config)
        return Consumer(self._config, logger=self._logger())

    def _on_assign(self, consumer: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        self._hang_perhaps(0.3)
        if self._random.random() < 0.4:
            cooperates = "cooperative" in str(self._config) or "group.protocol" in self._config
            with self._watch.measured("assign"):
                (consumer.incremental_assign if cooperates else consumer.assign)(partitions)

    def _step(self, consumer: confluent_kafka.Consumer) -> None:
        wait_s = self._random.choice((0.0, 0.0, 0.05, 0.3))
        choice = self._random.random()
        if choice < 0.75:
            self._poll(consumer, wait_s)
        elif choice < 0.85:
            with self._sought(consumer), self._watch.measured("consume", wait_s):
                self._read += consumer.consume(self._random.randint(1, 20), wait_s)
        else:
            self._call(consumer)
        self._note(consumer)
        if not wait_s:
            self._stop.wait(0.005)

    def _call(self, consumer: confluent_kafka.Consumer) -> None:
        name = self._random.choice(("commit", "commit offsets", "pause", "resume", "seek", "position"))
        with self._refused(), self._watch.measured("assignment"):
            assigned = consumer.assignment()
        if not assigned:
            return
        with self._refused():
            positions = [each for each in consumer.position(assigned) if each.offset >= 0]
        with self._refused(), self._watch.measured(name):
            if name == "commit":
                self._hang_perhaps(0.05)
                consumer.commit(asynchronous=True)
            elif name == "commit offsets" and positions:
                metadata = self._random.choice(("host-1", ""))
                consumer.commit(
                    offsets=[TopicPartition(each.topic, each.partition, each.offset, metadata) for each in positions],
                    asynchronous=True,
                )
            elif name == "pause":
                consumer.pause(assigned)
            elif name == "seek" and positions:
                back = self._random.choice(positions)
                consumer.seek(
                    TopicPartition(back.topic, back.partition, max(0, back.offset - self._random.randint(0, 3)))
                )
        if name == "pause":
            self._poll(consumer, 0.01)
            with self._refused(), self._watch.measured("resume"):
                consumer.resume(consumer.assignment())

    def _poll(self, consumer: confluent_kafka.Consumer, wait_s: float) -> None:
        with self._sought(consumer), self._watch.measured("poll", wait_s):
            message = consumer.poll(wait_s)
            self._read += [] if message is None else [message]

    @contextmanager
    def _sought(self, consumer: confluent_kafka.Consumer) -> Iterator[None]:
        """Seek the first record of partitions without a position."""
        try:
            yield
        except NoOffsetForPartition as error:
            for each in error.partitions:
                with self._refused(), self._watch.measured("seek"):
                    consumer.seek(TopicPartition(each.topic, each.partition, 0))

    def _note(self, consumer: confluent_kafka.Consumer) -> None:
        for message in self._read:
            error = message.error()
            if error is not None:
                self._watch.counts[f"event {error.name()}"] += 1
                continue
            self._delivered(message)
            if self._stores:
                with self._refused(), self._watch.measured("store_offsets"):
                    consumer.store_offsets(message=message)
        self._read.clear()


class PlainMember(BlockingMember):
    kind = "plain"

    def _open(self) -> confluent_kafka.Consumer:
        logged = {"logger": self._logger()} if self._watch.logs else {}
        return confluent_kafka.Consumer(self._config, **logged)


class AsyncMember(Member):
    kind = "aio"

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        logged = {"logger": self._logger()} if "debug" in self._config else {}
        consumer = aio.Consumer({**self._config, **logged})
        self._polls = consumer._polls
        self._consumer = self._polls.consumer
        ticks = asyncio.create_task(self._tick())
        work_s = self._random.choice((0.0, 0.01, 0.05))
        await consumer.subscribe(
            [self._topic],
            on_assign=lambda *_: self._hang_perhaps(0.3),
            on_lost=self._on_lost,
            finish_record=self._random.random() < 0.5,
        )
        while not self._stop.is_set():
            wait_s = self._random.choice((0.0, 0.05, 0.3))
            try:
                with self._watch.measured("aio consume", wait_s):
                    messages = await consumer.consume(self._random.randint(1, 10), wait_s)
            except NoOffsetForPartition as error:
                messages = []
                for each in error.partitions:
                    with self._refused():
                        await consumer.seek(TopicPartition(each.topic, each.partition, 0))
            except KafkaException as error:  # a blocking consumer returns it as an event
                messages = []
                self._watch.counts[f"event {error.args[0].name()}"] += 1
            for message in messages:
                self._delivered(message)
                await asyncio.sleep(work_s)
                if self._stores:
                    with self._refused():
                        await consumer.store_offsets(message)
            if self._random.random() < 0.1:
                with self._refused(), self._watch.measured("aio commit"):
                    await consumer.commit(asynchronous=True)
            await asyncio.sleep(0.005)
        self._hang_perhaps(0.3)
        with self._watch.measured("aclose", self._close_limit_s(), CLOSE_EXCESS_S):
            await consumer.aclose()
        ticks.cancel()

    async def _tick(self) -> None:
        """Measure how long other tasks wait."""
        while True:
            with self._watch.measured("event loop", LAG_STEP_S):
                await asyncio.sleep(LAG_STEP_S)


KINDS: dict[str, type[Member]] = {each.kind: each for each in (BlockingMember, PlainMember, AsyncMember)}
