"""Which records compaction keeps (LF-70 to LF-72); pure.

Theory of operation. All batches from the first one that was not compacted yet are noted, in their order; then all
batches from the log's beginning are asked what stays of them. A record stays if it is the newest of its key among those
noted, or if none of its key was. Keys are noted as they are, longer ones by 64 octets of their BLAKE2b hash; Kafka
notes 16 octets of MD5, and takes keys with the same hash for one.

A tombstone has to be seen by whoever reads the log from its beginning, so it outlives the first pass that finds nothing
older by `delete.retention.ms`: the time when it may go stands in its batch, in place of the first timestamp (attribute
bit 6). The same holds for the marker of a transaction, once no record of that is left.

A record of a transaction counts when its marker is noted: not if it says ABORT; then it goes. Where no marker has come,
nothing can be said of what is behind, and compaction ends before (`first_open`). A tombstone of a transaction removes
nothing: coordinators do not agree on what it says (LF-34). Message sets stay whole if anything of them does, and their
tombstones until there is something newer: they have no place for a time (Kafka asks the file's).
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from kproto.records.checksum import crc32c
from kproto.records.compression import COMPRESSION_MASK, Compression, compress, compression_of, decompress
from kproto.records.control import ControlType, control_type
from kproto.records.message_set import read_legacy_batch
from kproto.records.record_batch import (
    APPEND_TIME,
    CHECKED_FROM,
    CONTROL,
    DELETE_HORIZON,
    HEADER_SIZE,
    LENGTH_MIN,
    MAGIC,
    TRANSACTIONAL,
)
from kproto_server.storage.record_positions import record_positions, with_timestamp_delta

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from kproto_server.storage.record_positions import RecordPosition

HEADER = Struct(">qiibIhiqqqhii")
KEY_SIZE_MAX = 64
"""Octets of a key that is noted as it is: about as long are those of offsets."""
RECORDS_AT_ONCE = 250
"""Of one batch, before others have their turn."""


class Header(NamedTuple):
    """The header of a batch of magic 2."""

    base_offset: int
    length: int
    epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    def encode(self, payload: bytes) -> bytes:
        """Return it in front of its records, with the right length and checksum."""
        packed = HEADER.pack(*self._replace(length=LENGTH_MIN + len(payload), crc=0))
        checked = packed[CHECKED_FROM:] + payload
        return packed[: CHECKED_FROM - 4] + crc32c(checked).to_bytes(4, "big") + checked


class _Transaction:
    """One that has not ended yet."""

    __slots__ = ("bases", "newest")

    def __init__(self) -> None:
        self.bases: list[int] = []
        self.newest: dict[bytes, int] = {}


class RetainedRecords:
    """What stays of one log."""

    def __init__(self, now_ms: int, delete_retention_ms: int) -> None:
        self._now_ms = now_ms
        self._horizon_ms = now_ms + delete_retention_ms
        self.newest: dict[bytes, int] = {}
        """The newest offset of each key that is noted."""
        self._open: dict[int, _Transaction] = {}
        """By producer."""
        self._aborted: set[int] = set()
        """Base offsets of batches whose transaction was aborted."""
        self._kept: set[int] = set()
        """Producers of whose present transaction something stays."""

    @property
    def key_count(self) -> int:
        """How many keys are noted."""
        return len(self.newest) + sum(len(transaction.newest) for transaction in self._open.values())

    @property
    def first_open(self) -> int | None:
        """The first offset of a transaction that has not ended; None: there is none."""
        return min((transaction.bases[0] for transaction in self._open.values()), default=None)

    # The first pass.

    def note(self, batch: bytes) -> Iterator[None]:
        """Note the next batch; yields now and then."""
        if batch[16] != MAGIC:
            for record in read_legacy_batch(batch, check_crc=False)[0].records():
                if record.key is not None:
                    self.newest[_key(record.key)] = record.offset
            return
        header = Header._make(HEADER.unpack_from(batch))
        if header.attributes & CONTROL:
            self._end_transaction(header, batch)
            return
        newest, base = self.newest, header.base_offset
        is_transactional = header.attributes & TRANSACTIONAL
        if is_transactional:
            transaction = self._open.setdefault(header.producer_id, _Transaction())
            transaction.bases.append(base)
            newest = transaction.newest
        data, position = _records(batch, header)
        for left in range(header.record_count, 0, -RECORDS_AT_ONCE):
            places, position = record_positions(data, position, min(left, RECORDS_AT_ONCE))
            for _, _, _, _, offset_delta, key, is_tombstone in places:
                if key is not None and not (is_transactional and is_tombstone):
                    newest[key if len(key) <= KEY_SIZE_MAX else _key(key)] = base + offset_delta
            if left > RECORDS_AT_ONCE:
                yield

    def _end_transaction(self, header: Header, batch: bytes) -> None:
        transaction = self._open.pop(header.producer_id, None)
        if transaction is None:
            return
        if _is_abort(header, batch):
            self._aborted.update(transaction.bases)
            return
        newest = self.newest
        for key, offset in transaction.newest.items():
            newest[key] = max(offset, newest.get(key, offset))

    # The second pass.

    def what_stays(self, batch: bytes) -> Generator[None, None, bytes | None]:
        """Return what the next batch becomes: nothing, or something else; None: it stays. Yields like `note`."""
        if batch[16] != MAGIC:
            records = read_legacy_batch(batch, check_crc=False)[0].records()
            stays = any(record.key is None or self._is_newest(record.key, record.offset) for record in records)
            return None if stays else b""
        header = Header._make(HEADER.unpack_from(batch))
        if header.attributes & CONTROL:
            return self._marker(header, batch)
        if header.base_offset in self._aborted:
            return b""
        data, position = _records(batch, header)
        has_horizon = header.attributes & DELETE_HORIZON
        is_over = has_horizon and header.base_timestamp <= self._now_ms
        stay: list[RecordPosition] = []
        has_tombstones = False
        for left in range(header.record_count, 0, -RECORDS_AT_ONCE):
            places, position = record_positions(data, position, min(left, RECORDS_AT_ONCE))
            for place in places:
                key = place[5]
                if (is_over and place[6]) or not (key is None or self._is_newest(key, header[0] + place[4])):
                    continue
                stay.append(place)
                has_tombstones = has_tombstones or place[6]
            if left > RECORDS_AT_ONCE:
                yield
        if stay and header.attributes & TRANSACTIONAL:
            self._kept.add(header.producer_id)
        gets_horizon = has_tombstones and not has_horizon
        if len(stay) == header.record_count and not gets_horizon:
            return None
        if not stay:
            return b""
        return _rebuilt(header, data, stay, self._horizon_ms if gets_horizon else None)

    def _is_newest(self, key: bytes, offset: int) -> bool:
        return self.newest.get(key if len(key) <= KEY_SIZE_MAX else _key(key), offset) <= offset

    def _marker(self, header: Header, batch: bytes) -> bytes | None:
        """A marker goes some time after the last record of its transaction (LF-71)."""
        if header.producer_id in self._kept:
            self._kept.remove(header.producer_id)
            return None
        if not header.attributes & DELETE_HORIZON:
            data, position = _records(batch, header)
            return _rebuilt(header, data, record_positions(data, position, header.record_count)[0], self._horizon_ms)
        return b"" if header.base_timestamp <= self._now_ms else None


def _key(key: bytes) -> bytes:
    """Return what stands for a key: never the same for two."""
    return key if len(key) <= KEY_SIZE_MAX else b"\0" + blake2b(key).digest()


def _records(batch: bytes, header: Header) -> tuple[bytes, int]:
    """Return the uncompressed records, and where they begin."""
    compression = compression_of(header.attributes, "RecordBatch.attributes", CHECKED_FROM)
    if compression is Compression.NONE:
        return batch, HEADER_SIZE
    return decompress(compression, batch[HEADER_SIZE:]), 0


def _is_abort(header: Header, batch: bytes) -> bool:
    data, position = _records(batch, header)
    places, _ = record_positions(data, position, header.record_count)
    return any(control_type(place.key) == ControlType.ABORT for place in places)


def _rebuilt(header: Header, data: bytes, stay: list[RecordPosition], horizon_ms: int | None) -> bytes:
    """Return a batch of these records, or one that tells when its tombstones may go; its offsets stay (LF-72)."""
    base_timestamp = header.base_timestamp
    attributes = header.attributes
    if horizon_ms is None:
        payload = b"".join([data[place.start : place.end] for place in stay])
    else:
        later_ms = horizon_ms - base_timestamp
        payload = b"".join([with_timestamp_delta(data, place, place.timestamp_delta - later_ms) for place in stay])
        attributes |= DELETE_HORIZON
    if not attributes & APPEND_TIME:
        header = header._replace(max_timestamp=base_timestamp + max(place.timestamp_delta for place in stay))
    changed = header._replace(
        base_timestamp=base_timestamp if horizon_ms is None else horizon_ms,
        attributes=attributes,
        record_count=len(stay),
    )
    return changed.encode(compress(Compression(attributes & COMPRESSION_MASK), payload))
