"""Retention of logs that cannot be read: the broker goes on, and they keep their segments."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from kproto.errors import DecodeError
from kproto_server.deferred import at_once
from kproto_server.log_manager.retention_task import RetentionTask, retention_config
from kproto_server.partition_log.stored_data import StoredData
from kproto_server.persistence.topic_logs import TopicLogs
from kproto_server.storage.segment_sync import RecoveryPoints
from tests.persistence.disk_broker import DiskBroker
from tests.persistence.held_worker import HeldWorker, held_in_background
from tests.robustness.changes import create_topic, produce


@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), DecodeError("batch.length", 0, "1 bytes")])
@pytest.mark.parametrize("reader", ["refresh_index", "delete_before"])
def test_records_of_an_unreadable_log_do_not_expire(
    reader: str, error: Exception, durability: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In ``fsync`` mode they expire after a sync in the background."""
    background = HeldWorker()
    broker = DiskBroker(durability, make_worker=held_in_background(background))
    broker.ask(*create_topic("t", segment_bytes="200", retention_bytes="300"))
    for _ in range(10):
        broker.ask(*produce("t", [b"x"]))

    topic = broker.broker.state.cluster.topics["t"]
    partition = topic.partitions[0]
    config, _ = retention_config(broker.broker.state.settings.current, topic)

    def check() -> None:
        assert isinstance(partition.data, StoredData)
        at_once(broker.persistence.topic_logs.drop_expired(partition.data, config, broker.broker.clock.now_ms()))
        while background.held:
            background.run_one()

    def fail(data: StoredData, *_: int) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(StoredData, reader, fail)
        check()
    assert "t-0" in caplog.text
    assert partition.log_start_offset == 0
    check()
    assert partition.log_start_offset > 0


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_logs_that_expire_in_one_check_are_saved_together(durability: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them wrote both checkpoints, with the positions of all logs."""
    background = HeldWorker()
    broker = DiskBroker(durability, make_worker=held_in_background(background))
    names = ["a", "b", "c"]
    for name in names:
        broker.ask(*create_topic(name, segment_bytes="200", retention_bytes="300"))
        for _ in range(10):
            broker.ask(*produce(name, [b"x"]))
    saved: list[str] = []

    def counted(owner: type, name: str) -> None:
        function = getattr(owner, name)

        def count(*args: Any) -> Any:
            saved.append(name)
            return function(*args)

        monkeypatch.setattr(owner, name, count)

    counted(RecoveryPoints, "advance")
    counted(TopicLogs, "save_start_offsets")
    state = broker.broker.state
    task = RetentionTask(state.settings, state.cluster.topics, state.clock, broker.persistence.topic_logs.drop_expired)
    assert not list(task.check_all(state.clock.now_ms())), "one step"
    while background.held:
        background.run_one()
    assert all(state.cluster.topics[name].partitions[0].log_start_offset > 0 for name in names)
    assert saved.count("advance") == 1
    assert saved.count("save_start_offsets") == 1
