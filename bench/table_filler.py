"""``python -m bench.table_filler NAME GROUPS TOPICS PARTITIONS`` fills one table and prints its figures as JSON."""

from __future__ import annotations

import gc
import json
import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from time import thread_time_ns

from bench.group_shape import GroupShape
from bench.model import KPROTO
from bench.process_tree import resident_bytes
from kproto_server.coordinator.offsets import OffsetAndMetadata, OffsetStore

CHOSEN = 500
"""Number of groups that commit again and are looked up."""
ROUNDS = 7
TOPIC_ID = b"a topic's own id"
BEGAN_MS = 1_700_000_000_000

Entries = list[tuple[str, list[tuple[int, OffsetAndMetadata]]]]


def commit_of(shape: GroupShape, now_ms: int) -> Entries:
    """Return the entries of one group's commit."""
    return [
        (
            f"topic-{topic}",
            [
                (partition, OffsetAndMetadata(now_ms + partition, -1, "", now_ms, None, TOPIC_ID))
                for partition in range(shape.partitions)
            ],
        )
        for topic in range(shape.topics)
    ]


class Subject(ABC):
    """A measured table."""

    @abstractmethod
    def commit(self, group_id: str, entries: Entries) -> None: ...

    @abstractmethod
    def lookup(self, group_id: str, topic: str, partition: int) -> int:
        """Return the committed offset."""


class Packed(Subject):
    """kproto's table."""

    def __init__(self) -> None:
        self._offsets = OffsetStore()

    def commit(self, group_id: str, entries: Entries) -> None:
        self._offsets.apply_commit(group_id, entries, expires_early=False)

    def lookup(self, group_id: str, topic: str, partition: int) -> int:
        return self._offsets.of_group(group_id)[topic][partition].offset


class Tuples(Subject):
    """A dictionary by group, topic and partition."""

    def __init__(self) -> None:
        self._offsets: dict[tuple[str, str, int], tuple[object, ...]] = {}

    def commit(self, group_id: str, entries: Entries) -> None:
        for topic, partitions in entries:
            for partition, stored in partitions:
                self._offsets[group_id, topic, partition] = stored

    def lookup(self, group_id: str, topic: str, partition: int) -> int:
        offset = self._offsets[group_id, topic, partition][0]
        assert isinstance(offset, int)
        return offset


SUBJECTS = {KPROTO: Packed, "tuples": Tuples}


def filled(subject: Subject, shape: GroupShape) -> dict[str, float]:
    """Fill a table and return its figures."""
    subject.commit("first", commit_of(shape, BEGAN_MS))
    gc.collect()
    resident = resident_bytes()
    longest_ns = sum_ns = 0
    for number in range(shape.groups):
        group_id, entries = f"group-{number}", commit_of(shape, BEGAN_MS + number)
        began = thread_time_ns()
        subject.commit(group_id, entries)
        took_ns = thread_time_ns() - began
        sum_ns += took_ns
        longest_ns = max(longest_ns, took_ns)
    grown = resident_bytes() - resident
    later_ms = BEGAN_MS + 2 * shape.groups
    chosen = [f"group-{random.randrange(shape.groups)}" for _ in range(CHOSEN)]  # noqa: S311 (no secret)
    commits = [(group_id, commit_of(shape, later_ms)) for group_id in chosen]
    keys = [(group_id, f"topic-{shape.topics - 1}", shape.partitions - 1) for group_id in chosen]
    next_ns, lookup_ns = _least(subject.commit, commits), _least(subject.lookup, keys)
    if any(subject.lookup(*key) != later_ms + shape.partitions - 1 for key in keys):
        raise AssertionError("a committed offset is missing")
    return {
        "bytes_per_entry": grown / shape.entries,
        "longest_commit_ms": longest_ns / 1e6,
        "first_commit_us": sum_ns / 1e3 / shape.groups,
        "next_commit_us": next_ns / 1e3,
        "lookup_us": lookup_ns / 1e3,
    }


def _least(function: object, calls: Sequence[tuple[object, ...]]) -> float:
    assert callable(function)
    least_ns = sys.maxsize
    for _ in range(ROUNDS):
        began = thread_time_ns()
        for arguments in calls:
            function(*arguments)
        least_ns = min(least_ns, thread_time_ns() - began)
    return least_ns / len(calls)


if __name__ == "__main__":
    name, *numbers = sys.argv[1:]
    print(json.dumps(filled(SUBJECTS[name](), GroupShape(*map(int, numbers)))))
