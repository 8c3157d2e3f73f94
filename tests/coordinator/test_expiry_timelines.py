"""The timelines T1 to T30, asked of our coordinator on a virtual clock: what went when in 2.0.1, 2.1.1 and 4.4.0.

Retention 60 s, a sweep a second; the numbers were measured on real brokers, to the second, but where a comment says
that they follow from the rules. Members come and go by hand here, as JoinGroup does not exist yet; for the same reason
T13 (a member that has been given an id and not joined), T21 and T22 (a restart) and T29 (transactions) are not here.
"""

from __future__ import annotations

import pytest

from kproto_server.coordinator.groups import GroupState
from tests.coordinator.timeline import Timeline, near

OLD, FIRST, NEW = "2.0", "2.1", "4.4"

Measured = tuple[str, float | None]


def columns(old: float | None, first: float | None, new: float | None) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("profile", "measured"), [(OLD, old), (FIRST, first), (NEW, new)])


@columns(61, 60, 61)
def test_t1_simple_commit(profile: str, measured: float) -> None:
    """EX-21 row 1, EX-31, EX-34: the offset goes a retention time after its commit, and the group with it."""
    line = Timeline(profile)
    line.commit()
    assert near(measured, line.gone())
    assert line.group_state() is GroupState.DEAD


@columns(11, 10, 11)
def test_t2_shorter_retention_time(profile: str, measured: float) -> None:
    """EX-20."""
    line = Timeline(profile)
    line.commit(ret=10_000)
    assert near(measured, line.gone())


@columns(101, 100, 100)
def test_t3_longer_retention_time(profile: str, measured: float) -> None:
    """EX-20, OC-42: it extends the life."""
    line = Timeline(profile)
    line.commit(ret=100_000)
    assert near(measured, line.gone())


@pytest.mark.parametrize(("profile", "measured"), [(OLD, 11), (FIRST, 10)])
def test_t4_timestamp_of_the_client(profile: str, measured: float) -> None:
    """OC-40: the deadline counts from what the client says."""
    line = Timeline(profile)
    line.commit_v1(50_000)
    assert near(measured, line.gone())


@columns(6, 20, 21)
def test_t5_retention_time_of_a_member(profile: str, measured: float) -> None:
    """EX-24, EX-40: safe while the group has members, since 2.1; before, it goes from a Stable group."""
    line = Timeline(profile)
    group = line.join("g", "t")
    line.commit(ret=5_000, member=True)
    seen = line.gone(until_s=20)
    if profile == OLD:
        assert near(measured, seen)
        assert group.state is GroupState.STABLE
        return
    assert seen is None
    line.leave()
    assert near(measured, line.gone())


@columns(61, 75, 76)
def test_t6_group_that_is_left(profile: str, measured: float) -> None:
    """EX-11, EX-21 row 2: since 2.1 the clock starts when the group becomes Empty."""
    line = Timeline(profile)
    line.join("g", "t")
    line.commit(member=True)
    line.at(15)
    line.leave()
    assert near(measured, line.gone())
    assert line.group_state() is GroupState.DEAD


@pytest.mark.parametrize(("profile", "first", "second"), [(OLD, 61, 101), (FIRST, 65, 65), (NEW, 66, 66)])
def test_t7_simple_commit_into_a_group_that_was_left(profile: str, first: float, second: float) -> None:
    """EX-25, EX-32: it renews nothing, and goes with the rest."""
    line = Timeline(profile)
    line.join("g", "t")
    line.commit(member=True)
    line.at(5)
    line.leave()
    line.at(40)
    line.commit(partition=1)
    assert near(first, line.gone())
    assert near(second, line.gone(partition=1))
    assert line.group_state() is GroupState.DEAD


@columns(61, None, 61)
def test_t8_topic_that_the_members_no_longer_subscribe_to(profile: str, measured: float | None) -> None:
    """EX-21 row 3, EX-35: gone since 2.4 (KAFKA-8730), and the group is Stable without any offset."""
    line = Timeline(profile)
    group = line.join("g", "u")
    line.commit(member=True)
    assert near(measured, line.gone(until_s=135))
    assert group.state is GroupState.STABLE
    assert line.state.groups.get("g") is group


@columns(61, None, None)
def test_t8b_topic_that_they_subscribe_to(profile: str, measured: float | None) -> None:
    """EX-21 row 3, and T23: nothing expires in a group at work."""
    line = Timeline(profile)
    group = line.join("g", "t")
    line.commit(member=True)
    assert near(measured, line.gone(until_s=600))
    assert group.state is GroupState.STABLE


@pytest.mark.parametrize("profile", [OLD, FIRST, NEW])
@pytest.mark.parametrize("ret", [0, -2])
def test_t9_retention_time_of_nothing(profile: str, ret: int) -> None:
    """OC-41: any number but -1 is taken as it is: gone at the next sweep."""
    line = Timeline(profile)
    line.commit(ret=ret)
    assert near(0, line.gone())


@pytest.mark.parametrize(("profile", "first", "second"), [(OLD, 11, 61), (FIRST, 10, 60), (NEW, 11, 61)])
def test_t12_two_offsets_of_a_simple_group(profile: str, first: float, second: float) -> None:
    """EX-31: the group stays until the last is gone."""
    line = Timeline(profile)
    line.commit(partition=0)
    line.commit(partition=1, ret=10_000)
    assert near(first, line.gone(partition=1))
    assert line.group_state() is GroupState.EMPTY
    assert near(second, line.gone(partition=0))
    assert line.group_state() is GroupState.DEAD


@columns(60, 111, 111)  # 2.0: by the rules
def test_t20_group_that_is_used_again(profile: str, measured: float) -> None:
    """EX-15: its clock is forgotten, and starts anew."""
    line = Timeline(profile)
    line.join("g", "t")
    line.commit(member=True)
    line.at(5)
    line.leave()
    line.at(40)
    line.join("g", "t")
    line.at(50)
    line.leave()
    assert near(measured, line.gone())


@pytest.mark.parametrize(("profile", "first", "second"), [(OLD, 100, 61), (FIRST, 101, 66), (NEW, 101, 66)])
def test_t24_both_kinds_of_deadline_in_a_group_that_was_left(profile: str, first: float, second: float) -> None:
    """EX-20: a deadline of its own counts alone. 2.0: by the rules."""
    line = Timeline(profile)
    line.join("g", "t")
    line.commit(partition=0, ret=100_000, member=True)
    line.commit(partition=1, member=True)
    line.at(5)
    line.leave()
    assert near(second, line.gone(partition=1))
    assert line.group_state() is GroupState.EMPTY
    assert near(first, line.gone(partition=0))
    assert line.group_state() is GroupState.DEAD


@columns(61, None, None)  # 2.0: by the rules
def test_t25_members_that_are_no_consumers(profile: str, measured: float | None) -> None:
    """EX-21 row 4: whatever they are at work on, nothing expires."""
    line = Timeline(profile)
    line.join("g", protocol_type="connect")
    line.commit(member=True)
    assert near(measured, line.gone(until_s=118))


def test_t27_consumer_group_of_kip_848() -> None:
    """EX-21 row 6: by the time of the commit, not by that of its becoming empty."""
    line = Timeline(NEW)
    line.at(2)
    line.commit("t")
    line.commit("u")
    group = line.join("g", "t")
    group.kind = "consumer"
    line.at(50)
    assert line.has("t")
    assert line.has("u")
    line.leave()
    assert near(63, line.gone("t"))
    assert not line.has("u")
    assert line.group_state() is GroupState.DEAD


@pytest.mark.parametrize(("profile", "first", "second"), [(OLD, 61, 91), (FIRST, 61, 91), (NEW, 61, 91)])
def test_t28_each_offset_of_a_simple_group_has_its_time(profile: str, first: float, second: float) -> None:
    """EX-21 row 1, EX-72. 2.0: by the rules."""
    line = Timeline(profile)
    line.commit(partition=0)
    line.at(30)
    line.commit(partition=1)
    assert near(first, line.gone(partition=0))
    assert line.group_state() is GroupState.EMPTY
    assert near(second, line.gone(partition=1))
    assert line.group_state() is GroupState.DEAD


@columns(61, 60, 60)  # by the rules
def test_t30_retention_times_are_ignored_unless_asked_for(profile: str, measured: float) -> None:
    """D2: what is committed for ten seconds, or for a hundred, lasts as long as all else."""
    for ret in (10_000, 100_000):
        line = Timeline(profile, offsets_retention_override="ignore")
        line.commit(ret=ret)
        assert near(measured, line.gone())


def test_t30_retention_time_of_a_member_is_ignored() -> None:
    line = Timeline(NEW, offsets_retention_override="ignore")
    line.join("g", "t")
    line.commit(ret=5_000, member=True)
    line.at(20)
    line.leave()
    assert near(80, line.gone())
