"""Changed features: they are stored, a reset forgets them, and they change what the broker does."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k57_update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kproto.records.coordinator import CoordinatorRecord
from kproto.records.transaction_state import read_transaction_record
from kproto_server.testing.in_memory import InMemoryBroker
from tests.features.administrator import SAFE_DOWNGRADE, SOFTWARE
from tests.persistence.disk_broker import DiskBroker
from tests.transactions.test_coordinator import Client, batches


def lowered(name: str, level: int) -> UpdateFeaturesRequest:
    update = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=SAFE_DOWNGRADE)
    return UpdateFeaturesRequest(feature_updates=(update,))


def levels(client: Any) -> dict[str, int]:
    found = client.ask(SOFTWARE, 4).finalized_features
    return {one.name: one.max_version_level for one in found}


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_levels_hold_after_a_kill(durability: Any) -> None:
    broker = DiskBroker(durability, kafka_version="4.4")
    before = levels(broker)
    assert broker.ask(lowered("transaction.version", 1), 2).error_code == 0
    assert broker.ask(lowered("group.version", 0), 2).error_code == 0
    found = levels(broker)
    assert found == {name: level for name, level in before.items() if name != "group.version"} | {
        "transaction.version": 1
    }
    for _ in range(2):
        broker.kill()
        assert levels(broker) == found


def test_a_release_that_does_not_support_a_level_ignores_it() -> None:
    broker = DiskBroker("os", kafka_version="4.4")
    assert broker.ask(lowered("share.version", 1), 2).error_code == 0
    assert broker.ask(lowered("transaction.version", 1), 2).error_code == 0
    broker.kafka_version = "4.0"
    broker.kill()
    found = levels(broker)
    assert found["transaction.version"] == 1
    assert "share.version" not in found
    broker.kafka_version = "3.9"
    broker.kill()
    assert set(levels(broker)) == {"metadata.version"}


def test_levels_that_are_not_saved_are_an_error() -> None:
    broker = DiskBroker("os", kafka_version="4.4")
    before = levels(broker)
    broker.disk.fails = lambda operation: operation.kind == "write"
    assert broker.ask(lowered("transaction.version", 1), 2).error_code == 56
    broker.disk.fails = lambda operation: False
    assert levels(broker) == before


def test_a_reset_finalizes_the_levels_of_a_new_cluster() -> None:
    broker = InMemoryBroker(kafka_version="4.4")
    client = broker.connect()
    before = levels(client)
    response: Any = client.ask(lowered("transaction.version", 0), 2)
    assert response.error_code == 0
    assert levels(client) != before
    broker.state.reset()
    assert levels(client) == before


@pytest.mark.parametrize(("level", "value_version"), [(0, 0), (1, 1), (2, 1)])
def test_values_of_transactional_ids_have_the_version_of_the_feature(level: int, value_version: int) -> None:
    broker = InMemoryBroker(kafka_version="4.4")
    client = broker.connect()
    client.ask(lowered("transaction.version", level), 2)
    client.ask(FindCoordinatorRequest(key="a", key_type=1), 2)
    state = broker.state
    state.transactions.make_readable(broker.clock.now_ms())
    started: Any = client.ask(InitProducerIdRequest(transactional_id="a", transaction_timeout_ms=60_000), 5)
    assert started.error_code == 0
    (record,) = [
        record
        for partition in state.cluster.topics["__transaction_state"].partitions
        for batch in batches(partition.data.read(0, 1 << 20, min_one_batch=True))
        for record in batch.records()
    ]
    found = read_transaction_record(record.key, record.value)
    assert isinstance(found, CoordinatorRecord)
    assert found.value_version == value_version


@pytest.mark.parametrize(("level", "error"), [(1, ErrorCode.PRODUCER_FENCED), (2, ErrorCode.NONE)])
def test_a_producer_continues_after_its_abort_from_level_2_on(level: int, error: ErrorCode) -> None:
    """All scripts of transactions were compared with 4.4.0 at level 1."""
    broker = InMemoryBroker(kafka_version="4.4", topics={"t": 1})
    assert broker.state.cluster.ensure_internal_topic("__transaction_state", broker.clock.now_ms())
    broker.connect().ask(lowered("transaction.version", level), 2)
    client = Client(broker)
    client.start()
    assert client.add() == 0
    again = {"producer_id": client.producer_id, "producer_epoch": client.epoch}
    assert client.start(**again).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert client.start(**again).error_code == error
