"""The timeline has the rebalances and commits of real consumers, of the classic protocol and of KIP-848."""

from __future__ import annotations

from contextlib import closing

import pytest
from confluent_kafka import Consumer, Producer

from kproto_server.control import timeline
from tests.control.client import commit, controlled


@pytest.mark.parametrize(
    ("protocol", "kinds"), [("classic", ["join", "sync", "leave"]), ("consumer", ["epoch", "leave"])]
)
def test_a_consumer_joins_commits_and_leaves(protocol: str, kinds: list[str]) -> None:
    with controlled(settings={"group.initial.rebalance.delay.ms": 0}) as (broker, client):
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("orders", b"1041")
        assert producer.flush(30) == 0
        config = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "billing",
            "client.id": "billing-1",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        with closing(Consumer(config)) as consumer:
            consumer.subscribe(["orders"])
            assert consumer.poll(30) is not None
            member_id = consumer.memberid()
            consumer.commit(asynchronous=False)
            group = client("GET", "/groups/billing").json
            assert [(one["member_id"], one["partitions"]) for one in group["members"]] == [
                (member_id, [{"topic": "orders", "partition": 0}])
            ]
            assert [(one["offset"], one["lag"], one["expires_ms"]) for one in group["offsets"]] == [(1, 0, None)]
        found = client("GET", "/timeline").json["events"]
        group = client("GET", "/groups/billing").json
        assert group["offsets"][0]["expires_ms"] > broker.clock.now_ms()
        assert group["members"] == []
    succeeded = [one for one in found if not one["error"]]
    assert [one["kind"] for one in succeeded if one["kind"] != "commit"] == kinds
    assert [one["request_count"] for one in succeeded if one["kind"] == "commit"] == [1]
    assert {(one["group_id"], one["client_id"]) for one in found} == {("billing", "billing-1")}
    assert {one["member_id"] for one in succeeded} == {member_id}
    assert all(one["until_ms"] >= one["time_ms"] for one in found)


def test_commits_that_follow_each_other_are_one_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "COMMITS_WITHIN_MS", 1000)
    with controlled(clock="manual") as (broker, client):
        for seconds in (0, 0, 5):
            broker.clock.advance(seconds=seconds)
            commit(broker)
        found = client("GET", "/timeline").json["events"]
        assert [one["request_count"] for one in found if not one["error"]] == [2, 1]
        assert client("GET", "/timeline", after=found[-1]["number"]).json == {"events": []}
        assert client("GET", "/groups/missing").status == 404
        assert client("GET", "/requests/99999").status == 404
