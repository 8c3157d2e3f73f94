"""Rows of `COMMITS` from keys and values that somebody else took out of the batches: Spark's Kafka connector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kproto.errors import DecodeError
from kproto.records.coordinator import CoordinatorRecord, read_record
from kproto.records.record import Record
from kproto.spark.decode import plain
from kproto.spark.decode.blocks import PAD
from kproto.spark.decode.commit_columns import read_keys, read_values, to_arrow
from kproto.spark.decode.errors import BadKey, BadValue
from kproto.spark.decode.octets import Octets, Suspect
from kproto.spark.decode.record_table import RecordTable
from kproto.spark.decode.rows import OFFSET_TYPES, READ_TYPES, commit_row
from kproto.spark.schemas import COMMITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

TYPE_SIZE = 2


def commits_of_pairs(rows: pa.RecordBatch) -> pa.Table:
    """Return the commits among rows with ``partition``, ``offset``, ``timestamp``, ``key`` and ``value``.

    Raises:
        BadKey, BadValue: a key or value does not have its layout.
    """
    table = pa.Table.from_batches([rows]).sort_by([("partition", "ascending"), ("offset", "ascending")])
    found = [
        _of_partition(table.filter(pc.equal(table["partition"], number)), number.as_py())
        for number in table["partition"].unique()
    ]
    return pa.Table.from_batches(found, COMMITS.arrow())


def _of_partition(rows: pa.Table, number: int) -> pa.RecordBatch:
    key, value = (rows[name].combine_chunks() for name in ("key", "value"))
    try:
        records = _table(rows, key, value)
        kinds = records.octets.int16(records.key)
        commits = records.where(np.isin(kinds, OFFSET_TYPES))
        nobody = np.full(len(commits.offset), -1, np.int64)
        keys, values = read_keys(commits), read_values(commits)
        return to_arrow(commits, keys, values, number, nobody, np.zeros_like(nobody))
    except Suspect:
        return _one_by_one(rows, number)


def _table(rows: pa.Table, key: pa.Array, value: pa.Array) -> RecordTable:
    """Put each key before its value in one buffer."""
    key_size, value_size = _sizes(key), _sizes(value)
    if (key_size < TYPE_SIZE).any():
        raise Suspect
    joined = b"".join(piece for pair in zip(key.to_pylist(), value.to_pylist(), strict=True) for piece in pair if piece)
    ends = np.cumsum(key_size + np.maximum(value_size, 0))
    begins = np.concatenate(([0], ends[:-1]))
    moments = rows["timestamp"].combine_chunks().cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
    batch = np.zeros(len(ends), np.int64)
    offset = rows["offset"].to_numpy()
    return RecordTable(
        Octets(joined + PAD), batch, offset, moments.to_numpy(), begins, key_size, begins + key_size, value_size
    )


def _sizes(column: pa.Array) -> NDArray[np.int64]:
    sizes: NDArray[np.int64] = pc.fill_null(pc.binary_length(column), -1).to_numpy(zero_copy_only=False)
    return sizes.astype(np.int64)


def _one_by_one(rows: pa.Table, number: int) -> pa.RecordBatch:
    found = []
    for row in rows.select(["offset", "timestamp", "key", "value"]).to_pylist():
        moment = round(row["timestamp"].timestamp() * 1000)
        record = Record(row["key"], row["value"], (), moment, row["offset"])
        try:
            said = read_record(READ_TYPES, record.key, record.value)
        except DecodeError as error:
            kind = BadValue if plain.has_key(record) else BadKey
            raise kind(f"__consumer_offsets-{number}", 0, record.offset, f"{error.path}: {error.reason}") from None
        if isinstance(said, CoordinatorRecord) and type(said.key)._record_type in OFFSET_TYPES:
            found.append(commit_row(number, record, said, None))
    return plain.to_arrow(COMMITS, found)
