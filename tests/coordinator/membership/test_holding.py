"""A held rebalance ends when it is released: at once with all members, otherwise after their rebalance timeout."""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto_server.coordinator.groups import GroupState
from kproto_server.coordinator.membership.holding import release
from kproto_server.coordinator.membership.phases import HeldPhase, Hold
from tests.coordinator.membership.group_driver import GroupDriver, joined

OTHER = (("range", b"other"),)
"""Protocols that cause a rebalance."""


def hold(driver: GroupDriver, phase: HeldPhase) -> None:
    driver.state.coordinator.holds["g"] = Hold(phase)


def let_go(driver: GroupDriver) -> bool:
    return release(driver.state.coordinator, "g", driver.clock.now_ms())


def test_release_reports_whether_the_group_was_held() -> None:
    driver = GroupDriver()
    assert not let_go(driver)
    hold(driver, "join")
    assert let_go(driver), "although there is no such group"
    driver.stable_with(1)
    assert not let_go(driver)
    hold(driver, "sync")
    assert let_go(driver)
    assert driver.group_state is GroupState.STABLE


def test_a_join_phase_with_all_members_ends_when_it_is_released() -> None:
    driver = GroupDriver()
    hold(driver, "join")
    response = driver.join()
    driver.pass_time(120_000)
    assert (response.result, driver.group_state) == (None, GroupState.PREPARING_REBALANCE)
    assert let_go(driver)
    assert joined(response).generation == 1


def test_missing_members_have_their_rebalance_timeout_from_the_release_on() -> None:
    driver = GroupDriver()
    first, second = driver.stable_with(2, session_ms=600_000, rebalance_ms=5000)
    hold(driver, "join")
    rejoined = driver.join(first, protocols=OTHER, session_ms=600_000, rebalance_ms=5000)
    driver.pass_time(5000)
    assert let_go(driver)
    driver.pass_time(4999)
    assert rejoined.result is None
    assert driver.heartbeat(second) == ErrorCode.REBALANCE_IN_PROGRESS
    driver.pass_time(1)
    assert [member.member_id for member in joined(rejoined).members] == [first]


def test_the_leaders_first_assignments_are_distributed_at_the_release() -> None:
    driver = GroupDriver()
    hold(driver, "sync")
    member_id = joined(driver.join()).member_id
    responses = [driver.sync(member_id, {member_id: assignment}) for assignment in (b"first", b"second")]
    assert (responses[1].result, driver.group_state) == (None, GroupState.COMPLETING_REBALANCE)
    assert let_go(driver)
    assert responses[1].result is not None
    assert responses[1].result.assignment == b"first"
    assert driver.group_state is GroupState.STABLE


@pytest.mark.parametrize("syncs_again", [False, True])
def test_assignments_of_an_older_generation_are_not_distributed(syncs_again: bool) -> None:
    driver = GroupDriver()
    hold(driver, "sync")
    member_id = joined(driver.join()).member_id
    driver.sync(member_id, {member_id: b"old"})
    assert joined(driver.join(member_id, protocols=OTHER)).generation == 2
    response = driver.sync(member_id, {member_id: b"new"}) if syncs_again else None
    assert let_go(driver)
    if response is None:
        assert driver.group_state is GroupState.COMPLETING_REBALANCE
        response = driver.sync(member_id, {member_id: b"new"})
    assert response.result is not None
    assert response.result.assignment == b"new"


def test_the_session_of_a_member_runs_after_the_release() -> None:
    driver = GroupDriver()
    hold(driver, "join")
    response = driver.join(session_ms=10_000)
    assert let_go(driver)
    driver.sync(joined(response).member_id, {})
    assert driver.states_around(10_000) == (GroupState.STABLE, GroupState.EMPTY)
