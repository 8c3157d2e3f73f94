"""The control API of `kproto proxy`: fault rules, requests, the report and metrics of the clients of a cluster.

Method. The proxy is a process in front of a broker of kproto; a client without a library sends the requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from kproto.codes import ErrorCode
from kproto.messages.k02_list_offsets import ListOffsetsRequest
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto_server.broker.broker import Broker
from kproto_server.commandline import cli
from kproto_server.control.operation import Operation
from kproto_server.proxy.control import PROXY_OPERATIONS, SAME
from tests.network.raw_client import RawClient
from tests.proxy.proxies import RunningProxy, proxy_of
from tests.waiting import wait_until

HEARTBEAT = HeartbeatRequest(group_id="billing", generation_id=1, member_id="m")
RULE = {"api": "Heartbeat", "error": "REBALANCE_IN_PROGRESS", "times": 1}


class Reply(NamedTuple):
    status: int
    content_type: str
    body: str
    refresh: str | None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Controlled(NamedTuple):
    proxy: RunningProxy
    host: str

    def __call__(self, method: str, path: str, body: Any = None) -> Reply:
        connection = HTTPConnection(self.host, timeout=60)
        given = {} if body is None else {"Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), given)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return Reply(response.status, response.headers["Content-Type"], text, response.headers["Refresh"])


@contextmanager
def controlled(folder: Path, *words: str) -> Iterator[Controlled]:
    file = folder / "control.txt"
    with (
        Broker.running(kafka_version="3.9") as broker,
        proxy_of(broker.bootstrap_servers, folder, "--control-port", "0", "--control-file", str(file), *words) as proxy,
    ):
        wait_until(file.exists, "the control file")
        yield Controlled(proxy, file.read_text().splitlines()[0].removeprefix("http://"))
        proxy.end()
    assert not file.exists()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controlled]:
    with controlled(tmp_path_factory.mktemp("control")) as found:
        yield found


def test_rules_come_and_go_over_http(running: Controlled) -> None:
    added = running("POST", "/faults", RULE)
    assert added.status == 201
    path = f"/faults/{added.json['number']}"
    with RawClient(running.proxy.address, client_id="billing") as client:
        assert client.ask(HEARTBEAT, 4).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        assert running("GET", path).json["fired"] == 1
        assert running("POST", f"{path}/wait-fired", {"count": 1, "timeout_s": 5}).status == 200
        assert running("DELETE", "/faults").status == 204
        assert client.ask(HEARTBEAT, 4).error_code == ErrorCode.NOT_COORDINATOR  # no group has one yet
        found = running("GET", "/requests?api=Heartbeat&client_id=billing").json["requests"]
    assert [one["errors"] for one in found] == [["REBALANCE_IN_PROGRESS"], ["NOT_COORDINATOR"]]
    assert [one["request"]["group_id"] for one in found] == ["billing", "billing"]
    assert {one["node_id"] for one in found} == {-1}


def test_a_rule_without_a_meaning_is_refused_by_name(running: Controlled) -> None:
    refused = running("POST", "/faults", {"stale": True})
    assert refused.status == 400
    assert refused.json["detail"].startswith("stale has no meaning in a proxy: ")


def test_the_report_is_live(running: Controlled) -> None:
    with RawClient(running.proxy.address, client_id="reported") as client:
        client.ask(ListOffsetsRequest(replica_id=-1, topics=()), 0)
        (found,) = [
            one for one in running("GET", "/report?target=4.0").json["clients"] if one["client_id"] == "reported"
        ]
        assert [(row["api"], row["api_version"], row["verdict"]) for row in found["requests"]] == [
            ("ListOffsets", 0, "breaks")
        ]
        page = running("GET", "/")
        assert (page.status, page.content_type, page.refresh) == (200, "text/html; charset=utf-8", "5")
        assert "reported" in page.body
        metrics = running("GET", "/metrics?target=4.0").body
        assert 'deprecated_requests_total{client="reported"' in metrics
        assert "kafka_server_socket_server_metrics_connection_count 1\n" in metrics
        info = running("GET", "/info").json
        assert (info["kafka_version"], info["connections"], info["bootstrap_servers"]) == (
            "3.9", 1, running.proxy.address,
        )  # fmt: skip


@pytest.mark.parametrize("operation", PROXY_OPERATIONS, ids=lambda one: one.name)
def test_the_example_of_each_operation_works(operation: Operation, running: Controlled) -> None:
    running("DELETE", "/faults")
    path, example = operation.path, dict(operation.example)
    if "{number}" in path:
        number = running("POST", "/faults", RULE).json["number"]
        with RawClient(running.proxy.address) as client:
            client.ask(HEARTBEAT, 4)
            oldest = running("GET", "/requests").json["requests"][0]["number"]
        example.pop("number")
        path = path.replace("{number}", str(number if path.startswith("/faults") else oldest))
    if operation.path == "/requests/wait":
        example |= {"count": 0}
    if operation.has_body:
        reply = running(operation.method, path, example)
    else:
        query = "&".join(f"{name}={value}" for name, value in example.items())
        reply = running(operation.method, f"{path}?{query}" if query else path)
    assert reply.status == operation.result.status, reply.body
    if operation.result.schema is not None:
        Draft202012Validator(operation.result.schema).validate(reply.json)


def test_the_description_lists_what_makes_sense_in_a_proxy_only(running: Controlled) -> None:
    described = running("GET", "/openapi.json").json
    OpenAPIV31SpecValidator(described).validate()
    assert {(method.upper(), path) for path, methods in described["paths"].items() for method in methods} == {
        (one.method, one.path) for one in PROXY_OPERATIONS
    }
    for path in ("/clock", "/nodes", "/topics", "/groups", "/brokers", "/network"):
        assert running("GET", path).status == 404
    assert {one.function for one in PROXY_OPERATIONS} >= SAME


def test_a_control_file_needs_a_control_port(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(("proxy", "--upstream", "b:1", "--control-file", "f")) == 2
    assert capsys.readouterr().err.startswith("kproto proxy: --control-file needs a control port: ")
