"""Runs a script in virtual time, and returns its history."""

from __future__ import annotations

import heapq
import logging
import random
from typing import TYPE_CHECKING, Any

from kproto.errors import LogError
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.storage.write_ahead_log import NAMES as WAL_NAMES
from kproto_server.testing import PowerLost, SimulatedDisk
from tests.simulator.broker import RETENTION_MINUTES, SESSION_TIMEOUT_MS, TRANSACTION_TIMEOUT_MS, BrokerProcess
from tests.simulator.clients import KINDS
from tests.simulator.clients.client import Call, Client, Surroundings
from tests.simulator.history import Exchange, History
from tests.simulator.invariants.convergence import unconverged
from tests.simulator.network import DISK_FAULTS, Faults, Link
from tests.simulator.script import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from kproto_server.testing.simulated_disk import Operation
    from tests.simulator.script import Script

FAULTS_MS = 1500
"""Faults begin within this time."""
SETTLE_MS = 6000
"""After the last fault, groups have so long to converge."""
SETTLE_STEP_MS = 300
MEMBERS = frozenset({"classic_member", "consumer_member", "share_member", "streams_member"})
"""The clients that go on until their groups have converged."""
FINISH_MS = 4000
"""Clients that have to end have so long for it."""
FINAL_MS = 3000
IDLE_MS = 30_000
"""How long nothing commits, before the offsets are read once more: less than their retention time."""
OPERATION_LIMIT_MS = 300
"""A crash at an operation of the disk happens after this time, if there were too few operations."""
DISK_BYTES = 3 << 20
"""Small, so that the write-ahead log is small."""
RESTART_MS = 20
"""How long a process is down that was ended because its log had failed."""
NOTICED_MS = 100
"""After which time a process has noticed that its disk has failed: a turn of its event loop takes less."""
SKEW_STEP_MS = 700
"""By how much the clock is set ahead at the start of each further process."""


class Runner:
    """Runs one client: starts and restarts it, and passes it the responses to its requests."""

    def __init__(self, simulation: Simulation, line: Line) -> None:
        self.name = line.text("name")
        self.kind = line.kind
        self.is_done = False
        self._simulation = simulation
        self._line = line
        self._incarnation = 0
        self._call_count = 0
        self._client: Client | None = None
        self._steps: Generator[Call | int, Any, None] | None = None
        self._links: dict[int, Link] = {}
        self._paused_until_ms = 0
        self._step = 0
        """Counts the steps: an event of an earlier one has no effect."""

    @property
    def is_running(self) -> bool:
        return self._steps is not None

    def start(self, kind: str = "") -> None:
        """Start the client, or start it again without its memory; ``kind``: as a client of another kind."""
        if self.is_done:
            return
        self.kind = kind or self.kind
        self.stop()
        self._incarnation += 1
        self._simulation.note("client starts", self.name)
        self._client = KINDS[self.kind](self._simulation, self._line, self._incarnation)
        self._steps = self._client.main()
        self._resume(None)

    def stop(self) -> None:
        """End the client without a farewell."""
        for link in self._links.values():
            link.close()
        self._links.clear()
        if self._steps is not None:
            self._steps.close()
            self._steps = None
            self._step += 1

    def finish(self) -> None:
        """Have the client come to its end."""
        if self._client is not None:
            self._client.finishing = True

    def pause(self, until_ms: int) -> None:
        """Let the client do nothing until a time."""
        self._paused_until_ms = until_ms

    def reset_links(self, node_id: int | None = None) -> None:
        """Break the connections to a node; None: to all."""
        for number, link in self._links.items():
            if node_id in (None, number):
                link.reset()

    def _resume(self, value: object) -> None:
        self._step += 1
        step = self._step
        steps = self._steps
        assert steps is not None, "the client runs"
        try:
            command = steps.send(value)
        except StopIteration:
            self._steps = None
            self.is_done = True
            self._simulation.note("client stops", self.name)
            self.stop()
            return
        if isinstance(command, Call):
            self._send(command, step)
        else:
            self._resume_later(max(1, command), step, None)

    def _resume_later(self, delay_ms: int, step: int, value: object) -> None:
        self._simulation.after(delay_ms, lambda: self._resume_at(step, value))

    def _resume_at(self, step: int, value: object) -> None:
        if step != self._step:
            return
        paused_ms = self._paused_until_ms - self._simulation.now_ms
        if paused_ms > 0:
            self._resume_later(paused_ms, step, value)
        else:
            self._resume(value)

    def _send(self, call: Call, step: int) -> None:
        simulation = self._simulation
        exchange = Exchange(
            self.name,
            self._incarnation,
            self._call_count,
            call.node_id,
            call.version,
            call.request,
            simulation.history.next_stamp(),
            simulation.now_ms,
        )
        self._call_count += 1
        simulation.history.exchanges.append(exchange)
        if call.background:
            self._send_in_background(call, exchange)
            self._resume_later(1, step, None)
            return
        link = self._links.get(call.node_id)
        if link is None or not link.is_open:
            link = self._links[call.node_id] = simulation.link(call.node_id)

        def respond(response: object) -> None:
            if step != self._step:
                return
            paused_ms = self._paused_until_ms - simulation.now_ms
            if paused_ms > 0:
                simulation.after(paused_ms, lambda: respond(response))
                return
            simulation.note_response(exchange, response)
            self._resume(response)

        def give_up() -> None:
            if step != self._step or exchange.response is not None:
                return
            paused_ms = self._paused_until_ms - simulation.now_ms
            if paused_ms > 0:  # a response that has come meanwhile is read first
                simulation.after(paused_ms, give_up)
            else:
                link.close(drops=call.drops)
                respond(None)

        link.send(exchange, respond, call.delay_ms)
        simulation.after(call.timeout_ms, give_up)

    def _send_in_background(self, call: Call, exchange: Exchange) -> None:
        """Send a request on a connection that is closed after its response."""
        simulation = self._simulation
        link = simulation.link(call.node_id)

        def take(response: object) -> None:
            simulation.note_response(exchange, response)
            link.close()

        link.send(exchange, take, call.delay_ms)
        simulation.after(call.timeout_ms + call.delay_ms, link.close)


class Simulation(Surroundings):
    """One run of a script."""

    def __init__(self, script: Script) -> None:
        setup = script.broker
        self.script = script
        self.now_ms = 0
        self.history = History(setup.number("partitions", 1), RETENTION_MINUTES * 60_000, SESSION_TIMEOUT_MS)
        self.node_ids = tuple(range(1, setup.number("nodes", 1) + 1))
        self.partition_count = setup.number("partitions", 1)
        self.seed = setup.number("seed")
        self.groups = sorted(
            {line.text("group") for line in script.lines if line.get("group") and line.kind != "share_member"}
        )
        self._api_versions = KafkaVersion.named(setup.text("kafka")).api_versions
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._event_count = 0
        self._offset = 0
        self.has_disk_faults = any(line.kind in DISK_FAULTS for line in script.lines)
        self._faults = Faults(script.lines, self.seed)
        self._process: BrokerProcess | None = None
        self._process_count = 0
        self._disk = SimulatedDisk(seed=self.seed, capacity_bytes=DISK_BYTES)
        self._crash: Line | None = None
        """The crash that the next operations of the disk cause."""
        self._disk_fault: Line | None = None
        """Why operations of the disk fail."""
        self._runners = {line.text("name"): Runner(self, line) for line in script.lines if line.kind in KINDS}

    # What clients use.

    def version(self, api_key: int, wanted: int) -> int:
        return min(wanted, self._api_versions[api_key][1])

    def next_offset(self) -> int:
        self._offset += 1
        return self._offset

    # What runners use.

    def note(self, kind: str, detail: str = "") -> None:
        self.history.note(self.now_ms, kind, detail)

    def after(self, delay_ms: int, action: Callable[[], object]) -> None:
        """Call an action so many ms from now."""
        self._event_count += 1
        heapq.heappush(self._events, (self.now_ms + delay_ms, self._event_count, action))

    def note_response(self, exchange: Exchange, response: object) -> None:
        """Note that a response has arrived; None: that none will."""
        if response is not None:
            exchange.response = response
            exchange.received = self.history.next_stamp()
            exchange.received_ms = self.now_ms

    def link(self, node_id: int) -> Link:
        return Link(
            node_id,
            self._faults,
            self.after,
            lambda: self._process,
            lambda reason: self.note("closed", reason),
            self._cause,
        )

    # The run.

    def run(self) -> History:
        """Run the script to its end."""
        logger = logging.getLogger("kproto")
        handler, propagates = _Defects(self), logger.propagate
        logger.addHandler(handler)
        logger.propagate = False
        try:
            self._run()
        finally:
            logger.removeHandler(handler)
            logger.propagate = propagates
        return self.history

    def _run(self) -> None:
        self._start()
        quiet_ms = FAULTS_MS
        for line in self.script.lines:
            if line.kind in KINDS:
                self.after(line.number("at_ms"), self._runners[line.text("name")].start)
            elif line.get("at_ms") is not None:
                self.after(line.number("at_ms"), lambda line=line: self._cause(line))  # type: ignore[misc]
                end_ms = line.number("at_ms") + line.number("down_ms") + line.number("ms") + OPERATION_LIMIT_MS
                quiet_ms = max(quiet_ms, end_ms)
        self._run_until(quiet_ms)
        self._faults = Faults((), self.seed)
        runners = [runner for runner in self._runners.values() if runner.is_running]
        self._finish([runner for runner in runners if runner.kind not in MEMBERS])
        members = [runner for runner in runners if runner.kind in MEMBERS]
        if members:
            self._settle(members)
            self._finish(members)
        if any(line.text("transactional_id") for line in self.script.lines):
            self._run_until(self.now_ms + 2 * TRANSACTION_TIMEOUT_MS)
        self._read_everything("final")
        if self.script.broker.number("idle"):
            self._run_until(self.now_ms + IDLE_MS // 2)
            self._end_process(Line.of("kill"))
            self._run_until(self.now_ms + IDLE_MS // 2)
            self._read_everything("idle")

    def _finish(self, runners: list[Runner]) -> None:
        for runner in runners:
            runner.finish()
        self._wait_for(runners, FINISH_MS)

    def _settle(self, members: list[Runner]) -> None:
        """Wait until all groups have converged, but not forever."""
        end_ms = self.now_ms + SETTLE_MS
        while True:
            self._run_until(self.now_ms + SETTLE_STEP_MS)
            running = {runner.name: runner.kind for runner in members if runner.is_running}
            if self.now_ms >= end_ms or not any(unconverged(self.history, running)):
                break
        self.history.running = running
        self.note("settled")

    def _read_everything(self, name: str) -> None:
        reader = Runner(self, self.script.broker._replace(kind="final_reader", values=(("name", name),)))
        reader.start()
        self._wait_for([reader], FINAL_MS)

    def _wait_for(self, runners: list[Runner], limit_ms: int) -> None:
        end_ms = self.now_ms + limit_ms
        while self.now_ms < end_ms and any(runner.is_running for runner in runners):
            self._run_until(self.now_ms + 10)
        for runner in runners:
            if runner.is_running:
                self.note("client hangs", runner.name)
                runner.stop()

    def _run_until(self, end_ms: int) -> None:
        while True:
            process = self._process
            due_ms = None if process is None else process.next_ms(self.now_ms)
            at_ms = self._events[0][0] if self._events else end_ms + 1
            if min(at_ms, at_ms if due_ms is None else due_ms) > end_ms:
                break
            try:
                if process is not None and due_ms is not None and due_ms < at_ms:
                    self.now_ms = due_ms
                    process.run_due(due_ms)
                else:
                    self.now_ms, _, action = heapq.heappop(self._events)
                    if process is not None:
                        process.tick(self.now_ms)
                    action()
                    if process is not None and process is self._process:
                        process.iterate(self.now_ms)
            except PowerLost:
                assert self._crash is not None, "a crash was ordered"
                self._end_process(self._crash)
        self.now_ms = end_ms

    # Faults.

    def _cause(self, line: Line) -> None:
        match line.kind:
            case "kill" | "power":
                self._order_crash(line)
            case "stop_node":
                self._stop_node(line.number("node"), line.number("down_ms"))
            case "pause":
                runner = self._runners.get(line.text("client"))
                if runner is not None:
                    runner.pause(self.now_ms + line.number("ms"))
            case "restart":
                runner = self._runners.get(line.text("client"))
                if runner is not None:
                    runner.start(line.text("becomes"))
            case "disk_error" | "disk_full":
                self._fail_disk(line)

    def _fail_disk(self, line: Line) -> None:
        """Let operations of the disk fail, or leave it no space, for some time."""
        self.note("disk fails", str(line))
        self._disk_fault = line
        if line.kind == "disk_full":
            self._disk.capacity_bytes = self._disk.used_bytes + line.number("free_bytes")
        else:
            self._disk.fails = FailingOperations(line)
        self.after(line.number("ms"), lambda: self._end_disk_fault(line))

    def _end_disk_fault(self, line: Line) -> None:
        if self._disk_fault is not line:
            return
        self._disk_fault = None
        self._disk.capacity_bytes = DISK_BYTES
        self._disk.fails = lambda operation: False
        self._restart_failed()
        self.after(NOTICED_MS, self._restart_failed)

    def _restart_failed(self) -> None:
        if self._process is not None and self._process.has_failed:
            self._end_process(Line.of("kill", down_ms=RESTART_MS))

    def _order_crash(self, line: Line) -> None:
        if self._process is None or self._crash is not None:
            return
        if line.get("operations") is None:
            self._end_process(line)
            return
        self._crash, self._disk.operations_left = line, line.number("operations")

        def end() -> None:
            if self._crash is line and self._process is not None:
                self._end_process(line)

        self.after(OPERATION_LIMIT_MS, end)

    def _end_process(self, line: Line) -> None:
        """Kill the process, or its power; start the next one later."""
        self.note("crash", line.kind)
        if self._process is not None and self._process.has_failed:
            self.note("log failed")
        self._crash = self._process = None
        if line.kind == "kill":
            self._disk = self._disk.kill()
        else:
            keeps = line.text("keeps") == "some"
            chance = random.Random(f"{self.seed} {self._process_count}")  # noqa: S311 - reproducible
            self._disk = self._disk.crash(chance if keeps else None)
        for runner in self._runners.values():
            runner.reset_links()
        again = line.number("again", -1)
        self.after(max(1, line.number("down_ms")), lambda: self._start(again, line))

    def _start(self, operations: int = -1, line: Line | None = None) -> None:
        """Start a process; ``operations``: after so many operations of the disk, it crashes as ``line`` says."""
        setup, number = self.script.broker, self._process_count
        self._process_count += 1
        if line is not None and operations >= 0:
            crash = self._crash = _without_again(line)
            self._disk.operations_left = operations
            self.after(OPERATION_LIMIT_MS, lambda: self._forget_crash(crash))
        process: list[BrokerProcess | None] = [None]

        def schedule(delay_ms: int, action: Callable[[], object]) -> None:
            self.after(delay_ms, lambda: action() if process[0] and self._process is process[0] else None)

        try:
            process[0] = self._process = BrokerProcess(
                setup,
                self._disk,
                number=number,
                now_ms=self.now_ms,
                skew_ms=setup.number("skew_ms") + number * SKEW_STEP_MS,
                schedule=schedule,
            )
        except LogError as error:
            if self._disk_fault is None:
                self.note("does not start", str(error))
            else:
                self.after(self._disk_fault.number("ms"), self._start)
            return
        self.note("start")

    def _forget_crash(self, line: Line) -> None:
        if self._crash is line:
            self._crash = self._disk.operations_left = None

    def _stop_node(self, node_id: int, down_ms: int) -> None:
        process = self._process
        if process is None or node_id not in self.node_ids or not process.broker.state.cluster.is_alive(node_id):
            return
        if len(process.broker.state.cluster.alive_nodes()) == 1:
            return
        self.note("stop node", str(node_id))
        process.stop_node(node_id)
        for runner in self._runners.values():
            runner.reset_links(node_id)

        def start() -> None:
            if self._process is process:  # a new process has all its nodes
                process.start_node(node_id)
                self.note("start node", str(node_id))

        self.after(down_ms, start)


class FailingOperations:
    """Some operations of one kind fail: those of the write-ahead log, or those of other files."""

    def __init__(self, line: Line) -> None:
        self._operation = line.text("operation")
        self._is_of_wal = line.text("of") == "wal"
        self._skipped, self._count = line.number("skips"), line.number("count")

    def __call__(self, operation: Operation) -> bool:
        """Return whether an operation fails."""
        if operation.kind != self._operation or (operation.path in WAL_NAMES) != self._is_of_wal:
            return False
        if self._skipped:
            self._skipped -= 1
            return False
        self._count -= 1
        return self._count >= 0


def _without_again(line: Line) -> Line:
    return line._replace(values=tuple(item for item in line.values if item[0] != "again"))


class _Defects(logging.Handler):
    """Notes errors that the broker logs."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(logging.ERROR)
        self._simulation = simulation

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is None and self._simulation.has_disk_faults:
            return  # the broker reports what the disk has refused
        self._simulation.note("defect", record.getMessage() + ("" if error is None else f": {error!r}"))
