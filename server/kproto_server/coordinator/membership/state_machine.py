"""The states of a classic group as tables: the valid transitions, and what each state does with a member's request.

An Empty group has no members, so no request of a member reaches these tables there. Where releases differ, the tables
have the newest release; the functions that read them check the Kafka version first.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
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
"""The valid transitions, by their target (EX-10)."""


class Rejoin(enum.Enum):
    """What the group does with a JoinGroup of a present member (GP-17)."""

    WAIT = enum.auto()
    """The request waits for the rebalance in progress."""
    REBALANCE = enum.auto()
    """The request begins a rebalance, and waits for it."""
    RESPOND = enum.auto()
    """The response has the present generation."""


REJOIN: Mapping[tuple[GroupState, bool, bool], Rejoin] = MappingProxyType(
    {
        # state, the member leads, its protocols are unchanged
        (PREPARING, False, False): Rejoin.WAIT,
        (PREPARING, False, True): Rejoin.WAIT,
        (PREPARING, True, False): Rejoin.WAIT,
        (PREPARING, True, True): Rejoin.WAIT,
        (COMPLETING, False, False): Rejoin.REBALANCE,
        # The member has lost the response to its first JoinGroup: it gets the same again.
        (COMPLETING, False, True): Rejoin.RESPOND,
        (COMPLETING, True, False): Rejoin.REBALANCE,
        (COMPLETING, True, True): Rejoin.RESPOND,
        (STABLE, False, False): Rejoin.REBALANCE,
        (STABLE, False, True): Rejoin.RESPOND,
        # A leader that rejoins knows of a change that its metadata does not show: a topic has more partitions.
        (STABLE, True, False): Rejoin.REBALANCE,
        (STABLE, True, True): Rejoin.REBALANCE,
    }
)


class Sync(enum.Enum):
    """What the group does with a member's SyncGroup (GP-30)."""

    REJOIN = enum.auto()
    """The response is REBALANCE_IN_PROGRESS: the member has to join again first."""
    WAIT = enum.auto()
    """The request waits for the leader's SyncGroup, or is the leader's."""
    RESPOND = enum.auto()
    """The response has the present assignment."""


SYNC: Mapping[GroupState, Sync] = MappingProxyType(
    {PREPARING: Sync.REJOIN, COMPLETING: Sync.WAIT, STABLE: Sync.RESPOND}
)

HEARTBEAT: Mapping[GroupState, int] = MappingProxyType(
    {PREPARING: ErrorCode.REBALANCE_IN_PROGRESS, COMPLETING: 0, STABLE: 0}
)
"""The error of a member's heartbeat; REBALANCE_IN_PROGRESS has the member join again (GP-35)."""

REBALANCES_WHEN_MEMBER_LEAVES = frozenset({COMPLETING, STABLE})
"""The states in which the other members have to rejoin when a member leaves (GP-37)."""


def transition(group_state: GroupState, to: GroupState) -> GroupState:
    """Return the target of a transition. An invalid transition is a defect of kproto."""
    assert group_state in VALID_PREVIOUS_STATES[to], f"no transition from {group_state.value} to {to.value}"
    return to
