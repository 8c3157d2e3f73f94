"""The retention task checks many partitions in steps, between which the event loop serves connections."""

from __future__ import annotations

from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.clock import Clock, ClockMode
from kproto_server.log_manager.retention_task import STEP_PARTITIONS, RetentionTask
from kproto_server.partition_log.retention import STEP_BATCHES
from kproto_server.state import BrokerState
from tests.coordinator.broker_state import new_state

START_MS = 1_700_000_000_000
CHECK_INTERVAL_MS = 300_000
PARTITIONS = {"a": 3 * STEP_PARTITIONS // 2, "b": 3 * STEP_PARTITIONS // 2}


def state_with_expired_records() -> BrokerState:
    state = new_state(topics=PARTITIONS)
    batch = build_record_batch([Record(b"k", b"v", timestamp=1)])
    for name in PARTITIONS:
        for partition in state.cluster.topics[name].partitions:
            partition.make_data().append(batch, 0, 1, 0)
    return state


def partitions_with_records(state: BrokerState) -> int:
    return sum(
        partition.data.size_bytes > 0 for topic in state.cluster.topics.values() for partition in topic.partitions
    )


def start(state: BrokerState, rate: float) -> Clock:
    clock = Clock(START_MS, 0.0, ClockMode(rate=rate))
    RetentionTask(state.settings, state.cluster.topics, clock).start()
    return clock


def test_each_step_checks_a_limited_number_of_partitions() -> None:
    state = state_with_expired_records()
    clock = start(state, 1.0)
    left = []
    for real_ms in range(CHECK_INTERVAL_MS, CHECK_INTERVAL_MS + 4):
        clock.tick(real_ms)
        clock.run_due()
        left.append(partitions_with_records(state))
    assert left == [2 * STEP_PARTITIONS, STEP_PARTITIONS, 0, 0]


def test_a_topic_may_be_deleted_between_two_steps() -> None:
    state = state_with_expired_records()
    clock = start(state, 1.0)
    clock.tick(CHECK_INTERVAL_MS)
    clock.run_due()
    deleted = state.cluster.delete_topic("a")
    assert deleted is not None
    for real_ms in range(CHECK_INTERVAL_MS + 1, CHECK_INTERVAL_MS + 4):
        clock.tick(real_ms)
        clock.run_due()
    assert partitions_with_records(state) == 0
    assert sum(partition.data.size_bytes > 0 for partition in deleted.partitions) == STEP_PARTITIONS // 2


def test_a_clock_that_only_a_test_advances_runs_all_steps_at_once() -> None:
    state = state_with_expired_records()
    start(state, 0.0).advance(CHECK_INTERVAL_MS)
    assert partitions_with_records(state) == 0


def test_each_step_looks_at_a_limited_number_of_batches() -> None:
    state = new_state(topics={"a": 1})
    data = state.cluster.topics["a"].partitions[0].make_data()
    batch = build_record_batch([Record(b"k", b"v", timestamp=1)])
    for _ in range(4 * STEP_BATCHES):
        data.append(batch, 0, 1, 0)
    clock = start(state, 1.0)
    left = []
    for real_ms in range(CHECK_INTERVAL_MS, CHECK_INTERVAL_MS + 6):
        clock.tick(real_ms)
        clock.run_due()
        left.append(partitions_with_records(state))
    assert left == [1, 1, 1, 0, 0, 0]
