"""Look for requests that cost a broker too much: `python -m tests.robustness.cost --seconds 60 [--seed N]`.

Method. A `kproto serve` process with thousands of topics and groups gets the most expensive requests up to 1 MB, for
each API, version and array, and loads of many clients. Measured are its CPU time and its memory for each request, and
how long a control connection waits meanwhile. A *finding* is a request that costs more than is allowed, five times in
a row, or a wait that is too long. The limits are those of a reference machine; a slower machine is measured first.

Progress goes to standard error, the table of the worst to standard output. The exit code is 1 if something was found.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from typing import NamedTuple

from kproto.message import Request
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.coordinator.broker_state import commit_request
from tests.network.raw_client import RawClient
from tests.robustness.broker_process import BrokerProcess, broker_process
from tests.robustness.control_connection import WAIT_MAX_CPU_S, ControlConnection, Wait
from tests.robustness.costly_frames import RECORD_TOPICS, CostlyFrame, costly_frames
from tests.robustness.loads import LOADS
from tests.robustness.long_requests import existing_name
from tests.robustness.measured_broker import NO_RESPONSE, Cost, measured, slowness
from tests.robustness.warm_memory import warm_memory

CPU_MAX_S = 0.2
MEMORY_MAX_BYTES = 64 << 20
TRIES = 5
"""A cost that is too high is measured again: the first request of an API loads its code, and a busy machine has
moments in which a request takes half as long again."""
TOPICS = 1000
"""Topics and groups that exist."""
PARTITIONS = 2000
"""Partitions of the first topic."""
SHOWN = 20
PAUSE_S = 0.004
"""Between two requests of the control connection, whose own cost counts in that of the requests."""


class Measured(NamedTuple):
    """What one request, or one load, has cost."""

    name: str
    size_bytes: int
    cost: Cost
    wait: Wait

    @property
    def faults(self) -> list[str]:
        """Why this is a finding, on the reference machine."""
        found = []
        if self.size_bytes and self.cost.cpu_s > CPU_MAX_S and self.cost.response_bytes != NO_RESPONSE:
            found.append(f"{self.cost.cpu_s * 1000:.0f} ms of CPU")
        if self.size_bytes and self.cost.memory_bytes > MEMORY_MAX_BYTES:
            found.append(f"{self.cost.memory_bytes >> 20} MB of memory")
        if self.wait.cpu_s > WAIT_MAX_CPU_S:
            found.append(f"{self.wait.request} of the control connection waited {self.wait.cpu_s * 1000:.0f} ms of CPU")
        return found

    def __str__(self) -> str:
        cost = self.cost
        each = f"{cost.cpu_s * 1e9 / self.size_bytes:8.0f} ns/B" if self.size_bytes else " " * 13
        return (
            f"{cost.cpu_s * 1000:7.0f} ms {each} {cost.memory_bytes / 2**20:6.0f} MB"
            f"  wait {self.wait.cpu_s * 1000:5.0f} ms"
            f"  {self.size_bytes:8} -> {cost.response_bytes:10} bytes  {self.name}"
        )


class CostDriver:
    """One run against one broker process."""

    def __init__(self, broker: BrokerProcess, control: ControlConnection, *, verbose: bool = False) -> None:
        self.broker = broker
        self.control = control
        self.verbose = verbose
        self.results: list[Measured] = []
        self.findings: list[str] = []

    def measure(self, costly: CostlyFrame) -> None:
        """Send a request, again if it costs too much, and keep the lowest cost."""
        self._keep(self._best(costly.name, len(costly.data), lambda: measured(self.broker, costly.data)))

    def run_load(self, name: str) -> None:
        """Run one of `LOADS`."""
        self._keep(self._best(name, 0, lambda: LOADS[name](self.broker)))

    def _best(self, name: str, size_bytes: int, measure: object) -> Measured:
        best: Measured | None = None
        for _ in range(TRIES):
            factor = slowness()
            self.control.during = name
            self.control.take_worst()
            cost = measure()  # type: ignore[operator]  # a function
            wait = self.control.take_worst()
            factor = max(factor, slowness())
            found = Measured(
                name, size_bytes, cost._replace(cpu_s=cost.cpu_s / factor), wait._replace(cpu_s=wait.cpu_s / factor)
            )
            if best is None or len(found.faults) < len(best.faults) or found.cost.cpu_s < best.cost.cpu_s:
                best = found
            if not best.faults or self.control.failure is not None:
                break
        assert best is not None
        return best

    def _keep(self, result: Measured) -> None:
        self.results.append(result)
        if self.verbose:
            print(result, file=sys.stderr, flush=True)
        if self.control.failure is not None:
            self.findings.append(f"{result.name}: the control connection failed: {self.control.failure!r}")
        if result.faults:
            self.findings.append(f"{result.name} ({result.size_bytes} bytes): {', '.join(result.faults)}")
            print(f"FINDING {self.findings[-1]}", file=sys.stderr, flush=True)

    def table(self) -> Iterator[str]:
        """Yield the lines of the summary: the worst by CPU time, by memory and by the wait of others."""
        orders = {
            "CPU time": lambda one: one.cost.cpu_s,
            "memory": lambda one: one.cost.memory_bytes,
            "wait of the control connection": lambda one: one.wait.cpu_s,
        }
        for title, key in orders.items():
            yield f"Worst by {title}:"
            yield from (f"  {one}" for one in sorted(self.results, key=key, reverse=True)[:SHOWN])


def prepare(broker: BrokerProcess) -> None:
    """Create the topics and groups that requests name."""
    with RawClient(broker.address) as client:
        names = {existing_name(index): 1 for index in range(1, TOPICS)}
        topics = [_topic(name, count) for name, count in {existing_name(0): PARTITIONS, **names}.items()]
        compaction = CreatableTopicConfig(name="cleanup.policy", value="compact")
        recompression = CreatableTopicConfig(name="compression.type", value="lz4")
        configs = dict(zip(RECORD_TOPICS, ((), (compaction,), (recompression,)), strict=True))
        topics += [_topic(name, 1, of_topic) for name, of_topic in configs.items()]
        response = client.ask(CreateTopicsRequest(topics=tuple(topics), timeout_ms=30_000), 4)
        assert {topic.error_code for topic in response.topics} == {0}
        client.ask(FindCoordinatorRequest(key="x"), 0)
        for index in range(TOPICS):
            name = existing_name(index)
            request: Request = commit_request(name, {name: {0: 1}})
            client.ask(request, 2)


def _topic(name: str, count: int, configs: tuple[CreatableTopicConfig, ...] = ()) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=count, replication_factor=1, assignments=(), configs=configs)


def run(
    seconds: float, seed: int, *, planted: str = "", loads: bool = True, is_warm: bool = False, verbose: bool = False
) -> CostDriver:
    """Run for a time and return the driver with its results.

    ``planted``: as in `broker_process`. ``is_warm``: keep the broker's memory mapped, as `warm_memory` says.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    with broker_process(planted=planted) as broker:
        prepare(broker)
        control = ControlConnection(broker.address, broker.pid, pause_s=PAUSE_S)
        with control, warm_memory(broker.pid) if is_warm else nullcontext():
            driver = CostDriver(broker, control, verbose=verbose)
            end_s = time.monotonic() + seconds
            pending = list(LOADS) if loads else []
            for count, costly in enumerate(costly_frames(chance)):
                if time.monotonic() > end_s or control.failure is not None:
                    break
                driver.measure(costly)
                if pending and count % 20 == 19:
                    driver.run_load(pending.pop(0))
            for name in pending:
                driver.run_load(name)
    return driver


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.robustness.cost", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--verbose", action="store_true", help="print each request")
    parser.add_argument("--warm-memory", action="store_true", help="for a VM whose host takes unused memory away")
    options = parser.parse_args()
    print(f"cost: --seed {options.seed}", file=sys.stderr, flush=True)
    driver = run(options.seconds, options.seed, is_warm=options.warm_memory, verbose=options.verbose)
    for line in driver.table():
        print(line)
    for finding in driver.findings:
        print(f"FINDING {finding}")
    print(f"cost: {len(driver.results)} requests and loads, {len(driver.findings)} findings, --seed {options.seed}")
    return 1 if driver.findings else 0


if __name__ == "__main__":
    sys.exit(main())
