"""The decoder that works on all records of a block at once, with numpy and Arrow.

It makes tables of blocks in which everything is as it must be and usual. All others - damaged, with tags or headers
that no broker is known to write, with compressed message sets - it gives to the plain decoder, which reads them or says
what is wrong. So the two can differ in what they make of good blocks only, and tests compare that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kproto.errors import DecodeError
from kproto.records.control import read_end_marker
from kproto.records.coordinator import PREFIX_SIZE, CoordinatorRecord, read_record
from kproto.records.record import Record
from kproto.records.record_batch import NO_PRODUCER_ID
from kproto.spark.decode import plain
from kproto.spark.decode.batch_table import BatchTable
from kproto.spark.decode.commit_columns import read_keys, read_values, to_arrow
from kproto.spark.decode.counts import Counts
from kproto.spark.decode.octets import Suspect, expect
from kproto.spark.decode.record_table import RecordTable, records_of
from kproto.spark.decode.rows import GROUP_TYPES, OFFSET_TYPES, READ_TYPES, group_row
from kproto.spark.decode.tables import Decoded, View
from kproto.spark.schemas import GROUP_METADATA

if TYPE_CHECKING:
    import pyarrow as pa

    from kproto.spark.decode.blocks import Block
    from kproto.spark.decode.octets import Ints
    from kproto.spark.decode.rows import Row
    from kproto.spark.decode.tables import Job


def decode_block(block: Block, job: Job) -> Decoded:
    """Return a block's rows and counts.

    Raises:
        Damaged: a batch or record of the window is not as it must be.
        MissingPackage: a compression needs a package that is not installed.
    """
    try:
        return decode_usual(block, job)
    except Suspect:
        return plain.decode_block(block, job)


def decode_usual(block: Block, job: Job) -> Decoded:
    """Return rows and counts of a block of the usual kind.

    Raises:
        Suspect: it is of another.
        MissingPackage: a compression needs a package that is not installed.
    """
    batches = BatchTable(block, job.start_offset)
    if job.check_crc:
        batches.check_sums()
    records = _within_window(records_of(batches), job)
    counts = Counts(batches=len(batches), records=len(records.offset))
    is_marker = batches.control[records.batch]
    if is_marker.any():
        counts.markers = _check_markers(records.where(is_marker))
        records = records.where(~is_marker)
    kinds = _types(records)
    rows = _commits(records.where(np.isin(kinds, OFFSET_TYPES)), batches, job, counts)
    group_rows = _groups(records.where(np.isin(kinds, GROUP_TYPES)), job, counts)
    _count_others(kinds, counts)
    match job.view:
        case View.COMMITS:
            return Decoded(rows, counts)
        case View.GROUPS:
            return Decoded(plain.to_arrow(GROUP_METADATA, group_rows), counts)
    return Decoded(None, counts)


def _within_window(records: RecordTable, job: Job) -> RecordTable:
    inside = records.offset >= job.start_offset
    if job.end_offset is not None:
        inside &= records.offset < job.end_offset
    return records.where(inside)


def _check_markers(records: RecordTable) -> int:
    for _, key, value in records.keys_and_values():
        try:
            read_end_marker(Record(key, value))
        except DecodeError:
            raise Suspect from None
    return len(records.offset)


def _types(records: RecordTable) -> Ints:
    expect(records.key_size >= PREFIX_SIZE)
    return records.octets.int16(records.octets.within(records.key))


def _count_others(kinds: Ints, counts: Counts) -> None:
    found, numbers = np.unique(kinds, return_counts=True)
    for kind, number in zip(found.tolist(), numbers.tolist(), strict=True):
        if kind not in READ_TYPES:
            counts.skipped[kind] = number


def _commits(records: RecordTable, batches: BatchTable, job: Job, counts: Counts) -> pa.RecordBatch:
    counts.tombstones = int((records.value_size < 0).sum())
    counts.commits = len(records.offset) - counts.tombstones
    keys, values = read_keys(records), read_values(records)
    producer, state = np.full(len(records.offset), -1, np.int64), np.zeros(len(records.offset), np.int64)
    in_transaction = (batches.transactional & (batches.producer_ids != NO_PRODUCER_ID))[records.batch]
    if in_transaction.any():
        producer[in_transaction] = batches.producer_ids[records.batch][in_transaction]
        if job.view is View.COMMITS:
            pairs = zip(producer[in_transaction].tolist(), records.offset[in_transaction].tolist(), strict=True)
            state[in_transaction] = job.outcomes(list(pairs))
    return to_arrow(records, keys, values, job.log_partition, producer, state)


def _groups(records: RecordTable, job: Job, counts: Counts) -> list[Row]:
    """Read records about groups with `kproto.records`: they are few."""
    counts.group_records = len(records.offset)
    moments = zip(records.offset.tolist(), records.timestamp.tolist(), strict=True)
    rows = []
    for (offset, timestamp), (_, key, value) in zip(moments, records.keys_and_values(), strict=True):
        try:
            found = read_record(READ_TYPES, key, value)
        except DecodeError:
            raise Suspect from None
        assert isinstance(found, CoordinatorRecord), "the type is known"
        if job.view is View.GROUPS:
            rows.append(group_row(job.log_partition, Record(key, value, (), timestamp, offset), found))
    return rows
