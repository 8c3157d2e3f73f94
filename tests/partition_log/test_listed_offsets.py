"""ListOffsets: topics named twice, the replica ids of clients, and leader epochs."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto_server.state import BrokerState
from tests.coordinator.broker_state import ask, new_state
from tests.partition_log.conversation_chapters import batch
from tests.partition_log.test_committed_reads import produce_request

LATEST, EARLIEST = -1, -2
CONSUMER, DEBUGGING_CONSUMER = -1, -2


def offsets(
    state: BrokerState, timestamp: int, *names: str, replica_id: int = CONSUMER, isolation_level: int = 0
) -> list[tuple[str, list[tuple[int, int, int]]]]:
    """Ask for partition 0 of topics; return the topics with error, offset and leader epoch of each partition."""
    topics = tuple(
        ListOffsetsTopic(name=name, partitions=(ListOffsetsPartition(partition_index=0, timestamp=timestamp),))
        for name in names
    )
    request = ListOffsetsRequest(replica_id=replica_id, isolation_level=isolation_level, topics=topics)
    response: Any = ask(state, request, 4)
    return [
        (topic.name, [(one.error_code, one.offset, one.leader_epoch) for one in topic.partitions])
        for topic in response.topics
    ]


@pytest.mark.parametrize("release", ["2.2", "2.8", "3.9", "4.4"])
def test_a_partition_of_two_topics_is_refused(release: str) -> None:
    """BA-82; measured on 2.0.1, 2.8.2, 3.1.2 and 4.4.0."""
    refused = ("t", [(42, -1, -1)])
    again = [refused] if release in ("2.8", "3.9") else []
    assert offsets(new_state(release), LATEST, "t", "u", "t") == [refused, ("u", [(0, 0, 0)]), *again]


def test_the_isolation_level_is_that_of_consumers() -> None:
    """By Kafka's source, KafkaApis.handleListOffsetRequest of 3.9."""
    state = new_state("3.5")
    ask(state, produce_request(0), 8)
    found = [
        offsets(state, LATEST, "t", replica_id=replica_id, isolation_level=1)[0][1][0][1]
        for replica_id in (CONSUMER, DEBUGGING_CONSUMER)
    ]
    assert found == [0, 1]


def test_the_start_has_the_epoch_of_its_record() -> None:
    """BA-82; measured on 2.8.2 with a leader that stopped. The end has the epoch of the leader."""
    state = new_state()
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=batch()),))
    partition = state.cluster.topics["t"].partitions[0]
    state.cluster.lead(partition, 1)
    assert offsets(state, EARLIEST, "t") == [("t", [(0, 0, 1)])]
    ask(state, ProduceRequest(acks=1, timeout_ms=1000, topic_data=(data,)), 3)
    state.cluster.lead(partition, 1)
    assert offsets(state, EARLIEST, "t") == [("t", [(0, 0, 1)])]
    assert offsets(state, LATEST, "t") == [("t", [(0, 1, 2)])]
