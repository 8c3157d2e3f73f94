"""Commits as record batches (OC-33), with one record for each partition.

`commit_batch` encodes any commit. A `CommitTemplate` encodes the same batch for a commit whose partitions, metadata and
leader epochs are known: only group, offsets and time vary, and they are packed between constant bytes.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.records.compression import Compression
from kproto.records.offset_records import NO_EXPIRE_TIMESTAMP
from kproto.records.varint import varint
from kproto_server.coordinator.offsets_log.batches import (
    COMMITS_BASE_SEQUENCE,
    NO_ATTRIBUTES_NO_TIMESTAMP_DELTA,
    batch_header,
    record_batch,
    string,
    with_checksum,
)
from kproto_server.coordinator.offsets_log.values import value_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kproto_server.coordinator.offsets import CommitEntries
    from kproto_server.coordinator.offsets_log.values import ValueParts
    from kproto_server.coordinator.version_behavior import OffsetsLogBehavior

NO_HEADERS = b"\0"

PARTITION_SIZE = 4

GROUP, OFFSET, STEP = 1, 3, 4
"""The first index of the group and of the offset among the parts of a template, and the parts of each record."""
pack_time: Callable[..., bytes] = Struct(">q").pack


def commit_batch(
    group_id: str,
    entries: CommitEntries,
    now_ms: int,
    behavior: OffsetsLogBehavior,
    compression: Compression = Compression.NONE,
) -> tuple[bytes, int]:
    """Return a commit as a batch, and how many records it has.

    Raises:
        EncodeError: a name or metadata is too long for the format.
        MissingPackage: the compression needs a package that is not installed.
    """
    key_head = behavior.offset_key_type.to_bytes(2, "big") + string(group_id)
    parts: list[bytes] = []
    delta = 0
    for name, partitions in entries:
        key = key_head + string(name)
        key_size = len(key) + PARTITION_SIZE
        key = varint(key_size) + key
        variant: Any = None
        for partition, (offset, leader_epoch, metadata, commit_ms, expire_ms, topic_id) in partitions:
            expires = expire_ms is not None
            # Usually all partitions of a commit have the same values around offset and times: encoded once.
            if variant != (metadata, leader_epoch, expires, topic_id):
                variant = (metadata, leader_epoch, expires, topic_id)
                value = value_parts(metadata, leader_epoch, topic_id, expires=expires, behavior=behavior)
                pack = _packer(len(value.head), len(value.middle), value.has_expiry)
                size = _size(key_size, value)
                end = value.end + NO_HEADERS
            if value.has_expiry:
                times = (commit_ms, expire_ms if expires else NO_EXPIRE_TIMESTAMP)
                content = pack(partition, value.head, offset, value.middle, *times)
            else:
                content = pack(partition, value.head, offset, value.middle, commit_ms)
            parts += _record_head(size, delta), key, content, end
            delta += 1
    return record_batch(b"".join(parts), delta, now_ms, COMMITS_BASE_SEQUENCE, compression), delta


class CommitTemplate:
    """The batch of a commit that is repeated with other offsets, at another time: its constant bytes, and the positions
    of the others. Groups whose ids have the same size share a template.

    Many commits come in the same millisecond, so the timestamps are part of the constant bytes until the clock moves.
    """

    __slots__ = ("_expires_after_ms", "_group", "_now_ms", "_offsets_of", "_pack", "_parts", "_records", "record_count")

    def __init__(
        self,
        entries: CommitEntries,
        behavior: OffsetsLogBehavior,
        group: slice,
        offsets_of: Callable[[bytes], Sequence[int]],
        expires_after_ms: int | None = None,
    ) -> None:
        """Prepare the constant bytes.

        Args:
            group: where the group id is in a request.
            offsets_of: returns the offsets of a request, in the order of the entries.
            expires_after_ms: the expire timestamp minus the commit timestamp; None: there is no expire timestamp.

        Raises:
            EncodeError: the group id is too long for the format.
        """
        self._group = group
        self._offsets_of = offsets_of
        group_size = group.stop - group.start
        self._records = list(_records(group_size, entries, behavior, expires=expires_after_ms is not None))
        self.record_count: int = len(self._records)
        self._expires_after_ms = expires_after_ms
        self._now_ms = 0
        *constant, last = self._constant_parts(0)
        self._parts: list[Any] = []
        """The arguments of `_pack`: for each record constant bytes, group id, constant bytes, offset; then the end."""
        layout = [">"]
        for before, record in zip(constant, self._records, strict=True):
            self._parts += [before, b"", record.before_offset, 0]
            layout.append(f"{len(before)}s{group_size}s{len(record.before_offset)}sq")
        self._parts.append(last)
        self._pack = Struct("".join([*layout, f"{len(last)}s"])).pack

    def checked(self, request: bytes, now_ms: int) -> bytes:
        """Return the batch of a request, from its attributes on: the bytes that the checksum covers."""
        parts, count = self._parts, self.record_count
        if now_ms != self._now_ms:
            parts[::STEP] = self._constant_parts(now_ms)
            self._now_ms = now_ms
        if count == 1:
            parts[GROUP] = request[self._group]
            (parts[OFFSET],) = self._offsets_of(request)
        else:
            parts[GROUP::STEP] = [request[self._group]] * count
            parts[OFFSET::STEP] = self._offsets_of(request)
        return self._pack(*parts)

    @staticmethod
    def batch(checked: bytes) -> bytes:
        """Return the whole batch of which `checked` has returned this part."""
        return with_checksum(checked)

    def _constant_parts(self, now_ms: int) -> Iterator[bytes]:
        """Yield the bytes before each group id, and those after the last offset, for a time."""
        expires_after_ms = self._expires_after_ms
        expire_ms = NO_EXPIRE_TIMESTAMP if expires_after_ms is None else now_ms + expires_after_ms
        time, expire_time = pack_time(now_ms), pack_time(expire_ms)
        before = batch_header(self.record_count, now_ms, COMMITS_BASE_SEQUENCE)
        for record in self._records:
            yield before + record.before_group
            before = record.middle + time + (expire_time if record.has_expiry else b"") + record.end
        yield before


class _Record(NamedTuple):
    """The constant bytes of one record of a template."""

    before_group: bytes
    before_offset: bytes
    middle: bytes
    has_expiry: bool
    end: bytes


def _records(
    group_size: int, entries: CommitEntries, behavior: OffsetsLogBehavior, *, expires: bool
) -> Iterator[_Record]:
    delta = 0
    before_group = behavior.offset_key_type.to_bytes(2, "big") + string("g" * group_size)[:2]
    for name, partitions in entries:
        topic = string(name)
        key_size = len(before_group) + group_size + len(topic) + PARTITION_SIZE
        for partition, stored in partitions:
            value = value_parts(
                stored.metadata, stored.leader_epoch, stored.topic_id, expires=expires, behavior=behavior
            )
            yield _Record(
                before_group=_record_head(_size(key_size, value), delta) + varint(key_size) + before_group,
                before_offset=topic + partition.to_bytes(PARTITION_SIZE, "big", signed=True) + value.head,
                middle=value.middle,
                has_expiry=value.has_expiry,
                end=value.end + NO_HEADERS,
            )
            delta += 1


def _size(key_size: int, value: ValueParts) -> int:
    """Return the size of a record without its offset delta."""
    return len(NO_ATTRIBUTES_NO_TIMESTAMP_DELTA) + len(varint(key_size)) + key_size + value.size + len(NO_HEADERS)


@lru_cache(maxsize=4096)
def _record_head(size: int, delta: int) -> bytes:
    """Return the bytes of a record before its key."""
    offset_delta = varint(delta)
    return varint(size + len(offset_delta)) + NO_ATTRIBUTES_NO_TIMESTAMP_DELTA + offset_delta


@lru_cache(maxsize=256)
def _packer(head_size: int, middle_size: int, has_expiry: bool) -> Callable[..., bytes]:
    """Return the function that packs partition, head of the value, offset, middle and times."""
    return Struct(f">i{head_size}sq{middle_size}s{'qq' if has_expiry else 'q'}").pack
