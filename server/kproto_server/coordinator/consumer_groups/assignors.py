"""The server assignors: the target assignment of a group from the subscriptions of its members.

Both assignors are Kafka's. ``range`` gives each member consecutive partitions of each topic, so that partitions of the
same index of several topics go to the same member. ``uniform`` gives each member as many partitions as the others, and
lets the members keep what they have.

Where the result depends on the order of the members or topics, it is that of a Java HashMap, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.jvm.arithmetic import java_hash, java_uuid_hash
from kproto.jvm.hash_map import in_hash_order
from kproto_server.coordinator.consumer_groups.data import NO_PARTITIONS
from kproto_server.coordinator.epoch_groups.assigning import Pace

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from kproto_server.coordinator.consumer_groups.assignor_input import Members, PartitionCounts
    from kproto_server.coordinator.consumer_groups.data import Assignment

UNIFORM = "uniform"
RANGE = "range"


def assign(
    assignor: str,
    members: Members,
    partition_counts: PartitionCounts,
    *,
    has_equal_subscriptions: bool,
    keeps_sizes: bool,
) -> Generator[None, None, dict[str, Assignment]]:
    """Return the target assignment of each member that has partitions, computed in steps.

    ``keeps_sizes``: see `assign_uniformly`.
    """
    if not members:
        return {}
    if assignor == RANGE:
        return (yield from assign_ranges(members, partition_counts))
    if has_equal_subscriptions:
        return (yield from assign_uniformly(members, partition_counts, keeps_sizes=keeps_sizes))
    from kproto_server.coordinator.consumer_groups.uneven_subscriptions import assign_evenly  # rarely needed

    return (yield from assign_evenly(members, partition_counts))


def assign_ranges(members: Members, partition_counts: PartitionCounts) -> Generator[None, None, dict[str, Assignment]]:
    """Return an assignment in which each member has consecutive partitions of each of its topics."""
    pace = Pace()
    ordered = sorted(members, key=lambda one: _instance_first(one, members[one].group_instance_id))
    subscribers: dict[bytes, int] = {}
    for member in members.values():
        for topic_id in member.topic_ids:
            subscribers[topic_id] = subscribers.get(topic_id, 0) + 1
        if pace.ends_step(len(member.topic_ids)):
            yield
    quotas = {topic_id: divmod(partition_counts[topic_id], count) for topic_id, count in subscribers.items()}
    positions = dict.fromkeys(subscribers, (0, 0))
    """The number of partitions and of members that are done, by topic."""
    result: dict[str, Assignment] = {}
    for member_id in ordered:
        assignment: Assignment = {}
        for topic_id in members[member_id].topic_ids:
            start, members_done = positions[topic_id]
            quota, extra = quotas[topic_id]
            end = start + quota + (members_done < extra)
            positions[topic_id] = end, members_done + 1
            if end > start:
                assignment[topic_id] = frozenset(range(start, end))
            if pace.ends_step(1 + end - start):
                yield
        result[member_id] = assignment
    return result


def _instance_first(member_id: str, group_instance_id: str | None) -> tuple[bool, str]:
    """Static members come first, in the order of their instance ids, then the others by member id."""
    return (group_instance_id is None, member_id if group_instance_id is None else group_instance_id)


def assign_uniformly(
    members: Members, partition_counts: PartitionCounts, *, keeps_sizes: bool
) -> Generator[None, None, dict[str, Assignment]]:
    """Return an assignment for members that all subscribe to the same topics: sizes differ by one at most.

    ``keeps_sizes``: a member that would get one partition more than others gets it only if no later member can.
    """
    ordered = in_hash_order(members, java_hash)
    topic_ids = in_hash_order(members[ordered[0]].topic_ids, java_uuid_hash)
    if not topic_ids:
        return {}
    pace = Pace()
    if pace.ends_step(len(topic_ids)):
        yield
    taken: dict[bytes, set[int]] = {topic_id: set() for topic_id in topic_ids}
    for member in members.values():
        for topic_id, indexes in member.target.items():
            if topic_id in taken:
                taken[topic_id] |= indexes
        if pace.ends_step(1 + len(member.target)):
            yield
    free: list[tuple[bytes, int]] = []
    for topic_id in topic_ids:
        indexes_taken, count = taken[topic_id], partition_counts[topic_id]
        free += [(topic_id, index) for index in range(count) if index not in indexes_taken]
        if pace.ends_step(count):
            yield
    quota, extra_count = divmod(sum(partition_counts[topic_id] for topic_id in topic_ids), len(ordered))
    result: dict[str, Assignment] = {}
    unfilled: list[tuple[str, int]] = []
    for number, member_id in enumerate(ordered):
        has_extra = extra_count > 0
        left = quota + has_extra
        kept: Assignment = {}
        target = members[member_id].target
        for topic_id in in_hash_order(target, java_uuid_hash) if len(target) > 1 else target:
            indexes = target[topic_id]
            if topic_id not in taken:
                continue
            if len(indexes) <= left:
                kept[topic_id] = indexes
                left -= len(indexes)
            else:
                stay, go = sorted(indexes)[:left], sorted(indexes)[left:]
                if stay:
                    kept[topic_id] = frozenset(stay)
                left = 0
                free += [(topic_id, index) for index in go]
        result[member_id] = kept
        if keeps_sizes and left and has_extra and len(ordered) - number > extra_count:
            left, has_extra = left - 1, False
        extra_count -= has_extra
        if left:
            unfilled.append((member_id, left))
        if pace.ends_step(1 + len(target)):
            yield
    given = 0
    for member_id, left in unfilled:
        added: dict[bytes, list[int]] = {}
        for topic_id, index in free[given : given + left]:
            added.setdefault(topic_id, []).append(index)
        given += left
        kept = result[member_id]
        for topic_id, more in added.items():
            kept[topic_id] = kept.get(topic_id, NO_PARTITIONS) | frozenset(more)
        if pace.ends_step(left):
            yield
    return result


def changed_targets(
    before: Mapping[str, Assignment], after: Mapping[str, Assignment], member_ids: Iterable[str]
) -> dict[str, Assignment]:
    """Return the target of each member; the object of before where it is equal, so that only changes are written."""
    targets: dict[str, Assignment] = {}
    for member_id in member_ids:
        old, new = before.get(member_id), after.get(member_id, {})
        targets[member_id] = new if old is None or old != new else old
    return targets
