"""Batch templates: which bytes two commits have in common, so that one like another is recognized undecoded.

Theory of operation. In two batches with the same template all sizes are the same, so each key, each value and each
string is at the same position. Seen as one large integer, a batch has three kinds of bits, for which the template has
masks:

- structure: sizes, types, versions, and in strings the high bit of each byte, which is 0 in ASCII;
- identity: group, topics, partitions, topic ids and everything else that seldom changes;
- values: offsets, leader epochs, timestamps, and the letters of metadata, which may have any value.

A batch whose structure bits equal the template's (`BatchTemplate.matches`) is a commit of one group, with as many
records, and `entries` decodes it with one `Struct`. Two batches whose structure and identity bits are equal
(``identity_mask``) are commits of the same partitions: the later one replaces the earlier.

A template covers what the checksum covers: the batch from its attributes on (LF-1). `_TemplateReader` makes one from a
batch. It accepts exactly what `replay` would read as an ordinary commit, and rejects everything unusual: compression,
transactions, headers, tombstones, other record types, several groups, and text that is not ASCII.

`kproto_server.commit_cache.template` says why the three modules that recognize repeated bytes share no code.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any

from kproto.declaration import STRING_SIZE_MAX, ZERO_UUID
from kproto.records.batch_header import CHECKED, CHECKED_FROM, CONTROL, TRANSACTIONAL, position_of
from kproto.records.offset_records import (
    FLEXIBLE_SINCE,
    HAS_EXPIRE_TIMESTAMP,
    LEADER_EPOCH_SINCE,
    NO_EXPIRE_TIMESTAMP,
    NO_LEADER_EPOCH,
    NO_TAGS,
    TOPIC_ID_TAG,
    VERSION_MAX,
)
from kproto.records.varint import more_varlong
from kproto.runtime import FAILURES, malformed, more_uvarint
from kproto_server.coordinator.offsets import OffsetAndMetadata

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.coordinator.offsets import CommitEntries

    Deadline = Callable[[int, int | None], int | None]

CHECKED_SIZE = CHECKED.size
"""Bytes of the batch header that the checksum covers."""
COUNT = slice(position_of("record_count") - CHECKED_FROM, CHECKED_SIZE)
TIMESTAMPS = slice(position_of("base_timestamp") - CHECKED_FROM, position_of("producer_id") - CHECKED_FROM)
UNUSUAL_ATTRIBUTES = 7 | TRANSACTIONAL | CONTROL
"""The bits of compressed batches, of transactions, and of control batches."""

NOT_ASCII = 0x80
"""The bit that no ASCII character has."""
OFFSET_SIZE = TIME_SIZE = 8
EPOCH_SIZE = PARTITION_SIZE = 4

VALUE_VERSION_MAX = {0: 0, 1: VERSION_MAX}
"""The newest version of the value, by record type."""

FIELDS = 8
"""Decoded fields of each record; a field that its version lacks is decoded as no bytes."""

_new: Any = tuple.__new__


class BatchTemplate:
    """The common structure of commit batches."""

    def __init__(self, reader: _TemplateReader) -> None:
        data = reader.data
        self.size: int = len(data)
        self.record_count: int = len(reader.groups)
        self.identity_mask: int = _number(reader.identity)
        """The bits in which two commits of the same partitions agree."""
        self._structure_mask = _number(reader.structure)
        self._structure = _number(data) & self._structure_mask
        start, stop = reader.groups[0]
        self.group: slice = slice(start, stop)
        """Where the group id is, in the first record."""
        # All records have to be of the same group: its id, shifted to the position in each record, added up.
        self._group_shift = 8 * (self.size - stop)
        self._group_bits = (1 << 8 * (stop - start)) - 1
        self._group_factor = sum(1 << 8 * (self.size - stop) for _, stop in reader.groups)
        self._group_mask = self._group_bits * self._group_factor
        self._fields = Struct("".join([">", *reader.fields]))
        self._has_epoch = reader.version >= LEADER_EPOCH_SINCE
        self._has_expiry = reader.version == HAS_EXPIRE_TIMESTAMP
        self._has_topic_id = reader.with_topic_id

    def matches(self, value: int) -> bool:
        """Return whether a batch of this size, as an integer, has this template."""
        if value & self._structure_mask != self._structure:
            return False
        if self.record_count == 1:
            return True
        group = value >> self._group_shift & self._group_bits
        return value & self._group_mask == group * self._group_factor

    def entries(self, data: bytes, deadline: Deadline | None) -> CommitEntries:
        """Decode a batch of this template.

        ``deadline``: returns an expire timestamp from a commit and an expire timestamp; None: the record's counts.
        """
        has_epoch, has_expiry, has_topic_id = self._has_epoch, self._has_expiry, self._has_topic_id
        fields = iter(self._fields.unpack_from(data))
        found: list[tuple[str, list[tuple[int, OffsetAndMetadata]]]] = []
        topic_before = None
        for topic, partition, offset, epoch, metadata, commit_ms, expire_ms, topic_id in zip(
            *[fields] * FIELDS, strict=True
        ):
            if topic != topic_before:
                topic_before = topic
                partitions: list[tuple[int, OffsetAndMetadata]] = []
                found.append((topic.decode(), partitions))
            if not has_epoch:
                epoch = NO_LEADER_EPOCH
            if not has_expiry or expire_ms == NO_EXPIRE_TIMESTAMP:
                expire_ms = None
            if not has_topic_id:
                topic_id = ZERO_UUID
            if deadline is not None:
                expire_ms = deadline(commit_ms, expire_ms)
            text = metadata.decode() if metadata else ""
            stored = _new(OffsetAndMetadata, (offset, epoch, text, commit_ms, expire_ms, topic_id))
            partitions.append((partition, stored))
        return found


def read_template(data: bytes) -> BatchTemplate | None:
    """Return the template of a batch, given from its attributes on; None if the batch is no ordinary commit of one
    group with names and metadata in ASCII."""
    try:
        return BatchTemplate(_TemplateReader(data))
    except FAILURES:
        return None


def _number(data: bytes | bytearray) -> int:
    return int.from_bytes(data, "big")


class _TemplateReader:
    """Reads a batch and collects masks and fields. Anything unexpected raises one of `FAILURES`."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.identity: bytearray = bytearray(b"\xff" * len(data))
        self.structure: bytearray = bytearray(b"\xff" * len(data))
        self.groups: list[tuple[int, int]] = []
        self.fields: list[str] = []
        self.version: int = -1
        self.with_topic_id: bool = False
        self._position = CHECKED_SIZE
        self._fields_end = 0
        """The position after the last of ``fields``."""
        self._expect(int.from_bytes(data[:2], "big") & UNUSUAL_ATTRIBUTES == 0)
        self._clear(self.identity, TIMESTAMPS)
        self._clear(self.structure, TIMESTAMPS)
        count = int.from_bytes(data[COUNT], "big", signed=True)
        self._expect(count > 0 and int.from_bytes(data[2:6], "big", signed=True) >= 0)
        for index in range(count):
            self._record(is_first=index == 0)
        self._expect(self._position == len(data))

    def _expect(self, condition: bool) -> None:
        if not condition:
            malformed()

    def _clear(self, mask: bytearray, where: slice, bits: int = 0) -> None:
        """Clear the mask of some bytes, but for these bits of each."""
        mask[where] = bytes((bits,)) * (where.stop - where.start)

    def _record(self, *, is_first: bool) -> None:
        size = self._size()
        end = self._position + size
        self._skip(1)
        self._timestamp_delta()
        self._unsigned()  # offset delta
        key_end = self._size() + self._position
        version_max = VALUE_VERSION_MAX[self._key()]
        self._expect(self._position == key_end)
        value_end = self._size() + self._position
        self._value(value_end, version_max, is_first=is_first)
        self._expect(self._position == value_end and self.data[value_end : value_end + 1] == NO_TAGS)
        self._skip(1)  # no headers
        self._expect(self._position == end)

    def _key(self) -> int:
        record_type = self._int16()
        self._expect(record_type in VALUE_VERSION_MAX)
        group = self._string(self._int16())
        self.groups.append((group.start, group.stop))
        self._expect(self.data[group] == self.data[slice(*self.groups[0])])
        topic = self._string(self._int16())
        self._field(topic, f"{topic.stop - topic.start}s")
        partition = self._next(PARTITION_SIZE)
        self._clear(self.structure, partition)
        self._field(partition, "i")
        return record_type

    def _value(self, end: int, version_max: int, *, is_first: bool) -> None:
        version = self._int16()
        self._expect(0 <= version <= version_max and (is_first or version == self.version))
        self.version = version
        self._number_field(OFFSET_SIZE, "q")
        if version >= LEADER_EPOCH_SINCE:
            self._number_field(EPOCH_SIZE, "i")
        else:
            self._missing_field()
        size = self._size_plus_one() if version >= FLEXIBLE_SINCE else self._int16()
        metadata = self._string(size)
        self._clear(self.identity, metadata, NOT_ASCII)
        self._field(metadata, f"{size}s")
        self._number_field(TIME_SIZE, "q")
        if version == HAS_EXPIRE_TIMESTAMP:
            self._number_field(TIME_SIZE, "q")
        else:
            self._missing_field()
        if version >= FLEXIBLE_SINCE:
            self._tags(end, is_first=is_first)
        else:
            self._missing_field()

    def _tags(self, end: int, *, is_first: bool) -> None:
        with_topic_id = self.data[self._position : end] != NO_TAGS
        self._expect(is_first or with_topic_id == self.with_topic_id)
        self.with_topic_id = with_topic_id
        if with_topic_id:
            self._expect(self.data[self._next(len(TOPIC_ID_TAG))] == TOPIC_ID_TAG)
            topic_id = self._next(len(ZERO_UUID))
            self._clear(self.structure, topic_id)
            self._field(topic_id, "16s")
        else:
            self._skip(1)
            self._missing_field()

    def _missing_field(self) -> None:
        """Add a field that values of this version lack."""
        self.fields.append("0s")

    def _number_field(self, size: int, code: str) -> None:
        """Add a number that differs from commit to commit, and may have any bits."""
        where = self._next(size)
        self._clear(self.identity, where)
        self._clear(self.structure, where)
        self._field(where, code)

    def _string(self, size: int) -> slice:
        """Skip a string: of its bytes only the high bits are structure. Return where it is."""
        self._expect(0 <= size <= STRING_SIZE_MAX)
        where = self._next(size)
        self._expect(self.data[where].isascii())
        self._clear(self.structure, where, NOT_ASCII)
        return where

    def _field(self, where: slice, code: str) -> None:
        """Add bytes to be decoded, with their `struct` code."""
        self.fields.append(f"{where.start - self._fields_end}x{code}")
        self._fields_end = where.stop

    def _next(self, size: int) -> slice:
        where = slice(self._position, self._position + size)
        self._position = where.stop
        return where

    def _skip(self, size: int) -> None:
        self._position += size

    def _int16(self) -> int:
        return int.from_bytes(self.data[self._next(2)], "big", signed=True)

    def _unsigned(self) -> int:
        value = self.data[self._position]
        self._skip(1)
        if value > 0x7F:
            value, self._position = more_uvarint(self.data, self._position, value)
        return value

    def _timestamp_delta(self) -> None:
        first = self.data[self._position]
        self._skip(1)
        if first > 0x7F:
            _, self._position = more_varlong(self.data, self._position, first)

    def _size(self) -> int:
        """Read the size of a record, a key or a value: a signed varint, negative for null."""
        value = self._unsigned()
        self._expect(not value & 1)
        return value >> 1

    def _size_plus_one(self) -> int:
        """Read the size of a compact string."""
        return self._unsigned() - 1
