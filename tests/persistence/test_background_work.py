"""Deletion and reset beside background work, which changes files by the name of their topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.persistence.disk_broker import DiskBroker
from tests.persistence.held_worker import HeldWorker, held_in_background
from tests.robustness.changes import create_topic, delete_topic, produce

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
