"""The reference decoder: one batch, one record after the other, with `kproto.records`. Slow, and right by definition.

`kproto.arrow.fast` has to make the same tables, and passes blocks to this decoder that it cannot decode.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from kproto.arrow.counts import Counts
from kproto.arrow.decoding import Decoded, View
from kproto.arrow.record_rows import GROUP_TYPES, OFFSET_TYPES, READ_TYPES, commit_row, group_row, none_if
from kproto.arrow.schemas import COMMITS, GROUP_METADATA
from kproto.errors import DecodeError
from kproto.logs.batches import batch_at, reason_of
from kproto.logs.errors import BadKey, BadValue
from kproto.logs.transactions import TXN_STATES
from kproto.records.batch_header import NO_PRODUCER_ID
from kproto.records.batches import last_offset
from kproto.records.coordinator import UnknownRecord, read_record
from kproto.records.record_batch import RecordBatch

if TYPE_CHECKING:
    import pyarrow as pa

    from kproto.arrow.decoding import DecodeRequest
    from kproto.arrow.record_rows import Row
    from kproto.arrow.schemas import Table
    from kproto.errors import CorruptLog
    from kproto.logs.batches import PlacedBatch
    from kproto.logs.blocks import Block
    from kproto.records.batches import Batch
    from kproto.records.coordinator import CoordinatorRecord
    from kproto.records.record import Record

TXN_STATE = COMMITS.names.index("txn_state")
PRODUCER_ID = COMMITS.names.index("producer_id")
LOG_OFFSET = COMMITS.names.index("log_offset")
KEY_AND_STATE = itemgetter(*map(COMMITS.names.index, ("group_id", "topic", "partition", "txn_state")))


def decode_block(block: Block, request: DecodeRequest) -> Decoded:
    """Return the rows and counts of a block.

    Raises:
        CorruptLog: a batch or record of the window is invalid.
        MissingPackage: a compression needs a package that is not installed.
    """
    commits: list[Row] = []
    groups: list[Row] = []
    counts = Counts()
    next_offset, end_offset = block.next_offset, request.end_offset
    for start in block.starts:
        if last_offset(block.data, start) < request.start_offset:
            continue
        placed = batch_at(block, start, check_crc=request.check_crc)
        records = placed.records()
        placed.check_offsets(records, next_offset)
        next_offset = placed.batch.last_offset + 1
        counts.batches += 1
        counts.saw(_max_timestamp(placed.batch))
        for record in records:
            if record.offset >= request.start_offset and (end_offset is None or record.offset < end_offset):
                _add_row(placed, record, request, counts, commits, groups)
    match request.view:
        case View.COMMITS:
            return Decoded(to_arrow(COMMITS, _wanted(commits, request)), counts)
        case View.GROUPS:
            return Decoded(to_arrow(GROUP_METADATA, groups), counts)
        case View.RECORDS:
            rows = to_arrow(COMMITS, _wanted(commits, request))
            return Decoded(rows, counts, to_arrow(GROUP_METADATA, groups))
    return Decoded(None, counts)


def _add_row(
    placed: PlacedBatch, record: Record, request: DecodeRequest, counts: Counts, commits: list[Row], groups: list[Row]
) -> None:
    """Count a record; add its row to those of its table if the view has it."""
    counts.records += 1
    if placed.batch.is_control:
        placed.end_marker(record)
        counts.markers += 1
        return
    found = _content(placed, record)
    if isinstance(found, UnknownRecord):
        counts.skipped[found.record_type] += 1
    elif type(found.key)._record_type in GROUP_TYPES:
        counts.group_records += 1
        if request.view.has_groups:
            groups.append(group_row(request.log_partition, record, found))
    else:
        counts.tombstones += found.value is None
        counts.commits += found.value is not None
        if request.view.has_commits:
            commits.append(commit_row(request.log_partition, record, found, _transaction_of(placed.batch)))


def _max_timestamp(batch: Batch) -> int:
    """Return the maximum timestamp of a batch; -1 in magic 0, which has no timestamps."""
    return batch.header.max_timestamp if isinstance(batch, RecordBatch) else batch.message.timestamp


def _transaction_of(batch: Batch) -> int | None:
    """Return the producer id of a batch in a transaction; None for others."""
    if not isinstance(batch, RecordBatch) or not batch.is_transactional:
        return None
    return none_if(NO_PRODUCER_ID, batch.header.producer_id)


def _content(placed: PlacedBatch, record: Record) -> CoordinatorRecord | UnknownRecord:
    """Decode key and value of a record; of a type that no table has, only the type.

    Raises:
        BadKey, BadValue: they are malformed.
    """
    try:
        return read_record(READ_TYPES, record.key, record.value)
    except DecodeError as error:
        raise placed.damage(kind_of_damage(record), reason_of(error), record.offset) from None


def kind_of_damage(record: Record) -> type[CorruptLog]:
    """Return which part of a record cannot be decoded: `BadKey` or `BadValue`."""
    try:
        read_record(READ_TYPES, record.key, None)
    except DecodeError:
        return BadKey
    return BadValue


def _wanted(rows: list[Row], request: DecodeRequest) -> list[Row]:
    """Return the rows with the states of their transactions, without those that the request leaves out."""
    indexes = [index for index, row in enumerate(rows) if row[PRODUCER_ID] is not None]
    states = request.outcomes([(rows[index][PRODUCER_ID], rows[index][LOG_OFFSET]) for index in indexes])
    for index, state in zip(indexes, states, strict=True):
        rows[index] = (*rows[index][:TXN_STATE], TXN_STATES[state])
    if request.only_last:
        rows = sorted({KEY_AND_STATE(row): row for row in rows}.values(), key=itemgetter(LOG_OFFSET))
    return rows


def to_arrow(table: Table, rows: list[Row]) -> pa.RecordBatch:
    """Return rows of a table as an Arrow record batch."""
    import pyarrow as pa

    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)
    schema = table.arrow()
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


assert set(READ_TYPES) == {*OFFSET_TYPES, *GROUP_TYPES}, "each type that is read has a table"
