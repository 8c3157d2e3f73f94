"""Keys of entries as octets: runs of neighbouring partitions.

A run is three varints: how many topics further it is than the one before, where it begins (in the same topic, behind
the end of the run before), and by how many its partitions are more than one. Sixteen partitions of one of the first
128 topics are three octets, and so is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.varint import read_varlong, varlong
from kproto.runtime import read_uvarint, uvarint
from kproto_server.coordinator.table.topics import HALF, PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Sequence


def encode_keys(keys: Sequence[int]) -> bytes:
    """Return the octets of keys that are in order."""
    octets: list[bytes] = []
    topic = end = position = 0
    count = len(keys)
    while position < count:
        start = position
        following = keys[start]
        if keys[-1] - following == count - start - 1:
            position = count
        while position < count and keys[position] == following:
            position += 1
            following += 1
        next_topic, partition = divmod(keys[start] + HALF, PARTITIONS)
        partition -= HALF
        if next_topic != topic:
            end = 0
        octets += uvarint(next_topic - topic), varlong(partition - end), uvarint(position - start - 1)
        topic, end = next_topic, partition + position - start
    return b"".join(octets)


def decode_keys(octets: bytes, position: int = 0) -> tuple[int, ...]:
    """Return the keys of these octets."""
    keys: list[int] = []
    base = end = 0
    while position < len(octets):
        topics, position = read_uvarint(octets, position)
        gap, position = read_varlong(octets, position)
        more, position = read_uvarint(octets, position)
        if topics:
            base += topics * PARTITIONS
            end = 0
        start = base + end + gap
        keys += range(start, start + more + 1)
        end += gap + more + 1
    return tuple(keys)
