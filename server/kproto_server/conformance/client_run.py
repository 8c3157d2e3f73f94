"""Run a client under test in one case: a new broker, the client's process, and what was seen of it."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.broker.broker import Broker
from kproto_server.client_process import client_process, software_name
from kproto_server.conformance.client_input import GROUP, PARTITIONS, TOPIC, Input
from kproto_server.conformance.verdict import Seen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kproto_server.broker.faults import BrokerFault
    from kproto_server.client_process import ClientProcess
    from kproto_server.conformance.cases import Action, ClientCase
    from kproto_server.observation.logged import LoggedRequest

OUTPUT_TOPIC = "conform-out"
FAULT_LIMIT_S = 8.0
"""How long a client that has copied the first records gets for the request that a case is about."""
LOOK_INTERVAL_S = 0.02
REQUESTS_MAX = 12
LOADING_MS = 1000
DURING_REQUEST: Sequence[Action] = ("commit-during-rebalance",)
"""Actions at the time of the case's first request; the others come when the first records are copied."""


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
        given = Input(broker, case)
        given.produce_half()
        rules = [broker.faults.add(**rule) for rule in case.faults]
        started = time.monotonic()
        with client_process(command, broker, variables) as client:
            from_request = _wait(broker, client, case, rules, given, started + timeout_s)
            seconds = time.monotonic() - started
            exit_code = client.exit_code()
        copies = Counter(record.value for record in broker.topics.records(OUTPUT_TOPIC))
        missing = given.places.keys() - copies.keys()
        seen = Seen(
            expected=len(given.places),
            missing=len(missing),
            lost=len(missing & given.committed()),
            wrong=sum(count for value, count in copies.items() if value not in given.places),
            repeated=sum(count - 1 for value, count in copies.items() if value in given.places),
            is_committed=given.is_committed(),
            fired=_fired(broker, case, rules),
            seconds=seconds,
            exit_code=exit_code,
            last_error_line=_error_line(client.error_lines) if exit_code is not None else "",
            requests=tuple(_from_fault(list(broker.requests)[from_request:], case)),
        )
        return ClientRun(seen, software_name(broker) or _client_id(broker))


def _settings(case: ClientCase) -> dict[str, str]:
    replicas = {f"{topics}.replication.factor": str(case.brokers) for topics in ("default", "offsets.topic")}
    # Releases before 0.11 have no such setting and no such delay.
    delay = {} if case.kafka_version.startswith("0.10") else {"group.initial.rebalance.delay.ms": "0"}
    return replicas | delay


def _fired(broker: Broker, case: ClientCase, rules: Sequence[BrokerFault]) -> int:
    """Return how often what the case is about has happened; 1 for a case that happens in any event."""
    if case.named_error is not None:
        api, error = case.named_error
        return sum(error in request.error_names for request in broker.requests.where(api=api))
    return sum(rule.fired for rule in rules) if rules else 1


def _wait(
    broker: Broker, client: ClientProcess, case: ClientCase, rules: Sequence[BrokerFault], given: Input, deadline: float
) -> int:
    """Wait until all is copied; produce the second half of the records after the fault.

    Returns: the number of requests before the case's action; 0: it has none.
    """
    from_request = 0
    if case.action is not None and case.action in DURING_REQUEST:
        _wait_fired(client, rules, deadline)
        _act(broker, case.action)
    if not _wait_copied(broker, client, given, deadline):
        return from_request
    if case.action is not None and case.action not in DURING_REQUEST and broker.groups.members(GROUP):
        from_request = len(broker.requests)
        _act(broker, case.action)
        with suppress(TimeoutError):  # what follows shows that the member has not come back
            broker.groups.wait_stable(GROUP, timeout_s=FAULT_LIMIT_S)
    _wait_fired(client, rules, min(deadline, time.monotonic() + FAULT_LIMIT_S))
    given.produce_half()
    _wait_copied(broker, client, given, deadline)
    return from_request


def _wait_fired(client: ClientProcess, rules: Sequence[BrokerFault], deadline: float) -> None:
    """Wait until one of the rules has acted, if there are any."""
    while rules and not any(rule.fired for rule in rules):
        if time.monotonic() > deadline or client.exit_code() is not None:
            return
        time.sleep(LOOK_INTERVAL_S)


def _act(broker: Broker, action: Action) -> None:
    if action in ("rebalance", "commit-during-rebalance"):
        if broker.groups.members(GROUP):
            broker.groups.force_rebalance(GROUP)
    elif action == "expire-member":
        for member in broker.groups.members(GROUP):
            broker.groups.expire_member(GROUP, member_id=member.member_id)
    elif action == "move-coordinator":
        broker.cluster.move_coordinator(group=GROUP, loading_ms=LOADING_MS)
    else:
        for topic, partition in product((TOPIC, OUTPUT_TOPIC), range(PARTITIONS)):
            broker.cluster.move_leader(topic, partition)


def _wait_copied(broker: Broker, client: ClientProcess, given: Input, deadline: float) -> bool:
    """Wait until all records are copied and committed; return False if the client has ended, or at the deadline."""
    while time.monotonic() < deadline:
        written = {record.value for record in broker.topics.records(OUTPUT_TOPIC)}
        if given.places.keys() <= written and given.is_committed():
            return True
        if client.exit_code() is not None:
            return False
        time.sleep(LOOK_INTERVAL_S)
    return False


def _from_fault(requests: Sequence[LoggedRequest], case: ClientCase) -> Iterator[str]:
    """Yield the requests from the first one of the case's APIs on, a line each, equal neighbors once."""
    apis = {rule.get("api") for rule in case.faults} - {None}
    if case.named_error is not None:
        apis.add(case.named_error[0])
    if not apis and case.action is None:
        return
    first: LoggedRequest | None = None
    last, count = "", 0
    for request in requests:
        if first is None and apis and request.api not in apis:
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
