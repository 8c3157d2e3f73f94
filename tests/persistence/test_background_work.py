"""Deletion and reset beside background work, which changes files by the name of their topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kproto.messages.k16_list_groups import ListGroupsResponse
from kproto_server.cluster.topics import Topic
from kproto_server.deferred import DeferredResponse
from kproto_server.persistence.worker_thread import WorkerThread
from kproto_server.testing.simulated_disk import Operation
from tests.persistence.disk_broker import DiskBroker
from tests.persistence.held_worker import HeldWorker, held_in_background
from tests.robustness.changes import create_topic, delete_topic, errors_of, produce

if TYPE_CHECKING:
    from collections.abc import Callable


REMOVALS: dict[str, Callable[[DiskBroker], object]] = {
    "DeleteTopics": lambda broker: broker.ask(*delete_topic("t")),
    "reset": lambda broker: broker.persistence.reset(),
}


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_background_work_ends_before_logs_are_removed(durability: Any, removal: str) -> None:
    """Later it would save the recovery point of a log for a new topic of its name, or remove segments of that topic."""
    background = HeldWorker()
    broker = DiskBroker(durability, make_worker=held_in_background(background))
    broker.ask(*create_topic("t"))
    broker.ask(*produce("t", [b"x"]))
    found = []
    background.run(lambda: found.append(broker.disk.exists("t-0")), lambda: None)
    REMOVALS[removal](broker)
    assert found == [True]
    assert not broker.disk.exists("t-0")


def test_a_deletion_whose_sync_leads_to_a_log_for_another_new_topic() -> None:
    """As a dead letter of a ShareAcknowledge: the topics are saved while they are saved."""
    broker = DiskBroker("fsync")
    broker.ask(*create_topic("t"))
    broker.ask(*produce("t", [b"x"]))
    cluster = broker.broker.state.cluster

    def letter() -> ListGroupsResponse:
        queue = cluster.create_topic("letters", partition_count=1, replication_factor=1)
        assert isinstance(queue, Topic)
        broker.persistence.topic_logs.data_of(queue, queue.partitions[0])
        return ListGroupsResponse(error_code=0, groups=())

    broker.broker.connect().send(*produce("t", [b"y"]))
    deferred = broker.persistence._log.then(letter)
    assert isinstance(deferred, DeferredResponse)
    deferred.deliver = lambda _: None
    deleted = broker.ask(*delete_topic("t"))
    assert [topic.error_code for topic in deleted.responses] == [0]
    broker.kill()
    assert set(broker.broker.state.cluster.topics) == {"letters"}
    assert broker.persistence.log_dir.report == []


def test_a_defect_in_blocking_work_leaves_the_thread_alive(caplog: pytest.LogCaptureFixture) -> None:
    """Otherwise the next deletion would wait for it for ever, in the event loop."""
    posted: list[Callable[[], object]] = []
    worker = WorkerThread(posted.append)
    done: list[str] = []

    def fail() -> None:
        raise RuntimeError("a defect")

    worker.run(fail, lambda: done.append("failed"))
    worker.run(lambda: None, lambda: done.append("next"))
    worker.wait()
    worker.stop()
    for action in posted:
        action()
    assert done == ["failed", "next"]
    assert "RuntimeError: a defect" in caplog.text


def test_a_sync_with_a_defect_acknowledges_nothing() -> None:
    broker = DiskBroker("fsync")
    broker.ask(*create_topic("t"))
    broker.ask(*produce("t", [b"x"]))

    def fails(operation: Operation) -> bool:
        if operation.kind == "sync":
            raise RuntimeError("a defect")
        return False

    broker.disk.fails = fails
    assert errors_of(broker.ask(*produce("t", [b"y"]))) == [56]
