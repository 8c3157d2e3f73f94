"""A group is deleted, and members join before the log has the tombstones: they are in a new group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kproto_server.coordinator.deletion import delete_group, delete_offsets
from kproto_server.coordinator.expiration_task import ExpirationTask
from kproto_server.testing import virtual_clock
from tests.coordinator.broker_state import ask, new_state
from tests.coordinator.change_logs import RecordingLog
from tests.coordinator.membership.group_driver import GroupDriver, error_of, joined

if TYPE_CHECKING:
    from kproto_server.state import BrokerState

STORAGE_ERROR = int(ErrorCode.KAFKA_STORAGE_ERROR)
DELAY_MS = 3000
OLD_AND_NEW = pytest.mark.parametrize("kafka_version", ["3.9", "4.4"])


def emptied(kafka_version: str, **settings: str) -> tuple[GroupDriver, RecordingLog]:
    """Return a classic group whose member has left, and its log, which waits."""
    log = RecordingLog()
    driver = GroupDriver(kafka_version, log, group_initial_rebalance_delay_ms=str(DELAY_MS), **settings)
    first = driver.join()
    driver.pass_time(DELAY_MS)
    member_id = joined(first).member_id
    driver.sync(member_id, {member_id: b""})
    assert driver.leave((member_id, None)) == [0]
    assert driver.group.is_empty
    log.waits = True
    return driver, log


def settle(log: RecordingLog, error: int = 0) -> None:
    log.error, log.waits = error, False
    log.settle()


@OLD_AND_NEW
def test_a_classic_member_joins_during_delete_groups(kafka_version: str) -> None:
    driver, log = emptied(kafka_version)
    found: list[int] = []
    delete_group(driver.state.coordinator, "g", driver.clock.now_ms(), found.append)
    response = driver.join()
    settle(log)
    driver.pass_time(DELAY_MS)
    assert (found, joined(response).generation) == ([0], 1)
    assert list(driver.group.members) == [joined(response).member_id]


def test_a_classic_member_joins_during_offset_delete() -> None:
    """Up to 3.9 it removes an empty group without other offsets."""
    driver, log = emptied("3.9")
    delete_offsets(driver.state.coordinator, "g", {"t": [0]}, driver.clock.now_ms(), lambda error: None)
    response = driver.join()
    settle(log)
    driver.pass_time(DELAY_MS)
    assert joined(response).generation == 1


@OLD_AND_NEW
def test_a_classic_member_joins_during_an_expiration_run(kafka_version: str) -> None:
    driver, log = emptied(kafka_version, offsets_retention_check_interval_ms="600000")
    ExpirationTask(driver.state.coordinator, driver.clock).start()
    driver.pass_time(600_000)
    assert list(log.in_flight())
    response = driver.join()
    settle(log)
    driver.pass_time(DELAY_MS)
    assert joined(response).generation == 1


def test_an_expired_group_is_there_again_if_its_tombstones_cannot_be_written() -> None:
    driver, log = emptied("4.4", offsets_retention_check_interval_ms="600000")
    group = driver.group
    ExpirationTask(driver.state.coordinator, driver.clock).start()
    driver.pass_time(600_000)
    settle(log, STORAGE_ERROR)
    assert driver.group is group
    assert group.is_empty
    log.error = 0
    driver.pass_time(600_000)
    assert driver.state.coordinator.groups.get("g") is None


def test_a_new_group_fails_with_the_deletion_on_which_it_relies() -> None:
    driver, log = emptied("4.4")
    group = driver.group
    found: list[int] = []
    delete_group(driver.state.coordinator, "g", driver.clock.now_ms(), found.append)
    response = driver.join()
    settle(log, STORAGE_ERROR)
    assert (found, error_of(response)) == ([ErrorCode.NOT_COORDINATOR], ErrorCode.NOT_COORDINATOR)
    assert driver.group is group
    assert group.is_empty
    groups = driver.state.coordinator.groups
    assert not groups.deleted
    assert not groups.replaced


def heartbeat(state: BrokerState, member_id: str, epoch: int) -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=9000,
        subscribed_topic_names=("t",),
        topic_partitions=() if epoch == 0 else None,
    )
    return ask(state, request, 1, now_ms=state.clock.now_ms())


def test_a_consumer_joins_during_delete_groups() -> None:
    state = new_state("4.4", clock=virtual_clock())
    state.coordinator.log = log = RecordingLog()
    heartbeat(state, "m", 0)
    heartbeat(state, "m", -1)
    log.waits = True
    found: list[int] = []
    delete_group(state.coordinator, "g", state.clock.now_ms(), found.append)
    responses: list[Any] = []
    heartbeat(state, "n", 0).deliver = responses.append
    settle(log)
    assert (found, [response.error_code for response in responses]) == ([0], [0])
    assert heartbeat(state, "n", responses[0].member_epoch).error_code == 0


def test_a_group_is_gone_whose_creation_and_deletion_fail() -> None:
    state = new_state("4.4", clock=virtual_clock())
    state.coordinator.log = log = RecordingLog(waits=True)
    heartbeat(state, "m", 0)
    heartbeat(state, "m", -1)
    found: list[int] = []
    delete_group(state.coordinator, "g", state.clock.now_ms(), found.append)
    settle(log, STORAGE_ERROR)
    assert found == [ErrorCode.NOT_COORDINATOR]
    assert state.coordinator.groups.get("g") is None
    assert not state.coordinator.groups.deleted
