"""Removal of logs while they are loaded: nothing of them is read or served later."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from tests.persistence.disk_broker import DiskBroker
from tests.robustness.changes import commit, create_topic, delete_topic, errors_of, zookeeper_offset

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = {"transaction.state.log.num.partitions": "1"}
INIT = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000), 0


def restarted(turns: int) -> DiskBroker:
    """Return a broker that has begun to load: each turn loads one slice of a log, or begins the next loading."""
    times = itertools.count()
    broker = DiskBroker("os", SETTINGS, monotonic_s=lambda: next(times) * 0.003)
    broker.ask(*create_topic("t"))
    broker.broker.state.cluster.ensure_offsets_topic(0)
    for group_id in ("a", "b", "c"):
        assert not errors_of(broker.ask(*commit(group_id, {"t": {0: 1}})))
    broker.ask(*commit("v0", {"t": {0: 7}}, 0))
    for _ in range(2):  # the first creates the topic
        broker.ask(FindCoordinatorRequest(key="x", key_type=1), 2)
    assert not broker.ask(*INIT).error_code
    broker.kill(turns)
    return broker


def reset(broker: DiskBroker) -> None:
    broker.broker.state.reset()
    broker.persistence.reset()
    broker.run_posted()


REMOVALS: dict[str, Callable[[DiskBroker], object]] = {
    "reset": reset,
    "DeleteTopics of offsets": lambda broker: broker.ask(*delete_topic("__consumer_offsets")),
    "DeleteTopics of transactions": lambda broker: broker.ask(*delete_topic("__transaction_state")),
}


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("turns", range(12))
def test_logs_that_are_removed_while_they_are_loaded(turns: int, removal: str) -> None:
    broker = restarted(turns)
    REMOVALS[removal](broker)
    state = broker.broker.state
    assert not state.coordinator.unavailable
    assert not state.transactions.log.unavailable
    keeps_offsets = removal == "DeleteTopics of transactions"
    keeps_transactions = removal == "DeleteTopics of offsets"
    assert bool(state.coordinator.offsets.of_group("a")) == keeps_offsets
    assert bool(state.transactions.transactions) == keeps_transactions
    assert (7 in zookeeper_offset(broker, "v0", "t").values()) == (removal != "reset")
    assert not broker.persistence.log_dir.writer.failure
