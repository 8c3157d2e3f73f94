"""Requests that name a partition or a resource twice; measured on 2.0.1, 2.8.2 and 4.4.0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k21_delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tests.coordinator.broker_state import ask, new_state
from tests.partition_log.conversation_chapters import batch

if TYPE_CHECKING:
    from kproto_server.state import BrokerState

RELEASES = ["2.0", "2.8", "4.4"]


def write(state: BrokerState, *topics: tuple[str, list[tuple[int, int]]]) -> list[tuple[str, list[int]]]:
    """Write batches (topic, [(partition, number of records)]); return the partitions of the response."""
    data = tuple(
        TopicProduceData(
            name=name,
            partition_data=tuple(PartitionProduceData(index=index, records=batch(count)) for index, count in batches),
        )
        for name, batches in topics
    )
    response = ask(state, ProduceRequest(acks=1, timeout_ms=1000, topic_data=data), 5)
    assert not any(one.error_code for topic in response.responses for one in topic.partition_responses)
    return [(topic.name, [one.index for one in topic.partition_responses]) for topic in response.responses]


@pytest.mark.parametrize("release", RELEASES)
def test_the_last_records_of_a_partition_are_written(release: str) -> None:
    state = new_state(release)
    returned = write(state, ("t", [(0, 1), (1, 1), (0, 2)]), ("u", [(0, 1)]), ("t", [(1, 3)]))
    assert returned == [("t", [0, 1]), ("u", [0])]
    ends = {name: [one.high_watermark for one in state.cluster.topics[name].partitions] for name in ("t", "u")}
    assert ends == {"t": [2, 3, 0], "u": [1]}


@pytest.mark.parametrize("release", RELEASES)
def test_records_are_deleted_below_the_last_offset_of_a_partition(release: str) -> None:
    state = new_state(release)
    write(state, ("t", [(0, 9), (1, 9)]))

    def topic(*offsets: tuple[int, int]) -> DeleteRecordsTopic:
        partitions = tuple(DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in offsets)
        return DeleteRecordsTopic(name="t", partitions=partitions)

    request = DeleteRecordsRequest(topics=(topic((0, 5), (1, 2), (0, 3)), topic((1, 1))), timeout_ms=1000)
    (returned,) = ask(state, request, 1).topics
    assert [(one.partition_index, one.low_watermark) for one in returned.partitions] == [(0, 3), (1, 1)]
