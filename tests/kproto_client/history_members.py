"""Members of a random history: blocking, async and plain consumers, whose calls are measured.

A member makes random calls in a thread of its own until it is stopped, and then closes its consumer. `Watch` collects
what the members deliver, how long their calls take beyond their timeouts, and what must not happen.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException, Message, TopicPartition

from kproto.client import Consumer, aio

LONGEST_EXCESS_S = 0.5
"""Of a call over its timeout. A query of the client waits for a hung broker for 5 s."""
LEAVE_LIMIT_S = 5.0
"""How long librdkafka's `close` waits for the response to LeaveGroup."""
CLOSE_EXCESS_S = 1.5
"""Of `close` over that of confluent-kafka; a second of it waits for the queries that run."""
SESSION_S = 10.0
HANG_S = (0.3, 3.0)
LAG_STEP_S = 0.02

logger = logging.getLogger("librdkafka")
logger.setLevel(logging.CRITICAL)


class Watch:
    """What the members of one process have seen.

    Args:
        request_hang: lets the broker hang for this many seconds.
        longest_hang_s: of the broker.
        finds_losses: whether no hang is so long that a member may lose its partitions.
    """

    def __init__(self, request_hang: Callable[[float], object], longest_hang_s: float, *, finds_losses: bool) -> None:
        self.request_hang = request_hang
        self.longest_hang_s = longest_hang_s
        self.finds_losses = finds_losses
        self.longest: dict[str, float] = {}
        """By name of the call: the longest time over its timeout."""
        self.counts: Counter[str] = Counter()
        self.findings: list[str] = []
        self._lags: deque[tuple[float, float]] = deque(maxlen=1000)
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
            if over_s > excess_s and over_s - self._lag_since(started) > excess_s:
                self.findings.append(f"{name} took {over_s:.2f} s longer than its timeout of {limit_s:.2f} s")

    def _measure_lag(self) -> None:
        """Note how late a thread of this process runs on this machine."""
        while True:
            started = time.monotonic()
            time.sleep(LAG_STEP_S)
            now = time.monotonic()
            if now - started > 3 * LAG_STEP_S:
                self._lags.append((now, now - started))
                self.longest["lag of the machine"] = max(self.longest.get("lag of the machine", 0.0), now - started)

    def _lag_since(self, started: float) -> float:
        return sum(lag for at, lag in list(self._lags) if at >= started)


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
        self._config = config
        self._topic = topic
        self._random = random.Random(seed)  # noqa: S311 - reproducible
        self._watch = watch
        self._delivered = delivered
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run_watched)
        self._thread.start()

    def stop(self) -> None:
        """Let the member close its consumer soon."""
        self._stop.set()

    def join(self) -> None:
        self.stop()
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _run_watched(self) -> None:
        try:
            self._run()
        except Exception as error:  # noqa: BLE001 - a finding
            self._watch.findings.append(f"{self.kind} with {self._config}: {error!r}")

    def _run(self) -> None:
        raise NotImplementedError

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
        return self._watch.longest_hang_s + SESSION_S + LEAVE_LIMIT_S

    def _on_lost(self, _: object, __: list[TopicPartition]) -> None:
        self._watch.counts[f"lost assignments ({self.kind})"] += 1
        if self._watch.finds_losses and self.kind == "aio":
            self._watch.findings.append(f"{self.kind} has lost partitions")


class BlockingMember(Member):
    kind = "blocking"

    def _run(self) -> None:
        consumer = self._consumer = self._open()
        consumer.subscribe([self._topic], on_assign=self._on_assign, on_lost=self._on_lost)
        self._is_measured = False
        while not self._stop.is_set():
            self._step(consumer)
        self._hang_perhaps(0.3)
        with self._watch.measured(f"close ({self.kind})", self._close_limit_s(), CLOSE_EXCESS_S):
            consumer.close()

    def _open(self) -> confluent_kafka.Consumer:
        return Consumer(self._config, logger=logger) if self._random.random() < 0.3 else Consumer(self._config)

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
            with self._watch.measured("poll", wait_s):
                message = consumer.poll(wait_s)
            self._note([message] if message is not None else [])
        elif choice < 0.85:
            with self._watch.measured("consume", wait_s):
                messages = consumer.consume(self._random.randint(1, 20), wait_s)
            self._note(messages)
        else:
            self._call(consumer)
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
            with suppress(KafkaException):
                message = consumer.poll(0.01)
                self._note([message] if message is not None else [])
            with self._refused(), self._watch.measured("resume"):
                consumer.resume(consumer.assignment())

    def _note(self, messages: list[Message]) -> None:
        for message in messages:
            error = message.error()
            if error is None:
                self._delivered(message)
            else:
                self._watch.counts[f"event {error.name()}"] += 1


class PlainMember(BlockingMember):
    kind = "plain"

    def _open(self) -> confluent_kafka.Consumer:
        return confluent_kafka.Consumer(self._config)


class AsyncMember(Member):
    kind = "aio"

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        consumer = aio.Consumer(self._config)
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
            with self._watch.measured("aio consume", wait_s):
                messages = await consumer.consume(self._random.randint(1, 10), wait_s)
            for message in messages:
                self._delivered(message)
                await asyncio.sleep(work_s)
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
