"""Topics, records and groups over HTTP: what is special there to JSON."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from tests.broker.test_groups import consuming
from tests.control.client import controlled

RECORDS = "/topics/orders/records"
BYTES = b64encode(b"\xff\x00").decode()


def test_what_is_no_text_is_in_base64() -> None:
    records: list[dict[str, Any]] = [
        {"key": "é", "value_base64": BYTES, "headers": [{"name": "to", "value": "alice"}, {"name": "n"}]},
        {"value": None, "timestamp_ms": 5, "headers": [{"name": "b", "value_base64": BYTES}], "partition": 0},
    ]
    with controlled() as (broker, client):
        made = client("POST", RECORDS, {"records": records, "transaction": "commit"})
        assert (made.status, made.json) == (201, {"records": [{"partition": 0, "offset": number} for number in (0, 1)]})
        first, second = client("GET", RECORDS).json["records"]
        assert (first["key"], first["value"], first["value_base64"]) == ("é", None, BYTES)
        assert first["headers"] == [{"name": "to", "value": "alice"}, {"name": "n", "value": None}]
        assert second["headers"] == [{"name": "b", "value": None, "value_base64": BYTES}]
        assert (second["key"], second["value"], second["timestamp_ms"]) == (None, None, 5)
        assert first["is_transactional"]
        assert [one.value for one in broker.topics.records("orders")] == [b"\xff\x00", None]
        found = client("GET", RECORDS, control="true", newest="true", limit=1)
        assert [one["control"] for one in found.json["records"]] == ["commit"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "error", "detail"),
    [
        ("GET", "/topics/invoices", None, 404, "UNKNOWN_TOPIC_OR_PARTITION", "topic 'invoices': "),
        ("POST", "/topics/orders", None, 409, "TOPIC_ALREADY_EXISTS", "Topic 'orders' already exists."),
        ("POST", "/topics/a%2Fb", {}, 409, "INVALID_TOPIC_EXCEPTION", "'a/b'"),
        ("POST", "/topics/a", {"configs": {"retention.ms": []}}, 400, None, "configs.retention.ms is a string or an"),
        ("POST", "/topics/a", {"partitions": 2**31}, 400, None, "partitions is a number from 0 to 2147483647"),
        ("POST", RECORDS, {"records": [{"value": 1}]}, 400, None, "records[0].value is a string or null"),
        ("POST", RECORDS, {"records": [{"text": ""}]}, 400, None, "records[0] has no 'text'; it has: key"),
        ("POST", RECORDS, {"records": [{"value_base64": "?"}]}, 400, None, "value_base64 is bytes in"),
        ("POST", RECORDS, {"records": 1}, 400, None, "records is an array, not 1"),
        ("POST", RECORDS, {"records": [], "transaction": "x"}, 400, None, "commit, abort, open, not 'x'"),
        ("GET", "/topics/orders/records?partition=7", None, 404, "UNKNOWN_TOPIC_OR_PARTITION", "partitions 0 to 0"),
        ("GET", "/topics/orders/records?isolation_level=x", None, 400, None, "read_committed, not 'x'"),
        ("POST", "/topics/orders/wait-records", {"count": 2, "timeout_s": 0}, 504, None, "has 1 records, not 2; the"),
        ("POST", "/topics/orders/delete-records", {"before_offset": 2}, 409, "OFFSET_OUT_OF_RANGE", "orders-0: "),
        ("POST", "/groups/billing/offsets", {"partitions": [{"topic": "a"}]}, 400, None, "[0] needs partition"),
        ("POST", "/groups/none/force-rebalance", None, 404, "GROUP_ID_NOT_FOUND", "there is no such group"),
        ("POST", "/groups/none/wait-state", {"state": "Calm"}, 400, None, "state is one of Empty, PreparingRebalance"),
        ("POST", "/groups/none/hold-rebalance", {"at": "leave"}, 400, None, "at is one of join, sync, not 'leave'"),
    ],
)  # fmt: skip
def test_a_wrong_call_gets_problem_details(
    method: str, path: str, body: object, status: int, error: str | None, detail: str
) -> None:
    with controlled() as (broker, client):
        broker.topics.produce("orders", "1041")
        reply = client(method, path, body)
        assert (reply.status, reply.headers["content-type"]) == (status, "application/problem+json")
        assert reply.json.get("error") == error
        assert detail in reply.json["detail"]


def test_large_responses_end_early() -> None:
    with controlled() as (broker, client):
        broker.topics.create("orders", configs={"max.message.bytes": 5 << 20})
        broker.topics.produce("orders", records=[bytes([65 + number]) * (3 << 20) for number in range(2)])
        oldest = client("GET", RECORDS).json["records"]
        newest = client("GET", RECORDS, newest="true").json["records"]
        assert [one["offset"] for one in oldest] == [0]
        assert [one["offset"] for one in newest] == [1]


def test_a_rebalance_is_held_and_heartbeats_are_frozen() -> None:
    settings = {"group.initial.rebalance.delay.ms": 0, "num.partitions": 2}
    with controlled(clock="manual", settings=settings) as (broker, client):
        broker.topics.create("orders")
        client("POST", "/groups/billing/hold-rebalance", {"at": "sync"})
        with consuming(broker, "one"):
            assert client("POST", "/groups/billing/wait-state", {"state": "CompletingRebalance"}).status == 204
            assert client("POST", "/groups/billing/release-rebalance").status == 204
            assert client("POST", "/groups/billing/wait-stable", {"members": 1, "partitions": 2}).status == 204
            frozen = client("POST", "/groups/billing/freeze-heartbeats", {"client_id": "one"})
            assert frozen.status == 201
            assert frozen.json["rule"]["freeze"]
            client("POST", f"/faults/{frozen.json['number']}/wait-fired", {"count": 1})
            client("POST", "/clock/advance", {"minutes": 1})
            assert client("POST", "/groups/billing/wait-empty").status == 204
            assert client("DELETE", f"/faults/{frozen.json['number']}").status == 204
            assert client("POST", "/groups/billing/wait-stable", {"members": 1, "partitions": 2}).status == 204
