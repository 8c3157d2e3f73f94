"""Commits as record batches (OC-33): one record a partition, and the template of commits that come again.

`commit_batch` is the general way. A `CommitTemplate` makes the same batch of a commit whose partitions, metadata and
leader epochs are known, of which only group, offsets and time are new: they are packed between octets that stay.
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
"""Where they stand first among the parts of a template, and how many parts a record has."""
pack_time = Struct(">q").pack


def commit_batch(
    group_id: str,
    entries: CommitEntries,
    now_ms: int,
    behavior: OffsetsLogBehavior,
    compression: Compression = Compression.NONE,
) -> tuple[bytes, int]:
    """Return a commit as a batch, and how many records it has.

    Raises:
        EncodeError: a name, or metadata, longer than the format has room for.
        MissingPackage: the compression needs a package that is not installed.
    """
    key_head = behavior.offset_key_type.to_bytes(2, "big") + string(group_id)
    parts: list[bytes] = []
    delta = 0
    for name, partitions in entries:
        key = key_head + string(name)
        key_size = len(key) + PARTITION_SIZE
        key = varint(key_size) + key
        what: Any = None
        for partition, (offset, leader_epoch, metadata, commit_ms, expire_ms, topic_id) in partitions:
            expires = expire_ms is not None
            if what != (metadata, leader_epoch, expires, topic_id):
                what = (metadata, leader_epoch, expires, topic_id)
                form = value_parts(metadata, leader_epoch, topic_id, expires=expires, behavior=behavior)
                pack = _packer(len(form.head), len(form.middle), form.has_expiry)
                size = _size(key_size, form)
                end = form.end + NO_HEADERS
            if form.has_expiry:
                times = (commit_ms, expire_ms if expires else NO_EXPIRE_TIMESTAMP)
                content = pack(partition, form.head, offset, form.middle, *times)
            else:
                content = pack(partition, form.head, offset, form.middle, commit_ms)
            parts += _record_head(size, delta), key, content, end
            delta += 1
    return record_batch(b"".join(parts), delta, now_ms, COMMITS_BASE_SEQUENCE, compression), delta


class CommitTemplate:
    """A commit that comes again with other offsets at another time: the octets of its batch that stay, and where the
    others go between them. One template does for all groups whose ids have the same size.

    Many commits come while the clock shows the same millisecond, so times are among what stays, for that long.
    """

    __slots__ = (
        "_expires_after_ms",
        "_group",
        "_now_ms",
        "_offsets_of",
        "_pack",
        "_parts",
        "_records",
        "record_count",
    )

    def __init__(
        self,
        entries: CommitEntries,
        behavior: OffsetsLogBehavior,
        group: slice,
        offsets_of: Callable[[bytes], Sequence[int]],
        expires_after_ms: int | None = None,
    ) -> None:
        """``group``: where its id is in a request; ``offsets_of``: what reads a request's offsets, in the order of the
        entries; ``expires_after_ms``: how long after the commit its deadline is.

        Raises:
            EncodeError: the id is longer than the format has room for.
        """
        self._group = group
        self._offsets_of = offsets_of
        group_size = group.stop - group.start
        self._records = list(_records(group_size, entries, behavior, expires=expires_after_ms is not None))
        self.record_count = len(self._records)
        self._expires_after_ms = expires_after_ms
        self._now_ms = 0
        *stay, last = self._staying(0)
        self._parts: list[Any] = []
        """What is packed: what stays, the group's id, what stays, and the offset, of each record; then the rest."""
        layout = [">"]
        for before, record in zip(stay, self._records, strict=True):
            self._parts += [before, b"", record.before_offset, 0]
            layout.append(f"{len(before)}s{group_size}s{len(record.before_offset)}sq")
        self._parts.append(last)
        self._pack = Struct("".join([*layout, f"{len(last)}s"])).pack

    def checked(self, request: bytes, now_ms: int) -> bytes:
        """Return all that the checksum covers."""
        parts, count = self._parts, self.record_count
        if now_ms != self._now_ms:
            parts[::STEP] = self._staying(now_ms)
            self._now_ms = now_ms
        if count == 1:
            parts[GROUP] = request[self._group]
            (parts[OFFSET],) = self._offsets_of(request)
        else:
            parts[GROUP::STEP] = [request[self._group]] * count
            parts[OFFSET::STEP] = self._offsets_of(request)
        return self._pack(*parts)

    def _staying(self, now_ms: int) -> Iterator[bytes]:
        """Return what stands before each group's id, and at the end, at this time."""
        expires_after_ms = self._expires_after_ms
        expire_ms = NO_EXPIRE_TIMESTAMP if expires_after_ms is None else now_ms + expires_after_ms
        time, expire_time = pack_time(now_ms), pack_time(expire_ms)
        before = batch_header(self.record_count, now_ms, COMMITS_BASE_SEQUENCE)
        for record in self._records:
            yield before + record.before_group
            before = record.middle + time + (expire_time if record.has_expiry else b"") + record.end
        yield before


class _Record(NamedTuple):
    """One record of a template."""

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
            form = value_parts(
                stored.metadata, stored.leader_epoch, stored.topic_id, expires=expires, behavior=behavior
            )
            yield _Record(
                before_group=_record_head(_size(key_size, form), delta) + varint(key_size) + before_group,
                before_offset=topic + partition.to_bytes(PARTITION_SIZE, "big", signed=True) + form.head,
                middle=form.middle,
                has_expiry=form.has_expiry,
                end=form.end + NO_HEADERS,
            )
            delta += 1


def _size(key_size: int, form: ValueParts) -> int:
    """Return the size of a record, all but its offset delta."""
    return len(NO_ATTRIBUTES_NO_TIMESTAMP_DELTA) + len(varint(key_size)) + key_size + form.sized + len(NO_HEADERS)


@lru_cache(maxsize=4096)
def _record_head(size: int, delta: int) -> bytes:
    """Return what stands before a record's key."""
    offset_delta = varint(delta)
    return varint(size + len(offset_delta)) + NO_ATTRIBUTES_NO_TIMESTAMP_DELTA + offset_delta


@lru_cache(maxsize=256)
def _packer(head_size: int, middle_size: int, has_expiry: bool) -> Callable[..., bytes]:
    """Return what packs partition, head of the value, offset, middle, and times."""
    return Struct(f">i{head_size}sq{middle_size}s{'qq' if has_expiry else 'q'}").pack
