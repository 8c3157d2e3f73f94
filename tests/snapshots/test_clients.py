"""What real clients find after `Broker.restore`: what there was at the time of the snapshot.

Method: librdkafka fills a broker; after the snapshot everything is changed. In memory and with a data directory, which
must have it all after a restart, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic  # type: ignore[attr-defined]
from kafka import KafkaConsumer
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as KafkaTopicPartition

from kproto.errors import LogError, UsageError
from kproto_server import Broker
from kproto_server.network.server import Server
from kproto_server.network.snapshots import restore
from kproto_server.snapshots.snapshot import BrokerSnapshot
from tests.commandline.commands import kproto
from tests.waiting import LIMIT_S, wait_until

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
}
GROUP = "billing"
SET = AlterConfigOpType.SET
PARTITIONS = 2


@pytest.fixture(params=["memory", "data directory"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    data = None if request.param == "memory" else str(tmp_path / "data")
    with Broker.running(settings=SETTINGS, data=data) as running:
        yield running


def config(broker: Broker, **others: Any) -> dict[str, Any]:
    names = {name.replace("_", "."): value for name, value in others.items()}
    return {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, **names}


def produce(broker: Broker, *values: str, topic: str = "orders", partition: int = 0, **others: Any) -> None:
    producer = Producer(config(broker, **others))
    for value in values:
        producer.produce(topic, value, partition=partition, key=b"k", headers={"n": value.encode()})
    assert producer.flush(LIMIT_S) == 0


def produce_in_transaction(broker: Broker, *values: str, commits: bool, transactional_id: str = "tx") -> None:
    producer = Producer(config(broker, transactional_id=transactional_id))
    producer.init_transactions(LIMIT_S)
    producer.begin_transaction()
    for value in values:
        producer.produce("orders", value, partition=1)
    assert producer.flush(LIMIT_S) == 0
    (producer.commit_transaction if commits else producer.abort_transaction)(LIMIT_S)


def commit(broker: Broker, offset: int, group: str = GROUP) -> None:
    consumer = Consumer(config(broker, group_id=group))
    consumer.commit(offsets=[TopicPartition("orders", 0, offset, "note")], asynchronous=False)
    consumer.close()


def read(broker: Broker, topic: str = "orders") -> list[Any]:
    """Return partition, offset and value of all committed records of a topic."""
    others = {"group_id": "reader", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = Consumer(config(broker, **others))
    ends = {}
    for index in range(PARTITIONS):
        ends[index] = consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=LIMIT_S)
    consumer.assign([TopicPartition(topic, index, low) for index, (low, _) in ends.items()])
    found: list[Any] = []

    def is_done() -> bool:
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            found.append((message.partition(), message.offset(), message.value()))
        positions = consumer.position([TopicPartition(topic, index) for index in ends])
        return all(ends[one.partition][1] in (one.offset, ends[one.partition][0]) for one in positions)

    wait_until(is_done, "all records")
    consumer.close()
    return sorted(found)


def create(broker: Broker, topic: str) -> None:
    admin = AdminClient(config(broker))
    for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1, config={"retention.ms": "86400000"})]).values():
        future.result(LIMIT_S)


def fill(broker: Broker) -> None:
    create(broker, "orders")
    produce(broker, "a", "b", "c", compression_type="gzip")
    produce(broker, "d", partition=1)
    produce_in_transaction(broker, "e", "f", commits=True)
    produce_in_transaction(broker, "g", commits=False)
    commit(broker, 2)
    commit(broker, 1, "shipping")


def change(broker: Broker) -> None:
    broker.clock.advance(days=3)
    admin = AdminClient(config(broker))
    admin.delete_topics(["orders"])["orders"].result(LIMIT_S)
    create(broker, "orders")
    create(broker, "others")
    produce(broker, "x")
    commit(broker, 0, "others")
    commit(broker, 1)


def content(broker: Broker) -> dict[str, Any]:
    topics = AdminClient(config(broker)).list_topics(timeout=LIMIT_S).topics
    return {
        "records": read(broker),
        "topics": {name for name in topics if not name.startswith("__")},
        "offsets": {group: broker.groups.committed(group) for group in (GROUP, "shipping", "others")},
        "id": broker.run(lambda server: server.state.cluster.topics["orders"].topic_id),
        "configs": broker.run(lambda server: server.state.cluster.topics["orders"].configs),
    }


def test_everything_is_as_at_the_time_of_the_snapshot(broker: Broker) -> None:
    fill(broker)
    before, time_ms = content(broker), broker.clock.now_ms()
    assert [value for _, _, value in before["records"]] == [b"a", b"b", b"c", b"d", b"e", b"f"]
    snapshot = broker.snapshot()
    assert repr(snapshot).endswith(" topics: 1, records: 9, groups: 2>")
    for _ in range(2):  # a snapshot can be restored again
        change(broker)
        assert content(broker) != before
        broker.restore(snapshot, new_ports=True)
        assert content(broker) == before
        assert snapshot.now_ms <= broker.clock.now_ms() < time_ms + 86_400_000
    produce_in_transaction(broker, "h", commits=True)
    assert content(broker)["records"][-1][2] == b"h"


def test_a_data_directory_has_it_after_a_restart(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with Broker.running(settings=SETTINGS) as other:
        fill(other)
        admin = AdminClient(config(other))
        for deleted in admin.delete_records([TopicPartition("orders", 0, 2)]).values():
            deleted.result(LIMIT_S)
        before = content(other)
        snapshot = other.snapshot()
    with Broker.running(settings=SETTINGS, data=data) as broker:
        broker.restore(snapshot)
        assert content(broker) == before
    with Broker.running(settings=SETTINGS, data=data) as broker:
        wait_until(lambda: content(broker)["offsets"] == before["offsets"], "the load")
        assert content(broker) == before
        again = broker.snapshot()
    done = kproto("log", "verify", data)
    assert done.returncode == 0, done.stdout + done.stderr
    with Broker.running(settings=SETTINGS) as other:
        other.restore(again)
        assert content(other) == before


def test_deleted_and_compacted_records_stay_away(broker: Broker) -> None:
    create(broker, "orders")
    produce(broker, "a", "b", "c", "d", "e")
    broker.run(lambda server: server.state.cluster.topics["orders"].partitions[0].data.delete_before(2))
    snapshot = broker.snapshot()
    before = read(broker)
    assert [offset for _, offset, _ in before] == [2, 3, 4]
    broker.restore(snapshot)
    assert read(broker) == before
    broker.restore(broker.snapshot())
    assert read(broker) == before


def test_members_join_again(broker: Broker) -> None:
    """Consumers that were connected, of both protocols of groups."""
    create(broker, "orders")
    produce(broker, "a", "b")
    for protocol in ("classic", "consumer"):
        group = f"group-{protocol}"
        seen: list[Any] = []
        others = {"group_id": group, "group_protocol": protocol, "auto_offset_reset": "earliest"}
        consumer = Consumer(config(broker, enable_auto_commit=False, **others))
        consumer.subscribe(["orders"])

        def has_seen(*values: bytes, consumer: Consumer = consumer, seen: list[Any] = seen) -> None:
            def is_seen() -> bool:
                message = consumer.poll(0.05)
                if message is not None and message.error() is None:
                    seen.append(message.value())
                return tuple(seen[-len(values) :]) == values

            wait_until(is_seen, f"the records {values}")

        has_seen(b"a", b"b")
        consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
        snapshot = broker.snapshot()
        before = generation(broker, group)
        broker.restore(snapshot)
        assert broker.groups.state(group) == "Empty"
        assert broker.groups.members(group) == ()
        assert broker.groups.committed(group) == {("orders", 0): 1}
        produce(broker, "c")
        has_seen(b"c")

        def is_stable(consumer: Consumer = consumer, group: str = group) -> bool:
            consumer.poll(0.05)
            return broker.groups.state(group) == "Stable"

        wait_until(is_stable, "the member")
        assert generation(broker, group) > before
        consumer.close()
        broker.restore(snapshot)


def generation(broker: Broker, group_id: str) -> int:
    group = broker.run(lambda server: server.state.coordinator.groups.get(group_id))
    assert group is not None
    return group.generation


def test_configs_of_brokers_and_groups_come_back(broker: Broker) -> None:
    client = AdminClient(config(broker))

    def alter(kind: Any, name: str, **configs: str) -> None:
        entries = [
            ConfigEntry(one.replace("_", "."), value, incremental_operation=SET) for one, value in configs.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        for future in client.incremental_alter_configs([resource]).values():
            future.result(LIMIT_S)

    def configs() -> Any:
        return broker.run(lambda server: (dict(server.state.settings.configs), dict(server.state.settings.groups)))

    alter(ConfigResource.Type.BROKER, "1", message_max_bytes="1000000")
    before = configs()
    snapshot = broker.snapshot()
    alter(ConfigResource.Type.BROKER, "1", message_max_bytes="2000000")
    broker.restore(snapshot)
    assert configs() == before
    assert broker.run(lambda server: server.state.settings.of(1).int("message.max.bytes")) == 1_000_000


def test_stopped_nodes_leaders_and_replicas_come_back(tmp_path: Path) -> None:
    settings = SETTINGS | {"default.replication.factor": 3, "num.partitions": PARTITIONS}
    with Broker.running(brokers=3, settings=settings, data=str(tmp_path / "data")) as broker:
        produce(broker, "a", "b")
        broker.cluster.move_leader("orders", 0)
        broker.stop_node(2)
        broker.cluster.stop_replication(3)

        def roles() -> Any:
            return broker.run(
                lambda server: [
                    [(one.leader, one.leader_epoch, one.isr, one.replicas) for one in topic.partitions]
                    for topic in server.state.cluster.topics.values()
                ]
            )

        records = read(broker)
        before = roles()
        snapshot = broker.snapshot()
        broker.start_node(2)
        broker.cluster.move_leader("orders", 0, 2)
        broker.cluster.start_replication(3)
        broker.restore(snapshot)
        assert roles() == before
        assert read(broker) == records
        broker.start_node(2)
        assert broker.run(
            lambda server: [3 in one.isr for one in server.state.cluster.topics["orders"].partitions]
        ) == [before_one[0] == 3 for before_one in before[[*topic_names(broker)].index("orders")]]


def topic_names(broker: Broker) -> list[str]:
    return broker.run(lambda server: list(server.state.cluster.topics))


def test_kafka_python_commits_to_the_restored_group(broker: Broker) -> None:
    fill(broker)
    broker.restore(broker.snapshot())
    partition = KafkaTopicPartition("orders", 0)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id=GROUP, enable_auto_commit=False)
    with closing(consumer):
        assert consumer.committed(partition) == 2
        consumer.assign([partition])
        consumer.commit({partition: OffsetAndMetadata(3, "", -1)})
    assert broker.groups.committed(GROUP) == {("orders", 0): 3}


def test_offsets_expire_by_the_restored_clock() -> None:
    with Broker.running(settings=SETTINGS, clock="manual") as broker:
        fill(broker)
        broker.clock.advance(days=5)
        snapshot = broker.snapshot()
        for _ in range(2):
            broker.clock.advance(days=1)
            assert broker.groups.committed(GROUP)
            broker.clock.advance(days=2)
            assert not broker.groups.committed(GROUP)
            broker.restore(snapshot)
            assert broker.groups.committed(GROUP)


def test_expired_segments_of_before_are_removed_from_the_former_log_only(tmp_path: Path) -> None:
    """Their removal has begun, and waits for a sync, when the topic is restored."""
    with Broker.running(settings=SETTINGS, clock="manual", data=str(tmp_path / "data")) as broker:
        create(broker, "orders")
        produce(broker, "a", "b")
        snapshot = broker.snapshot()

        def expire_and_restore(server: Server) -> None:
            server.advance(2 * 86_400_000)
            restore(server, snapshot)

        broker.run(expire_and_restore)
        produce(broker, "c")
        assert [value for _, _, value in read(broker)] == [b"a", b"b", b"c"]


def test_deleted_records_that_a_data_directory_cannot_delete_are_reported(tmp_path: Path) -> None:
    """They would be back after the next start."""
    with Broker.running(settings=SETTINGS) as other:
        produce(other, "a", "b")
        admin = AdminClient(config(other))
        (deleted,) = admin.delete_records([TopicPartition("orders", 0, 1)]).values()
        deleted.result(LIMIT_S)
        snapshot = other.snapshot()
    with Broker.running(settings=SETTINGS, data=str(tmp_path)) as broker:
        (tmp_path / "log-start-offset-checkpoint").mkdir()
        with pytest.raises(LogError, match="the log start offsets can't be saved"):
            broker.restore(snapshot)


def test_topics_that_a_data_directory_does_not_take_are_reported(tmp_path: Path) -> None:
    with Broker.running(settings=SETTINGS) as other:
        create(other, "orders")
        snapshot = other.snapshot()
    with Broker.running(settings=SETTINGS, data=str(tmp_path)) as broker:
        (tmp_path / "topics.json").unlink(missing_ok=True)
        (tmp_path / "topics.json").mkdir()
        with pytest.raises(LogError):
            broker.restore(snapshot)


def test_another_version_and_other_nodes_are_refused() -> None:
    def taken(**options: Any) -> BrokerSnapshot:
        with Broker.running(**options) as broker:
            return broker.snapshot()

    with Broker.running() as broker:
        produce(broker, "a")
        with pytest.raises(UsageError, match=r"the snapshot is one of Kafka version 2\.0, this broker's is latest"):
            broker.restore(taken(kafka_version="2.0"))
        with pytest.raises(UsageError, match="the snapshot has nodes 1, 2, 3, this broker has 1"):
            broker.restore(taken(brokers=3))
        assert "orders" in topic_names(broker)
