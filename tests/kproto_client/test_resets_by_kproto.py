"""KIP-842 where kproto lets happen what a real Kafka does in a week, or only when brokers fail."""

from kproto.records.record_batch import read_record_batch
from kproto_server import Broker
from kproto_server.network.server import Server
from kproto_server.partition_log.partition_data import PartitionData
from tests.kproto_client.kafka_side import KafkaSide, name, read
from tests.kproto_client.reset_cases import resets, start_of
from tests.kproto_client.tables import END


def test_expired_offsets_are_missing_ones() -> None:
    """CK-11: after a week without members, the group starts again (KIP-211)."""
    with Broker.running(settings={"group.initial.rebalance.delay.ms": 0}) as broker:
        kafka = KafkaSide(broker.bootstrap_servers)
        topic, group = kafka.log(), name("group")
        settings = resets("latest_on_start", "none", "nearest")
        kafka.commit(group, topic, 200)
        assert start_of(kafka, topic, group, settings) == 200
        broker.clock.advance(days=8)
        assert broker.groups.committed(group) == {}
        assert start_of(kafka, topic, group, settings) == END


def truncate(server: Server, topic: str, end: int) -> None:
    """Partition 0 loses its end, as after an unclean election, and its leader has a new epoch."""
    found = server.state.cluster.topics[topic].partition(0)
    assert found is not None
    old, new = found.data, PartitionData()
    data = old.read(0, 1_000_000, whole=True)
    position = 0
    while new.next_offset < end:
        batch, after = read_record_batch(data, position)
        delta = batch.last_offset - batch.header.base_offset
        new.append(data[position:after], delta, batch.header.max_timestamp, 0)
        position = after
    assert new.next_offset == end
    new.waiters = old.waiters
    found.data = new
    found.leader_epoch += 1


def test_a_truncated_log_is_read_from_where_it_parts(broker: Broker, kafka: KafkaSide) -> None:
    """CK-35: OffsetForLeaderEpoch tells the place, though the position is in range by now."""
    topic = kafka.topic()
    for _ in range(10):
        kafka.write(topic, 10)
    with kafka.consumer(name("group"), **resets("earliest", "none", "nearest")) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 100)[-1] == 99
        broker._call(lambda server: truncate(server, topic, 60))
        kafka.write(topic, 60)
        assert read(consumer, 60) == list(range(60, 120))
