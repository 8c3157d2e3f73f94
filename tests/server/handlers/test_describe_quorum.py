"""DescribeQuorum, with the responses of 3.3.2, 3.9.2 and 4.4.0 to the same requests, and with kafka-python."""

from __future__ import annotations

from typing import Any

import pytest
from kafka import KafkaAdminClient

from kproto.messages.k55_describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from kproto_server.broker.broker import Broker
from kproto_server.testing import InMemoryBroker
from tests.coordinator.broker_state import NOW_MS, ask, new_state

METADATA = "__cluster_metadata"


def request(*topics: tuple[str, tuple[int, ...]]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=tuple(
            TopicData(topic_name=name, partitions=tuple(PartitionData(partition_index=index) for index in indexes))
            for name, indexes in topics
        )
    )


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(
    "topics",
    [
        [(METADATA, (1,))],
        [("nope", (0,))],
        [(METADATA, (0, 1))],
        [],
        [(METADATA, (0,)), (METADATA, (0,))],
        [(METADATA, (0,)), ("x", (0,))],
    ],
)
def test_only_the_partition_of_the_metadata_topic_is_described(topics: Any, version: int) -> None:
    response = ask(new_state("4.4"), request(*topics), version)
    assert (response.error_code, response.error_message, response.nodes) == (0, "", ())
    assert [(one.topic_name, tuple(p.partition_index for p in one.partitions)) for one in response.topics] == topics
    for topic in response.topics:
        for found in topic.partitions:
            assert (found.error_code, found.error_message) == (3, "This server does not host this topic-partition.")
            assert (found.leader_id, found.leader_epoch, found.high_watermark) == (0, 0, 0)
            assert (found.current_voters, found.observers) == ((), ())


def test_each_broker_is_a_voter_and_the_controller_leads() -> None:
    state = new_state("4.4", node_count=3)
    (before,) = ask(state, request((METADATA, (0,))), 2).topics[0].partitions
    assert (before.leader_id, before.leader_epoch) == (1, 1)
    assert [one.replica_id for one in before.current_voters] == [1, 2, 3]
    assert {one.log_end_offset for one in before.current_voters} == {before.high_watermark}
    assert {one.last_caught_up_timestamp for one in before.current_voters} == {NOW_MS}
    state.cluster.stop_node(1)
    (after,) = ask(state, request((METADATA, (0,))), 2, node_id=2).topics[0].partitions
    assert (after.leader_id, after.leader_epoch) == (2, 2)
    assert after.high_watermark > before.high_watermark
    stopped = after.current_voters[0]
    assert (stopped.replica_id, stopped.log_end_offset, stopped.last_fetch_timestamp) == (1, -1, -1)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_each_version_has_the_voters(version: int) -> None:
    """The response is encoded: the connection of a client in v0 or v1 was closed, which have no addresses of voters."""
    broker = InMemoryBroker(kafka_version="3.9", brokers=2)
    response: Any = broker.connect().ask(request((METADATA, (0,))), version)
    (partition,) = response.topics[0].partitions
    assert [voter.replica_id for voter in partition.current_voters] == [1, 2]
    assert [node.node_id for node in response.nodes] == ([1, 2] if version >= 2 else [])


def test_kafka_python_describes_the_quorum() -> None:
    with Broker(brokers=2) as broker:
        client = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        try:
            found = client.describe_metadata_quorum()
        finally:
            client.close()
    (partition,) = found["topics"][0]["partitions"]
    assert (partition["leader_id"], partition["error"]) == (1, None)
    assert [one["replica_id"] for one in partition["current_voters"]] == [1, 2]
    assert [one["listeners"][0]["name"] for one in found["nodes"]] == ["CONTROLLER", "CONTROLLER"]
