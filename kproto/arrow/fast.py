"""The fast decoder: all records of a block at once, with numpy and Arrow.

Theory of operation. Decoding runs in stages, each over whole columns:

1. `batch_table`: the header of each batch, checksums included.
2. `repeated_batches`, if only the last commit of each key is wanted: batches that need not be decoded are left out.
3. `record_table`: the positions of each record's key and value, after decompression where it is needed.
4. Here: the window of offsets, then the record type (the first int16 of the key) sorts records into offset commits,
   group records, end markers and others.
5. `commit_columns`: keys and values of offset commits become Arrow columns. Group records, which are few, are decoded
   one by one with `kproto.records`.

No stage reports what is wrong. Each one states what it expects (`buffer.require`); where that does not hold, the whole
block goes to the reference decoder, which decodes it or raises the error that names the damage. That covers damage and
content that no broker is known to write into the offsets topic: record headers, unknown tagged fields, compressed
message sets. The two decoders can therefore differ only in what they make of valid blocks, which tests compare.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kproto.arrow import reference
from kproto.arrow.batch_table import BatchTable
from kproto.arrow.buffer import UnusualBlock
from kproto.arrow.commit_columns import are_last, read_keys, read_values, to_arrow, value_layout
from kproto.arrow.counts import Counts
from kproto.arrow.decoding import Decoded, View
from kproto.arrow.record_rows import GROUP_TYPES, OFFSET_TYPES, READ_TYPES, group_row
from kproto.arrow.record_table import RecordTable, records_of
from kproto.arrow.repeated_batches import batches_represented
from kproto.arrow.schemas import GROUP_METADATA
from kproto.errors import DecodeError
from kproto.records.batch_header import NO_PRODUCER_ID
from kproto.records.control import read_end_marker
from kproto.records.coordinator import CoordinatorRecord, read_record
from kproto.records.record import Record

if TYPE_CHECKING:
    import pyarrow as pa

    from kproto.arrow.buffer import Ints
    from kproto.arrow.decoding import DecodeRequest
    from kproto.arrow.record_rows import Row
    from kproto.logs.blocks import Block


def decode_block(block: Block, request: DecodeRequest) -> Decoded:
    """Return the rows and counts of a block.

    Raises:
        CorruptLog: a batch or record of the window is invalid.
        MissingPackage: a compression needs a package that is not installed.
    """
    try:
        return decode_usual(block, request)
    except UnusualBlock:
        return reference.decode_block(block, request)


def decode_usual(block: Block, request: DecodeRequest) -> Decoded:
    """Return the rows and counts of a block without damage or rare content.

    Raises:
        UnusualBlock: the block has either.
        MissingPackage: a compression needs a package that is not installed.
    """
    batches = BatchTable(block, request.start_offset)
    if request.check_crc:
        batches.check_sums()
    counts = Counts(batches=len(batches))
    times = batches.max_timestamps[batches.magic > 0]
    times = times[times >= 0]
    if len(times):
        counts.saw(int(times.min()))
        counts.saw(int(times.max()))
    represented = np.ones(len(batches), np.int64)
    if request.only_last:
        represented = batches_represented(batches, request)
        batches, represented = batches.at(represented > 0), represented[represented > 0]
    records = _within_window(records_of(batches), request)
    counts.records = int(represented[records.batch].sum())
    is_marker = batches.control[records.batch]
    if is_marker.any():
        counts.markers = _check_markers(records.where(is_marker))
        records = records.where(~is_marker)
    kinds = records.types()
    # Commits and group records are decoded for every view: a row that is not wanted is still checked.
    rows = _commits(records.where(np.isin(kinds, OFFSET_TYPES)), batches, represented, request, counts)
    group_rows = _groups(records.where(np.isin(kinds, GROUP_TYPES)), request, counts)
    _count_others(kinds, counts)
    match request.view:
        case View.COMMITS:
            return Decoded(rows, counts)
        case View.GROUPS:
            return Decoded(reference.to_arrow(GROUP_METADATA, group_rows), counts)
        case View.RECORDS:
            return Decoded(rows, counts, reference.to_arrow(GROUP_METADATA, group_rows))
    return Decoded(None, counts)


def _within_window(records: RecordTable, request: DecodeRequest) -> RecordTable:
    inside = records.offset >= request.start_offset
    if request.end_offset is not None:
        inside &= records.offset < request.end_offset
    return records.where(inside)


def _check_markers(records: RecordTable) -> int:
    for key, value in records.keys_and_values():
        try:
            read_end_marker(Record(key, value))
        except DecodeError:
            raise UnusualBlock from None
    return len(records.offset)


def _count_others(kinds: Ints, counts: Counts) -> None:
    found, numbers = np.unique(kinds, return_counts=True)
    for kind, number in zip(found.tolist(), numbers.tolist(), strict=True):
        if kind not in READ_TYPES:
            counts.skipped[kind] = number


def _commits(
    records: RecordTable, batches: BatchTable, represented: Ints, request: DecodeRequest, counts: Counts
) -> pa.RecordBatch | None:
    """Return the rows of commits, None if the view has none: then they are only checked and counted."""
    times = represented[records.batch]
    counts.tombstones = int(times[records.value_size < 0].sum())
    counts.commits = int(times.sum()) - counts.tombstones
    if not request.view.has_commits:
        read_keys(records)
        value_layout(records)
        return None
    producer, state = np.full(len(records.offset), -1, np.int64), np.zeros(len(records.offset), np.int64)
    in_transaction = (batches.transactional & (batches.producer_ids != NO_PRODUCER_ID))[records.batch]
    if in_transaction.any():
        producer[in_transaction] = batches.producer_ids[records.batch][in_transaction]
        pairs = zip(producer[in_transaction].tolist(), records.offset[in_transaction].tolist(), strict=True)
        state[in_transaction] = request.outcomes(list(pairs))
    if request.only_last:
        value_layout(records)  # checks the values that are left out; their keys are equal to others
        last = are_last(records, state)
        records, producer, state = records.where(last), producer[last], state[last]
    columns = read_keys(records), read_values(records)
    return to_arrow(records, *columns, request.log_partition, producer, state)


def _groups(records: RecordTable, request: DecodeRequest, counts: Counts) -> list[Row]:
    """Decode group records one by one: they are too few for columns to be worth it."""
    counts.group_records = len(records.offset)
    positions = zip(records.offset.tolist(), records.timestamp.tolist(), strict=True)
    rows = []
    for (offset, timestamp), (key, value) in zip(positions, records.keys_and_values(), strict=True):
        try:
            found = read_record(READ_TYPES, key, value)
        except DecodeError:
            raise UnusualBlock from None
        assert isinstance(found, CoordinatorRecord), "the type is known"
        if request.view.has_groups:
            rows.append(group_row(request.log_partition, Record(key, value, (), timestamp, offset), found))
    return rows
