"""The subscribed topics of a group, and the hash by which the coordinator notices their changes (KIP-1101).

Groups of consumers and share groups keep this hash in their log, where a real broker compares it, too.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kproto_server.cluster.topics import Topic

MAGIC = b"\0"
HASHED_IN_STEP = 4_000
"""Topics and partitions that `hash_in_steps` hashes in a step: at most 20 ms."""


def metadata_hash(names: Iterable[str], topics: Mapping[str, Topic], rack_of: Callable[[int], str | None]) -> int:
    """Return the hash of the topics that exist; 0 if none does."""
    found: dict[str, int] = {}
    racks_of: dict[tuple[int, ...], tuple[str, ...]] = {}
    """Topics share the few lists of replicas that a cluster has."""

    def racks(replicas: tuple[int, ...]) -> tuple[str, ...]:
        known = racks_of.get(replicas)
        if known is None:
            known = racks_of[replicas] = _racks(replicas, rack_of)
        return known

    for name in names:
        topic = topics.get(name)
        if topic is not None:
            of_partitions = tuple([racks(tuple(partition.replicas)) for partition in topic.partitions])
            found[name] = topic_hash(name, topic.topic_id, of_partitions)
    return hash_of(found)


def hash_in_steps(
    names: Sequence[str], topics: Mapping[str, Topic], rack_of: Callable[[int], str | None]
) -> Iterator[None]:
    """Compute the hashes of a large subscription in steps; `metadata_hash` then finds them in the cache."""
    step: list[str] = []
    size = 0
    for name in dict.fromkeys(names):
        step.append(name)
        topic = topics.get(name)
        size += 1 if topic is None else 1 + len(topic.partitions)
        if size >= HASHED_IN_STEP:
            metadata_hash(step, topics, rack_of)
            yield
            step, size = [], 0
    metadata_hash(step, topics, rack_of)
    yield


def hash_of(hashes: Mapping[str, int]) -> int:
    """Return the hash of topics from the hash of each, by name; 0 for no topics."""
    if not hashes:
        return 0
    return _xxh3()(b"".join([struct.pack("<q", hashes[name]) for name in sorted(hashes)]))


TOPICS_MAX = 1 << 15
"""Topics whose hashes are kept. With more subscribed topics, each change of topics hashes all of them again."""


@lru_cache(maxsize=TOPICS_MAX)
def topic_hash(name: str, topic_id: bytes, racks: tuple[tuple[str, ...], ...]) -> int:
    """Return the hash of a topic. ``racks``: of each partition those of its replicas, sorted."""
    return _xxh3()(b"".join([MAGIC, topic_id[7::-1], topic_id[:7:-1], _text(name), _racks_part(racks)]))


@lru_cache(maxsize=256)
def _racks_part(racks: tuple[tuple[str, ...], ...]) -> bytes:
    """Return what the hash reads of partitions: topics have the few lists of racks that a cluster has."""
    parts = [struct.pack("<i", len(racks))]
    for index, of_partition in enumerate(racks):
        parts.append(struct.pack("<i", index))
        for rack in of_partition:
            parts += (struct.pack("<i", _length(rack)), _text(rack))
    return b"".join(parts)


@lru_cache(maxsize=1)
def _xxh3() -> Callable[[bytes], int]:
    """Return the function that hashes bytes to a signed number of 64 bits, as in Java."""
    from xxhash import xxh3_64_digest

    return lambda data: int.from_bytes(xxh3_64_digest(data), "big", signed=True)


def _racks(replicas: Iterable[int], rack_of: Callable[[int], str | None]) -> tuple[str, ...]:
    return tuple(sorted([rack for replica in replicas if (rack := rack_of(replica)) is not None]))


def _text(text: str) -> bytes:
    """Return a string as the hash reads it: its UTF-16 code units, then their number."""
    encoded = text.encode("utf-16-le", "surrogatepass")
    return encoded + struct.pack("<i", len(encoded) // 2)


def _length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
