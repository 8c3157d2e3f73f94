"""`kproto proxy` in front of brokers of kproto: clients stay on it, and it counts what the brokers count.

Method. The proxy is a process. Real clients connect to it, and what its report has is compared with what the brokers
behind it have observed: a request that came past the proxy would be in one of both only.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kproto.messages.k03_metadata import MetadataRequest
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto_server.broker.broker import Broker
from kproto_server.observation.observed import Snapshot
from kproto_server.releases.kafka_version import KafkaVersion
from tests.audit.recorded import program
from tests.commandline.commands import LIMIT_S
from tests.network.raw_client import RawClient
from tests.proxy.proxies import proxy_of

PROBE = "kproto-proxy"
"""The client id of the proxy's own request."""
FETCH = 1
"""Not counted: a broker closes the connection of a client that has ended, maybe before it reads the last Fetch."""


def counts(snapshot: Snapshot) -> dict[str, Any]:
    return {
        client.client_id: (
            client.software_name,
            client.negotiates,
            [(row.api_key, row.api_version, row.api_key == FETCH or row.count) for row in client.requests],
            sorted((row.api_key, row.api_version, row.error_code, row.count) for row in client.errors),
            [(row.layout, row.count, row.overrides) for row in client.commits],
        )
        for client in snapshot.clients
        if client.client_id != PROBE
    }


def reported(report: dict[str, Any]) -> dict[str, Any]:
    return {
        client["client_id"]: (
            client["software_name"] or "",
            client["negotiates"],
            [
                (row["api_key"], row["api_version"], row["api_key"] == FETCH or row["count"])
                for row in client["requests"]
            ],
            sorted((row["api_key"], row["api_version"], row["error_code"], row["count"]) for row in client["errors"]),
            [(row["layout"], row["count"], row["overrides"]) for row in client["offset_commits"]],
        )
        for client in report["clients"]
    }


@pytest.mark.parametrize("release", ["2.0", "4.4"])
def test_the_proxy_counts_what_the_brokers_count(release: str, tmp_path: Path) -> None:
    with (
        Broker.running(kafka_version=release, brokers=3) as broker,
        proxy_of(broker.bootstrap_servers, tmp_path) as proxy,
    ):
        assert proxy.cluster.endswith(f", Kafka {release}")
        variables = os.environ | {"KAFKA_BOOTSTRAP_SERVERS": proxy.address}
        subprocess.run(program(release), env=variables, timeout=LIMIT_S, check=True)
        report = proxy.end()
        seen = counts(broker.observations.snapshot())
    found = reported(report)
    # The report leaves MEMBER_ID_REQUIRED out, which every new member receives.
    for row in seen.values():
        row[3][:] = [error for error in row[3] if error[2] != 79]
    assert found == seen
    assert len(found) == 5
    assert report["kafka_version"] == release


def test_a_broker_that_ends_ends_its_connections_only(tmp_path: Path) -> None:
    with (
        Broker.running(brokers=2) as broker,
        proxy_of(broker.bootstrap_servers, tmp_path) as proxy,
        RawClient(proxy.address) as first,
    ):
        brokers = {one.node_id: f"{one.host}:{one.port}" for one in first.ask(MetadataRequest(topics=()), 9).brokers}
        assert brokers[1] == proxy.address
        with RawClient(brokers[2]) as second:
            second.ask(ApiVersionsRequest(), 0)
            broker.stop_node(2)
            assert second.socket.recv(1) == b""
        with RawClient(brokers[2]) as third:
            assert third.socket.recv(1) == b""
        with RawClient(brokers[2]) as fourth:
            assert fourth.socket.recv(1) == b""
        first.ask(ApiVersionsRequest(), 0)
        broker.start_node(2)
        with RawClient(brokers[2]) as fifth:
            fifth.ask(ApiVersionsRequest(), 0)
        report = proxy.end()
    lines = proxy.errors.splitlines()
    assert sum("can't connect to" in line for line in lines) == 1
    assert sum("can be reached again" in line for line in lines) == 1
    assert sum("closed the connection: it may have ended" in line for line in lines) == 1
    assert report["protocol_errors"] == 0


def test_a_request_that_the_cluster_does_not_serve_is_a_protocol_error(tmp_path: Path) -> None:
    with (
        Broker.running(kafka_version="4.4") as broker,
        proxy_of(broker.bootstrap_servers, tmp_path, "--fail-on-protocol-error") as proxy,
    ):
        with RawClient(proxy.address, client_id="old") as client:
            client.send((MetadataRequest(topics=()), 0), (MetadataRequest(topics=()), 0))
            client.socket.sendall(b"\0\0\0\x11\0\2\0\0\0\0\0\3\0\3old\xff\xff\xff\xff")  # ListOffsets v0
            client.read_frame()
            client.read_frame()
            assert client.socket.recv(1) == b""
        report = proxy.end(exit_code=3)
    (old,) = report["clients"]
    assert [row["reason"] for row in old["closed"]] == ["ListOffsets v0 is not served by the cluster"]
    assert report["would_break"]


@pytest.mark.parametrize("release", ["0.9", "latest"])
def test_the_release_may_be_given(release: str, tmp_path: Path) -> None:
    name = KafkaVersion.named(release).name
    with (
        Broker.running(kafka_version=release) as broker,
        proxy_of(broker.bootstrap_servers, tmp_path, "--kafka-version", release) as proxy,
    ):
        assert proxy.cluster.endswith(f", Kafka {name}")
        with RawClient(proxy.address) as client:
            (only,) = client.ask(MetadataRequest(topics=()), 0).brokers
        assert f"{only.host}:{only.port}" == proxy.address
        assert proxy.end()["kafka_version"] == name
