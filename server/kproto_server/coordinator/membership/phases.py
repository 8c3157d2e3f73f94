"""The delayed operations of a group as a whole, as values. `timers` has the timers.

A phase ends at its deadline, if no event ends it before. The names are those of Kafka's delayed operations.
"""

from __future__ import annotations

from typing import NamedTuple


class InitialDelayedJoin(NamedTuple):
    """The initial rebalance delay: an empty group has its first member, and waits for more (GP-20).

    Only the deadline ends it, as the number of members to come is unknown.
    """

    due_ms: int
    delay_ms: int
    """The length of this delay."""
    remaining_ms: int
    """By how much members that still join may extend the delay."""


class DelayedJoin(NamedTuple):
    """The members rejoin; those that have not by the deadline are removed (GP-22)."""

    due_ms: int


class DelayedSync(NamedTuple):
    """The members send SyncGroup; those that have not by the deadline are removed (GP-25)."""

    due_ms: int


Phase = InitialDelayedJoin | DelayedJoin | DelayedSync
