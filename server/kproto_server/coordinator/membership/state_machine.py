"""The states of a classic group as tables: how it may go from one to the next, and what it makes of members' requests.

An Empty group has no members, so nothing gets that far. Where releases differ, the table has the newest; the functions
that read it ask the Kafka version first.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from kproto_server.coordinator.groups import GroupState

if TYPE_CHECKING:
    from collections.abc import Mapping

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = (
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
    GroupState.DEAD,
)

VALID_PREVIOUS_STATES: Mapping[GroupState, frozenset[GroupState]] = MappingProxyType(
    {
        PREPARING: frozenset({EMPTY, COMPLETING, STABLE}),
        COMPLETING: frozenset({PREPARING}),
        STABLE: frozenset({COMPLETING}),
        EMPTY: frozenset({PREPARING}),
        DEAD: frozenset(GroupState),
    }
)
"""The moves there are (EX-10)."""


class Rejoin(enum.Enum):
    """What becomes of a JoinGroup of somebody who is a member already (GP-17)."""

    WAIT = enum.auto()
    """It waits for the gathering that is under way."""
    REBALANCE = enum.auto()
    """It begins one, and waits for it."""
    RESPOND = enum.auto()
    """It is told the generation that there is."""


REJOIN: Mapping[tuple[GroupState, bool, bool], Rejoin] = MappingProxyType(
    {
        # state, it leads, it says the same as before
        (PREPARING, False, False): Rejoin.WAIT,
        (PREPARING, False, True): Rejoin.WAIT,
        (PREPARING, True, False): Rejoin.WAIT,
        (PREPARING, True, True): Rejoin.WAIT,
        (COMPLETING, False, False): Rejoin.REBALANCE,
        (COMPLETING, False, True): Rejoin.RESPOND,
        (COMPLETING, True, False): Rejoin.REBALANCE,
        (COMPLETING, True, True): Rejoin.RESPOND,
        (STABLE, False, False): Rejoin.REBALANCE,
        (STABLE, False, True): Rejoin.RESPOND,
        # A leader that joins again knows of something that its metadata don't show: a topic has grown.
        (STABLE, True, False): Rejoin.REBALANCE,
        (STABLE, True, True): Rejoin.REBALANCE,
    }
)


class Sync(enum.Enum):
    """What becomes of a member's SyncGroup (GP-30)."""

    REJOIN = enum.auto()
    """27: it has to join again first."""
    WAIT = enum.auto()
    """It waits for the leader's, or is the leader's."""
    RESPOND = enum.auto()
    """It is told the assignment that there is."""


SYNC: Mapping[GroupState, Sync] = MappingProxyType(
    {PREPARING: Sync.REJOIN, COMPLETING: Sync.WAIT, STABLE: Sync.RESPOND}
)

HEARTBEAT: Mapping[GroupState, int] = MappingProxyType({PREPARING: 27, COMPLETING: 0, STABLE: 0})
"""The error that a member's heartbeat gets, and with it the word to join again (GP-35)."""

REBALANCES_WHEN_LEFT = frozenset({COMPLETING, STABLE})
"""States in which a member that goes makes the others join again (GP-37)."""


def transition(group_state: GroupState, to: GroupState) -> GroupState:
    """Return the state to go to; it is a defect of ours if there is no such move."""
    assert group_state in VALID_PREVIOUS_STATES[to], f"no group goes from {group_state.value} to {to.value}"
    return to
