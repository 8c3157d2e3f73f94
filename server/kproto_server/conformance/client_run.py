"""Run a client under test in one case: a new broker, the client's process, and what was seen of it."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.broker.broker import Broker
from kproto_server.client_process import client_process, software_name
from kproto_server.conformance.verdict import Seen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kproto_server.broker.faults import BrokerFault
    from kproto_server.broker.requests import BrokerRequests
    from kproto_server.client_process import ClientProcess
    from kproto_server.conformance.cases import Action, ClientCase
    from kproto_server.observation.logged import LoggedRequest

TOPIC, OUTPUT_TOPIC, GROUP = "conform-in", "conform-out", "conform"
PARTITIONS = 2
RECORDS = 10
"""Records that are there at first, and again after the fault."""
FAULT_LIMIT_S = 8.0
"""How long a client that has copied the first records gets for the request that a case is about."""
LOOK_INTERVAL_S = 0.02
REQUESTS_MAX = 12
LOADING_MS = 1000


class ClientRun(NamedTuple):
    """What was seen of a client in one case."""

    seen: Seen
    client: str
    """The software name and version of its ApiVersions request, else a client id; empty: it sent neither."""


def run_case(case: ClientCase, command: Sequence[str], *, timeout_s: float) -> ClientRun:
    """Run a client in a case, until all is copied and committed, or for `timeout_s` of real time.

    The client's environment has KAFKA_BOOTSTRAP_SERVERS, KPROTO_TOPIC, KPROTO_OUTPUT_TOPIC and KPROTO_GROUP. When the
    function returns, broker and client have ended.

    Raises:
        ClientNotStarted: the command cannot be executed.
    """
    variables = {"KPROTO_TOPIC": TOPIC, "KPROTO_OUTPUT_TOPIC": OUTPUT_TOPIC, "KPROTO_GROUP": GROUP}
    with Broker.running(kafka_version=case.kafka_version, settings=_settings(case), brokers=case.brokers) as broker:
        for topic in (TOPIC, OUTPUT_TOPIC):
            broker.topics.create(topic, partitions=PARTITIONS)
        _produce(broker, 0)
        rules = [broker.faults.add(**rule) for rule in case.faults]
        started = time.monotonic()
        with client_process(command, broker, variables) as client:
            expected = _wait(broker, client, case, rules, started + timeout_s)
            seconds = time.monotonic() - started
            exit_code = client.exit_code()
        copies = Counter(record.value for record in broker.topics.records(OUTPUT_TOPIC))
        committed = broker.groups.committed(GROUP)
        seen = Seen(
            expected=expected,
            missing=expected - len(copies),
            lost=sum(
                _partition(number) < PARTITIONS and _is_behind(committed, number)
                for number in _missing(copies, expected)
            ),
            repeated=copies.total() - len(copies),
            is_committed=_is_committed(committed, expected),
            fired=sum(rule.fired for rule in rules) if rules else 1,
            seconds=seconds,
            exit_code=exit_code,
            last_error_line=_error_line(client.error_lines) if exit_code is not None else "",
            requests=tuple(_from_fault(broker.requests, case)),
        )
        return ClientRun(seen, software_name(broker) or _client_id(broker))


def _settings(case: ClientCase) -> dict[str, str]:
    replicas = {f"{topics}.replication.factor": str(case.brokers) for topics in ("default", "offsets.topic")}
    # Releases before 0.11 have no such setting and no such delay.
    delay = {} if case.kafka_version.startswith("0.10") else {"group.initial.rebalance.delay.ms": "0"}
    return replicas | delay


# Record n has the value "record n"; it is in partition n % PARTITIONS, at offset n // PARTITIONS.


def _produce(broker: Broker, first: int) -> None:
    for number in range(first, first + RECORDS):
        broker.topics.produce(TOPIC, f"record {number}", partition=_partition(number))


def _partition(number: int) -> int:
    return number % PARTITIONS


def _missing(copies: Mapping[bytes | None, int], expected: int) -> list[int]:
    return [number for number in range(expected) if f"record {number}".encode() not in copies]


def _is_behind(committed: Mapping[tuple[str, int], int], number: int) -> bool:
    """Return whether a record is before the committed offset of its partition."""
    return number // PARTITIONS < committed.get((TOPIC, _partition(number)), 0)


def _is_committed(committed: Mapping[tuple[str, int], int], expected: int) -> bool:
    return all(_is_behind(committed, number) for number in range(expected))


def _wait(
    broker: Broker, client: ClientProcess, case: ClientCase, rules: Sequence[BrokerFault], deadline: float
) -> int:
    """Wait until all is copied; produce the second half of the records after the fault. Return how many there are."""
    if not _wait_copied(broker, client, RECORDS, deadline):
        return RECORDS
    if case.action is not None and broker.groups.members(GROUP):
        _act(broker, case.action)
        with suppress(TimeoutError):  # what follows shows that the member has not come back
            broker.groups.wait_stable(GROUP, timeout_s=FAULT_LIMIT_S)
    fault_deadline = min(deadline, time.monotonic() + FAULT_LIMIT_S)
    while not all(rule.fired for rule in rules) and time.monotonic() < fault_deadline and client.exit_code() is None:
        time.sleep(LOOK_INTERVAL_S)
    _produce(broker, RECORDS)
    _wait_copied(broker, client, 2 * RECORDS, deadline)
    return 2 * RECORDS


def _act(broker: Broker, action: Action) -> None:
    if action == "rebalance":
        broker.groups.force_rebalance(GROUP)
    elif action == "expire-member":
        (member,) = broker.groups.members(GROUP)
        broker.groups.expire_member(GROUP, member_id=member.member_id)
    elif action == "move-coordinator":
        broker.cluster.move_coordinator(group=GROUP, loading_ms=LOADING_MS)
    else:
        for topic, partition in product((TOPIC, OUTPUT_TOPIC), range(PARTITIONS)):
            broker.cluster.move_leader(topic, partition)


def _wait_copied(broker: Broker, client: ClientProcess, expected: int, deadline: float) -> bool:
    """Wait until these records are copied and committed; return False if the client has ended, or at the deadline."""
    while time.monotonic() < deadline:
        written = {record.value for record in broker.topics.records(OUTPUT_TOPIC)}
        if len(written) >= expected and _is_committed(broker.groups.committed(GROUP), expected):
            return True
        if client.exit_code() is not None:
            return False
        time.sleep(LOOK_INTERVAL_S)
    return False


def _from_fault(requests: BrokerRequests, case: ClientCase) -> Iterator[str]:
    """Yield the requests from the first one of the case's API on, a line each, equal neighbors once."""
    apis = {rule.get("api") for rule in case.faults} - {None}
    if not apis:
        return
    first: LoggedRequest | None = None
    last, count = "", 0
    for request in requests:
        if first is None and request.api not in apis:
            continue
        first = first or request
        outcome = "no response" if request.responded_ms is None else ", ".join(request.error_names) or "no error"
        what = f"{request.api} v{request.api_version}: {outcome}"
        if what == last:
            continue
        if count == REQUESTS_MAX:
            return
        yield f"{(request.time_ms - first.time_ms) / 1000:7.3f} s  {what}"
        last, count = what, count + 1


def _error_line(lines: Sequence[str]) -> str:
    """Return the last line that names an error, else the last line."""
    named = [line for line in lines if "Error" in line or "Exception" in line]
    return (named or lines or [""])[-1].strip()


def _client_id(broker: Broker) -> str:
    return next((client.client_id for client in broker.observations.snapshot().clients if client.client_id), "")
