"""The epoch of a group, and the target assignment that belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.jvm.arithmetic import java_hash
from kproto.jvm.hash_map import in_hash_order
from kproto_server.coordinator.consumer_groups.assignor_input import MemberSpec
from kproto_server.coordinator.consumer_groups.assignors import assign, changed_targets
from kproto_server.coordinator.consumer_groups.data import subscribed_topics, topics_of
from kproto_server.coordinator.consumer_groups.limits import TOPICS_REFRESH_MS
from kproto_server.coordinator.epoch_groups.assigning import SIZE_MAX, Pace, assign_later
from kproto_server.coordinator.subscribed_topics import metadata_hash
from kproto_server.deferred import at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable

    from kproto_server.coordinator.consumer_groups.data import Assignment, ConsumerMember, GroupData
    from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
    from kproto_server.coordinator.consumer_groups.limits import ConsumerLimits
    from kproto_server.coordinator.coordinator import GroupCoordinator


def with_new_epoch(
    coordinator: GroupCoordinator, group: ConsumerGroup, data: GroupData, now_ms: int, *, raises_epoch: bool
) -> GroupData:
    """Return the data with the next epoch, if a subscription or a subscribed topic has changed."""
    raises_epoch = raises_epoch or data.epoch == 0
    version = coordinator.topics_version()
    if not raises_epoch and version == group.topics_version and now_ms < group.topics_checked_until_ms:
        return data
    topics_hash = hash_of_topics(coordinator, data)
    group.topics_version, group.topics_checked_until_ms = version, now_ms + TOPICS_REFRESH_MS
    if raises_epoch or topics_hash != data.metadata_hash:
        return data._replace(epoch=data.epoch + 1, metadata_hash=topics_hash)
    return data


def without_members(coordinator: GroupCoordinator, data: GroupData, member_ids: Iterable[str]) -> GroupData:
    """Return the data without members that have left, with the next epoch."""
    gone = set(member_ids)
    data = data._replace(
        members={one: member for one, member in data.members.items() if one not in gone},
        targets={one: target for one, target in data.targets.items() if one not in gone},
    )
    used = {member.regex for member in data.members.values() if member.regex}
    if not used.issuperset(data.resolved):
        data = data._replace(resolved={regex: found for regex, found in data.resolved.items() if regex in used})
    topics_hash = hash_of_topics(coordinator, data)
    epoch = data.epoch + 1
    data = data._replace(epoch=epoch, metadata_hash=topics_hash)
    if not data.members and coordinator.behavior.empty_groups_are_assigned:
        return data._replace(assignment_epoch=epoch, assignment_timestamp_ms=0)
    return data


def hash_of_topics(coordinator: GroupCoordinator, data: GroupData) -> int:
    """Return the hash of the subscribed topics."""
    return metadata_hash(subscribed_topics(data), coordinator.topics, hashed_rack_of(coordinator))


def hashed_rack_of(coordinator: GroupCoordinator) -> Callable[[int], str | None]:
    """Return the function from a node id to the rack that counts in the hash of topics: before 4.1 no rack does."""
    return _no_rack if coordinator.behavior.writes_partition_metadata else coordinator.rack_of


def _no_rack(node_id: int) -> None:
    return None


def with_due_targets(
    coordinator: GroupCoordinator, group: ConsumerGroup, data: GroupData, limits: ConsumerLimits, now_ms: int
) -> GroupData:
    """Return the data with targets for their epoch, if these are missing and the assignment interval has passed.

    Those of a large group come later (`assigning`).
    """
    if data.epoch <= data.assignment_epoch:
        return data
    since_ms, interval_ms = data.assignment_timestamp_ms, limits.assignment_interval_ms
    if since_ms and interval_ms and now_ms - since_ms < interval_ms:
        return data
    targets = _targets(coordinator, data, limits)

    def finished(present: GroupData, at_ms: int) -> GroupData:
        return present._replace(assignment_epoch=data.epoch, assignment_timestamp_ms=at_ms)

    if _is_large(coordinator, data):
        assign_later(coordinator, group, data, targets, finished)
        return data
    return finished(data._replace(targets=changed_targets(data.targets, at_once(targets), data.members)), now_ms)


def _is_large(coordinator: GroupCoordinator, data: GroupData) -> bool:
    """Return whether an assignment takes so long that it is computed in steps."""
    topics = coordinator.topics
    subscriptions = [topics_of(member, data) for member in data.members.values()]
    distinct = set(subscriptions)
    if sum(map(len, distinct if len(distinct) == 1 else subscriptions)) > SIZE_MAX:
        return True
    names = frozenset().union(*distinct)
    return sum([len(topics[name].partitions) for name in names if name in topics]) > SIZE_MAX


def _targets(
    coordinator: GroupCoordinator, data: GroupData, limits: ConsumerLimits
) -> Generator[None, None, dict[str, Assignment]]:
    """Return the targets of the members, computed in steps."""
    topics, pace = coordinator.topics, Pace()
    partition_counts: dict[bytes, int] = {}
    ids: dict[frozenset[str], tuple[bytes, ...]] = {}
    specs: dict[str, MemberSpec] = {}
    for member_id, member in data.members.items():
        names = topics_of(member, data)
        topic_ids = ids.get(names)
        if topic_ids is None:
            existing = [topics[name] for name in sorted(names) if name in topics]
            partition_counts.update((topic.topic_id, len(topic.partitions)) for topic in existing)
            topic_ids = ids[names] = tuple([topic.topic_id for topic in existing])
            if pace.ends_step(len(names)):
                yield
        specs[member_id] = MemberSpec(topic_ids, data.targets.get(member_id, {}), member.group_instance_id)
    assignor = preferred_assignor(data.members.values()) or limits.assignors[0]
    return (
        yield from assign(
            assignor,
            specs,
            partition_counts,
            has_equal_subscriptions=_has_equal_subscriptions(data.members.values()),
            keeps_sizes=coordinator.behavior.assignments_keep_sizes,
        )
    )


def _has_equal_subscriptions(members: Collection[ConsumerMember]) -> bool:
    """Return whether members subscribe to the same names, or all to one regular expression and to no names.

    As ConsumerGroup.subscriptionType: names of missing topics count, and what an expression matches does not.
    """
    names, expressions = {member.topics for member in members}, {member.regex or "" for member in members}
    if len(names) > 1 or len(expressions) > 1:
        return False
    return expressions == {""} or not any(names)


def preferred_assignor(members: Iterable[ConsumerMember]) -> str | None:
    """Return the assignor that most members prefer; None if no member prefers one."""
    counts: dict[str, int] = {}
    for member in members:
        if member.assignor is not None:
            counts[member.assignor] = counts.get(member.assignor, 0) + 1
    return max(in_hash_order(counts, java_hash), key=lambda name: counts[name], default=None)
