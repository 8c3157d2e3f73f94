"""Which requests a rule acts on, with a broker in memory and its virtual clock."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.testing import ConnectedPair, InMemoryBroker
from tests.coordinator.broker_state import commit_request

ERROR = {"error": "REQUEST_TIMED_OUT"}
RECORDS = build_record_batch([Record(None, b"r")])


@pytest.fixture
def broker() -> InMemoryBroker:
    return InMemoryBroker(
        topics={"orders": 4, "other": 4}, brokers=2, settings={"offsets.topic.replication.factor": "1"}
    )


def heartbeat(client: ConnectedPair, group: str = "g", member: str = "m", version: int = 3) -> int:
    request = HeartbeatRequest(group_id=group, generation_id=1, member_id=member)
    return int(client.ask(request, version).error_code)  # type: ignore[attr-defined]


def is_hit(code: int) -> bool:
    return code == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize(
    ("conditions", "meets", "does_not"),
    [
        ({"group": "g"}, {}, {"group": "h"}),
        ({"member": "m"}, {}, {"member": "n"}),
        ({"versions": 3}, {}, {"version": 2}),
        ({"versions": "1-2"}, {"version": 2}, {"version": 3}),
        ({"versions": "3-"}, {"version": 4}, {"version": 2}),
    ],
)
def test_conditions_on_a_request(
    conditions: dict[str, Any], meets: dict[str, Any], does_not: dict[str, Any], broker: InMemoryBroker
) -> None:
    rule = broker.faults.add({"api": "Heartbeat", **conditions, **ERROR})
    client = broker.connect()
    assert is_hit(heartbeat(client, **meets))
    assert not is_hit(heartbeat(client, **does_not))
    assert (rule.matched, rule.fired) == (1, 1)


def test_conditions_on_the_client_and_the_node(broker: InMemoryBroker) -> None:
    named = ApiVersionsRequest(client_software_name="mine", client_software_version="1.0")
    mine, other = broker.connect("mine", node_id=2), broker.connect("other", node_id=1)
    mine.ask(named, 3)
    for condition in ({"client_id": "mine"}, {"node_id": 2}, {"software_name": "mine"}, {"software_version": "1.0"}):
        rule = broker.faults.add({"api": "Heartbeat", **condition, **ERROR})
        assert is_hit(heartbeat(mine)), condition
        assert not is_hit(heartbeat(other)), condition
        broker.faults.remove(rule)
    broker.faults.add({"api": "ApiVersions", "software_name": "mine", **ERROR})
    assert is_hit(broker.connect().ask(named, 3).error_code)  # type: ignore[attr-defined]


def test_a_rule_without_api_is_about_all(broker: InMemoryBroker) -> None:
    rule = broker.faults.add({"client_id": "mine", **ERROR})
    client = broker.connect("mine")
    assert is_hit(heartbeat(client))
    assert is_hit(client.ask(FindCoordinatorRequest(key="g"), 0).error_code)  # type: ignore[attr-defined]
    assert rule.fired == 2


def fetched(client: ConnectedPair, version: int = 11) -> Any:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = (FetchTopic(topic="orders", partitions=(partition,)),)
    return client.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), version)


def test_a_rule_without_api_is_about_the_responses_that_its_action_can_change(broker: InMemoryBroker) -> None:
    rule = broker.faults.add({"null": "records", "times": 1})
    behind = broker.faults.add({"client_id": "mine", **ERROR})
    client = broker.connect("mine")
    assert is_hit(heartbeat(client))
    assert (rule.matched, behind.fired) == (0, 1)
    assert fetched(client).responses[0].partitions[0].records is None
    assert rule.fired == 1
    assert is_hit(fetched(client).error_code)


@pytest.mark.parametrize(
    ("rule", "version"), [({"unknown_tags": True}, 3), ({"error": "NOT_COORDINATOR", "place": "items"}, 2)]
)
def test_a_version_whose_response_has_no_room_is_not_counted(
    rule: dict[str, Any], version: int, broker: InMemoryBroker
) -> None:
    added = broker.faults.add({**rule, "times": 1})
    heartbeat(broker.connect(), version=version)
    assert (added.matched, added.fired) == (0, 0)


@pytest.mark.parametrize(
    ("counts", "hits"),
    [({"nth": 3}, [3]), ({"nth": 3, "times": 2}, [3, 4]), ({"times": 2}, [1, 2]), ({}, [1, 2, 3, 4, 5, 6])],
)
def test_counts(counts: dict[str, int], hits: list[int], broker: InMemoryBroker) -> None:
    rule = broker.faults.add({"api": "Heartbeat", **counts, **ERROR})
    client = broker.connect()
    assert [number for number in range(1, 7) if is_hit(heartbeat(client))] == hits
    assert rule.fired == len(hits)


def test_probability_is_the_same_in_each_run() -> None:
    def hits(seed: int) -> list[bool]:
        broker = InMemoryBroker()
        broker.faults.add({"api": "Heartbeat", "probability": 0.5, "seed": seed, **ERROR})
        client = broker.connect()
        return [is_hit(heartbeat(client)) for _ in range(64)]

    assert hits(1) == hits(1)
    assert hits(1) != hits(2)
    assert 16 < sum(hits(1)) < 48


def test_a_time_window_on_the_brokers_clock(broker: InMemoryBroker) -> None:
    broker.faults.add({"api": "Heartbeat", "after_ms": 1000, "for_ms": 500, **ERROR})
    client = broker.connect()
    seen = []
    for _ in range(5):
        seen.append(is_hit(heartbeat(client)))
        broker.advance(milliseconds=400)
    assert seen == [False, False, False, True, False]  # at 0, 400, 800, 1200, 1600 ms


def test_the_oldest_rule_that_acts_is_the_only_one(broker: InMemoryBroker) -> None:
    first = broker.faults.add({"api": "Heartbeat", "times": 1, **ERROR})
    second = broker.faults.add({"api": "Heartbeat", "error": "GROUP_AUTHORIZATION_FAILED"})
    client = broker.connect()
    assert [heartbeat(client), heartbeat(client)] == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.GROUP_AUTHORIZATION_FAILED]
    broker.faults.remove(second)
    assert heartbeat(client) not in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert (first.fired, second.fired) == (1, 1)


def test_a_broker_whose_rules_have_ended_is_as_before(broker: InMemoryBroker) -> None:
    endpoints, keys = broker.dispatcher.endpoints, broker.dispatcher.sync_sharing_keys
    rule = broker.faults.add({"api": "OffsetCommit", "times": 1, "error": "NOT_COORDINATOR"})
    assert broker.dispatcher.endpoints is not endpoints
    assert broker.dispatcher.sync_sharing_keys == ()
    broker.connect().ask(commit_request("g", {"orders": {0: 1}}), 2)
    assert rule.is_exhausted
    assert broker.dispatcher.endpoints is endpoints
    assert broker.dispatcher.sync_sharing_keys == keys


def test_a_commit_that_repeats_another_one_meets_a_new_rule(broker: InMemoryBroker) -> None:
    for _ in range(2):
        broker.connect().ask(FindCoordinatorRequest(key="g"), 0)
    coordinator = broker.state.cluster.coordinator_of("g")
    assert coordinator is not None
    client = broker.connect(node_id=coordinator.node_id)
    for offset in range(4):
        client.ask(commit_request("g", {"orders": {0: offset}}), 2)
    assert broker.dispatcher.cached_commits is not None
    with_rule = broker.faults.add({"api": "OffsetCommit", "error": "NOT_COORDINATOR"})
    response: Any = client.ask(commit_request("g", {"orders": {0: 9}}), 2)
    assert response.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
    assert with_rule.fired == 1
    broker.faults.clear()
    response = client.ask(commit_request("g", {"orders": {0: 9}}), 2)
    assert response.topics[0].partitions[0].error_code == 0


# An error for some of the items.


def produce(**partitions: list[int]) -> ProduceRequest:
    topics = tuple(
        TopicProduceData(
            name=name, partition_data=tuple(PartitionProduceData(index=index, records=RECORDS) for index in indexes)
        )
        for name, indexes in partitions.items()
    )
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)


def produced(response: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.name, one.index): one.error_code for topic in response.responses for one in topic.partition_responses
    }


def test_an_error_of_one_partition_leaves_the_others_alone(broker: InMemoryBroker) -> None:
    for topic in broker.state.cluster.topics.values():
        for partition in topic.partitions:
            broker.state.cluster.lead(partition, 1)
    broker.faults.add({"api": "Produce", "topic": "orders", "partition": 1, "error": "NOT_LEADER_OR_FOLLOWER"})
    response = broker.connect().ask(produce(orders=[0, 1], other=[1]), 7)
    assert produced(response) == {("orders", 0): 0, ("orders", 1): ErrorCode.NOT_LEADER_OR_FOLLOWER, ("other", 1): 0}
    ends = {
        name: [one.high_watermark for one in topic.partitions] for name, topic in broker.state.cluster.topics.items()
    }
    assert ends == {"orders": [1, 0, 0, 0], "other": [0, 1, 0, 0]}


def test_an_error_after_the_effect(broker: InMemoryBroker) -> None:
    broker.state.cluster.lead(broker.state.cluster.topics["orders"].partitions[0], 1)
    broker.faults.add({"api": "Produce", "error": "REQUEST_TIMED_OUT", "when": "after"})
    response = broker.connect().ask(produce(orders=[0]), 7)
    assert produced(response) == {("orders", 0): ErrorCode.REQUEST_TIMED_OUT}
    assert broker.state.cluster.topics["orders"].partitions[0].high_watermark == 1


def fetch(session_id: int, epoch: int, *partitions: int) -> FetchRequest:
    named = tuple(FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in partitions)
    topics = (FetchTopic(topic="orders", partitions=named),) if named else ()
    return FetchRequest(max_wait_ms=500, min_bytes=1, session_id=session_id, session_epoch=epoch, topics=topics)


def test_an_error_of_a_partition_in_a_fetch_session(broker: InMemoryBroker) -> None:
    """An incremental Fetch does not name the partition; it does not wait either, as there is an error."""
    for partition in broker.state.cluster.topics["orders"].partitions:
        broker.state.cluster.lead(partition, 1)
    client = broker.connect()
    client.send(fetch(0, 0, 0, 1), 11)
    broker.advance(milliseconds=500)
    opened: Any = client.responses.pop()
    rule = broker.faults.add(
        {"api": "Fetch", "topic": "orders", "partition": 1, "times": 1, "error": "FENCED_LEADER_EPOCH"}
    )
    response: Any = client.ask(fetch(opened.session_id, 1), 11)
    (topic,) = response.responses
    assert [(one.partition_index, one.error_code) for one in topic.partitions] == [(1, ErrorCode.FENCED_LEADER_EPOCH)]
    assert rule.fired == 1
    client.send(fetch(opened.session_id, 2), 11)  # the session goes on
    broker.advance(milliseconds=500)
    later: Any = client.responses.pop()
    assert later.error_code == 0


def test_each_partition_of_a_fetch_session_has_an_error_once(broker: InMemoryBroker) -> None:
    """Records of one partition have arrived: the response names it, and has to name the other one beside it."""
    for partition in broker.state.cluster.topics["orders"].partitions:
        broker.state.cluster.lead(partition, 1)
    client = broker.connect()
    client.send(fetch(0, 0, 0, 1), 11)
    broker.advance(milliseconds=500)
    opened: Any = client.responses.pop()
    broker.connect().ask(produce(orders=[0]), 7)
    broker.faults.add({"api": "Fetch", "error": "NOT_LEADER_OR_FOLLOWER"})
    response: Any = client.ask(fetch(opened.session_id, 1), 11)
    (topic,) = response.responses
    assert sorted((one.partition_index, one.error_code) for one in topic.partitions) == [(0, 6), (1, 6)]


def test_an_error_of_a_topic_in_metadata_leaves_the_brokers(broker: InMemoryBroker) -> None:
    broker.faults.add({"api": "Metadata", "topic": "orders", "error": "LEADER_NOT_AVAILABLE"})
    both = MetadataRequest(topics=(MetadataRequestTopic(name="orders"), MetadataRequestTopic(name="other")))
    response: Any = broker.connect().ask(both, 9)
    assert {topic.name: topic.error_code for topic in response.topics} == {"orders": 5, "other": 0}
    assert len(response.brokers) == 2
    assert [len(topic.partitions) for topic in response.topics] == [0, 4]
