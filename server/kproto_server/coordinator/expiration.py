"""Which offsets of a group have outlived their time: KIP-211 from 2.1 on, and what was before it.

Theory of operation. Every offset has a deadline, the first millisecond at which it is expired (EX-20). A deadline of
its own, from a retention time in the commit, counts alone. Otherwise it is the retention time of the broker after

- the commit, in a group without a protocol type ("simple"), in one of KIP-848, and of topics that the members of a
  consumer group don't subscribe to;
- the moment the group became Empty, in a group that once had members: a consumer that was away over the weekend is as
  safe as one that committed a minute ago, and both lose everything together;
- never, in a group with members otherwise (EX-21).

Before 2.1 there was only the deadline of the offset, and one millisecond more (EX-40). A group goes with its last
offset, if it is Empty (EX-31); what is Stable stays so, with no offsets at all (EX-35).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto_server.coordinator.groups import GroupState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.offsets import DeletionEntries, OffsetAndMetadata
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior

NO_TOPICS: frozenset[str] = frozenset()


class ExpirationCondition(NamedTuple):
    """How the offsets of a group stand to time, in the state it is in."""

    base_ms: int | None
    """When the retention time of all of them began; None: at the commit of each."""
    kept: frozenset[str] | None
    """Topics whose offsets don't expire; None: those of no topic do."""


class Expiration(NamedTuple):
    """What a look at a group has come to."""

    expired: DeletionEntries
    removes_group: bool
    """Whether the group goes too. Without offsets it is gone already where there is no group (OC-21)."""
    next_ms: int
    """When there may be more: no later than a retention time from now, as a commit of now would expire then."""


SINCE_EACH_COMMIT = ExpirationCondition(None, NO_TOPICS)
NEVER = ExpirationCondition(None, None)


def condition_of(group: Group | None, behavior: CoordinatorBehavior) -> ExpirationCondition:
    """Return by what the offsets of a group expire (EX-21, EX-40)."""
    if group is None or behavior.offsets_have_expire_timestamp:
        return SINCE_EACH_COMMIT
    if group.kind == "consumer":
        return ExpirationCondition(None, group.subscribed_topics if group.members else NO_TOPICS)
    if group.protocol_type is None:
        return SINCE_EACH_COMMIT
    if group.is_empty:
        return ExpirationCondition(group.state_timestamp_ms, NO_TOPICS)
    subscription_decides = behavior.unsubscribed_offsets_expire == "unless empty" or (
        behavior.unsubscribed_offsets_expire == "stable" and group.state is GroupState.STABLE
    )
    if group.protocol_type == "consumer" and subscription_decides:
        return ExpirationCondition(None, group.subscribed_topics)
    return NEVER


def expiration_of(
    group: Group | None,
    offsets: Mapping[str, Mapping[int, OffsetAndMetadata]],
    now_ms: int,
    retention_ms: int,
    behavior: CoordinatorBehavior,
) -> Expiration:
    """Return which offsets of a group are expired, and when to look at it again."""
    base_ms, kept = condition_of(group, behavior)
    grace_ms = 1 if behavior.offsets_have_expire_timestamp else 0
    next_ms = now_ms + retention_ms
    expired: list[tuple[str, list[int]]] = []
    has_more = False
    for name, partitions in offsets.items():
        if kept is None or name in kept:
            has_more = True
            continue
        gone: list[int] = []
        for index, (_, _, _, commit_ms, expire_ms, _) in partitions.items():
            if expire_ms is None:
                expire_ms = (commit_ms if base_ms is None else base_ms) + retention_ms
            deadline_ms = expire_ms + grace_ms
            if deadline_ms <= now_ms:
                gone.append(index)
                continue
            has_more = True
            next_ms = min(next_ms, deadline_ms)
        if gone:
            expired.append((name, gone))
    return Expiration(expired, not has_more and group is not None and group.is_empty, next_ms)
