"""Run a client under test in one case: a new broker, the client's process, and what was seen of it."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack, suppress
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.broker.broker import Broker
from kproto_server.client_process import client_process, software_name
from kproto_server.conformance.cases import HUGE_BATCH_KIB
from kproto_server.conformance.client_input import GROUP, PARTITIONS, TOPIC, Input
from kproto_server.conformance.verdict import Seen
from kproto_server.report.phrases import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kproto_server.broker.faults import BrokerFault
    from kproto_server.client_process import ClientProcess
    from kproto_server.conformance.cases import Action, ClientCase
    from kproto_server.observation.logged import LoggedRequest

OUTPUT_TOPIC = "conform-out"
INSTANCE_ID = "conform-1"
"""`group.instance.id` of a client that is replaced."""
FAULT_LIMIT_S = 8.0
"""How long a client that has copied the first records gets for the request that a case is about."""
ENDS_S = 3.0
"""How long a client gets to end with an error after another one has replaced it."""
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

    The client's environment has KAFKA_BOOTSTRAP_SERVERS, KPROTO_TOPIC, KPROTO_OUTPUT_TOPIC and KPROTO_GROUP, and
    KPROTO_GROUP_INSTANCE_ID in a case about static members. When the function returns, broker and client have ended.

    Raises:
        ClientNotStarted: the command cannot be executed.
    """
    variables = {"KPROTO_TOPIC": TOPIC, "KPROTO_OUTPUT_TOPIC": OUTPUT_TOPIC, "KPROTO_GROUP": GROUP}
    if case.action == "replace-member":
        variables["KPROTO_GROUP_INSTANCE_ID"] = INSTANCE_ID
    with Broker.running(kafka_version=case.kafka_version, settings=_settings(case), brokers=case.brokers) as broker:
        for topic in (TOPIC, OUTPUT_TOPIC):
            broker.topics.create(topic, partitions=PARTITIONS, configs=_configs(case))
        given = Input(broker, case)
        given.produce_half()
        rules = [broker.faults.add(**rule) for rule in case.faults]
        with ExitStack() as processes:
            run = _Run(
                broker, case, rules, given, lambda: processes.enter_context(client_process(command, broker, variables))
            )
            run.until_copied(timeout_s)
            seconds = time.monotonic() - run.started - run.replacing_s
            exit_code = run.client.exit_code()
        copies = Counter(record.value for record in broker.topics.records(OUTPUT_TOPIC))
        missing = given.places.keys() - copies.keys()
        seen = Seen(
            expected=len(given.places),
            missing=len(missing),
            lost=len(missing & given.committed()),
            wrong=sum(count for value, count in copies.items() if value not in given.places.keys() | given.truncated),
            repeated=sum(count - 1 for value, count in copies.items() if value in given.places),
            is_committed=given.is_committed(),
            fired=run.fired(),
            seconds=seconds,
            exit_code=exit_code,
            last_error_line=_error_line(run.client.error_lines) if exit_code is not None else "",
            requests=tuple(_from_fault(list(broker.requests)[run.from_request :], case)),
        )
        return ClientRun(seen, software_name(broker) or _client_id(broker))


def _configs(case: ClientCase) -> dict[str, int]:
    """Return the configs of the topics: the output's producer may put as many records in a batch as the input has."""
    return {"max.message.bytes": 2 * HUGE_BATCH_KIB * 1024} if case.batches == "huge" else {}


def _settings(case: ClientCase) -> dict[str, str]:
    replicas = {f"{topics}.replication.factor": str(case.brokers) for topics in ("default", "offsets.topic")}
    # Releases before 0.11 have no such setting and no such delay.
    delay = {} if case.kafka_version.startswith("0.10") else {"group.initial.rebalance.delay.ms": "0"}
    return replicas | delay


class _Run:
    """A client that runs in a case."""

    def __init__(
        self,
        broker: Broker,
        case: ClientCase,
        rules: Sequence[BrokerFault],
        given: Input,
        start: Callable[[], ClientProcess],
    ) -> None:
        """Start the client."""
        self._broker = broker
        self._case = case
        self._rules = rules
        self._given = given
        self._start = start
        self.started: float = time.monotonic()
        self.client: ClientProcess = start()
        """The process that has to copy; in a case in which it is replaced, the second one."""
        self.from_request: int = 0
        """The number of requests before the case's action; 0: it has none."""
        self.replacing_s: float = 0.0
        """How long the second process took to start and to replace the first one."""

    def fired(self) -> int:
        """Return how often what the case is about has happened; 1 for a case that happens in any event."""
        if self._case.named_error is not None:
            api, error = self._case.named_error
            requests = self._broker.requests if api is None else self._broker.requests.where(api=api)
            return sum(error in request.error_names for request in requests)
        return sum(rule.fired for rule in self._rules) if self._rules else 1

    def until_copied(self, timeout_s: float) -> None:
        """Wait until all is copied; produce the second half of the records after the fault."""
        deadline = self.started + timeout_s
        action = self._case.action
        if action is not None and action in DURING_REQUEST:
            self._wait_fired(deadline)
            self._act(action)
        if not self._wait_copied(deadline):
            return
        if action is not None and action not in DURING_REQUEST and self._broker.groups.members(GROUP):
            self.from_request = len(self._broker.requests)
            self._act(action)
            with suppress(TimeoutError):  # what follows shows that the member has not come back
                self._broker.groups.wait_stable(GROUP, timeout_s=FAULT_LIMIT_S)
        if self._rules:
            self._wait_fired(min(deadline, time.monotonic() + FAULT_LIMIT_S))
        self._given.produce_half()
        self._wait_copied(deadline)

    def _act(self, action: Action) -> None:
        broker = self._broker
        if action in ("rebalance", "commit-during-rebalance"):
            if broker.groups.members(GROUP):
                broker.groups.force_rebalance(GROUP)
        elif action == "expire-member":
            for member in broker.groups.members(GROUP):
                broker.groups.expire_member(GROUP, member_id=member.member_id)
        elif action == "move-coordinator":
            broker.cluster.move_coordinator(group=GROUP, loading_ms=LOADING_MS)
        elif action == "truncate":
            self._given.truncate()
        elif action == "replace-member":
            start = time.monotonic()
            replaced, self.client = self.client, self._start()
            self._wait_fired(start + FAULT_LIMIT_S)
            _wait_ended(replaced, time.monotonic() + ENDS_S)
            self.replacing_s = time.monotonic() - start
        else:
            for topic, partition in product((TOPIC, OUTPUT_TOPIC), range(PARTITIONS)):
                broker.cluster.move_leader(topic, partition)

    def _wait_fired(self, deadline: float) -> None:
        """Wait until what the case is about has happened."""
        while not self.fired():
            if time.monotonic() > deadline or self.client.exit_code() is not None:
                return
            time.sleep(LOOK_INTERVAL_S)

    def _wait_copied(self, deadline: float) -> bool:
        """Wait until all records are copied and committed; return False if the client has ended, or at the deadline."""
        while time.monotonic() < deadline:
            written = {record.value for record in self._broker.topics.records(OUTPUT_TOPIC)}
            if self._given.places.keys() <= written and self._given.is_committed():
                return True
            if self.client.exit_code() is not None:
                return False
            time.sleep(LOOK_INTERVAL_S)
        return False


def _wait_ended(client: ClientProcess, deadline: float) -> None:
    while client.exit_code() is None and time.monotonic() < deadline:
        time.sleep(LOOK_INTERVAL_S)


def _from_fault(requests: Sequence[LoggedRequest], case: ClientCase) -> Iterator[str]:
    """Yield the requests from the first one that the case is about, a line each, equal neighbors once."""
    apis = {rule.get("api") for rule in case.faults} - {None}
    api, error = case.named_error or (None, "")
    apis |= {api} - {None}
    if not apis and case.action is None:
        return

    def is_about(request: LoggedRequest) -> bool:
        if error and api is None:
            return error in request.error_names
        return not apis or request.api in apis

    first: LoggedRequest | None = None
    last, count = "", 0
    for request in requests:
        if first is None and not is_about(request):
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
    return plain((named or lines or [""])[-1].strip())


def _client_id(broker: Broker) -> str:
    return plain(next((client.client_id for client in broker.observations.snapshot().clients if client.client_id), ""))
