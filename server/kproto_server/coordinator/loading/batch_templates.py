"""How the octets of a commit's batch are laid out, so that one like another is recognized without decoding it.

Theory of operation. Of two batches with the same layout all sizes are the same: each key, each value and each string
stands in the same place. Then the octets of a batch fall into three kinds, told apart by masks over the whole batch as
one number:

- those of the layout itself: sizes, types, versions, and in strings the high bit, which is 0 in ASCII;
- those that say whose offsets these are: group, topics, partitions, and everything else that seldom changes;
- offsets, leader epochs, times, and the letters of metadata, which are any that they like.

A batch that agrees with a layout in the first is a commit that can be decoded, of one group, with as many records. Two
that also agree in the second are commits of the same partitions: the later one stands in place of the earlier.

What is laid out is what the checksum covers: the batch from its attributes on (LF-1).
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any

from kproto.declaration import ZERO_UUID
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
from kproto_server.coordinator.offsets_log.batches import STRING_SIZE_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.coordinator.offsets import CommitEntries

    Deadline = Callable[[int, int | None], int | None]

CHECKED_SIZE = CHECKED.size
"""Bytes of a batch's header that the checksum covers."""
COUNT = slice(position_of("record_count") - CHECKED_FROM, CHECKED_SIZE)
TIMESTAMPS = slice(position_of("base_timestamp") - CHECKED_FROM, position_of("producer_id") - CHECKED_FROM)
NOT_PLAIN = 7 | TRANSACTIONAL | CONTROL
"""Attributes of batches that are compressed, transactions', or the broker's."""

LETTERS = 0x80
"""The bit that no letter of ASCII has."""
OFFSET_SIZE = TIME_SIZE = 8
EPOCH_SIZE = PARTITION_SIZE = 4

VALUE_VERSION_MAX = {0: 0, 1: VERSION_MAX}
"""By record type."""

FIELDS = 8
"""Fields of each record that are decoded; of those that its version lacks nothing is."""

_new: Any = tuple.__new__


class BatchTemplate:
    """One layout of commits."""

    __slots__ = (
        "_fields",
        "_group_bits",
        "_group_factor",
        "_group_mask",
        "_group_shift",
        "_has_epoch",
        "_has_expiry",
        "_has_topic_id",
        "_structure",
        "_structure_mask",
        "group",
        "record_count",
        "same",
        "size",
    )

    def __init__(self, reader: _TemplateReader) -> None:
        data = reader.data
        self.size = len(data)
        self.record_count = len(reader.groups)
        self.same = _number(reader.same)
        """The octets in which two commits of the same partitions agree, as a number with their bits set."""
        self._structure_mask = _number(reader.structure)
        self._structure = _number(data) & self._structure_mask
        start, stop = reader.groups[0]
        self.group = slice(start, stop)
        self._group_shift = 8 * (self.size - stop)
        self._group_bits = (1 << 8 * (stop - start)) - 1
        self._group_factor = sum(1 << 8 * (self.size - stop) for _, stop in reader.groups)
        self._group_mask = self._group_bits * self._group_factor
        self._fields = Struct("".join([">", *reader.fields]))
        self._has_epoch = reader.version >= LEADER_EPOCH_SINCE
        self._has_expiry = reader.version == HAS_EXPIRE_TIMESTAMP
        self._has_topic_id = reader.with_topic_id

    def matches(self, value: int) -> bool:
        """Whether a batch of this size, as a number, has this layout."""
        if value & self._structure_mask != self._structure:
            return False
        if self.record_count == 1:
            return True
        group = value >> self._group_shift & self._group_bits
        return value & self._group_mask == group * self._group_factor

    def entries(self, data: bytes, deadline: Deadline | None) -> CommitEntries:
        """Decode a batch of this layout.

        ``deadline`` tells when an offset expires, by its commit and expire time; None: when the record says.
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
    """Return the layout of a batch, from its attributes on; None if it is anything but a plain commit of one group with
    names and metadata of ASCII letters."""
    try:
        return BatchTemplate(_TemplateReader(data))
    except FAILURES:
        return None


def _number(octets: bytes | bytearray) -> int:
    return int.from_bytes(octets, "big")


class _TemplateReader:
    """Goes through a batch and notes what is where. Whatever it does not expect raises one of `FAILURES`."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.same = bytearray(b"\xff" * len(data))
        self.structure = bytearray(b"\xff" * len(data))
        self.groups: list[tuple[int, int]] = []
        self.fields: list[str] = []
        self.version = -1
        self.with_topic_id = False
        self._position = CHECKED_SIZE
        self._told = 0
        """How far ``fields`` have come."""
        self._expect(int.from_bytes(data[:2], "big") & NOT_PLAIN == 0)
        self._free(self.same, TIMESTAMPS)
        self._free(self.structure, TIMESTAMPS)
        count = int.from_bytes(data[COUNT], "big", signed=True)
        self._expect(count > 0 and int.from_bytes(data[2:6], "big", signed=True) >= 0)
        for index in range(count):
            self._record(is_first=index == 0)
        self._expect(self._position == len(data))

    def _expect(self, holds: bool) -> None:
        if not holds:
            malformed()

    def _free(self, mask: bytearray, where: slice, bits: int = 0) -> None:
        mask[where] = bytes((bits,)) * (where.stop - where.start)

    def _record(self, *, is_first: bool) -> None:
        size = self._size()
        end = self._position + size
        self._skip(1)
        self._timestamp_delta()
        self._unsigned()  # the offset delta
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
        group = self._letters(self._int16())
        self.groups.append((group.start, group.stop))
        self._expect(self.data[group] == self.data[slice(*self.groups[0])])
        topic = self._letters(self._int16())
        self._field(topic, f"{topic.stop - topic.start}s")
        partition = self._next(PARTITION_SIZE)
        self._free(self.structure, partition)
        self._field(partition, "i")
        return record_type

    def _value(self, end: int, version_max: int, *, is_first: bool) -> None:
        version = self._int16()
        self._expect(0 <= version <= version_max and (is_first or version == self.version))
        self.version = version
        self._anything(OFFSET_SIZE, "q")
        if version >= LEADER_EPOCH_SINCE:
            self._anything(EPOCH_SIZE, "i")
        else:
            self._nothing()
        size = self._size_plus_one() if version >= FLEXIBLE_SINCE else self._int16()
        metadata = self._letters(size)
        self._free(self.same, metadata, LETTERS)
        self._field(metadata, f"{size}s")
        self._anything(TIME_SIZE, "q")
        if version == HAS_EXPIRE_TIMESTAMP:
            self._anything(TIME_SIZE, "q")
        else:
            self._nothing()
        if version >= FLEXIBLE_SINCE:
            self._tags(end, is_first=is_first)
        else:
            self._nothing()

    def _tags(self, end: int, *, is_first: bool) -> None:
        with_topic_id = self.data[self._position : end] != NO_TAGS
        self._expect(is_first or with_topic_id == self.with_topic_id)
        self.with_topic_id = with_topic_id
        if with_topic_id:
            self._expect(self.data[self._next(len(TOPIC_ID_TAG))] == TOPIC_ID_TAG)
            topic_id = self._next(len(ZERO_UUID))
            self._free(self.structure, topic_id)
            self._field(topic_id, "16s")
        else:
            self._skip(1)
            self._nothing()

    def _nothing(self) -> None:
        """A field that values of this version lack."""
        self.fields.append("0s")

    def _anything(self, size: int, form: str) -> None:
        """A number of which every pattern of bits is one."""
        where = self._next(size)
        self._free(self.same, where)
        self._free(self.structure, where)
        self._field(where, form)

    def _letters(self, size: int) -> slice:
        """A string, whose letters are not the layout's."""
        self._expect(0 <= size <= STRING_SIZE_MAX)
        where = self._next(size)
        self._expect(self.data[where].isascii())
        self._free(self.structure, where, LETTERS)
        return where

    def _field(self, where: slice, form: str) -> None:
        """Note what is to be decoded."""
        self.fields.append(f"{where.start - self._told}x{form}")
        self._told = where.stop

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
        """The size of a record, a key or a value: a signed varint."""
        value = self._unsigned()
        self._expect(not value & 1)
        return value >> 1

    def _size_plus_one(self) -> int:
        """The size of a compact string."""
        return self._unsigned() - 1
