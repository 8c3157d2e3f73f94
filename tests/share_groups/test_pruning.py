"""The log of share states is pruned: records that no state needs are deleted, and a restart needs none of them."""

from __future__ import annotations

import errno
from unittest import mock

import pytest

from kproto.records.partitioning import SHARE_STATE_TOPIC
from kproto_server.partition_log import stored_data
from kproto_server.partition_log.stored_data import StoredData
from kproto_server.persistence import topic_logs
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.share_groups.share_partition import ACCEPT
from kproto_server.share_groups.share_states import SharePartitionKey, ShareState
from kproto_server.testing.in_memory import START_MS
from tests.persistence.disk_broker import DiskBroker
from tests.persistence.test_loading import reset
from tests.share_groups.sharers import Sharers
from tests.share_groups.test_restarts import DiskTransport

INTERVAL_MS = 300_000
"""`share.coordinator.state.topic.prune.interval.ms`, and how old a snapshot is that is written again."""
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "2",
}


def started(partitions: int = 1) -> tuple[DiskTransport, Sharers]:
    transport = DiskTransport(DiskBroker("os", SETTINGS, kafka_version="4.4"))
    return transport, fetching(transport, partitions)


def fetching(transport: DiskTransport, partitions: int = 1) -> Sharers:
    share = Sharers(transport, KafkaVersion.named("4.4"), "n")
    share.create(partitions=partitions)
    share.join("A")
    share.fetch("A", *range(partitions), wait_ms=100)
    return share


def read(share: Sharers, *offsets: int) -> None:
    for offset in offsets:
        share.produce(1)
        share.fetch("A", wait_ms=0)
        share.acknowledge("A", {0: [(offset, offset, [ACCEPT])]})


def log_start_offset(transport: DiskTransport) -> int:
    return transport.at.broker.state.cluster.topics[SHARE_STATE_TOPIC].partitions[0].log_start_offset


def states(transport: DiskTransport) -> dict[SharePartitionKey, ShareState]:
    return dict(transport.at.broker.state.share_groups.store.states)


def test_records_before_the_last_snapshots_are_deleted() -> None:
    transport, share = started()
    read(share, *range(10))
    assert log_start_offset(transport) == 0
    transport.pass_time(INTERVAL_MS)
    start_offset = log_start_offset(transport)
    assert start_offset > 5
    before = states(transport)
    transport.kill()
    assert states(transport) == before
    assert log_start_offset(transport) == start_offset


def test_a_log_that_cannot_be_pruned_is_pruned_later(monkeypatch: pytest.MonkeyPatch) -> None:
    transport, share = started()
    read(share, *range(10))

    def fail(data: StoredData, offset: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(StoredData, "delete_before", fail)
        transport.pass_time(INTERVAL_MS)
    assert log_start_offset(transport) == 0
    transport.pass_time(INTERVAL_MS)
    assert log_start_offset(transport) > 5


def test_the_log_is_pruned_after_a_reset() -> None:
    transport, share = started()
    read(share, 0)
    reset(transport.at)
    transport.at.broker.clock.reset(START_MS)
    read(fetching(transport), *range(10))
    transport.pass_time(INTERVAL_MS)
    assert log_start_offset(transport) > 5


def test_a_state_that_does_not_change_does_not_keep_the_log() -> None:
    transport, share = started(partitions=2)
    read(share, *range(5))
    transport.pass_time(INTERVAL_MS)
    assert log_start_offset(transport) < 5
    read(share, 5)
    transport.pass_time(INTERVAL_MS + 1)
    transport.pass_time(INTERVAL_MS)
    assert log_start_offset(transport) > 5
    snapshot_epochs = {key.partition: state.snapshot_epoch for key, state in states(transport).items()}
    transport.pass_time(10 * INTERVAL_MS)
    assert {key.partition: state.snapshot_epoch for key, state in states(transport).items()} == snapshot_epochs


def test_a_deleted_topic_leaves_no_state() -> None:
    transport, share = started()
    read(share, 0)
    share.delete_topic()
    assert states(transport) == {}
    transport.kill()
    assert states(transport) == {}


def test_a_long_log_is_indexed_in_steps_before_it_is_pruned(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (stored_data, topic_logs):
        monkeypatch.setattr(module, "SETTLED_MAX", 4)
    transport, share = started()
    read(share, *range(10))
    transport.kill()
    unindexed = transport.at.broker.state.log_manager.unindexed
    assert SHARE_STATE_TOPIC in unindexed
    with mock.patch.object(StoredData, "index_steps", autospec=True, side_effect=StoredData.index_steps) as steps:
        transport.pass_time(INTERVAL_MS + 10)
    assert steps.called
    assert log_start_offset(transport) > 5
    assert SHARE_STATE_TOPIC not in unindexed
