"""Run one client in one failure scenario: a new broker, the client's process, and its result."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kproto.errors import KprotoError
from kproto_server.broker.broker import Broker
from kproto_server.scenarios.consumer_trace import PartitionTrace, partition_traces
from kproto_server.scenarios.scenario_topic import GROUP, TOPIC, ScenarioTopic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kproto_server.scenarios.failure_scenarios import FailureScenario

CHECK_INTERVAL_S = 0.02
"""Between two looks at the client's requests."""
TERMINATION_LIMIT_S = 3.0
"""From SIGTERM to SIGKILL."""
LAST_COMMIT_WAIT_S = 0.3
"""From the client's last Fetch to its termination: the client may commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult:
    """The result of a client in one partition."""

    partition: int
    log_start: int
    log_end: int
    expected_start: int
    """The start position that skips and repeats no record."""
    actual_start: int | None
    """None: no Fetch succeeded."""
    steps: tuple[str, ...]
    crashed: bool
    """Whether the client crashed before a Fetch succeeded: where it would start is unknown."""

    @property
    def skipped(self) -> int:
        """Number of records that the group never reads; without a successful Fetch, all unread records."""
        if self.crashed:
            return 0
        return max(0, (self.log_end if self.actual_start is None else self.actual_start) - self.expected_start)

    @property
    def read_again(self) -> int:
        """Number of offsets that the group reads a second time; the records at them may be different ones."""
        return 0 if self.actual_start is None else max(0, self.expected_start - self.actual_start)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """The result of one client in one scenario."""

    scenario: FailureScenario
    partitions: tuple[PartitionResult, ...]
    client: str
    """The software name of its ApiVersions request, or its command."""
    exit_code: int | None
    """None: the client still ran after it had read all records, or after the timeout."""
    timed_out: bool
    last_error_line: str
    """The last line of standard error, if the client exited by itself."""

    @property
    def has_crashed(self) -> bool:
        """Whether the client exited with an error, or by a signal, before it had read all records."""
        return bool(self.exit_code)

    @property
    def skipped(self) -> int:
        """Number of records that the group never reads, in all partitions."""
        return sum(partition.skipped for partition in self.partitions)

    @property
    def read_again(self) -> int:
        """Number of offsets that the group reads a second time, in all partitions."""
        return sum(partition.read_again for partition in self.partitions)


class ClientNotStarted(KprotoError):
    """The client's command cannot be executed; the text is one line for the user."""


def run_scenario(
    scenario: FailureScenario,
    command: Sequence[str],
    *,
    kafka_version: str = "latest",
    timeout_s: float = 30.0,
    environment: Mapping[str, str] | None = None,
) -> ScenarioResult:
    """Apply a scenario to a new broker, run the client, and return its result.

    The client's environment has KAFKA_BOOTSTRAP_SERVERS, KPROTO_TOPIC and KPROTO_GROUP. The client is terminated when
    it has read all records, or after `timeout_s` of real time. Broker and client have ended when the function returns.

    Raises:
        ClientNotStarted: the command cannot be executed.
    """
    with Broker.running(kafka_version=kafka_version) as broker, tempfile.TemporaryFile() as errors:
        topic = ScenarioTopic(broker)
        scenario.apply(topic)
        variables = {"KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers, "KPROTO_TOPIC": TOPIC, "KPROTO_GROUP": GROUP}
        try:
            process = subprocess.Popen(  # the user's own command
                list(command),
                env={**os.environ, **(environment or {}), **variables},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        except OSError as error:
            raise ClientNotStarted(f"can't start {command[0]!r}: {error.strerror}") from None
        try:
            timed_out = not _wait(broker, topic, process, timeout_s)
            exit_code = process.poll()
        finally:
            _terminate(process)
        traces = partition_traces(broker.requests, TOPIC, topic.topic_id())
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
        return ScenarioResult(
            scenario=scenario,
            partitions=tuple(_partition_results(scenario, topic, traces, has_crashed=bool(exit_code))),
            client=_software(broker) or command[0],
            exit_code=exit_code,
            timed_out=timed_out,
            last_error_line=lines[-1] if lines and exit_code is not None else "",
        )


def _wait(broker: Broker, topic: ScenarioTopic, process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Wait until the client has read all records or has exited; return False after the timeout."""
    deadline = time.monotonic() + timeout_s
    topic_id = topic.topic_id()
    ends = {partition: end for partition, (_, end) in topic.log_bounds().items()}
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return True
        traces = partition_traces(broker.requests, TOPIC, topic_id)
        if all(partition in traces and (traces[partition].position or 0) >= end for partition, end in ends.items()):
            time.sleep(LAST_COMMIT_WAIT_S)
            return True
        time.sleep(CHECK_INTERVAL_S)
    return False


def _terminate(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(TERMINATION_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _partition_results(
    scenario: FailureScenario, topic: ScenarioTopic, traces: Mapping[int, PartitionTrace], *, has_crashed: bool
) -> list[PartitionResult]:
    return [
        PartitionResult(
            partition=partition,
            log_start=start,
            log_end=end,
            expected_start=scenario.expected_start[partition],
            actual_start=traces[partition].start if partition in traces else None,
            steps=tuple(traces[partition].steps) if partition in traces else (),
            crashed=has_crashed and (partition not in traces or traces[partition].start is None),
        )
        for partition, (start, end) in sorted(topic.log_bounds().items())
    ]


def _software(broker: Broker) -> str:
    for client in broker.snapshot().clients:
        if client.software_name:
            return f"{client.software_name} {client.software_version}"
    return ""
