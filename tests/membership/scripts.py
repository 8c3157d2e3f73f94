"""The requests of members, script by script: each runs against real brokers, and against kproto as those releases.

The broker has group.max.size=3, group.min.session.timeout.ms=1000 and no initial rebalance delay; a topic "t".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kproto.records.consumer_protocol import ConsumerProtocolSubscription, encode_member_data
from tests.membership.members import Members

STATIC_SINCE = 5

CHANGED = encode_member_data(ConsumerProtocolSubscription(topics=("t", "u")), 0)
"""A subscription other than the default one to "t"."""


class Script(NamedTuple):
    """One script."""

    run: Callable[[Members], None]
    first_version: int = 0
    """The first version of JoinGroup that the script makes sense for."""
    takes_long: bool = False
    """Whether real time passes in the script; then it runs in the newest version only."""


SCRIPTS: dict[str, Script] = {}


def script(
    first_version: int = 0, *, takes_long: bool = False
) -> Callable[[Callable[[Members], None]], Callable[[Members], None]]:
    def note(run: Callable[[Members], None]) -> Callable[[Members], None]:
        SCRIPTS[run.__name__] = Script(run, first_version, takes_long)
        return run

    return note


@script()
def a_member_alone(members: Members) -> None:
    members.heartbeat("A", member_id="ghost", generation=0)
    members.leave("A", ("ghost", None))
    members.sync("A", member_id="ghost", generation=1)
    members.join("A", member_id="ghost")
    members.join("A")
    members.describe()
    members.heartbeat("A")
    members.heartbeat("A", generation=7)
    members.heartbeat("A", member_id="ghost")
    members.heartbeat("A", member_id="ghost", generation=7)
    members.commit("A")
    members.commit("A", generation=-1, member_id="")
    members.sync("A", generation=7)
    members.sync("A", member_id="ghost")
    members.sync("A", {"A": b"mine", "ghost": b"unused"})
    members.describe()
    members.list_groups()
    members.heartbeat("A")
    members.heartbeat("A", generation=0)
    members.sync("A")
    members.commit("A")
    members.commit("A", generation=0)
    members.commit("A", member_id="ghost")
    members.commit("A", generation=-1, member_id="")
    members.commit("A", generation=-1)
    if members.serves(42):
        members.delete()
    members.leave("A", ("ghost", None))
    members.leave("A")
    members.leave("A")
    members.describe()
    members.list_groups()
    members.heartbeat("A")
    members.sync("A")
    members.join("A")
    members.commit("A", generation=-1, member_id="")
    members.commit("A")
    members.join("B")
    members.describe()
    members.leave("B")
    if members.serves(42):
        members.delete()
    members.describe()


@script()
def a_group_without_a_name(members: Members) -> None:
    members.group_id, name = "", members.group_id
    members.join("A")
    members.heartbeat("A", generation=0)
    members.sync("A", generation=0)
    members.leave("A")
    members.group_id = name


@script()
def joins_that_are_refused(members: Members) -> None:
    members.join("A", session_ms=1)
    members.join("A", session_ms=1 << 30)
    members.join("A", session_ms=1, member_id="ghost")
    members.describe()
    members.join("A", protocol_type="")
    members.join("A", protocols={})
    members.describe()
    members.join("A")
    members.join("B", protocol_type="connect")
    members.join("B", protocols={"other": b""})
    members.join("B", protocols={"other": b""}, member_id="ghost")
    members.join("B", member_id="ghost")
    members.join("A", protocols={"other": b""})
    members.describe()


@script()
def two_members(members: Members) -> None:
    members.join("A")
    members.sync("A", {"A": b"all"})
    members.join("B")
    members.describe()
    members.heartbeat("A")
    members.heartbeat("A", generation=9)
    members.commit("A")
    members.commit("A", generation=9)
    members.commit("A", generation=-1, member_id="")
    members.sync("A")
    members.list_groups()
    if members.serves(42):
        members.delete()
    members.join("A")
    members.describe()
    members.heartbeat("A")
    members.heartbeat("B")
    members.heartbeat("B", generation=9)
    members.commit("B")
    members.commit("B", generation=9)
    members.commit("B", member_id="ghost")
    members.commit("B", generation=-1, member_id="")
    members.sync("B")
    members.sync("A", {"A": b"half", "B": b"the other"})
    members.describe()
    members.join("B")
    members.describe()
    members.join("B", protocols={"range": CHANGED})
    members.heartbeat("A")
    members.join("A")
    members.sync("A", {"A": b"half", "B": b"the other"})
    members.sync("B")
    members.join("A")
    members.describe()
    members.join("B")
    members.sync("A", {"A": b"1"})
    members.sync("B")
    members.leave("A")
    members.describe()
    members.heartbeat("B")
    members.join("B")
    members.sync("B", {"B": b"all"})
    members.describe()


@script()
def joins_before_the_assignment(members: Members) -> None:
    members.join("A")
    members.join("B")
    members.join("A")
    members.join("B")
    members.join("A")
    members.describe()
    members.sync("B")
    members.join("C")
    members.describe()
    members.join("A")
    members.join("B")
    members.sync("B")
    members.sync("C")
    members.leave("B")
    members.join("C", protocols={"range": CHANGED})
    members.join("A")
    members.describe()


@script()
def a_leader_that_goes_while_others_wait_for_it(members: Members) -> None:
    members.join("A")
    members.join("B")
    members.join("A")
    members.sync("B")
    members.leave("A")
    members.join("B")
    members.sync("B", {"B": b"all"})
    members.describe()


@script()
def a_join_whose_member_leaves(members: Members) -> None:
    members.join("A")
    members.sync("A", {"A": b"all"})
    members.join("B")
    members.leave("C", ("A", None))
    members.describe()
    members.join("A", member_id="")
    members.describe()
    members.leave("C", ("A", None))
    members.describe()


@script()
def protocols_are_voted_for(members: Members) -> None:
    members.join("A", protocols={"x": b"Ax", "y": b"Ay"})
    members.join("B", protocols={"z": b"Bz", "x": b"Bx", "y": b"By"})
    members.join("A", protocols={"x": b"Ax", "y": b"Ay"})
    members.join("C", protocols={"y": b"Cy", "x": b"Cx"})
    members.join("A", protocols={"x": b"Ax", "y": b"Ay"})
    members.join("B", protocols={"y": b"By", "x": b"Bx", "z": b"Bz"})
    members.join("C", protocols={"y": b"Cy"})
    members.join("A", protocols={"x": b"Ax", "y": b"Ay"})
    members.join("B", protocols={"x": b"Bx", "y": b"By"})
    members.sync("B", protocol_name="x")
    members.sync("B", protocol_type="connect", protocol_name="y")
    members.sync("A", {"A": b"1"}, protocol_name="y")
    members.describe()
    members.leave("C")
    members.join("A", protocols={"x": b"Ax"})
    members.join("B", protocols={"y": b"By", "x": b"Bx", "z": b"Bz"})
    members.describe()


@script()
def a_full_group(members: Members) -> None:
    members.join("A")
    members.join("B")
    members.join("A")
    members.sync("A", {"A": b"1", "B": b"2"})
    members.join("C")
    members.join("D")
    members.join("A")
    members.describe()
    members.join("E")
    members.join("B")
    members.describe()
    members.join("B")
    members.join("E", member_id="ghost")
    members.sync("A", {"A": b"1"})
    members.join("E")
    members.join("A")
    members.join("E")
    members.join("C")
    members.join("D")
    members.describe()


@script(4)
def ids_that_are_given_out(members: Members) -> None:
    members.join("A", sends_required_id=False)
    members.pass_time(100)  # 4.0 lists a group once its record is written
    members.describe()
    members.list_groups()
    members.heartbeat("A", generation=-1)
    members.commit("A", generation=0)
    members.join("B")
    members.join("A", sends_required_id=False)
    members.join("B")
    members.sync("A", {"A": b"1"})
    members.sync("B")
    members.join("C", sends_required_id=False)
    members.describe()
    members.join("B", protocols={"range": CHANGED})
    members.join("A")
    members.describe()
    members.leave("C")
    members.describe()
    members.leave("C")
    members.join("C", sends_required_id=False)


@script(4, takes_long=True)
def an_unused_member_id(members: Members) -> None:
    members.join("A")
    members.sync("A", {"A": b"1"})
    members.join("C", session_ms=4000, sends_required_id=False)
    members.join("B")
    members.join("A")
    members.describe()
    members.pass_time(6000)
    members.describe()
    members.join("C")


@script(takes_long=True)
def a_silent_member(members: Members) -> None:
    members.join("A", session_ms=3000)
    members.sync("A", {"A": b"1"})
    members.pass_time(2000)
    members.heartbeat("A")
    members.pass_time(2000)
    members.heartbeat("A")
    members.pass_time(2000)
    members.commit("A")
    members.pass_time(2000)
    members.describe()
    members.pass_time(2500)
    members.heartbeat("A")
    members.describe()


@script(takes_long=True)
def a_silent_member_of_two(members: Members) -> None:
    members.join("A")
    members.join("B", session_ms=2000)
    members.join("A")
    members.sync("B")
    members.sync("A", {"A": b"1", "B": b"2"})
    members.pass_time(1000)
    members.heartbeat("A")
    members.describe()
    members.pass_time(2000)
    members.heartbeat("A")
    members.describe()
    members.join("A")
    members.describe()


@script(1, takes_long=True)
def a_member_that_does_not_join_again(members: Members) -> None:
    members.join("A", rebalance_ms=5000)
    members.sync("A", {"A": b"1"})
    members.join("B", rebalance_ms=4000)
    members.pass_time(1000)
    members.heartbeat("A")
    members.describe()
    members.pass_time(5000)
    members.describe()
    members.heartbeat("A")
    members.sync("B", {"B": b"1"})


@script(1, takes_long=True)
def members_that_do_not_sync(members: Members) -> None:
    members.join("A", rebalance_ms=3000)
    members.join("B", rebalance_ms=3000)
    members.join("A", rebalance_ms=3000)
    members.sync("B")
    members.pass_time(1500)
    members.heartbeat("A")
    members.describe()
    members.pass_time(3000)
    members.describe()
    members.heartbeat("A")


@script(1, takes_long=True)
def a_follower_that_does_not_sync(members: Members) -> None:
    members.join("A", rebalance_ms=3000)
    members.join("B", rebalance_ms=3000)
    members.join("A", rebalance_ms=3000)
    members.sync("A", {"A": b"1", "B": b"2"})
    members.describe()
    members.pass_time(4500)
    members.describe()
    members.heartbeat("B")
    members.heartbeat("A")


@script(STATIC_SINCE)
def static_members_come_back(members: Members) -> None:
    members.join("A", instance="i1")
    members.join("B", instance="i2")
    members.join("A", instance="i1")
    members.sync("B", instance="i2")
    members.sync("A", {"A": b"1", "B": b"2"}, instance="i1")
    members.describe()
    members.join("B2", instance="i2")
    members.heartbeat("B2", instance="i2")
    members.heartbeat("B", instance="i2")
    members.heartbeat("B")
    members.heartbeat("B2", instance="i3")
    members.heartbeat("B2")
    members.sync("B2", instance="i2")
    members.sync("B", instance="i2")
    members.sync("B2", instance="i3")
    members.commit("B", instance="i2")
    members.commit("B2", instance="i2")
    members.join("B", instance="i2")
    members.join("B2", instance="i3")
    members.join("B2", instance="i2")
    members.describe()
    members.join("A2", instance="i1")
    members.sync("A2", {"A2": b"other"}, instance="i1")
    members.describe()
    members.join("A2", instance="i1")
    members.join("B2", instance="i2")
    members.join("B3", instance="i2")
    members.describe()


@script(STATIC_SINCE)
def a_static_member_comes_back_before_the_assignment(members: Members) -> None:
    members.join("A", instance="i1")
    members.join("B", instance="i2")
    members.join("A", instance="i1")
    members.sync("B", instance="i2")
    members.join("B2", instance="i2")
    members.describe()
    members.join("A", instance="i1")
    members.sync("A", {"A": b"1", "B2": b"2"}, instance="i1")
    members.describe()


@script(STATIC_SINCE)
def a_static_member_comes_back_while_others_join(members: Members) -> None:
    members.join("A", instance="i1")
    members.sync("A", {"A": b"1"}, instance="i1")
    members.join("B", instance="i2")
    members.join("B2", instance="i2")
    members.describe()
    members.join("A", instance="i1")
    members.describe()


@script(STATIC_SINCE)
def a_static_member_comes_back_with_other_protocols(members: Members) -> None:
    members.join("A", instance="i1", protocols={"x": b"Ax", "y": b"Ay"})
    members.sync("A", {"A": b"1"}, instance="i1", protocol_name="x")
    members.join("A2", instance="i1", protocols={"x": CHANGED})
    members.describe()
    members.join("A3", instance="i1", protocols={"y": b"", "x": b"again"})
    members.describe()
    members.join("A4", instance="i1", protocols={"z": b""})


@script(STATIC_SINCE)
def static_members_leave(members: Members) -> None:
    members.join("A", instance="i1")
    members.sync("A", {"A": b"1"}, instance="i1")
    if members.version(13) < 3:
        members.leave("A")
    else:
        members.leave("admin", ("ghost", "i1"), ("", "i3"), ("A", "i3"))
        members.describe()
        members.leave("admin", ("", "i1"), ("", "i1"))
    members.describe()


@script(STATIC_SINCE, takes_long=True)
def an_absent_static_member_keeps_its_place(members: Members) -> None:
    members.join("A", instance="i1", rebalance_ms=4000, session_ms=8000)
    members.sync("A", {"A": b"1"}, instance="i1")
    members.join("B", rebalance_ms=4000)
    members.pass_time(1000)
    members.describe()
    members.pass_time(4500)
    members.describe()
    members.sync("B", {"B": b"1"})
    members.pass_time(8500)
    members.heartbeat("B")
    members.describe()


@script(6)
def several_leave_at_once(members: Members) -> None:
    for name in "ABC":
        members.join(name)
    members.join("A")
    members.join("B")
    members.sync("A", {"A": b"1", "B": b"2", "C": b"3"})
    members.sync("B")
    members.sync("C")
    members.leave("admin", ("A", None), ("ghost", None), ("B", None))
    members.describe()
    members.join("C")
    members.sync("C", {"C": b"1"})
    members.leave("admin", ("C", None), ("C", None))
    members.describe()


@script(7)
def a_sync_without_names(members: Members) -> None:
    members.join("A")
    members.sync("A", protocol_type=None)
    members.sync("A", protocol_name=None, generation=9)
    members.sync("A", {"A": b"1"})
