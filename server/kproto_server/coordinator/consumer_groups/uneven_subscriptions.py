"""The uniform assignor for members that subscribe to different topics.

Theory of operation. Members keep the partitions of topics that they still subscribe to. The other partitions go, topic
by topic, to the subscribers with the fewest partitions. Then partitions move from subscribers with many to subscribers
with few, again topic by topic, until no topic has a move that makes the sizes more even, or 16 rounds are done. Topics
with many partitions for each subscriber come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.jvm.arithmetic import java_hash, java_uuid_order
from kproto.jvm.hash_map import in_hash_order
from kproto_server.coordinator.epoch_groups.assigning import Pace

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from kproto_server.coordinator.consumer_groups.assignor_input import Members, PartitionCounts
    from kproto_server.coordinator.consumer_groups.data import Assignment

ROUNDS_MAX = 16
NO_OWNER = -1


def assign_evenly(members: Members, partition_counts: PartitionCounts) -> Generator[None, None, dict[str, Assignment]]:
    """Return the target assignment of each member, computed in steps."""
    return _Assignment(members, partition_counts).build()


class _Assignment:
    """An assignment in progress. Members are their positions in the list of ids."""

    def __init__(self, members: Members, partition_counts: PartitionCounts) -> None:
        self._members = members
        self._partition_counts = partition_counts
        self._pace = Pace()
        self._ids = in_hash_order(members, java_hash)
        self._subscribers: dict[bytes, list[int]] = {}
        self._owners: dict[bytes, list[int]] = {}
        self._sizes = [0] * len(self._ids)

    def build(self) -> Generator[None, None, dict[str, Assignment]]:
        yield from self._keep()
        topics = self._in_order(self._subscribers)
        yield
        for topic_id in topics:
            free = [index for index, owner in enumerate(self._owners[topic_id]) if owner == NO_OWNER]
            if free:
                ranks = _Ranks(self._sizes, self._subscribers[topic_id])
                for index in free:
                    self._give(topic_id, index, ranks.next_with_few())
            if self._pace.ends_step(self._size(topic_id)):
                yield
        yield from self._balance([topic_id for topic_id in topics if len(self._subscribers[topic_id]) > 1])
        found: list[dict[bytes, list[int]]] = [{} for _ in self._ids]
        for topic_id, owners in self._owners.items():
            for index, owner in enumerate(owners):
                found[owner].setdefault(topic_id, []).append(index)
            if self._pace.ends_step(len(owners)):
                yield
        return {
            member_id: {topic_id: frozenset(indexes) for topic_id, indexes in of_member.items()}
            for member_id, of_member in zip(self._ids, found, strict=True)
        }

    def _keep(self) -> Iterator[None]:
        """Let members keep the partitions of the topics that they still subscribe to."""
        for number, member_id in enumerate(self._ids):
            for topic_id in self._members[member_id].topic_ids:
                self._subscribers.setdefault(topic_id, []).append(number)
            if self._pace.ends_step(len(self._members[member_id].topic_ids)):
                yield
        self._owners = {topic_id: [NO_OWNER] * self._partition_counts[topic_id] for topic_id in self._subscribers}
        for number, member_id in enumerate(self._ids):
            member = self._members[member_id]
            subscribed = frozenset(member.topic_ids)
            for topic_id, indexes in member.target.items():
                if topic_id in subscribed:
                    for index in indexes:
                        if 0 <= index < len(self._owners[topic_id]):  # the leader of a classic group chose them
                            self._give(topic_id, index, number)
                if self._pace.ends_step(len(indexes)):
                    yield

    def _size(self, topic_id: bytes) -> int:
        """Return how much work a topic is."""
        return len(self._subscribers[topic_id]) + len(self._owners[topic_id])

    def _in_order(self, topic_ids: Iterable[bytes]) -> list[bytes]:
        """Return topics with the most partitions for each subscriber first."""

        def rank(topic_id: bytes) -> tuple[float, int, tuple[int, int]]:
            count = len(self._subscribers[topic_id])
            return -len(self._owners[topic_id]) / count, count, java_uuid_order(topic_id)

        return sorted(topic_ids, key=rank)

    def _give(self, topic_id: bytes, index: int, number: int) -> None:
        before = self._owners[topic_id][index]
        if before != NO_OWNER:
            self._sizes[before] -= 1
        self._owners[topic_id][index] = number
        self._sizes[number] += 1

    def _balance(self, topics: list[bytes]) -> Iterator[None]:
        last_changed: bytes | None = None
        for _ in range(ROUNDS_MAX):
            for topic_id in topics:
                if topic_id == last_changed:
                    return
                if self._balance_topic(topic_id) or last_changed is None:
                    last_changed = topic_id
                if self._pace.ends_step(self._size(topic_id)):
                    yield

    def _balance_topic(self, topic_id: bytes) -> int:
        """Move partitions of a topic; return how many."""
        subscribers = self._subscribers[topic_id]
        sizes = [self._sizes[number] for number in subscribers]
        if max(sizes) - min(sizes) <= 1:
            return 0
        ranks = _Ranks(self._sizes, subscribers)
        owned: dict[int, list[int]] = {}
        for index, owner in enumerate(self._owners[topic_id]):
            owned.setdefault(owner, []).append(index)
        moved = 0
        while not ranks.is_even:
            giver = ranks.next_with_many()
            while giver is not None and not owned.get(giver):
                ranks.exclude()
                giver = ranks.next_with_many()
            if giver is None:
                break
            index = owned[giver].pop()
            taker = ranks.next_with_few()
            if ranks.is_even:
                break
            self._give(topic_id, index, taker)
            moved += 1
        return moved


class _Ranks:
    """The subscribers of a topic by size: the fewest partitions at one end, the most at the other.

    At both ends is a range of members with the same size. A walk through the range at the low end gives each member one
    partition, at the high end it takes one; then the range's size changes by one, and members of that size join it. The
    sizes of members within the ranges are not read again.
    """

    def __init__(self, sizes: list[int], members: list[int]) -> None:
        self._sizes = sizes
        self._sorted = sorted(members, key=lambda number: (sizes[number], number))
        count = len(self._sorted)
        self._few_end = 0
        self._few_size = sizes[self._sorted[0]] - 1
        self._few_next = 0
        self._many_start = self._many_end = count
        self._many_size = sizes[self._sorted[-1]] + 1
        self._many_next = count - 1

    @property
    def is_even(self) -> bool:
        return self._many_size - self._few_size <= 1

    def next_with_few(self) -> int:
        """Return the next member that gets a partition."""
        members, sizes = self._sorted, self._sizes
        if self._few_next >= self._few_end:
            self._few_size += 1
            while self._few_end < len(members) and sizes[members[self._few_end]] == self._few_size:
                self._few_end += 1
            self._few_next = 0
        self._few_next += 1
        return members[self._few_next - 1]

    def next_with_many(self) -> int | None:
        """Return the next member that gives a partition away; None if there is none."""
        members, sizes = self._sorted, self._sizes
        if self._many_next < self._many_start:
            if self._many_end <= self._many_start and self._many_start > 0:
                self._many_size = sizes[members[self._many_start - 1]]
            else:
                self._many_size -= 1
            while self._many_start > 0 and sizes[members[self._many_start - 1]] == self._many_size:
                self._many_start -= 1
            self._many_next = self._many_end - 1
        if self._many_next < 0:
            return None
        self._many_next -= 1
        return members[self._many_next + 1]

    def exclude(self) -> None:
        """Take the member that `next_with_many` returned out of its range: it has nothing of this topic."""
        members, position, last = self._sorted, self._many_next + 1, self._many_end - 1
        members[position], members[last] = members[last], members[position]
        self._many_end -= 1
