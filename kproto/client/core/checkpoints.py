"""What is kept of a catch-up in the compacted topic `__parallel_checkpoints`: its keys and values.

KIP-333 asks for "another Kafka topic" with a log per range, and names neither topic nor format. A range is a key here.

Wire:
    key: JSON array ``[1, group, topic, partition, number]``; 1 is the version.
    value: JSON object ``{"start", "end", "position", "t", "topic_id"}``; ``end`` is -1 for the head's range, ``t`` is
    the writer's time in milliseconds, ``topic_id`` is null where the broker has none. No value: the range is gone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from zlib import crc32

from kproto.client.core.ranges import Range

TOPIC = "__parallel_checkpoints"
VERSION = 1


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Whose range this is, and which of them."""

    group: str
    topic: str
    partition: int
    number: int

    def encode(self) -> bytes:
        return _json([VERSION, self.group, self.topic, self.partition, self.number])

    @classmethod
    def decode(cls, data: bytes | None) -> Key | None:
        """None: a key of another kind, which is nobody's here."""
        match _read(data):
            case [1, str(group), str(topic), int(partition), int(number)]:
                return cls(group, topic, partition, number)
            case _:
                return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """How far a range was read."""

    range: Range
    position: int
    time_ms: int
    topic_id: str | None = None

    def encode(self) -> bytes:
        fields = {"start": self.range.start, "end": self.range.end, "position": self.position}
        return _json({**fields, "t": self.time_ms, "topic_id": self.topic_id})

    @classmethod
    def decode(cls, data: bytes | None) -> Checkpoint | None:
        """None: the range is gone, or its value is of another kind."""
        match _read(data):
            case {"start": int(start), "end": int(end), "position": int(position), "t": int(time_ms), **rest}:
                topic_id = rest.get("topic_id")
                known_id = topic_id if isinstance(topic_id, str) else None
                return cls(range=Range(start, end), position=position, time_ms=time_ms, topic_id=known_id)
            case _:
                return None


def partition_of(group: str, partition_count: int) -> int:
    """Where a group's checkpoints are, so that a member has to read that partition only."""
    return crc32(group.encode()) % partition_count


def of_topic(checkpoints: dict[int, Checkpoint], topic_id: str | None) -> dict[int, Range]:
    """The ranges of these checkpoints, without those of a deleted topic of the same name.

    Where one of the ids is not known, the name has to do.
    """
    unknown = (None, topic_id)
    return {number: each.range for number, each in checkpoints.items() if topic_id is None or each.topic_id in unknown}


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _read(data: bytes | None) -> object:
    try:
        return json.loads(data or b"null")
    except ValueError:
        return None
