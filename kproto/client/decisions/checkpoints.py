"""The records of the checkpoint topic `__parallel_checkpoints` (KIP-333).

KIP-333 asks for "another Kafka topic" with one log per range and names neither the topic nor a format. kproto writes
one key per range to a compacted topic.

Wire:
    key: JSON array ``[1, group, topic, partition, number]``; 1 is the version of the format.
    value: JSON object ``{"start", "end", "position", "t", "topic_id"}``. ``end`` is -1 for the range of consumer 1,
    ``t`` is the writer's time in milliseconds, ``topic_id`` is null if the broker has no topic ids. A null value
    deletes the range.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from zlib import crc32

from kproto.client.decisions.catch_up_ranges import OffsetRange

CHECKPOINT_TOPIC = "__parallel_checkpoints"
VERSION = 1


@dataclass(frozen=True, slots=True, order=True)
class CheckpointKey:
    """The group, the partition and the number of a range."""

    group: str
    topic: str
    partition: int
    number: int

    def encode(self) -> bytes:
        return _json([VERSION, self.group, self.topic, self.partition, self.number])

    @classmethod
    def decode(cls, data: bytes | None) -> CheckpointKey | None:
        """Return the key, or None for bytes in another format; readers ignore such records."""
        match _parse(data):
            case [1, str(group), str(topic), int(partition), int(number)]:
                return cls(group, topic, partition, number)
            case _:
                return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A range and the position of its consumer."""

    range: OffsetRange
    position: int
    time_ms: int
    topic_id: str | None = None

    def encode(self) -> bytes:
        fields = {"start": self.range.start, "end": self.range.end, "position": self.position}
        return _json({**fields, "t": self.time_ms, "topic_id": self.topic_id})

    @classmethod
    def decode(cls, data: bytes | None) -> Checkpoint | None:
        """Return the checkpoint, or None if the range is deleted or the value has another format."""
        match _parse(data):
            case {"start": int(start), "end": int(end), "position": int(position), "t": int(time_ms), **rest}:
                topic_id = rest.get("topic_id")
                known_id = topic_id if isinstance(topic_id, str) else None
                return cls(range=OffsetRange(start, end), position=position, time_ms=time_ms, topic_id=known_id)
            case _:
                return None


class GroupCheckpoints:
    """The checkpoints of one group, from the records of its partition of the topic."""

    def __init__(self, group: str) -> None:
        self._key_start = _json([VERSION, group])[:-1] + b","
        self._in_force: dict[CheckpointKey, tuple[int, Checkpoint]] = {}
        """By key, the last checkpoint and its offset in the topic."""

    def add(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        """Add the next record; records of other groups and of other formats are ignored."""
        if key is None or not key.startswith(self._key_start):  # most records are of other groups
            return
        decoded = CheckpointKey.decode(key)
        if decoded is None:
            return
        checkpoint = Checkpoint.decode(value)
        if checkpoint is None:
            self._in_force.pop(decoded, None)
        else:
            self._in_force[decoded] = (offset, checkpoint)

    def first_in_force(self, end: int) -> int:
        """Return the offset of the oldest record that is in force, `end` if there is none.

        Records that other members write later have larger offsets. So a reader of the group may start there at any
        later time.
        """
        return min((offset for offset, _ in self._in_force.values()), default=end)

    def by_partition(self) -> dict[tuple[str, int], dict[int, Checkpoint]]:
        """Return the checkpoints in force, by topic and partition and by number."""
        found: dict[tuple[str, int], dict[int, Checkpoint]] = {}
        for key, (_, checkpoint) in self._in_force.items():
            found.setdefault((key.topic, key.partition), {})[key.number] = checkpoint
        return found


def checkpoint_partition(group: str, partition_count: int) -> int:
    """Return the partition of a group's checkpoints; a member reads only that partition."""
    return crc32(group.encode()) % partition_count


def ranges_of_topic(checkpoints: Mapping[int, Checkpoint], topic_id: str | None) -> dict[int, OffsetRange]:
    """Return the ranges of a topic, without those of a deleted topic with the same name.

    If one of the two topic ids is unknown, the topic name decides.
    """
    accepted = (None, topic_id)
    return {number: each.range for number, each in checkpoints.items() if topic_id is None or each.topic_id in accepted}


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _parse(data: bytes | None) -> object:
    try:
        return json.loads(data or b"null")
    except ValueError:
        return None
