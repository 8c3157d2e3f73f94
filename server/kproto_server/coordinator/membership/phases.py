"""What a group waits for as a whole, as values: the timers are elsewhere."""

from __future__ import annotations

from typing import NamedTuple


class InitialDelayedJoin(NamedTuple):
    """An empty group has got its first member, and waits whether more come (GP-20). Nothing cuts it short."""

    due_ms: int
    delay_ms: int
    """How long this wait is."""
    remaining_ms: int
    """How much longer it may be made for those who still come."""


class DelayedJoin(NamedTuple):
    """The members have until then to join again; those who don't are out."""

    due_ms: int


class DelayedSync(NamedTuple):
    """The members have until then to ask for their assignment; those who don't are out (GP-25)."""

    due_ms: int


Phase = InitialDelayedJoin | DelayedJoin | DelayedSync
