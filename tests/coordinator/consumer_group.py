"""A consumer group of KIP-848 in the state of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.consumer_groups.data import ConsumerMember, GroupData
from kproto_server.coordinator.consumer_groups.group import ConsumerGroup

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.coordinator.coordinator import GroupCoordinator


def add_consumer_group(
    coordinator: GroupCoordinator,
    now_ms: int,
    *member_ids: str,
    group_id: str = "g",
    epoch: int = 3,
    topics: Iterable[str] = (),
    speaks_classic: bool = False,
) -> ConsumerGroup:
    """Register a Stable group with these members, or an Empty one without members."""
    members = {
        member_id: ConsumerMember(
            member_id, epoch=epoch, previous_epoch=epoch, topics=frozenset(topics), speaks_classic=speaks_classic
        )
        for member_id in member_ids
    }
    group = ConsumerGroup(group_id, now_ms)
    coordinator.groups.add(group)
    group.apply(GroupData(epoch=epoch, assignment_epoch=epoch, members=members), now_ms)
    group.logged = group.settled = group.data
    return group
