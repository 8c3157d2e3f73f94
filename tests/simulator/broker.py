"""One process of the broker: all its nodes, its log on the simulated disk, and its share of virtual time."""

from __future__ import annotations

from collections import deque
from math import ceil
from typing import TYPE_CHECKING

from kproto_server.clock import Clock, ClockMode
from kproto_server.configuration.data_directory import DataDirectory, Durability
from kproto_server.coordinator.membership.unloading import unload
from kproto_server.persistence.persistence import Persistence
from kproto_server.testing import BrokerEnd, InMemoryBroker
from kproto_server.testing.in_memory import START_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.persistence.worker_thread import Post
    from kproto_server.testing import SimulatedDisk
    from tests.simulator.script import Line

TOPIC = "t"
SESSION_TIMEOUT_MS = 600
REBALANCE_TIMEOUT_MS = 900
TRANSACTION_TIMEOUT_MS = 1000
RETENTION_MINUTES = 1
STEP_S = 0.0008
"""What monotonic time advances by each time that it is read: a turn of loading or compaction has few steps."""

SETTINGS = {
    "group.initial.rebalance.delay.ms": "20",
    "group.min.session.timeout.ms": "100",
    "offsets.retention.check.interval.ms": "20000",
    "offsets.retention.minutes": str(RETENTION_MINUTES),
    "offsets.topic.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transaction.state.log.num.partitions": "2",
}

NEW_GROUPS_SETTINGS = {
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "group.share.assignment.interval.ms": "0",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.min.heartbeat.interval.ms": "50",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.session.timeout.ms": "100",
    "group.share.record.lock.duration.ms": "1000",
    "group.share.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "group.streams.assignment.interval.ms": "0",
    "group.streams.heartbeat.interval.ms": "100",
    "group.streams.initial.rebalance.delay.ms": "20",
    "group.streams.min.heartbeat.interval.ms": "50",
    "group.streams.min.session.timeout.ms": "100",
    "group.streams.num.standby.replicas": "1",
    "group.streams.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "share.coordinator.state.topic.num.partitions": "2",
}
"""For versions with consumer groups, share groups and streams groups."""
WITH_NEW_GROUPS = ("4.4",)


class SimulatedWorker:
    """Runs blocking work in virtual time, one after the other."""

    def __init__(self, post: Post, schedule: Callable[[int, Callable[[], object]], object], duration_ms: int) -> None:
        self._post = post
        self._schedule = schedule
        self._duration_ms = duration_ms
        self._queue: deque[tuple[Callable[[], object], Callable[[], object]]] = deque()

    def run(self, work: Callable[[], object], done: Callable[[], object]) -> None:
        self._queue.append((work, done))
        self._schedule(self._duration_ms * len(self._queue), self._run_next)

    def wait(self) -> None:
        while self._queue:
            self._run_next()

    def stop(self) -> None:
        self.wait()

    def _run_next(self) -> None:
        if self._queue:  # otherwise `wait` has run it
            work, done = self._queue.popleft()
            work()
            self._post(done)


class BrokerProcess:
    """A process from its start to its kill, or to the loss of power."""

    def __init__(
        self,
        setup: Line,
        disk: SimulatedDisk,
        *,
        number: int,
        now_ms: int,
        skew_ms: int,
        schedule: Callable[[int, Callable[[], object]], object],
    ) -> None:
        """``number``: counts the processes; ``skew_ms``: what the broker's clock is ahead of the simulation's."""
        rate = 1.0 + setup.number("drift_percent") / 100.0
        clock = Clock(float(START_MS + now_ms + skew_ms), float(now_ms), ClockMode(rate=rate))
        nodes = setup.number("nodes", 1)
        factor = str(min(2, nodes))
        settings = {
            **SETTINGS,
            "offsets.topic.replication.factor": factor,
            "transaction.state.log.replication.factor": factor,
            "offsets.topic.segment.bytes": str(setup.number("segment_bytes", 1 << 20)),
        }
        if setup.text("kafka") in WITH_NEW_GROUPS:
            settings |= NEW_GROUPS_SETTINGS | {"share.coordinator.state.topic.replication.factor": factor}
        durability: Durability = "fsync" if setup.text("durability") == "fsync" else "os"
        self.broker = InMemoryBroker(
            kafka_version=setup.text("kafka"),
            settings=settings,
            brokers=nodes,
            seed=setup.number("seed") * 1000 + number,
            clock=clock,
        )
        self._posted: deque[Callable[[], object]] = deque()
        self._monotonic_s = 0.0
        sync_ms = setup.number("sync_ms")
        self._persistence = Persistence(
            DataDirectory("simulated", durability),
            self.broker.state,
            self._posted.append,
            disk,
            make_worker=lambda post: SimulatedWorker(post, schedule, sync_ms),
            monotonic_s=self._read_monotonic_s,
        )
        self._turn_ms = setup.number("turn_ms", 1)
        self._next_turn_ms = now_ms
        self._ends: dict[BrokerEnd, int] = {}
        if number == 0:
            count = setup.number("partitions", 1)
            self.broker.state.cluster.create_topic(TOPIC, partition_count=count, replication_factor=1)
        self.iterate(now_ms)

    def _read_monotonic_s(self) -> float:
        self._monotonic_s += STEP_S
        return self._monotonic_s

    @property
    def has_failed(self) -> bool:
        """Whether a sync has failed: the process refuses all changes from then on."""
        return self._persistence.log_dir.writer.failure is not None

    def connect(self, node_id: int, send: Callable[[bytes], object]) -> BrokerEnd | None:
        """Return the broker's end of a new connection to a node; None if the node is stopped."""
        if not self.broker.state.cluster.is_alive(node_id):
            return None
        end = BrokerEnd(self.broker, node_id, send)
        self._ends[end] = node_id
        return end

    def is_connected(self, end: BrokerEnd) -> bool:
        return end in self._ends

    def close(self, end: BrokerEnd) -> None:
        """Note that the client, or the broker, has closed a connection."""
        if self._ends.pop(end, None) is not None:
            end.close()

    def stop_node(self, node_id: int) -> list[BrokerEnd]:
        """Stop a node; return its connections, which are closed then."""
        state = self.broker.state
        unload(state.coordinator, state.coordinator.partitions_led_by(node_id))
        self.broker.deliver()
        state.cluster.stop_node(node_id)
        closed = [end for end, number in self._ends.items() if number == node_id]
        for end in closed:
            self.close(end)
        return closed

    def start_node(self, node_id: int) -> None:
        self.broker.state.cluster.start_node(node_id)

    def next_ms(self, now_ms: int) -> int | None:
        """Return when the process has something to do of its own; None: never."""
        delay_ms = self.broker.clock.delay_ms()
        due_ms = None if delay_ms is None else max(now_ms, ceil(self.broker.clock.real_ms + delay_ms))
        if self._posted and (due_ms is None or self._next_turn_ms < due_ms):
            return max(now_ms, self._next_turn_ms)
        return due_ms

    def tick(self, now_ms: int) -> None:
        """Set the clock."""
        self.broker.clock.tick(float(now_ms))

    def run_due(self, now_ms: int) -> None:
        """Run what is due."""
        self.tick(now_ms)
        self.broker.clock.run_due()
        self.iterate(now_ms)

    def iterate(self, now_ms: int) -> None:
        """Do what the event loop does in an iteration: deliver, run what was posted before, flush."""
        self.broker.deliver()
        if self._posted and now_ms >= self._next_turn_ms:
            self._next_turn_ms = now_ms + self._turn_ms
            for _ in range(len(self._posted)):
                self._posted.popleft()()
        self._persistence.flush()
        self.broker.deliver()
