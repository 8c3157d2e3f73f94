"""The records of a block as columns: the positions of each record's key and value in a buffer (LF-3, LF-4).

Theory of operation. A record of magic 2 begins with its size as a varint, so the records of one batch can only be found
one after the other. The batches of a block are independent, however: `_walk` goes through all of them side by side and
notes where each record begins. From there on, each field is read of all records at once: a varint at the begin of every
record, the next varint at the ends of the first ones, and so on (`Buffer.varint` returns both).

Compressed batches are decompressed first. `_decompressed` builds a second buffer with all batches of the block, in
order, with their records uncompressed. A position in the block plus the ``shift`` of its batch is the position in that
buffer, so the rest of the code does not distinguish the two cases, and positions rise with the records' offsets
whatever the mix. `commit_columns` relies on the latter.

Nothing here checks a size when it is read. Positions are clamped to the buffer (`Buffer.clamp`), and the decoded parts
have to end exactly where the record or the batch ends; a wrong size cannot pass that check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kproto.arrow.buffer import VARLONG_BITS, Buffer, UnusualBlock, require
from kproto.errors import DecodeError
from kproto.logs.blocks import PAD
from kproto.records import message_set
from kproto.records.batch_header import HEADER_SIZE
from kproto.records.compression import Compression, decompress
from kproto.records.coordinator import PREFIX_SIZE
from kproto.records.record import NO_TIMESTAMP, RECORD_SIZE_MIN

if TYPE_CHECKING:
    from kproto.arrow.batch_table import BatchTable
    from kproto.arrow.buffer import Flags, Ints

TIMESTAMP_SIZE = 8
"""Of messages of magic 1; in magic 0 the key is at the position of the timestamp."""
SAFE_TIMESTAMP_MAX = 2**62
"""Two timestamps of at most this magnitude can be added without overflow."""
SIDE_BY_SIDE_MIN = 24
"""The fewest batches for which one numpy step of `_walk` costs less than the same records in Python."""


class RecordTable(NamedTuple):
    """Columns with one element per record, in the order of the log."""

    buffer: Buffer
    """The buffer of the positions below."""
    batch: Ints
    """Index of the batch."""
    offset: Ints
    timestamp: Ints
    """Milliseconds."""
    key: Ints
    """Position of the key."""
    key_size: Ints
    """-1: no key."""
    value: Ints
    """Position of the value."""
    value_size: Ints
    """-1: no value."""

    def where(self, flags: Flags) -> RecordTable:
        """Return the records with a flag."""
        return self if flags.all() else RecordTable(self.buffer, *(column[flags] for column in self[1:]))

    def types(self) -> Ints:
        """Return the record types: the int16 at the begin of each key.

        Raises:
            UnusualBlock: a key is too short.
        """
        require(self.key_size >= PREFIX_SIZE)
        return self.buffer.int16(self.buffer.clamp(self.key))

    def keys_and_values(self) -> list[tuple[bytes | None, bytes | None]]:
        """Return key and value of each record."""
        data = self.buffer.data
        columns = (self.key, self.key_size, self.value, self.value_size)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [(_slice(data, key, ks), _slice(data, value, vs)) for key, ks, value, vs in rows]


def _slice(data: bytes, position: int, size: int) -> bytes | None:
    return None if size < 0 else data[position : position + size]


def records_of(batches: BatchTable) -> RecordTable:
    """Return the records of all batches.

    Raises:
        UnusualBlock: a record is malformed or has headers, or a message set is compressed.
        MissingPackage: a compression needs a package that is not installed.
    """
    # Nested message sets were last written before Kafka 0.11: the reference decoder reads them.
    require((batches.codec == Compression.NONE) | batches.is_new)
    if not batches.codec.any():
        buffer, shift = batches.buffer, np.zeros(len(batches), np.int64)
    else:
        buffer, shift = _decompressed(batches)
    parts = [part for part in (_new_records(batches, buffer, shift), _old_records(batches, buffer, shift)) if part]
    if not parts:
        return RecordTable(buffer, *(np.zeros(0, np.int64) for _ in range(7)))
    if len(parts) == 1:
        table = parts[0]
    else:
        # Records of magic 2 and message sets in one block: merged by their batch. The sort is stable, so the records of
        # one batch stay in order.
        columns = [np.concatenate(pair) for pair in zip(*(part[1:] for part in parts), strict=True)]
        order = np.argsort(columns[0], kind="stable")
        table = RecordTable(buffer, *(column[order] for column in columns))
    require(np.diff(table.offset) > 0)
    require(table.offset <= batches.last[table.batch])
    require(table.offset >= batches.first[table.batch])
    return table


def _decompressed(batches: BatchTable) -> tuple[Buffer, Ints]:
    """Return a buffer of all batches with their records uncompressed, and the shift of each batch.

    ``batches.ends`` are moved to where the uncompressed batches end, minus the shift.
    """
    data, parts, size = batches.buffer.data, [], 0
    shifts = np.zeros(len(batches), np.int64)
    rows = zip(batches.starts.tolist(), batches.ends.tolist(), batches.codec.tolist(), strict=True)
    for index, (start, end, codec) in enumerate(rows):
        shifts[index] = size - start
        if codec == Compression.NONE:
            piece = data[start:end]
        else:
            try:
                content = decompress(Compression(codec), data[start + HEADER_SIZE : end])
            except DecodeError:
                raise UnusualBlock from None
            piece = data[start : start + HEADER_SIZE] + content
        parts.append(piece)
        size += len(piece)
        batches.ends[index] = size - shifts[index]
    return Buffer(b"".join(parts) + PAD), shifts


def _new_records(batches: BatchTable, buffer: Buffer, shift: Ints) -> RecordTable | None:
    """Read the records of magic 2; None if there are none."""
    index = np.flatnonzero(batches.is_new & (batches.counts > 0))
    payload, end = (batches.starts + shift + HEADER_SIZE)[index], (batches.ends + shift)[index]
    counts = batches.counts[index]
    # A batch whose records were all compacted away keeps its header, and nothing else.
    empty = batches.is_new & (batches.counts == 0)
    require((batches.starts + HEADER_SIZE == batches.ends)[empty])
    if not len(index):
        return None
    # Bounds the allocation in _walk: a count cannot exceed what fits.
    require(counts * RECORD_SIZE_MIN <= end - payload)
    begins = _walk(buffer, payload, end, counts)
    batch = np.repeat(index, counts)
    # A record ends where the next one begins, the last one of a batch at the end of the batch.
    ends = np.empty_like(begins)
    ends[:-1] = begins[1:]
    ends[np.cumsum(counts) - 1] = end
    # The fields of a record, in order; each varint's end is the position of the next field. The 1 is the attributes
    # byte, which no Kafka release uses.
    size, position = buffer.varint(begins)
    require(size >= 0)
    delta, position = buffer.varint(position + 1, VARLONG_BITS)
    require(np.abs(delta) < SAFE_TIMESTAMP_MAX)
    offset_delta, position = buffer.varint(buffer.clamp(position))
    key_size, key = buffer.varint(buffer.clamp(position))
    value_size, value = buffer.varint(buffer.clamp(key + np.maximum(key_size, 0)))
    headers = buffer.clamp(value + np.maximum(value_size, 0))
    require(buffer.bytes[headers] == 0)  # no headers: brokers write none into the offsets topic
    # The decisive check: with a wrong size anywhere above, the record does not end here.
    require(headers + 1 == ends)
    base_time, greatest = batches.base_timestamps, batches.max_timestamps
    require(np.abs(base_time) < SAFE_TIMESTAMP_MAX)
    timestamp = np.where(batches.append_time[batch], greatest[batch], base_time[batch] + delta)
    offset = batches.first[batch] + offset_delta
    sizes = np.maximum(key_size, -1), np.maximum(value_size, -1)  # any negative size is null
    return RecordTable(buffer, batch, offset, timestamp, key, sizes[0], value, sizes[1])


def _walk(buffer: Buffer, starts: Ints, ends: Ints, counts: Ints) -> Ints:
    """Return where each record begins, in order of batches and records; each batch has at least one record.

    Batches are sorted by falling record count. In step ``n`` the batches with more than ``n`` records are then a prefix
    of the array, and one numpy call moves all of them to their next record. When fewer than `SIDE_BY_SIDE_MIN` batches
    are left, the rest is walked batch by batch in Python.

    Invariant: sizes are not negative, so positions only rise. A batch that stands exactly at its end after its last
    record was therefore inside of its bounds all the time, and one final comparison is enough.

    Raises:
        UnusualBlock: the records do not fill their batch.
    """
    longest_first = np.argsort(-counts, kind="stable")
    falling = counts[longest_first]
    # Index in the result of the first record of each batch, in the sorted order of batches.
    first = (np.cumsum(counts) - counts)[longest_first]
    position = starts[longest_first]
    begins = np.empty(int(counts.sum()), np.int64)
    # batches_left[n] is how many batches have more than n records. searchsorted needs rising values, hence the minus.
    batches_left = np.searchsorted(-falling, -np.arange(falling[0]))
    # The number of steps in which enough batches are left.
    wide = int(np.searchsorted(-batches_left, -SIDE_BY_SIDE_MIN, side="right"))
    for step, many in enumerate(batches_left[:wide].tolist()):
        here = buffer.clamp(position[:many])
        begins[first[:many] + step] = here
        position[:many] = buffer.record_ends(here)
    for index in range(int(batches_left[wide:].max(initial=0))):
        rest = slice(int(first[index]) + wide, int(first[index] + falling[index]))
        position[index] = _walk_one(buffer, int(position[index]), begins[rest])
    require(position == ends[longest_first])
    return begins


def _walk_one(buffer: Buffer, start: int, begins: Ints) -> int:
    """Fill ``begins`` with the positions of the records of one batch; return where the last one ends.

    Sizes of one and two bytes are decoded inline: with a call for each record, this loop takes 40 % longer.
    """
    data, position, positions = buffer.data, start, []
    for _ in range(len(begins)):
        if position > buffer.limit:
            raise UnusualBlock
        positions.append(position)
        size = data[position]
        if size < 0x80:
            position += 1 + (size >> 1)
            continue
        more = data[position + 1]
        if more < 0x80:
            position += 2 + ((more << 6) | (size & 0x7F) >> 1)
        else:
            position = _end_after_long_size(data, position, size & 1)
    begins[:] = positions
    return position


def _end_after_long_size(data: bytes, position: int, is_negative: int) -> int:
    """Return the end of a record whose size takes three bytes or more."""
    value, shift, byte = 0, 0, 0x80
    while byte & 0x80:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        shift += 7
        position += 1
        if shift > 35:
            raise UnusualBlock
    if is_negative:
        raise UnusualBlock
    return position + (value >> 1)


def _old_records(batches: BatchTable, buffer: Buffer, shift: Ints) -> RecordTable | None:
    """Read the messages of magic 0 and 1, which are not compressed; None if there are none."""
    index = np.flatnonzero(~batches.is_new)
    if not len(index):
        return None
    start, end = (batches.starts + shift)[index], (batches.ends + shift)[index]
    has_time = batches.magic[index] == 1
    timestamp = np.where(has_time, buffer.int64(buffer.clamp(start + message_set.TIMESTAMP_POSITION)), NO_TIMESTAMP)
    key_at = start + message_set.TIMESTAMP_POSITION + TIMESTAMP_SIZE * has_time
    key_size = buffer.int32(buffer.clamp(key_at))
    key = key_at + 4
    value_at = buffer.clamp(key + np.maximum(key_size, 0))
    value_size = buffer.int32(value_at)
    value = value_at + 4
    require((key_size >= -1) & (value_size >= -1))
    require(value + np.maximum(value_size, 0) == end)
    return RecordTable(buffer, index, batches.first[index], timestamp, key, key_size, value, value_size)
