"""The plain decoder: one batch, one record after the other, with `kproto.records`. Slow, and the one that is right.

`kproto.spark.decode.fast` has to equal it, and asks it what is wrong with a block that it can't make sense of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.errors import CorruptBatch, DecodeError
from kproto.records.batches import read_batch
from kproto.records.control import read_end_marker
from kproto.records.coordinator import PREFIX_SIZE, CoordinatorRecord, UnknownRecord, read_record
from kproto.records.record_batch import MAGIC, NO_PRODUCER_ID, RecordBatch
from kproto.spark.decode.blocks import last_offset
from kproto.spark.decode.counts import Counts
from kproto.spark.decode.errors import (
    BadBatch,
    BadChecksum,
    BadCompression,
    BadKey,
    BadMarker,
    BadOffset,
    BadRecords,
    BadValue,
    Damaged,
    UnknownMagic,
)
from kproto.spark.decode.rows import GROUP_TYPES, OFFSET_TYPES, READ_TYPES, commit_row, group_row, none_if
from kproto.spark.decode.tables import TXN_STATES, Decoded, View
from kproto.spark.schemas import COMMITS, GROUP_METADATA

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from kproto.records.batches import Batch
    from kproto.records.record import Record
    from kproto.spark.decode.blocks import Block
    from kproto.spark.decode.rows import Row
    from kproto.spark.decode.tables import Job
    from kproto.spark.schemas import Table

TXN_STATE = COMMITS.names.index("txn_state")
PRODUCER_ID = COMMITS.names.index("producer_id")
LOG_OFFSET = COMMITS.names.index("log_offset")


def decode_block(block: Block, job: Job) -> Decoded:
    """Return a block's rows and counts.

    Raises:
        Damaged: a batch or record of the window is not as it must be.
        MissingPackage: a compression needs a package that is not installed.
    """
    rows: list[Row] = []
    counts = Counts()
    next_offset, end_offset = block.next_offset, job.end_offset
    for start in block.starts:
        if last_offset(block.data, start) < job.start_offset:
            continue
        batch = checked_batch(block, start, check_crc=job.check_crc)
        records = checked_records(block, start, batch)
        check_offsets(block, start, batch, records, next_offset)
        next_offset = batch.last_offset + 1
        counts.batches += 1
        for record in records:
            if record.offset >= job.start_offset and (end_offset is None or record.offset < end_offset):
                rows += _record_rows(block, start, batch, record, job, counts)
    if job.view is View.COMMITS:
        return Decoded(to_arrow(COMMITS, _with_outcomes(rows, job)), counts)
    return Decoded(to_arrow(GROUP_METADATA, rows) if job.view is View.GROUPS else None, counts)


def checked_batch(block: Block, start: int, *, check_crc: bool) -> Batch:
    """Read the batch that begins here.

    Raises:
        Damaged: it is not as it must be.
    """
    try:
        found = read_batch(block.data, start, check_crc=check_crc)
    except CorruptBatch as error:
        raise damage(BadChecksum, block, start, error) from None
    except DecodeError as error:
        kind = UnknownMagic if error.path == "batch.magic" else BadBatch
        raise damage(kind, block, start, error) from None
    assert found is not None, "a block has whole batches"
    return found[0]


def checked_records(block: Block, start: int, batch: Batch) -> list[Record]:
    """Return the records of a batch.

    Raises:
        Damaged: they are not as they must be.
        MissingPackage: their compression needs a package that is not installed.
    """
    try:
        return batch.records()
    except CorruptBatch as error:
        raise damage(BadChecksum, block, start, error) from None
    except DecodeError as error:
        is_codec = error.path.startswith("records (") or error.path.endswith(".attributes")
        raise damage(BadCompression if is_codec else BadRecords, block, start, error) from None


def check_offsets(block: Block, start: int, batch: Batch, records: list[Record], next_offset: int) -> None:
    """Hold a batch's offsets against those before it, and its segment's.

    Raises:
        BadOffset: one can't be there.
    """
    before = next_offset - 1
    first = batch.base_offset if isinstance(batch, RecordBatch) else batch.last_offset
    for offset in (first, batch.last_offset):
        if not before < offset <= block.offset_max:
            reason = f"offset {offset} is not among {before + 1} to {block.offset_max}: offsets must rise"
            raise BadOffset(block.file, block.position + start, next_offset, reason)
    for record in records:
        if not before < record.offset <= batch.last_offset or (batch.magic == MAGIC and record.offset < first):
            reason = f"a record of offset {record.offset} in a batch of {first} to {batch.last_offset}, after {before}"
            raise BadOffset(block.file, block.position + start, next_offset, reason)
        before = record.offset


def damage(kind: type[Damaged], block: Block, start: int, error: DecodeError, offset: int | None = None) -> Damaged:
    """Return an error that names file, place and offset; the message's own places are left out, as they count from
    different beginnings."""
    if offset is None:
        offset = int.from_bytes(block.data[start : start + 8], "big", signed=True)
    return kind(block.file, block.position + start, offset, f"{error.path}: {error.reason}")


def _record_rows(block: Block, start: int, batch: Batch, record: Record, job: Job, counts: Counts) -> Iterator[Row]:
    """Yield the row of a record, if it has one in the view; count it."""
    counts.records += 1
    if batch.is_control:
        check_marker(block, start, record)
        counts.markers += 1
        return
    found = checked_content(block, start, record)
    if isinstance(found, UnknownRecord):
        counts.skipped[found.record_type] += 1
    elif type(found.key)._record_type in GROUP_TYPES:
        counts.group_records += 1
        if job.view is View.GROUPS:
            yield group_row(job.log_partition, record, found)
    else:
        counts.tombstones += found.value is None
        counts.commits += found.value is not None
        if job.view is View.COMMITS:
            yield commit_row(job.log_partition, record, found, transaction_of(batch))


def transaction_of(batch: Batch) -> int | None:
    """Return the producer id of a batch in a transaction; None for others."""
    if not isinstance(batch, RecordBatch) or not batch.is_transactional:
        return None
    return none_if(NO_PRODUCER_ID, batch.header.producer_id)


def check_marker(block: Block, start: int, record: Record) -> None:
    """Read the end of a transaction.

    Raises:
        BadMarker: it is none.
    """
    try:
        read_end_marker(record)
    except DecodeError as error:
        raise damage(BadMarker, block, start, error, record.offset) from None


def checked_content(block: Block, start: int, record: Record) -> CoordinatorRecord | UnknownRecord:
    """Read key and value of a record; of a type without table, only the type.

    Raises:
        BadKey, BadValue: they do not have their layout.
    """
    try:
        return read_record(READ_TYPES, record.key, record.value)
    except DecodeError as error:
        kind = BadValue if has_key(record) else BadKey
        raise damage(kind, block, start, error, record.offset) from None


def has_key(record: Record) -> bool:
    """Tell whether the key by itself can be read."""
    try:
        read_record(READ_TYPES, record.key, None)
    except DecodeError:
        return False
    return True


def record_type(key: bytes | None) -> int | None:
    """Return the type that a key begins with."""
    return None if key is None or len(key) < PREFIX_SIZE else int.from_bytes(key[:PREFIX_SIZE], "big", signed=True)


def _with_outcomes(rows: list[Row], job: Job) -> list[Row]:
    """Return the rows with the ends of their transactions."""
    places = [index for index, row in enumerate(rows) if row[PRODUCER_ID] is not None]
    states = job.outcomes([(rows[index][PRODUCER_ID], rows[index][LOG_OFFSET]) for index in places])
    for index, state in zip(places, states, strict=True):
        rows[index] = (*rows[index][:TXN_STATE], TXN_STATES[state])
    return rows


def to_arrow(table: Table, rows: list[Row]) -> pa.RecordBatch:
    """Return rows as Arrow has them."""
    import pyarrow as pa

    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)
    schema = table.arrow()
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


assert set(READ_TYPES) == {*OFFSET_TYPES, *GROUP_TYPES}, "each type that is read has a table"
