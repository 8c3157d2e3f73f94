"""The protocol that a group's members have in common, and the topics that they subscribe to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import DecodeError, TooManyElements
from kproto.message_codec import message_codec
from kproto.records.consumer_protocol import PREFIX_SIZE, PROTOCOL_TYPE, ConsumerProtocolSubscription

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.coordinator.groups import Group, Protocols
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior

SUBSCRIBED_TOPICS_MAX = 200_000
"""Topics of different subscriptions that are read, 30 ms; metadata with more counts as no consumer's."""


def supports_protocols(group: Group, protocol_type: str, protocols: Protocols, behavior: CoordinatorBehavior) -> bool:
    """Return whether a member with these protocols may join: one of them is supported by all members (GP-13)."""
    if group.is_empty:
        return bool(protocols) and bool(protocol_type or not behavior.first_member_needs_protocol_type)
    counts, size = group.protocol_counts, len(group.members)
    # A rebalance that waits for a pending member, or for the initial delay, may have no members left.
    return protocol_type == group.protocol_type and size in [counts.get(name, 0) for name, _ in protocols]


def select_protocol(group: Group) -> str:
    """Return the protocol with the most votes; each member votes for the first of its protocols that all members
    support (GP-23). Of two protocols with as many votes, the one that the earliest member votes for is selected.
    """
    size, counts = len(group.members), group.protocol_counts
    votes: dict[str, int] = {}
    for member in group.members.values():
        for name, _ in member.protocols:
            if counts[name] == size:
                votes[name] = votes.get(name, 0) + 1
                break
    return max(votes, key=votes.__getitem__)


def subscribed_topics_of(group: Group) -> frozenset[str] | None:
    """Return the topics that the members subscribe to; None if their metadata is not a consumer's (EX-22)."""
    if group.protocol_type != PROTOCOL_TYPE:
        return None
    if not group.members:
        return frozenset()
    if group.protocol_name is None:
        return None
    try:
        return frozenset(_topics({member.metadata for member in group.members.values()}))
    except (DecodeError, TooManyElements):
        return None


def _topics(subscriptions: Iterable[bytes]) -> Iterable[str]:
    """Yield the topics of subscriptions. Version 0 decodes all versions: the later ones only add fields at the end."""
    decode = message_codec(ConsumerProtocolSubscription, 0).decode
    topics_left = SUBSCRIBED_TOPICS_MAX
    for data in subscriptions:
        if len(data) < PREFIX_SIZE:
            raise DecodeError("ConsumerProtocolSubscription", 0, "truncated before its version")
        subscription, _ = decode(data, PREFIX_SIZE, topics_left)
        topics_left -= len(subscription.topics)
        yield from subscription.topics
