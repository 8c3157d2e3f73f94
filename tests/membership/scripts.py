"""What members say, script by script: each is played to real brokers, and to ours as those Kafka versions.

The broker has group.max.size=3, group.min.session.timeout.ms=1000 and no initial rebalance delay; a topic "t".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kproto.records.consumer_protocol import ConsumerProtocolSubscription, encode_member_data
from tests.membership.talk import Talk

STATIC_SINCE = 5

CHANGED = encode_member_data(ConsumerProtocolSubscription(topics=("t", "u")), 0)
"""Beside the subscription to "t" that members have by themselves."""


class Script(NamedTuple):
    """One conversation."""

    play: Callable[[Talk], None]
    first_version: int = 0
    """Of JoinGroup: what it is about is not older."""
    takes_long: bool = False
    """Whether real time passes in it; then it is played in the newest version only."""


SCRIPTS: dict[str, Script] = {}


def script(
    first_version: int = 0, *, takes_long: bool = False
) -> Callable[[Callable[[Talk], None]], Callable[[Talk], None]]:
    def note(play: Callable[[Talk], None]) -> Callable[[Talk], None]:
        SCRIPTS[play.__name__] = Script(play, first_version, takes_long)
        return play

    return note


@script()
def a_member_alone(talk: Talk) -> None:
    talk.heartbeat("A", member_id="ghost", generation=0)
    talk.leave("A", ("ghost", None))
    talk.sync("A", member_id="ghost", generation=1)
    talk.join("A", member_id="ghost")
    talk.join("A")
    talk.describe()
    talk.heartbeat("A")
    talk.heartbeat("A", generation=7)
    talk.heartbeat("A", member_id="ghost")
    talk.heartbeat("A", member_id="ghost", generation=7)
    talk.commit("A")
    talk.commit("A", generation=-1, member_id="")
    talk.sync("A", generation=7)
    talk.sync("A", member_id="ghost")
    talk.sync("A", {"A": b"mine", "ghost": b"nobody's"})
    talk.describe()
    talk.list_groups()
    talk.heartbeat("A")
    talk.heartbeat("A", generation=0)
    talk.sync("A")
    talk.commit("A")
    talk.commit("A", generation=0)
    talk.commit("A", member_id="ghost")
    talk.commit("A", generation=-1, member_id="")
    talk.commit("A", generation=-1)
    if talk.serves(42):
        talk.delete()
    talk.leave("A", ("ghost", None))
    talk.leave("A")
    talk.leave("A")
    talk.describe()
    talk.list_groups()
    talk.heartbeat("A")
    talk.sync("A")
    talk.join("A")
    talk.commit("A", generation=-1, member_id="")
    talk.commit("A")
    talk.join("B")
    talk.describe()
    talk.leave("B")
    if talk.serves(42):
        talk.delete()
    talk.describe()


@script()
def a_group_without_a_name(talk: Talk) -> None:
    talk.group_id, name = "", talk.group_id
    talk.join("A")
    talk.heartbeat("A", generation=0)
    talk.sync("A", generation=0)
    talk.leave("A")
    talk.group_id = name


@script()
def joins_that_are_refused(talk: Talk) -> None:
    talk.join("A", session_ms=1)
    talk.join("A", session_ms=1 << 30)
    talk.join("A", session_ms=1, member_id="ghost")
    talk.describe()
    talk.join("A", protocol_type="")
    talk.join("A", protocols={})
    talk.describe()
    talk.join("A")
    talk.join("B", protocol_type="connect")
    talk.join("B", protocols={"other": b""})
    talk.join("B", protocols={"other": b""}, member_id="ghost")
    talk.join("B", member_id="ghost")
    talk.join("A", protocols={"other": b""})
    talk.describe()


@script()
def two_members(talk: Talk) -> None:
    talk.join("A")
    talk.sync("A", {"A": b"all"})
    talk.join("B")
    talk.describe()
    talk.heartbeat("A")
    talk.heartbeat("A", generation=9)
    talk.commit("A")
    talk.commit("A", generation=9)
    talk.commit("A", generation=-1, member_id="")
    talk.sync("A")
    talk.list_groups()
    if talk.serves(42):
        talk.delete()
    talk.join("A")
    talk.describe()
    talk.heartbeat("A")
    talk.heartbeat("B")
    talk.heartbeat("B", generation=9)
    talk.commit("B")
    talk.commit("B", generation=9)
    talk.commit("B", member_id="ghost")
    talk.commit("B", generation=-1, member_id="")
    talk.sync("B")
    talk.sync("A", {"A": b"half", "B": b"the other"})
    talk.describe()
    talk.join("B")
    talk.describe()
    talk.join("B", protocols={"range": CHANGED})
    talk.heartbeat("A")
    talk.join("A")
    talk.sync("A", {"A": b"half", "B": b"the other"})
    talk.sync("B")
    talk.join("A")
    talk.describe()
    talk.join("B")
    talk.sync("A", {"A": b"1"})
    talk.sync("B")
    talk.leave("A")
    talk.describe()
    talk.heartbeat("B")
    talk.join("B")
    talk.sync("B", {"B": b"all"})
    talk.describe()


@script()
def joins_before_the_assignment(talk: Talk) -> None:
    talk.join("A")
    talk.join("B")
    talk.join("A")
    talk.join("B")
    talk.join("A")
    talk.describe()
    talk.sync("B")
    talk.join("C")
    talk.describe()
    talk.join("A")
    talk.join("B")
    talk.sync("B")
    talk.sync("C")
    talk.leave("B")
    talk.join("C", protocols={"range": CHANGED})
    talk.join("A")
    talk.describe()


@script()
def a_leader_that_goes_while_others_wait_for_it(talk: Talk) -> None:
    talk.join("A")
    talk.join("B")
    talk.join("A")
    talk.sync("B")
    talk.leave("A")
    talk.join("B")
    talk.sync("B", {"B": b"all"})
    talk.describe()


@script()
def a_join_whose_member_leaves(talk: Talk) -> None:
    talk.join("A")
    talk.sync("A", {"A": b"all"})
    talk.join("B")
    talk.leave("C", ("A", None))
    talk.describe()
    talk.join("A", member_id="")
    talk.describe()
    talk.leave("C", ("A", None))
    talk.describe()


@script()
def protocols_are_voted_for(talk: Talk) -> None:
    talk.join("A", protocols={"x": b"Ax", "y": b"Ay"})
    talk.join("B", protocols={"z": b"Bz", "x": b"Bx", "y": b"By"})
    talk.join("A", protocols={"x": b"Ax", "y": b"Ay"})
    talk.join("C", protocols={"y": b"Cy", "x": b"Cx"})
    talk.join("A", protocols={"x": b"Ax", "y": b"Ay"})
    talk.join("B", protocols={"y": b"By", "x": b"Bx", "z": b"Bz"})
    talk.join("C", protocols={"y": b"Cy"})
    talk.join("A", protocols={"x": b"Ax", "y": b"Ay"})
    talk.join("B", protocols={"x": b"Bx", "y": b"By"})
    talk.sync("B", protocol_name="x")
    talk.sync("B", protocol_type="connect", protocol_name="y")
    talk.sync("A", {"A": b"1"}, protocol_name="y")
    talk.describe()
    talk.leave("C")
    talk.join("A", protocols={"x": b"Ax"})
    talk.join("B", protocols={"y": b"By", "x": b"Bx", "z": b"Bz"})
    talk.describe()


@script()
def a_full_group(talk: Talk) -> None:
    talk.join("A")
    talk.join("B")
    talk.join("A")
    talk.sync("A", {"A": b"1", "B": b"2"})
    talk.join("C")
    talk.join("D")
    talk.join("A")
    talk.describe()
    talk.join("E")
    talk.join("B")
    talk.describe()
    talk.join("B")
    talk.join("E", member_id="ghost")
    talk.sync("A", {"A": b"1"})
    talk.join("E")
    talk.join("A")
    talk.join("E")
    talk.join("C")
    talk.join("D")
    talk.describe()


@script(4)
def ids_that_are_given_out(talk: Talk) -> None:
    talk.join("A", anew=False)
    talk.pass_time(100)  # 4.0 tells of a group once its record is written
    talk.describe()
    talk.list_groups()
    talk.heartbeat("A", generation=-1)
    talk.commit("A", generation=0)
    talk.join("B")
    talk.join("A", anew=False)
    talk.join("B")
    talk.sync("A", {"A": b"1"})
    talk.sync("B")
    talk.join("C", anew=False)
    talk.describe()
    talk.join("B", protocols={"range": CHANGED})
    talk.join("A")
    talk.describe()
    talk.leave("C")
    talk.describe()
    talk.leave("C")
    talk.join("C", anew=False)


@script(4, takes_long=True)
def an_id_that_nobody_comes_back_with(talk: Talk) -> None:
    talk.join("A")
    talk.sync("A", {"A": b"1"})
    talk.join("C", session_ms=4000, anew=False)
    talk.join("B")
    talk.join("A")
    talk.describe()
    talk.pass_time(6000)
    talk.describe()
    talk.join("C")


@script(takes_long=True)
def a_silent_member(talk: Talk) -> None:
    talk.join("A", session_ms=3000)
    talk.sync("A", {"A": b"1"})
    talk.pass_time(2000)
    talk.heartbeat("A")
    talk.pass_time(2000)
    talk.heartbeat("A")
    talk.pass_time(2000)
    talk.commit("A")
    talk.pass_time(2000)
    talk.describe()
    talk.pass_time(2500)
    talk.heartbeat("A")
    talk.describe()


@script(takes_long=True)
def a_silent_member_of_two(talk: Talk) -> None:
    talk.join("A")
    talk.join("B", session_ms=2000)
    talk.join("A")
    talk.sync("B")
    talk.sync("A", {"A": b"1", "B": b"2"})
    talk.pass_time(1000)
    talk.heartbeat("A")
    talk.describe()
    talk.pass_time(2000)
    talk.heartbeat("A")
    talk.describe()
    talk.join("A")
    talk.describe()


@script(1, takes_long=True)
def a_member_that_does_not_join_again(talk: Talk) -> None:
    talk.join("A", rebalance_ms=5000)
    talk.sync("A", {"A": b"1"})
    talk.join("B", rebalance_ms=4000)
    talk.pass_time(1000)
    talk.heartbeat("A")
    talk.describe()
    talk.pass_time(5000)
    talk.describe()
    talk.heartbeat("A")
    talk.sync("B", {"B": b"1"})


@script(1, takes_long=True)
def members_that_do_not_sync(talk: Talk) -> None:
    talk.join("A", rebalance_ms=3000)
    talk.join("B", rebalance_ms=3000)
    talk.join("A", rebalance_ms=3000)
    talk.sync("B")
    talk.pass_time(1500)
    talk.heartbeat("A")
    talk.describe()
    talk.pass_time(3000)
    talk.describe()
    talk.heartbeat("A")


@script(1, takes_long=True)
def a_follower_that_does_not_sync(talk: Talk) -> None:
    talk.join("A", rebalance_ms=3000)
    talk.join("B", rebalance_ms=3000)
    talk.join("A", rebalance_ms=3000)
    talk.sync("A", {"A": b"1", "B": b"2"})
    talk.describe()
    talk.pass_time(4500)
    talk.describe()
    talk.heartbeat("B")
    talk.heartbeat("A")


@script(STATIC_SINCE)
def static_members_come_back(talk: Talk) -> None:
    talk.join("A", instance="i1")
    talk.join("B", instance="i2")
    talk.join("A", instance="i1")
    talk.sync("B", instance="i2")
    talk.sync("A", {"A": b"1", "B": b"2"}, instance="i1")
    talk.describe()
    talk.join("B2", instance="i2")
    talk.heartbeat("B2", instance="i2")
    talk.heartbeat("B", instance="i2")
    talk.heartbeat("B")
    talk.heartbeat("B2", instance="i3")
    talk.heartbeat("B2")
    talk.sync("B2", instance="i2")
    talk.sync("B", instance="i2")
    talk.sync("B2", instance="i3")
    talk.commit("B", instance="i2")
    talk.commit("B2", instance="i2")
    talk.join("B", instance="i2")
    talk.join("B2", instance="i3")
    talk.join("B2", instance="i2")
    talk.describe()
    talk.join("A2", instance="i1")
    talk.sync("A2", {"A2": b"other"}, instance="i1")
    talk.describe()
    talk.join("A2", instance="i1")
    talk.join("B2", instance="i2")
    talk.join("B3", instance="i2")
    talk.describe()


@script(STATIC_SINCE)
def a_static_member_comes_back_before_the_assignment(talk: Talk) -> None:
    talk.join("A", instance="i1")
    talk.join("B", instance="i2")
    talk.join("A", instance="i1")
    talk.sync("B", instance="i2")
    talk.join("B2", instance="i2")
    talk.describe()
    talk.join("A", instance="i1")
    talk.sync("A", {"A": b"1", "B2": b"2"}, instance="i1")
    talk.describe()


@script(STATIC_SINCE)
def a_static_member_comes_back_while_others_join(talk: Talk) -> None:
    talk.join("A", instance="i1")
    talk.sync("A", {"A": b"1"}, instance="i1")
    talk.join("B", instance="i2")
    talk.join("B2", instance="i2")
    talk.describe()
    talk.join("A", instance="i1")
    talk.describe()


@script(STATIC_SINCE)
def a_static_member_comes_back_with_other_protocols(talk: Talk) -> None:
    talk.join("A", instance="i1", protocols={"x": b"Ax", "y": b"Ay"})
    talk.sync("A", {"A": b"1"}, instance="i1", protocol_name="x")
    talk.join("A2", instance="i1", protocols={"x": CHANGED})
    talk.describe()
    talk.join("A3", instance="i1", protocols={"y": b"", "x": b"again"})
    talk.describe()
    talk.join("A4", instance="i1", protocols={"z": b""})


@script(STATIC_SINCE)
def static_members_leave(talk: Talk) -> None:
    talk.join("A", instance="i1")
    talk.sync("A", {"A": b"1"}, instance="i1")
    if talk.version(13) < 3:
        talk.leave("A")
    else:
        talk.leave("admin", ("ghost", "i1"), ("", "i3"), ("A", "i3"))
        talk.describe()
        talk.leave("admin", ("", "i1"), ("", "i1"))
    talk.describe()


@script(STATIC_SINCE, takes_long=True)
def an_absent_static_member_keeps_its_place(talk: Talk) -> None:
    talk.join("A", instance="i1", rebalance_ms=4000, session_ms=8000)
    talk.sync("A", {"A": b"1"}, instance="i1")
    talk.join("B", rebalance_ms=4000)
    talk.pass_time(1000)
    talk.describe()
    talk.pass_time(4500)
    talk.describe()
    talk.sync("B", {"B": b"1"})
    talk.pass_time(8500)
    talk.heartbeat("B")
    talk.describe()


@script(6)
def several_leave_at_once(talk: Talk) -> None:
    for name in "ABC":
        talk.join(name)
    talk.join("A")
    talk.join("B")
    talk.sync("A", {"A": b"1", "B": b"2", "C": b"3"})
    talk.sync("B")
    talk.sync("C")
    talk.leave("admin", ("A", None), ("ghost", None), ("B", None))
    talk.describe()
    talk.join("C")
    talk.sync("C", {"C": b"1"})
    talk.leave("admin", ("C", None), ("C", None))
    talk.describe()


@script(7)
def a_sync_without_names(talk: Talk) -> None:
    talk.join("A")
    talk.sync("A", protocol_type=None)
    talk.sync("A", protocol_name=None, generation=9)
    talk.sync("A", {"A": b"1"})
