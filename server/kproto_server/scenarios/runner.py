"""Run one client in one failure scenario: a new broker, the client's process, and its result."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kproto_server.broker.broker import Broker
from kproto_server.client_process import client_process, software_name
from kproto_server.report.phrases import plain
from kproto_server.scenarios.consumer_trace import OffsetRange, PartitionTrace, partition_traces
from kproto_server.scenarios.scenario_topic import GROUP, TOPIC, ScenarioTopic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kproto_server.client_process import ClientProcess
    from kproto_server.scenarios.failure_scenarios import FailureScenario

CHECK_INTERVAL_S = 0.02
"""Between two looks at the client's requests."""
LAST_COMMIT_WAIT_S = 0.3
"""From the client's last Fetch to its termination: the client may commit."""
OLDER_RECORDS_WAIT_S = 1.5
"""At the log end with records unread: a client that fetches from several positions may be about to read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult:
    """The result of a client in one partition."""

    partition: int
    log_start: int
    log_end: int
    expected_start: int
    """The start position that skips and repeats no record."""
    actual_start: int | None
    """The lowest offset of a Fetch that succeeded; None: no Fetch succeeded."""
    unread: tuple[OffsetRange, ...]
    """The records from the expected start on that the client has passed without reading them."""
    steps: tuple[str, ...]
    crashed: bool
    """Whether the client crashed before a Fetch succeeded: where it would start is unknown."""

    @property
    def skipped(self) -> int:
        """Number of records that the group never reads; without a successful Fetch, all unread records."""
        return 0 if self.crashed else sum(end - start for start, end in self.unread)

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
    variables = {**(environment or {}), "KPROTO_TOPIC": TOPIC, "KPROTO_GROUP": GROUP}
    with Broker.running(kafka_version=kafka_version) as broker:
        topic = ScenarioTopic(broker)
        scenario.apply(topic)
        with client_process(command, broker, variables) as client:
            timed_out = not _wait(scenario, broker, topic, client, timeout_s)
            exit_code = client.exit_code()
        traces = partition_traces(broker.requests, TOPIC, topic.topic_id())
        return ScenarioResult(
            scenario=scenario,
            partitions=tuple(
                _partition_results(
                    scenario, topic, traces, has_crashed=bool(exit_code), ended_early=timed_out or bool(exit_code)
                )
            ),
            client=software_name(broker) or command[0],
            exit_code=exit_code,
            timed_out=timed_out,
            last_error_line=plain(client.error_lines[-1]) if client.error_lines and exit_code is not None else "",
        )


def _wait(
    scenario: FailureScenario, broker: Broker, topic: ScenarioTopic, client: ClientProcess, timeout_s: float
) -> bool:
    """Wait until the client has read all records or has exited; return False after the timeout."""
    deadline = time.monotonic() + timeout_s
    topic_id, bounds = topic.topic_id(), topic.log_bounds()
    at_end_since: float | None = None
    while (now := time.monotonic()) < deadline:
        if client.exit_code() is not None:
            return True
        traces = partition_traces(broker.requests, TOPIC, topic_id)
        if not all(each in traces and (traces[each].position or 0) >= end for each, (_, end) in bounds.items()):
            at_end_since = None
        elif not any(_unread(scenario, traces.get(each), each, end) for each, (_, end) in bounds.items()):
            time.sleep(LAST_COMMIT_WAIT_S)
            return True
        elif at_end_since is None:
            at_end_since = now
        elif now - at_end_since >= OLDER_RECORDS_WAIT_S:
            return True
        time.sleep(CHECK_INTERVAL_S)
    return False


def _unread(
    scenario: FailureScenario, trace: PartitionTrace | None, partition: int, end: int
) -> tuple[OffsetRange, ...]:
    """Return the records from the expected start up to `end` that the client did not read."""
    return tuple((trace or PartitionTrace(partition)).unread(scenario.expected_start[partition], end))


def _partition_results(
    scenario: FailureScenario,
    topic: ScenarioTopic,
    traces: Mapping[int, PartitionTrace],
    *,
    has_crashed: bool,
    ended_early: bool,
) -> list[PartitionResult]:
    results: list[PartitionResult] = []
    for partition, (start, end) in sorted(topic.log_bounds().items()):
        trace = traces.get(partition, PartitionTrace(partition))
        # A client that has not reached the log end has passed only the records before its start position.
        has_passed_all = trace.start is None or (not ended_early and (trace.position or 0) >= end)
        passed = end if has_passed_all else min(trace.start or 0, end)
        results.append(
            PartitionResult(
                partition=partition,
                log_start=start,
                log_end=end,
                expected_start=scenario.expected_start[partition],
                actual_start=trace.start,
                unread=_unread(scenario, trace, partition, passed),
                steps=tuple(trace.steps),
                crashed=has_crashed and trace.start is None,
            )
        )
    return results
