"""A broker whose virtual clock advances by eight days expires offsets and groups like one that runs for eight days."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from kproto_server.broker.broker import Broker
from kproto_server.configuration.data_directory import DataDirectory, Durability
from tests.network.raw_client import RawClient
from tests.network.requests import commit_offset, committed

ORDERS = TopicPartition("orders", 0)


def test_offsets_and_group_are_gone_after_eight_days() -> None:
    """EX-1, EX-34: Kafka keeps them for a week; then a client sees neither offsets nor group."""
    with Broker.running(clock="manual") as broker:
        consumer = KafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers, group_id="billing", enable_auto_commit=False
        )
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        consumer.assign([ORDERS])
        consumer.commit({ORDERS: OffsetAndMetadata(42, "", -1)})
        broker.clock.advance(days=6)
        assert consumer.committed(ORDERS) == 42
        assert [group["group_id"] for group in admin.list_groups()] == ["billing"]
        broker.clock.advance(days=2)
        assert consumer.committed(ORDERS) is None
        assert admin.list_groups() == []
        consumer.close()
        admin.close()


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_an_advance_returns_after_its_expirations(tmp_path: Path, durability: Durability) -> None:
    """Including the sync of the tombstones, which takes real time."""
    data = DataDirectory(str(tmp_path), durability)
    with Broker.running(clock="manual", data=data) as broker, RawClient(broker.bootstrap_servers) as client:
        for _ in range(5):
            assert commit_offset(client) == 0
            broker.clock.advance(days=8)
            assert committed(client) == -1


def test_a_reset_restarts_the_expiration_task() -> None:
    with Broker.running(clock="manual") as broker:
        for _ in range(2):
            broker.reset()
            with RawClient(broker.bootstrap_servers) as client:
                assert commit_offset(client) == 0
                broker.clock.advance(days=6.9)
                assert committed(client) == 7
                broker.clock.advance(days=0.2)
                assert committed(client) == -1


def test_an_offset_expires_on_a_scaled_clock() -> None:
    """A minute and a second of broker time are 6 ms of real time."""
    settings = {"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 1000}
    with (
        Broker.running(clock="scaled:10000", settings=settings) as broker,
        RawClient(broker.bootstrap_servers) as client,
    ):
        assert commit_offset(client) == 0
        until_ms = broker.clock.now_ms() + 62_000
        while broker.clock.now_ms() < until_ms:
            pass
        assert committed(client) == -1
