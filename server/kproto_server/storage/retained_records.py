"""The records that compaction retains (LF-70 to LF-72). Pure: batches in, batches out."""

# Theory of operation. Compaction reads a log twice, as Kafka's cleaner does:
#
# 1. `add_to_offset_map` gets every batch that was written since the last compaction, in order, and builds the offset
#    map: the newest offset of each key.
# 2. `filter_batch` gets every batch from the beginning of the log and returns what compaction retains of it: records
#    whose key has no newer offset in the map, and records without a key.
#
# The map may cover less than the log, if memory allows no more keys. Then the caller ends both passes at the same
# offset.
#
# *Keys.* The map has keys of up to 64 bytes as they are, which includes nearly all keys of the offsets topic, and a
# 64-byte BLAKE2b hash of longer ones. Kafka stores 16 bytes of MD5, and takes two keys with the same hash for one.
#
# *Tombstones.* A consumer that reads the log from the beginning must see a tombstone, or it would keep the value that
# the tombstone deletes. So a tombstone stays for `delete.retention.ms` after the first compaction that found it the
# newest record of its key. That compaction writes the time when it may go, the *delete horizon*, into the batch:
# attribute bit 6, and the time in place of the base timestamp. A later compaction after that time drops the tombstone.
#
# *Transactions.* A record of a transaction counts from its marker on. COMMIT moves the keys of the transaction into the
# map; ABORT marks its batches for removal. The records after the beginning of an open transaction cannot be decided, so
# the caller ends at `first_unstable_offset`. A marker stays while records of its transaction do, and for
# `delete.retention.ms` after that, with a delete horizon like a tombstone. A tombstone in a transaction removes
# nothing: coordinators of different versions read it differently (LF-34).
#
# *Message sets* of magic 0 and 1 are retained whole or not at all, and their tombstones until there is a newer record:
# they have no attribute for a delete horizon (Kafka uses the modification time of the file).
#
# *Unreadable batches*, and batches whose offsets do not rise, are retained whole, and their keys count for nothing: a
# broker accepts such records uncompressed. Kafka's cleaner gives up the log at a batch that it cannot rebuild
# (measured on 3.9.2).
#
# *Timestamps* may be as far apart as two numbers of 64 bits can be: sums wrap around, as in Java. A batch that cannot
# be built nevertheless is retained whole.
#
# Both passes are generators, which yield inside large batches, so that the event loop is not blocked.

from __future__ import annotations

import struct
from hashlib import blake2b
from operator import lt
from typing import TYPE_CHECKING

from kproto.errors import DecodeError, EncodeError
from kproto.jvm.arithmetic import wrapped
from kproto.records.batch_header import (
    APPEND_TIME,
    CHECKED_FROM,
    CONTROL,
    DELETE_HORIZON,
    HEADER_SIZE,
    MAGIC,
    MAGIC_POSITION,
    TRANSACTIONAL,
    RecordBatchHeader,
)
from kproto.records.compression import COMPRESSION_MASK, Compression, compress, compression_of, decompress
from kproto.records.control import ControlType, control_type
from kproto.records.message_set import read_legacy_batch
from kproto.records.record_batch import read_header, seal
from kproto_server.storage.record_positions import record_positions, with_timestamp_delta

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from kproto.records.record import Record
    from kproto_server.storage.record_positions import RecordPosition

KEY_SIZE_MAX_BYTES = 64
"""Longer keys are hashed. Keys of committed offsets are about this long."""
RECORDS_PER_STEP = 250
"""Records between two yields."""


class _Transaction:
    """A transaction without a marker so far."""

    __slots__ = ("base_offsets", "offset_map")

    def __init__(self) -> None:
        self.base_offsets: list[int] = []
        self.offset_map: dict[bytes, int] = {}


class RetainedRecords:
    """The two passes over one log: reference implementation of `FastRetainedRecords`."""

    def __init__(self, now_ms: int, delete_retention_ms: int) -> None:
        self._now_ms = now_ms
        self._delete_horizon_ms = wrapped(now_ms + delete_retention_ms)
        self.offset_map: dict[bytes, int] = {}
        """The newest offset of each key."""
        self._open_transactions: dict[int, _Transaction] = {}
        """By producer id."""
        self._aborted: set[int] = set()
        """Base offsets of the batches of aborted transactions."""
        self._producers_with_records: set[int] = set()
        """Ids of producers with a retained record since their last marker."""

    @property
    def key_count(self) -> int:
        """Number of keys in memory."""
        return len(self.offset_map) + sum(len(each.offset_map) for each in self._open_transactions.values())

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of an open transaction; None if there is none."""
        return min((each.base_offsets[0] for each in self._open_transactions.values()), default=None)

    # First pass.

    def add_to_offset_map(self, batch: bytes) -> Iterator[None]:
        """Add the keys of the next batch to the offset map."""
        if batch[MAGIC_POSITION] != MAGIC:
            for record in _legacy_records(batch):
                if record.key is not None:
                    self.offset_map[_map_key(record.key)] = record.offset
            return
        header = read_header(batch)
        if header.attributes & CONTROL:
            self._end_transaction(header, batch)
            return
        offset_map, base = self.offset_map, header.base_offset
        is_transactional = header.attributes & TRANSACTIONAL
        if is_transactional:
            # Its keys wait for the marker in a map of their own.
            transaction = self._open_transactions.setdefault(header.producer_id, _Transaction())
            transaction.base_offsets.append(base)
            offset_map = transaction.offset_map
        read = yield from _read(batch, header)
        for index, (_, _, _, _, offset_delta, key, is_tombstone) in enumerate(() if read is None else read[1], 1):
            if key is not None and not (is_transactional and is_tombstone):
                offset_map[key if len(key) <= KEY_SIZE_MAX_BYTES else _map_key(key)] = base + offset_delta
            if not index % RECORDS_PER_STEP:
                yield

    def _end_transaction(self, header: RecordBatchHeader, batch: bytes) -> None:
        transaction = self._open_transactions.pop(header.producer_id, None)
        if transaction is None:
            # Its records were compacted before, or it had none in this partition.
            return
        if _is_abort(header, batch):
            # The second pass drops these batches whole.
            self._aborted.update(transaction.base_offsets)
            return
        # A key of the transaction can also have a newer record outside of it, between its records and its marker.
        offset_map = self.offset_map
        for key, offset in transaction.offset_map.items():
            offset_map[key] = max(offset, offset_map.get(key, offset))

    # Second pass.

    def filter_batch(self, batch: bytes) -> Generator[None, None, bytes | None]:
        """Return the retained part of the next batch: None for all of it unchanged, or empty bytes for nothing."""
        if batch[MAGIC_POSITION] != MAGIC:
            records = _legacy_records(batch)
            is_retained = any(record.key is None or self._is_newest(record.key, record.offset) for record in records)
            return None if is_retained or not records else b""
        header = read_header(batch)
        if header.attributes & CONTROL:
            return self._filter_marker(header, batch)
        base = header.base_offset
        if base in self._aborted:
            return b""
        read = yield from _read(batch, header)
        if read is None:
            if header.attributes & TRANSACTIONAL:
                self._producers_with_records.add(header.producer_id)
            return None
        data, positions = read
        has_horizon = header.attributes & DELETE_HORIZON
        is_past_horizon = has_horizon and header.base_timestamp <= self._now_ms
        retained: list[RecordPosition] = []
        has_tombstones = False
        for index, record in enumerate(positions, 1):
            key = record[5]
            is_newest = key is None or self._is_newest(key, base + record[4])
            if is_newest and not (is_past_horizon and record[6]):
                retained.append(record)
                has_tombstones = has_tombstones or record[6]
            if not index % RECORDS_PER_STEP:
                yield
        if retained and header.attributes & TRANSACTIONAL:
            self._producers_with_records.add(header.producer_id)
        # A batch with a horizon keeps it: its tombstones have the time of the first compaction that found them newest.
        gets_horizon = has_tombstones and not has_horizon
        if len(retained) == header.record_count and not gets_horizon:
            return None
        if not retained:
            return b""
        return _rebuild(header, data, retained, self._delete_horizon_ms if gets_horizon else None)

    def _is_newest(self, key: bytes, offset: int) -> bool:
        # A key that is not in the map has no record in the dirty part of the log: its old record is the newest.
        return self.offset_map.get(key if len(key) <= KEY_SIZE_MAX_BYTES else _map_key(key), offset) <= offset

    def _filter_marker(self, header: RecordBatchHeader, batch: bytes) -> bytes | None:
        """Return what becomes of a marker: it goes some time after the last record of its transaction (LF-71)."""
        if header.producer_id in self._producers_with_records:
            # Batches come in log order, so these are records of the transaction that the marker ends.
            self._producers_with_records.remove(header.producer_id)
            return None
        if not header.attributes & DELETE_HORIZON:
            data, position = _records(batch, header)
            records = record_positions(data, position, header.record_count)[0]
            return _rebuild(header, data, records, self._delete_horizon_ms)
        return b"" if header.base_timestamp <= self._now_ms else None


def _map_key(key: bytes) -> bytes:
    """Return the key of the offset map for a key. A hash has 65 bytes, more than any key that is stored as it is."""
    return key if len(key) <= KEY_SIZE_MAX_BYTES else b"\0" + blake2b(key).digest()


def _records(batch: bytes, header: RecordBatchHeader) -> tuple[bytes, int]:
    """Return bytes with the uncompressed records of a batch, and the position of the first record."""
    compression = compression_of(header.attributes, "RecordBatch.attributes", CHECKED_FROM)
    if compression is Compression.NONE:
        return batch, HEADER_SIZE
    return decompress(compression, batch[HEADER_SIZE:]), 0


def _read(batch: bytes, header: RecordBatchHeader) -> Generator[None, None, tuple[bytes, list[RecordPosition]] | None]:
    """Return the uncompressed records of a batch, and their positions; None if the batch is retained whole.

    A compressed batch is decompressed as a whole, however few of its records are retained.
    """
    positions: list[RecordPosition] = []
    try:
        data, position = _records(batch, header)
        for left in range(header.record_count, 0, -RECORDS_PER_STEP):
            some, position = record_positions(data, position, min(left, RECORDS_PER_STEP))
            positions += some
            if left > RECORDS_PER_STEP:
                yield
    except DecodeError:
        return None
    deltas = [-1, *(record.offset_delta for record in positions), header.last_offset_delta + 1]
    return (data, positions) if position == len(data) and all(map(lt, deltas, deltas[1:])) else None


def _legacy_records(batch: bytes) -> list[Record]:
    """Return the records of a message set, whose checksum was checked before; none if they cannot be read."""
    try:
        return list(read_legacy_batch(batch, check_crc=False)[0].records())
    except DecodeError:
        return []


def _is_abort(header: RecordBatchHeader, batch: bytes) -> bool:
    data, position = _records(batch, header)
    records, _ = record_positions(data, position, header.record_count)
    return any(control_type(record.key) == ControlType.ABORT for record in records)


def _rebuild(
    header: RecordBatchHeader, data: bytes, retained: list[RecordPosition], horizon_ms: int | None
) -> bytes | None:
    """Return a batch of the retained records, with a delete horizon unless None; offsets stay (LF-72).

    None: they cannot be encoded, and the batch is retained whole.
    """
    try:
        return _built(header, data, retained, horizon_ms)
    except (EncodeError, struct.error):
        return None


def _built(header: RecordBatchHeader, data: bytes, retained: list[RecordPosition], horizon_ms: int | None) -> bytes:
    base_timestamp = header.base_timestamp
    attributes = header.attributes
    if horizon_ms is None:
        payload = b"".join([data[record.start : record.end] for record in retained])
    else:
        # The horizon takes the place of the base timestamp, so all timestamp deltas shift.
        shift_ms = horizon_ms - base_timestamp
        payload = b"".join(
            [with_timestamp_delta(data, record, wrapped(record.timestamp_delta - shift_ms)) for record in retained]
        )
        attributes |= DELETE_HORIZON
    # With append time the greatest timestamp is that of the broker, and the timestamp of every record.
    if not attributes & APPEND_TIME:
        timestamps = [wrapped(base_timestamp + record.timestamp_delta) for record in retained]
        header = header.replace(max_timestamp=max(timestamps))
    changed = header.replace(
        base_timestamp=base_timestamp if horizon_ms is None else horizon_ms,
        attributes=attributes,
        record_count=len(retained),
    )
    return seal(changed, compress(Compression(attributes & COMPRESSION_MASK), payload))
