"""DescribeProducers on several brokers."""

from __future__ import annotations

import pytest

from kproto.messages.k61_describe_producers import DescribeProducersRequest, TopicRequest
from tests.coordinator.broker_state import ask, new_state


@pytest.mark.parametrize("kafka_version", ["2.8", "latest"])
def test_all_replicas_describe_producers(kafka_version: str) -> None:
    """KIP-664; measured on 2.8.2 and 4.4.0 with two brokers."""
    state = new_state(kafka_version, node_count=3)
    partition = state.cluster.topics["t"].partitions[0]
    partition.replicas, partition.isr, partition.leader = [1, 2], [1, 2], 1
    request = DescribeProducersRequest(topics=(TopicRequest(name="t", partition_indexes=(0,)),))
    responses = [ask(state, request, 0, node_id=node_id) for node_id in (1, 2, 3)]
    assert [response.topics[0].partitions[0].error_code for response in responses] == [0, 0, 6]
