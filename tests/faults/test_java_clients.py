"""What Kafka's own client does when a rule acts on its requests: the producer, the consumer and the admin client of the
newest release, as Kafka's tools use them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kproto_server import Broker
from tests.clients.tools import CONSOLE_PRODUCER, GROUPS, VERIFIABLE_CONSUMER, ToolOutput, Tools, running_tools
from tests.network.raw_client import RawClient
from tests.network.requests import commit_offset, create_topic
from tests.oracle.cluster import NEWEST

pytestmark = pytest.mark.oracle

SETTINGS = {"num.partitions": 1, "default.replication.factor": 2, "offsets.topic.replication.factor": 2}


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with running_tools(NEWEST) as running:
        yield running


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.running(brokers=2, settings=SETTINGS) as running:
        with RawClient(running.bootstrap_servers) as client:
            create_topic(client, "orders")
        yield running


def produce(tools: Tools, broker: Broker, *properties: str) -> ToolOutput:
    words = [word for one in properties for word in ("--command-property", one)]
    return tools.run(
        CONSOLE_PRODUCER, "--bootstrap-server", broker.bootstrap_servers, "--topic", "orders", *words, stdin="1041\n"
    )


def records(broker: Broker) -> int:
    return broker._call(lambda server: server.state.cluster.topics["orders"].partitions[0].high_watermark)


@pytest.mark.parametrize(
    "rule",
    [
        {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "times": 2},
        {"api": "Produce", "error": "NOT_ENOUGH_REPLICAS", "times": 2},
        {"api": "Produce", "close": True, "times": 1},
        {"api": "Produce", "close": True, "when": "after", "times": 1},
        {"api": "Produce", "reset": True, "times": 1},
        {"api": "Produce", "truncate_bytes": 12, "times": 1},
        {"api": "Produce", "chunk_bytes": 5},
        {"api": "Produce", "corrupt": "length", "times": 1},
        {"api": "InitProducerId", "error": "COORDINATOR_LOAD_IN_PROGRESS", "times": 2},
        {"api": "Metadata", "error": "LEADER_NOT_AVAILABLE", "topic": "orders", "times": 2},
        {"leader": 2, "topic": "orders", "times": 1},
        {"max_versions": {"Produce": 7, "Metadata": 5}},
    ],
    ids=str,
)
def test_the_producer_delivers_the_record_once(rule: Any, tools: Tools, broker: Broker) -> None:
    broker.cluster.move_leader("orders", 0, 1)
    added = broker.faults.add(**rule)
    output = produce(tools, broker, "retry.backoff.ms=10")
    assert output.exit_code == 0
    assert records(broker) == 1, output
    assert added.fired >= (rule.get("times") or 1)


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        ({"api": "Produce", "error": "TOPIC_AUTHORIZATION_FAILED"}, "TopicAuthorizationException"),
        ({"api": "Produce", "error": "INVALID_RECORD"}, "InvalidRecordException"),
        ({"api": "Produce", "no_response": True}, "TimeoutException"),
        ({"api": "Produce", "delay_ms": 60_000}, "TimeoutException"),
        ({"api": "InitProducerId", "error": "CLUSTER_AUTHORIZATION_FAILED"}, "ClusterAuthorizationException"),
    ],
    ids=str,
)
def test_the_producer_reports_the_error(rule: Any, error: str, tools: Tools, broker: Broker) -> None:
    broker.faults.add(**rule)
    output = produce(tools, broker, "delivery.timeout.ms=1000", "request.timeout.ms=500", "linger.ms=0")
    assert error in output.err + output.out
    assert records(broker) == (1 if "delay_ms" in rule else 0)  # the record of a client that has given up is appended


def test_the_admin_client_finds_the_coordinator(tools: Tools, broker: Broker) -> None:
    with RawClient(broker.bootstrap_servers) as client:
        create_topic(client, "t")
        commit_offset(client, "billing")
    right = broker.cluster.coordinator(group="billing")
    assert right is not None
    with RawClient(broker.bootstrap_servers.split(",")[right - 1]) as client:
        commit_offset(client, "billing")
    broker.faults.add(coordinator=3 - right, group="billing", times=1)
    broker.faults.add(api="OffsetFetch", error="COORDINATOR_LOAD_IN_PROGRESS", group="billing", nth=2)
    described = tools.run(GROUPS, "--bootstrap-server", broker.bootstrap_servers, "--describe", "--group", "billing")
    assert " t " in described.out, described
    assert broker.requests.where(error="NOT_COORDINATOR")


def test_the_consumer_rejoins_and_commits(tools: Tools, broker: Broker) -> None:
    produce(tools, broker)
    rules = [
        broker.faults.add(api="JoinGroup", error="COORDINATOR_LOAD_IN_PROGRESS", times=1),
        broker.faults.add(api="SyncGroup", error="NOT_COORDINATOR", times=1),
        broker.faults.add(api="OffsetCommit", error="REQUEST_TIMED_OUT", times=1),
        broker.faults.add(api="Fetch", error="UNKNOWN_LEADER_EPOCH", times=1),
        broker.faults.add(api="Fetch", error="FENCED_LEADER_EPOCH", nth=2),
    ]
    output = tools.run(
        VERIFIABLE_CONSUMER, "--bootstrap-server", broker.bootstrap_servers, "--topic", "orders",
        "--group-id", "billing", "--max-messages", "1", "--reset-policy", "earliest", "--group-protocol", "classic",
    )  # fmt: skip
    assert '"name":"records_consumed"' in output.out, output
    assert broker.groups.committed("billing") == {("orders", 0): 1}
    assert [rule.fired for rule in rules[:4]] == [1, 1, 1, 1]
