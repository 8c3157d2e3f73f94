"""The delayed operations of a group as a whole, as values. `timers` has the timers.

A phase ends at its deadline, if no event ends it before. The names are those of Kafka's delayed operations.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


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


class HeldJoin(NamedTuple):
    """The members have joined, and a test holds the rebalance (`holding`). Nothing but its release ends this."""

    since_ms: int


Phase = InitialDelayedJoin | DelayedJoin | DelayedSync | HeldJoin

HeldPhase = Literal["join", "sync"]


class Hold:
    """How the rebalances of a group are held."""

    def __init__(self, phase: HeldPhase) -> None:
        """``phase``: ``"join"``: in PreparingRebalance when all members have joined; ``"sync"``: in
        CompletingRebalance when the leader has sent the assignments."""
        self.phase: HeldPhase = phase
        self.assignments: tuple[int, dict[str, bytes]] | None = None
        """The first ones of the leader, with their generation."""

    def note(self, generation: int, assignments: dict[str, bytes]) -> None:
        """Keep the assignments that the leader of a generation has sent, for the release."""
        if self.assignments is None or self.assignments[0] != generation:
            self.assignments = generation, assignments
