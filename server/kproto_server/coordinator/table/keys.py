"""The keys of entries as bytes: runs of consecutive partitions.

A run is three varints: its topic number minus that of the run before; its first partition, in the same topic minus the
partition after the run before; and its number of partitions minus one. A run of one of the first 128 topics takes three
bytes, whether it has one partition or sixteen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.varint import read_varlong, varlong
from kproto.runtime import read_uvarint, uvarint
from kproto_server.coordinator.table.topics import HALF, PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Sequence


def encode_keys(keys: Sequence[int]) -> bytes:
    """Return sorted keys as bytes."""
    data: list[bytes] = []
    topic = end = position = 0
    count = len(keys)
    while position < count:
        start = position
        following = keys[start]
        if keys[-1] - following == count - start - 1:
            position = count  # one run to the end: no need to look at each key
        while position < count and keys[position] == following:
            position += 1
            following += 1
        next_topic, partition = divmod(keys[start] + HALF, PARTITIONS)
        partition -= HALF
        if next_topic != topic:
            end = 0
        data += uvarint(next_topic - topic), varlong(partition - end), uvarint(position - start - 1)
        topic, end = next_topic, partition + position - start
    return b"".join(data)


def decode_keys(data: bytes, position: int = 0) -> tuple[int, ...]:
    """Return the keys from their bytes."""
    keys: list[int] = []
    base = end = 0
    while position < len(data):
        topics, position = read_uvarint(data, position)
        gap, position = read_varlong(data, position)
        more, position = read_uvarint(data, position)
        if topics:
            base += topics * PARTITIONS
            end = 0
        start = base + end + gap
        keys += range(start, start + more + 1)
        end += gap + more + 1
    return tuple(keys)
