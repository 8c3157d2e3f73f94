"""The timelines of offset expiration, T1 to T34: scripts of a group's life, and their outcome in 2.0, 2.1 and 4.4.

The table has the expected times in seconds. kproto's coordinator is compared with it on a virtual clock, and so were
real brokers in real time (`tests/oracle/expiry.py`, `fixtures/expiry`). The retention time is 60 s, the expiration task
runs every second, and the retention times of requests are obeyed. A column of times is (2.0, 2.1, 4.4) unless
``releases`` has others; None: not until the end of the script.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.coordinator.timeline import DEAD, EMPTY, Downtime, Outcome, Script, Timeline

OLD, FIRST, NEW = COLUMNS = ("2.0", "2.1", "4.4")

TABLE: dict[str, Script] = {}
"""By name."""

Column = Sequence[float | None]
Needs = tuple[tuple[int, int], ...]
MEMBERS: Needs = ((11, 2), (12, 1), (13, 1), (14, 1))
"""JoinGroup, Heartbeat, LeaveGroup and SyncGroup in versions that all releases since 0.11 serve."""
TRANSACTION: Needs = ((22, 0), (25, 0), (26, 0), (28, 0))
KIP_848: Needs = ((68, 1), (69, 0))
"""ConsumerGroupHeartbeat v1 came with 4.0, the first release with consumer groups by default."""
NEVER = (None, None, None)


def script(
    name: str,
    *,
    until_s: float,
    gone: Mapping[str, Column],
    dead: Column = NEVER,
    empty: Column | None = None,
    releases: Sequence[str] = COLUMNS,
    error_codes: tuple[int, ...] = (),
    down: Downtime | None = None,
    needs: Needs = (),
    is_long: bool = False,
) -> Callable[[Callable[[Timeline], None]], Callable[[Timeline], None]]:
    """Add a script to the table. If ``empty`` is given, the time of that state is compared too."""

    def enter(play: Callable[[Timeline], None]) -> Callable[[Timeline], None]:
        outcomes = {}
        for place, release in enumerate(releases):
            times = {DEAD: dead[place], EMPTY: empty[place] if empty else None}
            outcomes[release] = Outcome(
                gone={offset: column[place] for offset, column in gone.items()},
                states={state: time_s for state, time_s in times.items() if time_s is not None},
                error_codes=error_codes,
                loaded=down.loaded_s if down else None,
            )
        TABLE[name] = Script(
            name=name,
            play=play,
            until_s=until_s,
            outcomes=outcomes,
            states=(DEAD, EMPTY) if empty else (DEAD,),
            down=down,
            needs=needs,
            is_long=is_long,
        )
        return play

    return enter


# Groups without members: each offset expires by its own commit.


@script("T1", until_s=64, gone={"t-0": (61, 60, 61)}, dead=(61, 60, 61))
def t1(timeline: Timeline) -> None:
    """EX-21 row 1, EX-31, EX-34: the offset expires a retention time after its commit, and the group with it."""
    timeline.commit()


@script("T2", until_s=14, gone={"t-0": (11, 10, 11)}, dead=(11, 10, 11))
def t2(timeline: Timeline) -> None:
    """EX-20: a shorter retention time."""
    timeline.commit(ret=10_000)


@script("T3", until_s=104, gone={"t-0": (101, 100, 101)}, dead=(101, 100, 101))
def t3(timeline: Timeline) -> None:
    """EX-20, OC-42: a longer retention time."""
    timeline.commit(ret=100_000)


@script("T4", until_s=14, gone={"t-0": (11, 10)}, dead=(11, 10), releases=(OLD, FIRST), needs=((8, 1),))
def t4(timeline: Timeline) -> None:
    """OC-40: the deadline counts from the client's timestamp."""
    timeline.commit_v1(50_000)


@script("T9", until_s=5, gone={"t-0": (1, 1, 1), "t-1": (1, 1, 1)}, dead=(1, 1, 1))
def t9(timeline: Timeline) -> None:
    """OC-41: any retention time but -1 is obeyed; with one that is not positive the offset expires at the next run."""
    timeline.commit(partition=0, ret=0)
    timeline.commit(partition=1, ret=-2)


@script("T12", until_s=64, gone={"t-0": (61, 60, 61), "t-1": (11, 10, 11)}, dead=(61, 60, 61))
def t12(timeline: Timeline) -> None:
    """EX-31: the group stays until its last offset expires."""
    timeline.commit(partition=0)
    timeline.commit(partition=1, ret=10_000)


@script("T28", until_s=94, gone={"t-0": (61, 61, 61), "t-1": (91, 91, 91)}, dead=(91, 91, 91))
def t28(timeline: Timeline) -> None:
    """EX-21 row 1, EX-72: each offset has its own deadline, as a simple group is always Empty."""
    timeline.commit(partition=0)
    timeline.at(30)
    timeline.commit(partition=1)


# Groups with members, or that had some.


@script("T5", until_s=24, gone={"t-0": (6, 20, 21)}, dead=(21, 20, 21), needs=MEMBERS)
def t5(timeline: Timeline) -> None:
    """EX-24, EX-40: an offset with its own retention time expires in spite of members only before 2.1."""
    timeline.join("t")
    timeline.commit(ret=5_000, member=True)
    timeline.at(20)
    timeline.leave()


@script("T6", until_s=79, gone={"t-0": (61, 75, 76)}, dead=(61, 75, 76), empty=(15, 15, 15), needs=MEMBERS)
def t6(timeline: Timeline) -> None:
    """EX-11, EX-12, EX-21 row 2: since 2.1 the retention time begins when the last member leaves."""
    timeline.join("t")
    timeline.commit(member=True)
    timeline.at(15)
    timeline.leave()


@script("T7", until_s=104, gone={"t-0": (61, 65, 66), "t-1": (101, 65, 66)}, dead=(101, 65, 66), needs=MEMBERS)
def t7(timeline: Timeline) -> None:
    """EX-25, EX-32, EX-70: a simple commit to a group that has become Empty does not extend its retention time."""
    timeline.join("t")
    timeline.commit(member=True)
    timeline.at(5)
    timeline.leave()
    timeline.at(40)
    timeline.commit(partition=1)


@script("T8", until_s=135, gone={"t-0": (61, None, 61)}, needs=MEMBERS)
def t8(timeline: Timeline) -> None:
    """EX-21 row 3, EX-35: since 2.4 offsets of a topic without subscription expire; the group stays."""
    timeline.join("u")
    timeline.commit(member=True)


@script("T8b", until_s=135, gone={"t-0": (61, None, None)}, needs=MEMBERS)
def t8b(timeline: Timeline) -> None:
    """EX-21 row 3: offsets of a subscribed topic do not expire."""
    timeline.join("t")
    timeline.commit(member=True)


@script("T23", until_s=600, gone={"t-0": (61, None, None)}, is_long=True, needs=MEMBERS)
def t23(timeline: Timeline) -> None:
    """EX-21 row 3: ten minutes with a member and without a commit."""
    t8b(timeline)


@script("T20", until_s=114, gone={"t-0": (61, 111, 111)}, dead=(61, 111, 111), needs=MEMBERS)
def t20(timeline: Timeline) -> None:
    """EX-15: members that return reset the retention time. Not in 2.0, where the group is removed with the offset."""
    timeline.join("t")
    timeline.commit(member=True)
    timeline.at(5)
    timeline.leave()
    timeline.at(40)
    timeline.join("t")
    timeline.at(50)
    timeline.leave()


@script("T24", until_s=104, gone={"t-0": (101, 101, 101), "t-1": (61, 66, 66)}, dead=(101, 101, 101), needs=MEMBERS)
def t24(timeline: Timeline) -> None:
    """EX-20: an offset's own deadline counts alone, also in a group that has become Empty."""
    timeline.join("t")
    timeline.commit(partition=0, ret=100_000, member=True)
    timeline.commit(partition=1, member=True)
    timeline.at(5)
    timeline.leave()


@script("T25", until_s=118, gone={"t-0": (61, None, None)}, needs=MEMBERS)
def t25(timeline: Timeline) -> None:
    """EX-21 row 4: nothing expires in a group whose members are no consumers."""
    timeline.join(protocol_type="connect")
    timeline.commit(member=True)


@script("T27", until_s=66, gone={"t-0": (63,), "u-0": (63,)}, dead=(63,), releases=(NEW,), needs=KIP_848)
def t27(timeline: Timeline) -> None:
    """EX-21 row 6: in a consumer group the retention time begins at the commit, not when the group becomes Empty."""
    timeline.join_848("t")
    timeline.at(2)
    timeline.commit("t", member=True)
    timeline.commit("u", member=True)
    timeline.at(50)
    timeline.leave()


@script("T13", until_s=5, gone={}, dead=(1,), releases=(NEW,), needs=((11, 4),), error_codes=(79, 25))
def t13(timeline: Timeline) -> None:
    """EX-33: a group with only a pending member id is removed by the next run, and the id with it."""
    timeline.ask_for_member_id()
    timeline.at(3)
    timeline.join_with_member_id()


@script("T31", until_s=78, gone={"t-0": (61, 75, 76)}, dead=(61, 75, 76), empty=(15, 15, 15), needs=MEMBERS)
def t31(timeline: Timeline) -> None:
    """EX-13: after a crash of the last member the retention time begins at the end of its session."""
    timeline.join("t")
    timeline.commit(member=True)
    timeline.at(5)
    timeline.fall_silent()


@script("T32", until_s=8, gone={}, dead=(6, 6, 6), needs=MEMBERS)
def t32(timeline: Timeline) -> None:
    """EX-33: an Empty group without offsets is removed by the next run."""
    timeline.join("t")
    timeline.at(5)
    timeline.leave()


@script("T33", until_s=34, gone={"x-0": (10, 10, 10), "t-0": (31, 31, 31)}, dead=(31, 31, 31), needs=MEMBERS)
def t33(timeline: Timeline) -> None:
    """EX-60: the offsets of a deleted topic are removed at once, in any state of the group."""
    timeline.join("t", "x")
    timeline.commit("x", member=True)
    timeline.commit("t", ret=30_000, member=True)
    timeline.at(10)
    timeline.delete_topic("x")
    timeline.at(12)
    timeline.leave()


# Transactions.


@script("T29", until_s=84, gone={"t-0": (61, 61, 81)}, dead=(81, 81, 81), needs=TRANSACTION)
def t29(timeline: Timeline) -> None:
    """EX-23, OC-57: with a pending offset the new coordinator keeps the visible offset too, the old one the group."""
    timeline.commit()
    timeline.at(5)
    timeline.commit_in_transaction()
    timeline.at(80)
    timeline.end_transaction(committed=False)


@script("T29b", until_s=64, gone={"t-0": (61, 60, 61)}, dead=(61, 60, 61), needs=TRANSACTION)
def t29b(timeline: Timeline) -> None:
    """EX-33: a group with only a pending offset stays; its retention time begins when the offset was sent."""
    timeline.commit_in_transaction()
    timeline.at(30)
    timeline.end_transaction(committed=True)


@script("T29c", until_s=99, gone={"t-0": (61, 61, 96)}, dead=(96, 96, 96), needs=TRANSACTION)
def t29c(timeline: Timeline) -> None:
    """EX-23, OC-57: the offset that the transaction commits decides."""
    timeline.commit()
    timeline.at(35)
    timeline.commit_in_transaction()
    timeline.at(80)
    timeline.end_transaction(committed=True)


# Restarts.


@script(
    "T21",
    until_s=96,
    gone={"t-0": (85, 85, 86)},
    dead=(85, 85, 86),
    empty=(5, 5, 5),
    down=Downtime(10, 80, 85),
    needs=MEMBERS,
)
def t21(timeline: Timeline) -> None:
    """EX-16: time passes while the broker is down: the log has the time since when the group is Empty."""
    timeline.join("t")
    timeline.commit(member=True)
    timeline.at(5)
    timeline.leave()


@script("T21b", until_s=96, gone={"t-0": (85, 85, 86)}, dead=(85, 85, 86), down=Downtime(10, 80, 85))
def t21b(timeline: Timeline) -> None:
    """EX-16: in a simple group the commits decide after a restart too."""
    timeline.commit()


@script(
    "T22",
    until_s=115,
    gone={"t-0": (61, 105, 106)},
    dead=(61, 105, 106),
    empty=(45, 45, 45),
    down=Downtime(30, 30, 35),
    needs=MEMBERS,
)
def t22(timeline: Timeline) -> None:
    """EX-17: a member that does not return after a restart has a full session from the load on."""
    timeline.join("t")
    timeline.commit(member=True)
    timeline.at(29)
    timeline.fall_silent()


@script(
    "T22b",
    until_s=104,
    gone={"t-0": (61, 65, 66), "t-1": (101, 65, 66)},
    dead=(101, 65, 66),
    down=Downtime(30, 30, 35),
    needs=MEMBERS,
)
def t22b(timeline: Timeline) -> None:
    """EX-16, EX-32: T7 with a restart. The log has the time since when the group is Empty."""
    t7(timeline)


UPGRADE = Downtime(4, 4, 9, upgrade="2.1.1")


@script("T34", until_s=64, gone={"t-0": (61,)}, dead=(61,), empty=(19,), releases=(OLD,), down=UPGRADE, needs=MEMBERS)
def t34(timeline: Timeline) -> None:
    """EX-51: an offset that 2.0 wrote keeps its deadline after an upgrade, whenever the group has become Empty."""
    timeline.join("t")
    timeline.commit(member=True)
    timeline.at(3)
    timeline.fall_silent()


@script("T34b", until_s=109, gone={"t-0": (101,), "t-1": (61,)}, dead=(101,), releases=(OLD,), down=UPGRADE)
def t34b(timeline: Timeline) -> None:
    """EX-51: the same in a simple group."""
    timeline.commit(partition=0, ret=100_000)
    timeline.commit(partition=1)


@script("T34c", until_s=78, gone={"t-0": (76,), "t-1": (76,)}, dead=(76,), releases=(OLD,), down=UPGRADE, needs=MEMBERS)
def t34c(timeline: Timeline) -> None:
    """EX-51, EX-52: with members after the upgrade, the group follows the rules of 2.1."""
    timeline.join("t")
    timeline.commit(partition=0, member=True)
    timeline.at(3)
    timeline.leave()
    timeline.at(12)
    timeline.join("t")
    timeline.commit(partition=0, member=True)
    timeline.commit(partition=1, member=True)
    timeline.at(15)
    timeline.leave()


@script("T34d", until_s=84, gone={"t-0": (61,), "t-1": (80,)}, dead=(80,), releases=(OLD,), down=UPGRADE, needs=MEMBERS)
def t34d(timeline: Timeline) -> None:
    """EX-52: 2.0 writes no time since when a group is Empty, so the commits decide after the upgrade."""
    timeline.join("t")
    timeline.commit(partition=0, member=True)
    timeline.at(3)
    timeline.leave()
    timeline.at(20)
    timeline.commit(partition=1)
