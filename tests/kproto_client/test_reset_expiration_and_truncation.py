"""KIP-842 after events that kproto produces on demand: offset expiration (KIP-211) and a truncated log (KIP-320)."""

from kproto.records.record_batch import read_record_batch
from kproto_server import Broker
from kproto_server.network.server import Server
from kproto_server.partition_log.partition_data import PartitionData
from tests.kproto_client.decision_tables import END
from tests.kproto_client.kafka_fixture import KafkaFixture, read, unique_name
from tests.kproto_client.reset_cases import resets, start_of


def test_expired_offsets_count_as_never_committed() -> None:
    """CK-11: after a week without members, the group starts again."""
    with Broker.running(settings={"group.initial.rebalance.delay.ms": 0}) as broker:
        kafka = KafkaFixture(broker.bootstrap_servers)
        topic, group = kafka.log(), unique_name("group")
        settings = resets("latest_on_start", "none", "nearest")
        kafka.commit(group, topic, 200)
        assert start_of(kafka, topic, group, settings) == 200
        broker.clock.advance(days=8)
        assert broker.groups.committed(group) == {}
        assert start_of(kafka, topic, group, settings) == END


def truncate(server: Server, topic: str, end: int) -> None:
    """Truncate partition 0 under a new leader epoch, as an unclean leader election does."""
    found = server.state.cluster.topics[topic].partition(0)
    assert found is not None
    old, new = found.data, PartitionData()
    data = old.read(0, 1_000_000, min_one_batch=True)
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


def test_a_truncated_log_is_read_from_the_divergence_offset(broker: Broker, kafka: KafkaFixture) -> None:
    """CK-35: OffsetForLeaderEpoch returns that offset, although the position is in range by now."""
    topic = kafka.topic()
    for _ in range(10):
        kafka.write(topic, 10)
    with kafka.consumer(unique_name("group"), **resets("earliest", "none", "nearest")) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 100)[-1] == 99
        broker._call(lambda server: truncate(server, topic, 60))
        kafka.write(topic, 60)
        assert read(consumer, 60) == list(range(60, 120))
