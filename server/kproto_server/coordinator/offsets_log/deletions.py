"""Tombstones of offsets and groups as record batches (EX-30, EX-31)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.compression import Compression
from kproto_server.coordinator.offsets_log.batches import record_batch, string, tombstone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto_server.coordinator.version_behavior import OffsetsLogBehavior

GROUP_KEY_TYPE = (2).to_bytes(2, "big")


def deletion_batch(
    group_id: str,
    entries: Iterable[tuple[str, Iterable[int]]],
    removes_group: bool,
    now_ms: int,
    behavior: OffsetsLogBehavior,
    compression: Compression = Compression.NONE,
    *,
    group_keys: Iterable[bytes] | None = None,
) -> tuple[bytes, int]:
    """Return the tombstones of a group's offsets and, last, of the group itself, and how many they are.

    ``group_keys``: the keys of the group's own records; None: those of a classic group.

    Raises:
        EncodeError: a name is too long for the format.
        MissingPackage: the compression needs a package that is not installed.
    """
    keys = list(offset_keys(group_id, entries, behavior))
    if removes_group:
        keys += [group_key(group_id)] if group_keys is None else group_keys
    return tombstones(keys, now_ms, behavior, compression), len(keys)


def tombstones(
    keys: Iterable[bytes], now_ms: int, behavior: OffsetsLogBehavior, compression: Compression = Compression.NONE
) -> bytes:
    """Return a batch that deletes keys, in this order."""
    records = [tombstone(key, delta) for delta, key in enumerate(keys)]
    return record_batch(b"".join(records), len(records), now_ms, behavior.group_base_sequence, compression)


def offset_keys(
    group_id: str, entries: Iterable[tuple[str, Iterable[int]]], behavior: OffsetsLogBehavior
) -> Iterator[bytes]:
    """Yield the keys of offsets."""
    head = behavior.offset_key_type.to_bytes(2, "big") + string(group_id)
    for name, partitions in entries:
        topic = head + string(name)
        for partition in partitions:
            yield topic + partition.to_bytes(4, "big", signed=True)


def group_key(group_id: str) -> bytes:
    """Return the key of a group."""
    return GROUP_KEY_TYPE + string(group_id)
