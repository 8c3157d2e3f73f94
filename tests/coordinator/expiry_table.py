"""The timelines of expiry, T1 to T34: what happens to a group, and what comes of it in 2.0, 2.1 and 4.4.

The one table of what is expected, to the second: our coordinator is held to it on a virtual clock, real brokers were
(`tests/oracle/expiry.py`, `fixtures/expiry`). Retention is 60 s, a sweep comes every second, retention times of clients
are obeyed. A column of times is (2.0, 2.1, 4.4) unless ``releases`` says else; None: never, as long as it was looked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.coordinator.line import DEAD, EMPTY, Down, Line, Outcome, Script

OLD, FIRST, NEW = COLUMNS = ("2.0", "2.1", "4.4")

TABLE: dict[str, Script] = {}
"""By name."""

Column = Sequence[float | None]
Needs = tuple[tuple[int, int], ...]
MEMBERS: Needs = ((11, 2), (12, 1), (13, 1), (14, 1))
"""JoinGroup, Heartbeat, LeaveGroup, SyncGroup, and versions of them that all releases from 0.11 on serve."""
TRANSACTION: Needs = ((22, 0), (25, 0), (26, 0), (28, 0))
KIP_848: Needs = ((68, 1), (69, 0))
"""v1 of the heartbeat came with 4.0: the first release in which such groups are on unless turned off."""
NEVER = (None, None, None)


def timeline(
    name: str,
    *,
    until_s: float,
    gone: Mapping[str, Column],
    dead: Column = NEVER,
    empty: Column | None = None,
    releases: Sequence[str] = COLUMNS,
    answers: tuple[int, ...] = (),
    down: Down | None = None,
    needs: Needs = (),
    is_long: bool = False,
) -> Callable[[Callable[[Line], None]], Callable[[Line], None]]:
    """Enter a script into the table. Where ``empty`` is given, the time of that state counts too."""

    def enter(play: Callable[[Line], None]) -> Callable[[Line], None]:
        outcomes = {}
        for place, release in enumerate(releases):
            times = {DEAD: dead[place], EMPTY: empty[place] if empty else None}
            outcomes[release] = Outcome(
                gone={offset: column[place] for offset, column in gone.items()},
                states={state: time_s for state, time_s in times.items() if time_s is not None},
                answers=answers,
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


# Groups without members: each offset by its own time.


@timeline("T1", until_s=64, gone={"t-0": (61, 60, 61)}, dead=(61, 60, 61))
def t1(line: Line) -> None:
    """EX-21 row 1, EX-31, EX-34: the offset goes a retention time after its commit, and the group with it."""
    line.commit()


@timeline("T2", until_s=14, gone={"t-0": (11, 10, 11)}, dead=(11, 10, 11))
def t2(line: Line) -> None:
    """EX-20: a shorter retention time."""
    line.commit(ret=10_000)


@timeline("T3", until_s=104, gone={"t-0": (101, 100, 101)}, dead=(101, 100, 101))
def t3(line: Line) -> None:
    """EX-20, OC-42: a longer one extends the life."""
    line.commit(ret=100_000)


@timeline("T4", until_s=14, gone={"t-0": (11, 10)}, dead=(11, 10), releases=(OLD, FIRST), needs=((8, 1),))
def t4(line: Line) -> None:
    """OC-40: the deadline counts from what the client says that the time is."""
    line.commit_v1(50_000)


@timeline("T9", until_s=5, gone={"t-0": (1, 1, 1), "t-1": (1, 1, 1)}, dead=(1, 1, 1))
def t9(line: Line) -> None:
    """OC-41: any number but -1 is taken as it is; what is not positive is gone at the next sweep."""
    line.commit(partition=0, ret=0)
    line.commit(partition=1, ret=-2)


@timeline("T12", until_s=64, gone={"t-0": (61, 60, 61), "t-1": (11, 10, 11)}, dead=(61, 60, 61))
def t12(line: Line) -> None:
    """EX-31: the group stays until the last offset is gone."""
    line.commit(partition=0)
    line.commit(partition=1, ret=10_000)


@timeline("T28", until_s=94, gone={"t-0": (61, 61, 61), "t-1": (91, 91, 91)}, dead=(91, 91, 91))
def t28(line: Line) -> None:
    """EX-21 row 1, EX-72: each offset has its time, as such a group is Empty from the beginning."""
    line.commit(partition=0)
    line.at(30)
    line.commit(partition=1)


# Groups that have, or had, members.


@timeline("T5", until_s=24, gone={"t-0": (6, 20, 21)}, dead=(21, 20, 21), needs=MEMBERS)
def t5(line: Line) -> None:
    """EX-24, EX-40: a retention time of its own ends nothing while there are members; before 2.1 it did."""
    line.join("t")
    line.commit(ret=5_000, member=True)
    line.at(20)
    line.leave()


@timeline("T6", until_s=79, gone={"t-0": (61, 75, 76)}, dead=(61, 75, 76), empty=(15, 15, 15), needs=MEMBERS)
def t6(line: Line) -> None:
    """EX-11, EX-12, EX-21 row 2: since 2.1 the time counts from when the last member has left."""
    line.join("t")
    line.commit(member=True)
    line.at(15)
    line.leave()


@timeline("T7", until_s=104, gone={"t-0": (61, 65, 66), "t-1": (101, 65, 66)}, dead=(101, 65, 66), needs=MEMBERS)
def t7(line: Line) -> None:
    """EX-25, EX-32, EX-70: a commit by nobody into a group that was left renews nothing; both go, and the group."""
    line.join("t")
    line.commit(member=True)
    line.at(5)
    line.leave()
    line.at(40)
    line.commit(partition=1)


@timeline("T8", until_s=135, gone={"t-0": (61, None, 61)}, needs=MEMBERS)
def t8(line: Line) -> None:
    """EX-21 row 3, EX-35: a topic that the members no longer subscribe to is not safe since 2.4; the group stays."""
    line.join("u")
    line.commit(member=True)


@timeline("T8b", until_s=135, gone={"t-0": (61, None, None)}, needs=MEMBERS)
def t8b(line: Line) -> None:
    """EX-21 row 3: what they subscribe to is."""
    line.join("t")
    line.commit(member=True)


@timeline("T23", until_s=600, gone={"t-0": (61, None, None)}, is_long=True, needs=MEMBERS)
def t23(line: Line) -> None:
    """EX-21 row 3: ten minutes at work without a commit."""
    t8b(line)


@timeline("T20", until_s=114, gone={"t-0": (61, 111, 111)}, dead=(61, 111, 111), needs=MEMBERS)
def t20(line: Line) -> None:
    """EX-15: a group that is used again forgets its time. Without it in 2.0, where the group goes with the offset."""
    line.join("t")
    line.commit(member=True)
    line.at(5)
    line.leave()
    line.at(40)
    line.join("t")
    line.at(50)
    line.leave()


@timeline("T24", until_s=104, gone={"t-0": (101, 101, 101), "t-1": (61, 66, 66)}, dead=(101, 101, 101), needs=MEMBERS)
def t24(line: Line) -> None:
    """EX-20: a deadline of its own counts alone, in a group that was left too."""
    line.join("t")
    line.commit(partition=0, ret=100_000, member=True)
    line.commit(partition=1, member=True)
    line.at(5)
    line.leave()


@timeline("T25", until_s=118, gone={"t-0": (61, None, None)}, needs=MEMBERS)
def t25(line: Line) -> None:
    """EX-21 row 4: whatever members that are no consumers are at work on, nothing expires."""
    line.join(protocol_type="connect")
    line.commit(member=True)


@timeline("T27", until_s=66, gone={"t-0": (63,), "u-0": (63,)}, dead=(63,), releases=(NEW,), needs=KIP_848)
def t27(line: Line) -> None:
    """EX-21 row 6: a group of KIP-848 goes by the time of the commit, not by that of its becoming empty."""
    line.join_848("t")
    line.at(2)
    line.commit("t", member=True)
    line.commit("u", member=True)
    line.at(50)
    line.leave()


@timeline("T13", until_s=5, gone={}, dead=(1,), releases=(NEW,), needs=((11, 4),), answers=(79, 25))
def t13(line: Line) -> None:
    """EX-33: a group of nobody but one who was given an id is gone with the next sweep, and the id with it."""
    line.ask_for_member_id()
    line.at(3)
    line.join_with_member_id()


@timeline("T31", until_s=78, gone={"t-0": (61, 75, 76)}, dead=(61, 75, 76), empty=(15, 15, 15), needs=MEMBERS)
def t31(line: Line) -> None:
    """EX-13: the time of a group whose last member crashed counts from the end of the session."""
    line.join("t")
    line.commit(member=True)
    line.at(5)
    line.fall_silent()


@timeline("T32", until_s=8, gone={}, dead=(6, 6, 6), needs=MEMBERS)
def t32(line: Line) -> None:
    """EX-33: an Empty group without offsets is gone with the next sweep."""
    line.join("t")
    line.at(5)
    line.leave()


@timeline("T33", until_s=34, gone={"x-0": (10, 10, 10), "t-0": (31, 31, 31)}, dead=(31, 31, 31), needs=MEMBERS)
def t33(line: Line) -> None:
    """EX-60: the offsets of a topic that is deleted go at once, whatever the state of the group."""
    line.join("t", "x")
    line.commit("x", member=True)
    line.commit("t", ret=30_000, member=True)
    line.at(10)
    line.delete_topic("x")
    line.at(12)
    line.leave()


# Transactions.


@timeline("T29", until_s=84, gone={"t-0": (61, 61, 81)}, dead=(81, 81, 81), needs=TRANSACTION)
def t29(line: Line) -> None:
    """EX-23, OC-57: the new coordinator spares an offset beside which one is pending; the old one spares the group."""
    line.commit()
    line.at(5)
    line.commit_in_transaction()
    line.at(80)
    line.end_transaction(committed=False)


@timeline("T29b", until_s=64, gone={"t-0": (61, 60, 61)}, dead=(61, 60, 61), needs=TRANSACTION)
def t29b(line: Line) -> None:
    """EX-33: a group of nothing but a pending offset is kept; its time counts from when it was sent, not committed."""
    line.commit_in_transaction()
    line.at(30)
    line.end_transaction(committed=True)


@timeline("T29c", until_s=99, gone={"t-0": (61, 61, 96)}, dead=(96, 96, 96), needs=TRANSACTION)
def t29c(line: Line) -> None:
    """EX-23, OC-57: what is committed in the end decides."""
    line.commit()
    line.at(35)
    line.commit_in_transaction()
    line.at(80)
    line.end_transaction(committed=True)


# Restarts.


@timeline(
    "T21",
    until_s=96,
    gone={"t-0": (85, 85, 86)},
    dead=(85, 85, 86),
    empty=(5, 5, 5),
    down=Down(10, 80, 85),
    needs=MEMBERS,
)
def t21(line: Line) -> None:
    """EX-16: the time that a broker is down counts, as the log says since when the group is Empty."""
    line.join("t")
    line.commit(member=True)
    line.at(5)
    line.leave()


@timeline("T21b", until_s=96, gone={"t-0": (85, 85, 86)}, dead=(85, 85, 86), down=Down(10, 80, 85))
def t21b(line: Line) -> None:
    """EX-16: a group that only commits goes by its commits after a restart too."""
    line.commit()


@timeline(
    "T22",
    until_s=115,
    gone={"t-0": (61, 105, 106)},
    dead=(61, 105, 106),
    empty=(45, 45, 45),
    down=Down(30, 30, 35),
    needs=MEMBERS,
)
def t22(line: Line) -> None:
    """EX-17: a member that does not come back after a restart has a session from when the group was loaded."""
    line.join("t")
    line.commit(member=True)
    line.at(29)
    line.fall_silent()


@timeline(
    "T22b",
    until_s=104,
    gone={"t-0": (61, 65, 66), "t-1": (101, 65, 66)},
    dead=(101, 65, 66),
    down=Down(30, 30, 35),
    needs=MEMBERS,
)
def t22b(line: Line) -> None:
    """EX-16, EX-32: T7 with a restart in it. Since when the group is Empty is in the log."""
    t7(line)


UPGRADE = Down(4, 4, 9, upgrade="2.1.1")


@timeline("T34", until_s=64, gone={"t-0": (61,)}, dead=(61,), empty=(19,), releases=(OLD,), down=UPGRADE, needs=MEMBERS)
def t34(line: Line) -> None:
    """EX-51: what 2.0 wrote keeps its deadline after an upgrade: not by when the group was left."""
    line.join("t")
    line.commit(member=True)
    line.at(3)
    line.fall_silent()


@timeline("T34b", until_s=109, gone={"t-0": (101,), "t-1": (61,)}, dead=(101,), releases=(OLD,), down=UPGRADE)
def t34b(line: Line) -> None:
    """EX-51: offsets that nobody who is a member has committed."""
    line.commit(partition=0, ret=100_000)
    line.commit(partition=1)


@timeline(
    "T34c", until_s=78, gone={"t-0": (76,), "t-1": (76,)}, dead=(76,), releases=(OLD,), down=UPGRADE, needs=MEMBERS
)
def t34c(line: Line) -> None:
    """EX-51, EX-52: used again after the upgrade, the group is one of 2.1."""
    line.join("t")
    line.commit(partition=0, member=True)
    line.at(3)
    line.leave()
    line.at(12)
    line.join("t")
    line.commit(partition=0, member=True)
    line.commit(partition=1, member=True)
    line.at(15)
    line.leave()


@timeline(
    "T34d",
    until_s=84,
    gone={"t-0": (61,), "t-1": (80,)},
    dead=(80,),
    releases=(OLD,),
    down=UPGRADE,
    needs=MEMBERS,
)
def t34d(line: Line) -> None:
    """EX-52: of a group that 2.0 left Empty the log does not say since when, so its offsets go by their commits."""
    line.join("t")
    line.commit(partition=0, member=True)
    line.at(3)
    line.leave()
    line.at(20)
    line.commit(partition=1)
