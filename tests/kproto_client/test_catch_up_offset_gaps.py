"""KIP-333 on logs with offset gaps, which real brokers have after compaction and transactions."""

import pytest

from kproto.records.control import ControlType, build_end_marker
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server import Broker
from kproto_server.network.server import Server
from tests.kproto_client.catch_up_cases import ON, behind, parallel_of
from tests.kproto_client.kafka_fixture import KafkaFixture, read

MARKER = build_end_marker(
    ControlType.ABORT,
    offset=0,
    timestamp=0,
    producer_id=1,
    producer_epoch=0,
    coordinator_epoch=0,
    partition_leader_epoch=0,
)
COMPACTED = build_record_batch([Record(offset=0, timestamp=0, key=None, value=b"x")], last_offset=9)
EMPTIED = build_record_batch([], base_offset=0, last_offset=9, base_timestamp=0, max_timestamp=0)


def append(server: Server, topic: str, batch: bytes, last_offset_delta: int) -> None:
    """Append a batch to partition 0 that Produce would not accept."""
    found = server.state.cluster.topics[topic].partition(0)
    assert found is not None
    found.data.append(batch, last_offset_delta, 0, found.leader_epoch)


@pytest.mark.parametrize(
    ("batch", "offsets", "delivered"),
    [
        pytest.param(MARKER, 1, [], id="marker"),
        pytest.param(COMPACTED, 10, [50], id="compacted batch"),
        pytest.param(EMPTIED, 10, [], id="batch without records"),
    ],
)
def test_a_range_may_end_with_offsets_without_records(
    broker: Broker, kafka: KafkaFixture, batch: bytes, offsets: int, delivered: list[int]
) -> None:
    """CK-61, I6: the catch-up ends, and consumer 1 reads the later records."""
    topic, group = behind(kafka, 10, 50)
    broker._call(lambda server: append(server, topic, batch, offsets - 1))
    end = 50 + offsets
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 1) == [10]
        assert parallel_of(consumer).catch_ups[topic, 0].consumer1_start == end
        assert read(consumer, 39 + len(delivered)) == [*range(11, 50), *delivered]
        kafka.write(topic, 2)
        assert read(consumer, 2) == [end, end + 1]
        assert not parallel_of(consumer).consumer2_is_open
