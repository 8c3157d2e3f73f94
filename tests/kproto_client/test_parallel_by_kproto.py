"""KIP-333 where kproto is told to have in its log what real brokers have there after compaction and transactions."""

import pytest

from kproto.records.control import ControlType, build_end_marker
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server import Broker
from kproto_server.network.server import Server
from tests.kproto_client.kafka_side import KafkaSide, read
from tests.kproto_client.parallel_cases import ON, behind, inside

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
    """To partition 0, as nobody could by Produce."""
    found = server.state.cluster.topics[topic].partition(0)
    assert found is not None
    found.data.append(batch, last_offset_delta, 0, found.leader_epoch)


@pytest.mark.parametrize(
    ("batch", "offsets", "handed_out"),
    [
        pytest.param(MARKER, 1, [], id="marker"),
        pytest.param(COMPACTED, 10, [50], id="compacted batch"),
        pytest.param(EMPTIED, 10, [], id="batch of which only the header is left"),
    ],
)
def test_a_range_may_end_with_offsets_that_no_record_has(
    broker: Broker, kafka: KafkaSide, batch: bytes, offsets: int, handed_out: list[int]
) -> None:
    """CK-61: the catch-up ends all the same, I6; what comes after is the head's."""
    topic, group = behind(kafka, 10, 50)
    broker._call(lambda server: append(server, topic, batch, offsets - 1))
    end = 50 + offsets
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 1) == [10]
        assert inside(consumer).machines[topic, 0].head == end
        assert read(consumer, 39 + len(handed_out)) == [*range(11, 50), *handed_out]
        kafka.write(topic, 2)
        assert read(consumer, 2) == [end, end + 1]
        assert not inside(consumer)._side.is_open
