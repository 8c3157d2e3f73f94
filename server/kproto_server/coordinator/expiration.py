"""Which offsets of a group are expired: KIP-211 since 2.1, and the rules of the releases before it.

Theory of operation. Each offset has a deadline, the first millisecond in which it is expired (EX-20). An offset with an
expire timestamp, from a retention time in its commit, expires then. Any other expires a retention time of the broker
after a base timestamp, which depends on the group (Kafka's OffsetExpirationCondition):

- in a group without a protocol type ("simple") and in a consumer group (KIP-848): the commit;
- in an Empty classic group that had members: the moment at which the group became Empty. The offsets of a consumer that
  stopped on Friday are as safe as those of one that committed a minute ago, and all of them expire together;
- in a group of consumers with members: the commit, for topics without a subscription;
- otherwise, as for topics with a subscription: never (EX-21).

Before 2.1 each offset had an expire timestamp of its own, and expired a millisecond later (EX-40). An Empty group is
deleted with its last offset (EX-31); a Stable group remains, even without offsets (EX-35).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto_server.coordinator.groups import KINDS_WITH_MEMBER_EPOCHS, GroupState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.offsets import DeletionEntries, OffsetAndMetadata
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior

NO_TOPICS: frozenset[str] = frozenset()


class ExpirationCondition(NamedTuple):
    """How the offsets of a group in its present state expire."""

    base_timestamp_ms: int | None
    """Where the retention time of all offsets begins; None: at the commit of each offset."""
    subscribed_topics: frozenset[str] | None
    """Topics whose offsets do not expire; None: no offsets expire."""


class Expiration(NamedTuple):
    """The result of checking a group."""

    expired: DeletionEntries
    removes_group: bool
    """Whether the group is deleted too. A group that existed by its offsets needs no deletion of its own (OC-21)."""
    next_ms: int
    """When the group has to be checked again: at most a retention time from now, when a commit of now expires."""


SINCE_EACH_COMMIT = ExpirationCondition(None, NO_TOPICS)
NEVER = ExpirationCondition(None, None)


def condition_of(group: Group | None, behavior: CoordinatorBehavior) -> ExpirationCondition:
    """Return how the offsets of a group expire (EX-21, EX-40)."""
    if group is None or behavior.offsets_have_expire_timestamp:
        return SINCE_EACH_COMMIT
    if group.kind in KINDS_WITH_MEMBER_EPOCHS:
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


def deadline_ms(
    topic: str,
    offset: OffsetAndMetadata,
    condition: ExpirationCondition,
    retention_ms: int,
    behavior: CoordinatorBehavior,
) -> int | None:
    """Return the first millisecond in which an offset is expired if its group stays as it is; None: never.

    `expiration_of` has the same rule, inlined: it checks a million offsets.
    """
    if condition.subscribed_topics is None or topic in condition.subscribed_topics:
        return None
    expire_ms = offset.expire_timestamp_ms
    if expire_ms is None:
        base_ms = condition.base_timestamp_ms
        expire_ms = (offset.commit_timestamp_ms if base_ms is None else base_ms) + retention_ms
    return expire_ms + (1 if behavior.offsets_have_expire_timestamp else 0)


def expiration_of(
    group: Group | None,
    offsets: Mapping[str, Mapping[int, OffsetAndMetadata]],
    now_ms: int,
    retention_ms: int,
    behavior: CoordinatorBehavior,
) -> Expiration:
    """Return which offsets of a group are expired, and when to check the group again."""
    base_timestamp_ms, subscribed_topics = condition_of(group, behavior)
    # Old releases compare with "less than": an offset expires one millisecond after its expire timestamp.
    grace_ms = 1 if behavior.offsets_have_expire_timestamp else 0
    next_ms = now_ms + retention_ms
    expired: list[tuple[str, list[int]]] = []
    has_more = False
    for name, partitions in offsets.items():
        if subscribed_topics is None or name in subscribed_topics:
            has_more = True
            continue
        expired_partitions: list[int] = []
        for index, (_, _, _, commit_ms, expire_ms, _) in partitions.items():
            if expire_ms is None:
                expire_ms = (commit_ms if base_timestamp_ms is None else base_timestamp_ms) + retention_ms
            deadline_ms = expire_ms + grace_ms
            if deadline_ms <= now_ms:
                expired_partitions.append(index)
                continue
            has_more = True
            next_ms = min(next_ms, deadline_ms)
        if expired_partitions:
            expired.append((name, expired_partitions))
    removes_group = not has_more and group is not None and group.is_empty and group.kind != "share"
    return Expiration(expired, removes_group, next_ms)
