"""Snapshots over HTTP: the broker keeps few of them, also when it is reset."""

from __future__ import annotations

from kproto_server.control.snapshots import SNAPSHOTS_MAX
from tests.control.client import commit, controlled


def test_a_snapshot_outlasts_a_reset() -> None:
    with controlled() as (broker, client):
        commit(broker, offset=42)
        taken = client("POST", "/snapshots")
        assert (taken.status, taken.json["number"]) == (201, 1)
        assert taken.json["text"].endswith("topics: 1, records: 0, groups: 1>")
        client("POST", "/reset")
        assert broker.groups.committed("billing") == {}
        before = broker.bootstrap_servers
        assert client("POST", "/snapshots/1/restore", {"new_ports": True}).status == 204
        assert broker.groups.committed("billing") == {("orders", 0): 42}
        assert broker.bootstrap_servers != before
        assert client("DELETE", "/snapshots/1").status == 204
        refused = client("POST", "/snapshots/1/restore")
        assert (refused.status, refused.json["detail"]) == (404, "there is no snapshot 1")


def test_the_broker_keeps_few_snapshots() -> None:
    with controlled() as (_, client):
        for number in range(1, SNAPSHOTS_MAX + 1):
            assert client("POST", "/snapshots").json["number"] == number
        refused = client("POST", "/snapshots")
        assert refused.status == 409
        assert "DELETE one of them" in refused.json["detail"]
        client("DELETE", "/snapshots/1")
        assert client("POST", "/snapshots").status == 201
