"""`__consumer_offsets` is readable like any topic (BA-77), with and without a data directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata

from kproto.records.coordinator import CoordinatorRecord
from kproto.records.group_records import GroupMetadataKey, GroupMetadataValue
from kproto.records.offset_records import OffsetCommitKey, OffsetCommitValue
from kproto.records.offsets_topic import read_offsets_record
from kproto_server import Broker
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

ORDERS = TopicPartition("orders", 0)


@pytest.fixture(params=["memory", "os"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    opened: AbstractContextManager[Broker] = (
        Broker.running() if request.param == "memory" else Broker.running(data=str(tmp_path))
    )
    with opened as running:
        yield running


def commit(broker: Broker, group_id: str, offset: int) -> None:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id=group_id, enable_auto_commit=False)
    consumer.assign([ORDERS])
    consumer.commit({ORDERS: OffsetAndMetadata(offset, "m", -1)})
    consumer.close()


class Reader:
    """Reads the offsets topic from its start, and new records in later calls."""

    def __init__(self, broker: Broker) -> None:
        self._consumer = KafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers, exclude_internal_topics=False, enable_auto_commit=False
        )
        numbers = self._consumer.partitions_for_topic("__consumer_offsets")
        assert numbers is not None
        assert len(numbers) == 50
        self._partitions = [TopicPartition("__consumer_offsets", number) for number in sorted(numbers)]
        self._consumer.assign(self._partitions)
        self._consumer.seek_to_beginning()

    def new(self) -> list[CoordinatorRecord]:
        left = sum(self._consumer.end_offsets(self._partitions).values())
        left -= sum(map(self._consumer.position, self._partitions))
        found: list[CoordinatorRecord] = []
        while len(found) < left:
            for records in self._consumer.poll(1000).values():
                for record in records:
                    read = read_offsets_record(record.key, record.value)
                    assert isinstance(read, CoordinatorRecord)
                    found.append(read)
        return found

    def close(self) -> None:
        self._consumer.close()


def fields(record: CoordinatorRecord) -> tuple[str, str, int, int | None]:
    assert isinstance(record.key, OffsetCommitKey)
    assert record.value is None or isinstance(record.value, OffsetCommitValue)
    offset = None if record.value is None else record.value.offset
    return record.key.group, record.key.topic, record.key.partition, offset


def test_commits_and_expirations_are_read(broker: Broker) -> None:
    commit(broker, "billing", 42)
    reader = Reader(broker)
    assert [fields(record) for record in reader.new()] == [("billing", "orders", 0, 42)]
    commit(broker, "billing", 43)
    commit(broker, "shipping", 7)
    assert sorted(fields(record) for record in reader.new()) == [
        ("billing", "orders", 0, 43),
        ("shipping", "orders", 0, 7),
    ]
    broker.clock.advance(days=8)
    assert sorted(fields(record) for record in reader.new() if isinstance(record.key, OffsetCommitKey)) == [
        ("billing", "orders", 0, None),
        ("shipping", "orders", 0, None),
    ]
    reader.close()


def test_group_metadata_is_read(broker: Broker) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_topics([NewTopic("orders", 1, 1)])
    admin.close()
    member = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing", "client.id": "a"})
    member.subscribe(["orders"])
    wait_until(lambda: member.poll(0.1) is None and bool(member.assignment()), "an assignment")
    broker.groups.wait_stable("billing", members=1)
    reader = Reader(broker)
    record = reader.new()[-1]
    assert record.key == GroupMetadataKey(group="billing")
    assert isinstance(record.value, GroupMetadataValue)
    assert [one.client_id for one in record.value.members] == ["a"]
    member.close()
    record = reader.new()[-1]
    assert isinstance(record.value, GroupMetadataValue)
    assert record.value.members == ()
    reader.close()
