"""A broker in this thread with a data directory on a simulated disk, killed or without power whenever a test wants."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kproto_server.configuration.data_directory import DataDirectory, Durability
from kproto_server.persistence.persistence import Persistence
from kproto_server.persistence.worker_thread import WorkerThread
from kproto_server.testing import InMemoryBroker, SimulatedDisk, virtual_clock
from kproto_server.testing.in_memory import START_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto.message import Request
    from kproto_server.persistence.worker_thread import Post, Worker
    from kproto_server.testing.in_memory import ConnectedPair

KAFKA_VERSION = "2.8"
"""With OffsetCommit v0 and with small segments."""
SETTINGS = {"offsets.topic.num.partitions": "2", "group.initial.rebalance.delay.ms": "0"}


class DiskBroker:
    """One process at a time on one disk; `restart` begins the next. It is a client of its own broker (`ask`)."""

    def __init__(
        self,
        durability: Durability,
        settings: Mapping[str, str] | None = None,
        seed: int = 0,
        kafka_version: str = KAFKA_VERSION,
        make_worker: Callable[[Post], Worker] = WorkerThread,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """``monotonic_s``: returns the time that ends turns of loading and compaction."""
        self.disk = SimulatedDisk(seed=seed)
        self._data = DataDirectory("simulated", durability)
        self.kafka_version = kafka_version
        """Of the processes that start from now on."""
        self._make_worker = make_worker
        self._monotonic_s = monotonic_s
        self._settings = {**SETTINGS, **(settings or {})}
        self._chance = random.Random(seed)  # noqa: S311 - reproducible
        self._start_ms = START_MS
        self._start()

    def _start(self, turns: int | None = None) -> None:
        self._posted: deque[Callable[[], object]] = deque()
        seed = self._chance.getrandbits(32)  # each process makes other topic ids
        broker = self.broker = InMemoryBroker(
            kafka_version=self.kafka_version, settings=self._settings, seed=seed, clock=virtual_clock(self._start_ms)
        )
        self.persistence = Persistence(
            self._data,
            broker.state,
            self._posted.append,
            self.disk,
            make_worker=self._make_worker,
            monotonic_s=self._monotonic_s,
        )
        self.client: ConnectedPair = broker.connect()
        self.run_posted(turns)

    def _restart(self, turns: int | None = None) -> None:
        self._start_ms = self.broker.clock.now_ms() + 1  # producer ids begin with the time
        self._start(turns)

    def run_posted(self, count: int | None = None) -> None:
        """Run what was posted to the event loop; ``count``: no more functions than that."""
        while self._posted and count != 0:
            self._posted.popleft()()
            count = None if count is None else count - 1

    def ask(self, request: Request, version: int) -> Any:
        """Send one request, run the event loop's iterations until its response is sent, and return it."""
        self.client.send(request, version)
        self.persistence.flush()
        self.persistence.drain()
        self.run_posted()
        self.broker.deliver()
        if not self.client.responses:  # a rebalance begins in the next iteration
            self.advance(1)
        return self.client.responses.pop()

    def advance(self, milliseconds: float) -> None:
        self.broker.advance(milliseconds=milliseconds)
        self.persistence.drain()
        self.run_posted()

    def kill(self, turns: int | None = None) -> None:
        """Kill the process and start the next one; ``turns``: how many turns it may load, None: to the end."""
        self.disk = self.disk.kill()
        self._restart(turns)

    def lose_power(self, *, loses_all: bool) -> None:
        """Let the power fail, and start again; all changes that are not synced are lost, or any of them."""
        self.disk = self.disk.crash(None if loses_all else self._chance)
        self._restart()
