"""Rows of `COMMITS` and `GROUP_METADATA` from keys and values without batches, as Spark's Kafka connector returns them.

The state of a transaction and its producer stand in the headers of batches, so these columns are null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kproto.arrow import reference
from kproto.arrow.buffer import Buffer, UnusualBlock
from kproto.arrow.commit_columns import read_keys, read_values, to_arrow
from kproto.arrow.record_rows import GROUP_TYPES, OFFSET_TYPES, READ_TYPES, commit_row, group_row
from kproto.arrow.record_table import RecordTable
from kproto.arrow.schemas import COMMITS, GROUP_METADATA
from kproto.errors import DecodeError
from kproto.logs.batches import reason_of
from kproto.logs.blocks import PAD
from kproto.records.coordinator import PREFIX_SIZE, CoordinatorRecord, read_record
from kproto.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


def commits_of_pairs(rows: pa.RecordBatch) -> pa.Table:
    """Return the offset commits of rows with ``partition``, ``offset``, ``timestamp``, ``key`` and ``value``.

    Raises:
        BadKey, BadValue: a key or value is malformed.
    """
    table = pa.Table.from_batches([rows]).sort_by([("partition", "ascending"), ("offset", "ascending")])
    found = [
        _commits_of_partition(table.filter(pc.equal(table["partition"], number)), number.as_py())
        for number in table["partition"].unique()
    ]
    commits = pa.Table.from_batches(found, COMMITS.arrow())
    unknown = pa.nulls(len(commits), pa.string())
    return commits.set_column(commits.column_names.index("txn_state"), commits.field("txn_state"), unknown)


def groups_of_pairs(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the records about groups and members, of rows as in `commits_of_pairs`.

    Raises:
        BadKey, BadValue: a key or value is malformed.
    """
    found = [
        group_row(number, record, content)
        for number, record, content in _contents(rows)
        if type(content.key)._record_type in GROUP_TYPES
    ]
    return reference.to_arrow(GROUP_METADATA, found)


def _commits_of_partition(rows: pa.Table, number: int) -> pa.RecordBatch:
    key, value = (rows[name].combine_chunks() for name in ("key", "value"))
    try:
        records = _table(rows, key, value)
        kinds = records.buffer.int16(records.key)
        commits = records.where(np.isin(kinds, OFFSET_TYPES))
        no_producer = np.full(len(commits.offset), -1, np.int64)
        keys, values = read_keys(commits), read_values(commits)
        return to_arrow(commits, keys, values, number, no_producer, np.zeros_like(no_producer))
    except UnusualBlock:
        return _one_by_one(rows, number)


def _table(rows: pa.Table, key: pa.Array, value: pa.Array) -> RecordTable:
    """Return a record table over one buffer that has each key followed by its value."""
    key_size, value_size = _sizes(key), _sizes(value)
    if (key_size < PREFIX_SIZE).any():
        raise UnusualBlock
    joined = b"".join(piece for pair in zip(key.to_pylist(), value.to_pylist(), strict=True) for piece in pair if piece)
    ends = np.cumsum(key_size + np.maximum(value_size, 0))
    begins = np.concatenate(([0], ends[:-1]))
    timestamp = rows["timestamp"].combine_chunks().cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
    batch = np.zeros(len(ends), np.int64)
    offset = rows["offset"].to_numpy()
    return RecordTable(
        Buffer(joined + PAD), batch, offset, timestamp.to_numpy(), begins, key_size, begins + key_size, value_size
    )


def _sizes(column: pa.Array) -> NDArray[np.int64]:
    sizes: NDArray[np.int64] = pc.fill_null(pc.binary_length(column), -1).to_numpy(zero_copy_only=False)
    return sizes.astype(np.int64)


def _one_by_one(rows: pa.Table, number: int) -> pa.RecordBatch:
    found = [
        commit_row(number, record, content, None)
        for _, record, content in _contents(rows)
        if type(content.key)._record_type in OFFSET_TYPES
    ]
    return reference.to_arrow(COMMITS, found)


def _contents(rows: pa.Table | pa.RecordBatch) -> Iterator[tuple[int, Record, CoordinatorRecord]]:
    """Yield partition, record and content of each row whose type has a table."""
    for row in rows.select(["partition", "offset", "timestamp", "key", "value"]).to_pylist():
        timestamp = round(row["timestamp"].timestamp() * 1000)
        record = Record(row["key"], row["value"], (), timestamp, row["offset"])
        try:
            content = read_record(READ_TYPES, record.key, record.value)
        except DecodeError as error:
            kind = reference.kind_of_damage(record)
            raise kind(f"__consumer_offsets-{row['partition']}", 0, record.offset, reason_of(error)) from None
        if isinstance(content, CoordinatorRecord):
            yield row["partition"], record, content
