"""Each operation of the control API does what its function in Python does, and its description in OpenAPI is true.

Method. The example of each row of the table is sent to a live broker; the response has the schema of its row.
"""

from __future__ import annotations

import inspect
import json
from contextlib import ExitStack
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from kproto.messages.k02_list_offsets import ListOffsetsRequest
from kproto_server import Broker
from kproto_server.broker.acls import BrokerAcls
from kproto_server.broker.client_metrics import BrokerClientMetrics
from kproto_server.broker.clock import BrokerClock
from kproto_server.broker.cluster import BrokerCluster, BrokerDisk, BrokerNetwork
from kproto_server.broker.controls import BrokerControls
from kproto_server.broker.faults import BrokerFault, BrokerFaults
from kproto_server.broker.groups import BrokerGroups, BrokerHold
from kproto_server.broker.quotas import BrokerQuotas
from kproto_server.broker.requests import BrokerRequests
from kproto_server.broker.topics import BrokerTopics
from kproto_server.configuration.authorizers import STANDARD
from kproto_server.control.operation import Operation
from kproto_server.control.operations import OPERATIONS
from tests.broker.test_groups import consuming
from tests.control.client import Client, commit, controlled, quoted
from tests.network.raw_client import RawClient

WITHOUT_ROUTE = {
    "BrokerControls.bootstrap_servers": "in /info",
    "BrokerControls.client_variables": "queries.client_variables",
    "BrokerControls.restore": "snapshots.restore_snapshot",
    "BrokerControls.snapshot": "snapshots.take_snapshot",
    "BrokerGroups.commit": "queries.commit",
    "BrokerGroups.set_start_offsets": "queries.set_start_offsets",
    "BrokerGroups.wait_committed": "queries.wait_committed",
    "BrokerHold.release": "BrokerGroups.release_rebalance",
    "BrokerDisk.remove": "queries.remove_disk",
    "BrokerNetwork.remove": "queries.remove_network",
    "BrokerFault.fired": "in each fault rule",
    "BrokerFault.given": "in each fault rule",
    "BrokerFault.matched": "in each fault rule",
    "BrokerFault.number": "in each fault rule",
    "BrokerFault.remove": "queries.remove_fault",
    "BrokerFault.wait_fired": "queries.wait_fired",
    "BrokerFaults.load": "a file of the broker's machine: a test sends the rules",
    "BrokerRequests.begin": "called by all operations that are not passive",
    "BrokerRequests.dropped": "in /requests",
    "BrokerRequests.numbered": "queries.request",
    "BrokerRequests.wait": "queries.wait_requests",
    "BrokerRequests.where": "queries.requests",
    "BrokerTopics.produce": "records.produce",
    "BrokerTopics.records": "records.records",
    "BrokerTopics.wait_records": "records.wait_records",
}
"""Public methods that no row names, and where they are."""
CLASSES = (
    BrokerControls,
    BrokerAcls,
    BrokerClientMetrics,
    BrokerClock,
    BrokerCluster,
    BrokerDisk,
    BrokerNetwork,
    BrokerFault,
    BrokerFaults,
    BrokerGroups,
    BrokerHold,
    BrokerQuotas,
    BrokerRequests,
    BrokerTopics,
)
WITH_MEMBER = ("groups_wait_stable", "groups_force_rebalance", "groups_expire_member", "groups_freeze_heartbeats")
"""Operations on a group with members."""
RULE = {"api": "OffsetCommit", "group": "billing", "error": "NOT_COORDINATOR", "times": 1}


def test_http_can_what_python_can() -> None:
    """Method. Forms for coroutines (`..._async`) are those of Python alone."""
    functions = {one.function for one in OPERATIONS}
    public = {
        f"{cls.__name__}.{name}"
        for cls in CLASSES
        for name, member in vars(cls).items()
        if not name.startswith("_") and not name.endswith("_async") and member not in functions
        if inspect.isfunction(member) or isinstance(member, property)
    }
    assert public == WITHOUT_ROUTE.keys()


def test_each_name_and_route_is_there_once() -> None:
    names = [one.name for one in OPERATIONS]
    routes = [(one.method, one.path) for one in OPERATIONS]
    assert len(set(names)) == len(names)
    assert len(set(routes)) == len(routes)
    assert all(set(one.in_path) <= one.arguments.keys() for one in OPERATIONS)


def send_example(client: Client, operation: Operation) -> Any:
    example = dict(operation.example)
    path = operation.path
    for name in operation.in_path:
        path = path.replace("{" + name + "}", quoted(str(example.pop(name))))
    if operation.has_body:
        return client(operation.method, path, example)
    for name, value in example.items():
        example[name] = json.dumps(value) if isinstance(value, bool) else value
    return client(operation.method, path, **example)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_the_example_of_each_operation_works(operation: Operation) -> None:
    with ExitStack() as stack:
        settings: dict[str, Any] = {"default.replication.factor": 2, "group.initial.rebalance.delay.ms": 0}
        if operation.path == "/acls":
            settings |= {"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS"}
        tls = "auto" if operation.path.startswith("/tls/") else None
        broker, client = stack.enter_context(controlled(brokers=3, settings=settings, tls=tls))
        if operation.path.startswith("/faults/"):
            broker.faults.add(api="OffsetCommit", error="NOT_COORDINATOR", times=1)
        if operation.path.startswith("/brokers/"):
            client("POST", "/brokers", {})
        if tls is None:
            commit(broker)
        if operation.path.startswith("/topics/"):
            broker.topics.produce("orders", "1041")
        if operation.path.startswith("/snapshots/"):
            client("POST", "/snapshots")
        if operation.name == "groups_wait_held":
            broker.groups.hold_rebalance("billing")
            stack.enter_context(consuming(broker, "one"))
            stack.callback(broker.groups.release_rebalance, "billing")
        if operation.name in WITH_MEMBER:
            stack.enter_context(consuming(broker, "one"))
            broker.groups.wait_stable("billing", members=1)
        reply = send_example(client, operation)
        assert reply.status == operation.result.status, reply.body
        if operation.result.schema is not None:
            assert reply.headers["content-type"] == "application/json"
            Draft202012Validator(operation.result.schema).validate(reply.json)


def test_the_description_is_openapi() -> None:
    with controlled() as (_, client):
        reply = client("GET", "/openapi.json")
    OpenAPIV31SpecValidator(reply.json).validate()
    described = {(method.upper(), path) for path, methods in reply.json["paths"].items() for method in methods}
    assert described == {(one.method, one.path) for one in OPERATIONS}
    for methods in reply.json["paths"].values():
        for found in methods.values():
            assert found["summary"]
            for parameter in found.get("parameters", ()):
                if "example" in parameter:
                    Draft202012Validator(parameter["schema"]).validate(parameter["example"])
            if "requestBody" in found:
                content = found["requestBody"]["content"]["application/json"]
                Draft202012Validator(content["schema"]).validate(content["example"])


def test_what_http_changes_python_sees() -> None:
    with controlled(brokers=3, clock="manual") as (broker, client):
        commit(broker)
        assert client("GET", "/groups/billing/offsets").json == {
            "partitions": [{"topic": "orders", "partition": 0, "offset": 42}]
        }
        before_ms = broker.clock.now_ms()
        assert client("POST", "/clock/advance", {"days": 1, "seconds": 0.5}).status == 204
        assert broker.clock.now_ms() == before_ms + 86_400_500
        assert client("GET", "/clock").json == {"now_ms": broker.clock.now_ms()}
        assert client("POST", "/nodes/2/stop").status == 204
        assert [one["is_running"] for one in client("GET", "/nodes").json["nodes"]] == [True, False, True]
        assert client("POST", "/nodes/2/start").status == 204
        assert client("POST", "/reset").status == 204
        assert broker.groups.committed("billing") == {}
        assert client("GET", "/info").json["bootstrap_servers"] == broker.bootstrap_servers


def test_eight_days_pass_and_the_offset_is_gone() -> None:
    with controlled(clock="manual") as (broker, client):
        commit(broker)
        client("POST", "/clock/advance", {"days": 8})
        assert client("GET", "/groups/billing/offsets").json == {"partitions": []}


def test_a_fault_rule_is_added_counted_and_removed() -> None:
    with controlled() as (broker, client):
        added = client("POST", "/faults", RULE)
        assert (added.status, added.json["number"], added.json["rule"]) == (201, 1, RULE)
        commit(broker)
        assert client("POST", "/faults/1/wait-fired", {"count": 1}).json["fired"] == 1
        assert [one["fired"] for one in client("GET", "/faults").json["faults"]] == [1]
        found = client("GET", "/requests", api="OffsetCommit").json
        assert [one["errors"] for one in found["requests"]] == [["NOT_COORDINATOR"], []]
        assert found["requests"][1]["request"]["topics"][0]["partitions"][0]["committed_offset"] == 42
        assert client("GET", "/requests", error="NOT_COORDINATOR").json["count"] == 1
        assert client("DELETE", "/faults/1").status == 204
        assert client("GET", "/faults/1").status == 404
        assert client("GET", "/faults").json == {"faults": []}
        client("DELETE", "/requests")
        assert client("GET", "/requests").json["count"] == 0


def test_requests_come_in_pages() -> None:
    with controlled() as (broker, client):
        for number in range(5):
            commit(broker, f"group-{number}")
        count = len(broker.requests)
        numbers: list[int] = []
        after: int | None = 0
        while after is not None:
            page = client("GET", "/requests", after=after, limit=2, bodies="false").json
            assert page["count"] == count
            assert "request" not in page["requests"][0]
            numbers += [one["number"] for one in page["requests"]]
            after = page["next_after"]
        assert numbers == [one.number for one in broker.requests]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "detail"),
    [
        ("GET", "/nothing", None, 404, "there is nothing at /nothing: GET /openapi.json lists all"),
        ("DELETE", "/clock", None, 405, "use GET, not DELETE"),
        ("POST", "/clock/advance", {"weeks": 1}, 400, "POST /clock/advance has no argument 'weeks'; it has: days"),
        ("POST", "/clock/advance", {"days": "1"}, 400, "days is a number, not '1'"),
        ("POST", "/clock/advance", {"days": True}, 400, "days is a number, not true"),
        ("POST", "/clock/advance", {"days": -1}, 400, "the clock can't go back by 86400000 ms"),
        ("POST", "/clock/advance?days=1", None, 400, "the arguments are in the body"),
        ("POST", "/nodes/7/stop", None, 400, "node 7 does not exist: node 1 is running"),
        ("POST", "/nodes/x/stop", None, 400, "node_id is an integer, not 'x'"),
        ("POST", "/nodes/1/stop", {"node_id": 1}, 400, "POST /nodes/{node_id}/stop has no argument 'node_id'"),
        ("POST", "/faults", {"api": "Nothing", "error": "NONE"}, 400, "no API 'Nothing'"),
        ("POST", "/faults", {"api": "Fetch", "when": "never", "close": True}, 400, "when is one of before, after"),
        ("GET", "/requests?error=NO_SUCH_ERROR", None, 400, "NO_SUCH_ERROR"),
        ("GET", "/requests?limit=0", None, 400, "limit is a number from 1 to 1000, not 0"),
        ("GET", "/requests?api=Fetch&api=Fetch", None, 400, "the parameter 'api' is given more than once"),
        ("GET", "/requests?%zz", None, 400, "the query is not name=value"),
        ("GET", "/report?target=9.9", None, 400, "9.9"),
        ("POST", "/groups/none/wait-stable", {"timeout_s": 0.01}, 504, "group 'none' is Dead with 0 members"),
        ("POST", "/groups/none/wait-stable", {"timeout_s": 301}, 400, "timeout_s is a number from 0 to 300, not 301"),
        ("POST", "/requests/wait", {"count": 9, "timeout_s": 0}, 504, "0 requests with anything, not 9"),
        ("POST", "/requests/wait", {"count": -9}, 400, "count is a number from 0 on"),
    ],
)
def test_a_wrong_call_gets_problem_details(method: str, path: str, body: object, status: int, detail: str) -> None:
    with controlled() as (_, client):
        reply = client(method, path, body)
        assert (reply.status, reply.headers["content-type"]) == (status, "application/problem+json")
        assert reply.json["status"] == status
        assert reply.json["type"] == "about:blank"
        assert detail in reply.json["detail"]


def test_a_broker_without_request_log_says_so() -> None:
    with controlled(requests_kept=0) as (_, client):
        reply = client("GET", "/requests")
    assert reply.status == 409
    assert "requests_kept=0" in reply.json["detail"]


def ask_what_4_0_refuses(broker: Broker) -> None:
    with RawClient(broker.bootstrap_servers) as client:
        client.ask(ListOffsetsRequest(replica_id=-1, topics=()), 0)


def test_the_report_has_three_formats() -> None:
    with controlled() as (broker, client):
        ask_what_4_0_refuses(broker)
        reply = client("GET", "/report", target="4.0")
        assert reply.json["target"] == "4.0"
        assert reply.json["would_break"]
        assert client("GET", "/report", format="md").body.startswith(b"#")
        assert b"<html" in client("GET", "/report", format="html").body


def test_metrics_count_requests_and_those_that_a_release_refuses() -> None:
    refused = 'deprecated_requests_total{client="raw",software="",api="ListOffsets",version="0",target="4.0"} 1\n'
    with controlled() as (broker, client):
        commit(broker)
        ask_what_4_0_refuses(broker)
        text = client("GET", "/metrics", target="4.0").body.decode()
        older = client("GET", "/metrics", target="3.9").body.decode()
    assert 'kafka_network_requestmetrics_requests_total{request="ListOffsets",version="0"} 1\n' in text
    assert "kafka_coordinator_group_groupmetadatamanager_numgroups 1\n" in text
    assert "kafka_coordinator_group_groupmetadatamanager_numoffsets 1\n" in text
    assert refused in text
    assert "deprecated_requests_total{" not in older
