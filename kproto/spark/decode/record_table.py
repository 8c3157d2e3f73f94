"""The records of a block as columns: where in a buffer each one's key and value stand (LF-3, LF-4).

The way from one record to the next, by the size that each begins with, is walked in all batches side by side; all else
is read of all records at once. The content of compressed batches is put in a buffer of its own, in the batches' order,
so that places rise with the records whatever the mix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kproto.errors import DecodeError
from kproto.records.compression import Compression, decompress
from kproto.records.record import NO_TIMESTAMP, RECORD_SIZE_MIN
from kproto.records.record_batch import HEADER_SIZE
from kproto.spark.decode.batch_table import SAFE_MAX
from kproto.spark.decode.blocks import PAD
from kproto.spark.decode.octets import VARLONG_BITS, Octets, Suspect, expect

if TYPE_CHECKING:
    from kproto.spark.decode.batch_table import BatchTable
    from kproto.spark.decode.octets import Flags, Ints

LEGACY_KEY_AT, LEGACY_TIME_AT, TIMESTAMP_SIZE = 18, 18, 8
SIDE_BY_SIDE_MIN = 24
"""Batches that a step of numpy has to go over to cost less than as many in Python."""


class RecordTable(NamedTuple):
    """One element of each array for each record, in the log's order."""

    octets: Octets
    """The buffer that the places below are of."""
    batch: Ints
    """Index of its batch."""
    offset: Ints
    timestamp: Ints
    """Milliseconds."""
    key: Ints
    """Where its key begins."""
    key_size: Ints
    """-1: no key."""
    value: Ints
    value_size: Ints
    """-1: no value."""

    def where(self, flags: Flags) -> RecordTable:
        """Return some of the records."""
        return self if flags.all() else RecordTable(self.octets, *(column[flags] for column in self[1:]))

    def keys_and_values(self) -> list[tuple[int, bytes | None, bytes | None]]:
        """Return batch, key and value of each record."""
        data = self.octets.data
        columns = (self.batch, self.key, self.key_size, self.value, self.value_size)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [(batch, _piece(data, key, ks), _piece(data, value, vs)) for batch, key, ks, value, vs in rows]


def _piece(data: bytes, place: int, size: int) -> bytes | None:
    return None if size < 0 else data[place : place + size]


def records_of(batches: BatchTable) -> RecordTable:
    """Return the records of all batches.

    Raises:
        Suspect: one does not have its layout, or has headers.
        MissingPackage: a compression needs a package that is not installed.
    """
    if not batches.codec.any():
        octets, shift = batches.octets, np.zeros(len(batches), np.int64)
    else:
        octets, shift = _unpacked(batches)
    # shift: what is added to places in the block to have those in the buffer; of compressed batches, their content's
    parts = [part for part in (_new_records(batches, octets, shift), _old_records(batches, octets, shift)) if part]
    if not parts:
        return RecordTable(octets, *(np.zeros(0, np.int64) for _ in range(7)))
    if len(parts) == 1:
        table = parts[0]
    else:
        columns = [np.concatenate(pair) for pair in zip(*(part[1:] for part in parts), strict=True)]
        order = np.argsort(columns[0], kind="stable")
        table = RecordTable(octets, *(column[order] for column in columns))
    expect(np.diff(table.offset) > 0)
    expect(table.offset <= batches.last[table.batch])
    expect(table.offset >= batches.first[table.batch])
    return table


def _unpacked(batches: BatchTable) -> tuple[Octets, Ints]:
    """Return a buffer with all batches behind each other, their records uncompressed, and their shifts."""
    data, parts, size = batches.octets.data, [], 0
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
                raise Suspect from None
            piece = data[start : start + HEADER_SIZE] + content
        parts.append(piece)
        size += len(piece)
        batches.ends[index] = size - shifts[index]
    return Octets(b"".join(parts) + PAD), shifts


def _new_records(batches: BatchTable, octets: Octets, shift: Ints) -> RecordTable | None:
    """Read the records of magic 2."""
    index = np.flatnonzero(batches.is_new & (batches.counts > 0))
    payload, end = (batches.starts + shift + HEADER_SIZE)[index], (batches.ends + shift)[index]
    counts = batches.counts[index]
    empty = batches.is_new & (batches.counts == 0)
    expect((batches.starts + HEADER_SIZE == batches.ends)[empty])
    if not len(index):
        return None
    expect(counts * RECORD_SIZE_MIN <= end - payload)
    begins = _walk(octets, payload, end, counts)
    batch = np.repeat(index, counts)
    ends = np.empty_like(begins)
    ends[:-1] = begins[1:]
    ends[np.cumsum(counts) - 1] = end
    size, place = octets.varint(begins)
    expect(size >= 0)
    delta, place = octets.varint(place + 1, VARLONG_BITS)
    expect(np.abs(delta) < SAFE_MAX)
    offset_delta, place = octets.varint(octets.within(place))
    key_size, key = octets.varint(octets.within(place))
    value_size, value = octets.varint(octets.within(key + np.maximum(key_size, 0)))
    headers = octets.within(value + np.maximum(value_size, 0))
    expect(octets.octets[headers] == 0)
    expect(headers + 1 == ends)
    base_time, greatest = batches.base_timestamps, batches.max_timestamps
    expect(np.abs(base_time) < SAFE_MAX)
    moment = np.where(batches.append_time[batch], greatest[batch], base_time[batch] + delta)
    offset = batches.first[batch] + offset_delta
    sizes = np.maximum(key_size, -1), np.maximum(value_size, -1)
    return RecordTable(octets, batch, offset, moment, key, sizes[0], value, sizes[1])


def _walk(octets: Octets, starts: Ints, ends: Ints, counts: Ints) -> Ints:
    """Return where each record begins, given batches with one or more.

    The records of a batch can only be found one after the other, but the batches side by side: a step goes over one
    record of each that has more. Sizes are not negative, so who stands at the end of each batch after its last record
    was within it all the time.

    Raises:
        Suspect: the records do not fill their batch.
    """
    longest_first = np.argsort(-counts, kind="stable")
    falling = counts[longest_first]
    first = (np.cumsum(counts) - counts)[longest_first]
    place = starts[longest_first]
    begins = np.empty(int(counts.sum()), np.int64)
    batches_left = np.searchsorted(-falling, -np.arange(falling[0]))
    wide = int(np.searchsorted(-batches_left, -SIDE_BY_SIDE_MIN, side="right"))
    for step, many in enumerate(batches_left[:wide].tolist()):
        here = octets.within(place[:many])
        begins[first[:many] + step] = here
        place[:many] = octets.behind_sized(here)
    for index in range(int(batches_left[wide:].max(initial=0))):
        rest = slice(int(first[index]) + wide, int(first[index] + falling[index]))
        place[index] = _walk_one(octets, int(place[index]), begins[rest])
    expect(place == ends[longest_first])
    return begins


def _walk_one(octets: Octets, start: int, begins: Ints) -> int:
    """Note where the records of a batch begin; return where the last one ends."""
    data, place, places = octets.data, start, []
    for _ in range(len(begins)):
        if place > octets.limit:
            raise Suspect
        places.append(place)
        size = data[place]
        if size < 0x80:
            place += 1 + (size >> 1)
            continue
        more = data[place + 1]
        if more < 0x80:
            place += 2 + ((more << 6) | (size & 0x7F) >> 1)
        else:
            place = _long_step(data, place, size & 1)
    begins[:] = places
    return place


def _long_step(data: bytes, place: int, is_negative: int) -> int:
    """Return the end of a record whose size has three octets or more."""
    value, shift, octet = 0, 0, 0x80
    while octet & 0x80:
        octet = data[place]
        value |= (octet & 0x7F) << shift
        shift += 7
        place += 1
        if shift > 35:
            raise Suspect
    if is_negative:
        raise Suspect
    return place + (value >> 1)


def _old_records(batches: BatchTable, octets: Octets, shift: Ints) -> RecordTable | None:
    """Read the messages of magic 0 and 1, none of which is compressed."""
    index = np.flatnonzero(~batches.is_new)
    if not len(index):
        return None
    start, end = (batches.starts + shift)[index], (batches.ends + shift)[index]
    has_time = batches.magic[index] == 1
    moment = np.where(has_time, octets.int64(octets.within(start + LEGACY_TIME_AT)), NO_TIMESTAMP)
    key_at = start + LEGACY_KEY_AT + TIMESTAMP_SIZE * has_time
    key_size = octets.int32(octets.within(key_at))
    key = key_at + 4
    value_at = octets.within(key + np.maximum(key_size, 0))
    value_size = octets.int32(value_at)
    value = value_at + 4
    expect((key_size >= -1) & (value_size >= -1))
    expect(value + np.maximum(value_size, 0) == end)
    return RecordTable(octets, index, batches.first[index], moment, key, key_size, value, value_size)
