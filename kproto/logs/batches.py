"""Decode one batch of a block; every error names the file, the position and the offset."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import CorruptBatch, CorruptLog, DecodeError
from kproto.logs.errors import BadBatch, BadChecksum, BadCompression, BadMarker, BadOffset, BadRecords, UnknownMagic
from kproto.records.batches import first_offset, read_batch
from kproto.records.control import read_end_marker
from kproto.records.record_batch import RecordBatch
from kproto.records.segment import RELATIVE_OFFSET_MAX

if TYPE_CHECKING:
    from kproto.logs.blocks import Block
    from kproto.records.batches import Batch
    from kproto.records.compression import Compression
    from kproto.records.control import ControlType
    from kproto.records.record import Record


class PlacedBatch(NamedTuple):
    """A decoded batch and its position in a block."""

    block: Block
    start: int
    batch: Batch

    @property
    def position(self) -> int:
        """Position of the batch in its file, in bytes."""
        return self.block.position + self.start

    @property
    def end(self) -> int:
        """Position of the end of the batch in its file."""
        return self.position + self.batch.size

    def compression(self) -> Compression:
        """Return the compression.

        Raises:
            BadCompression: there is no such compression.
        """
        try:
            return self.batch.compression
        except DecodeError as error:
            raise self.damage(BadCompression, reason_of(error)) from None

    def records(self) -> list[Record]:
        """Return the records.

        Raises:
            BadChecksum, BadCompression, BadRecords: they cannot be decoded.
            MissingPackage: their compression needs a package that is not installed.
        """
        try:
            return self.batch.records()
        except CorruptBatch as error:
            raise self.damage(BadChecksum, reason_of(error)) from None
        except DecodeError as error:
            is_codec = error.path.startswith("records (") or error.path.endswith(".attributes")
            raise self.damage(BadCompression if is_codec else BadRecords, reason_of(error)) from None

    def first_offset(self, records: list[Record]) -> int:
        """Return the first offset. Of a message set it is known by its records only; without them, the last offset."""
        if isinstance(self.batch, RecordBatch):
            return self.batch.base_offset
        return records[0].offset if records else self.batch.last_offset

    def check_offsets(self, records: list[Record], next_offset: int) -> None:
        """Check that offsets rise: from ``next_offset`` on, and within the batch and the segment.

        Raises:
            BadOffset: an offset is out of order or out of range.
        """
        first, last, segment_base = self.first_offset(records), self.batch.last_offset, self.block.base_offset
        if first < next_offset:
            reason = f"offsets must rise, and offset {next_offset - 1} is before it"
            if next_offset == segment_base:
                reason = f"the name of the segment says that it begins with offset {segment_base}"
            raise self.damage(BadOffset, reason, first)
        if last > self.block.offset_max:
            reason = f"more than {RELATIVE_OFFSET_MAX} above the base offset of the segment, {segment_base}"
            raise self.damage(BadOffset, reason, last)
        before = first - 1
        for record in records:
            if not before < record.offset <= last:
                reason = f"a record in a batch of offsets {first} to {last} follows offset {before}"
                raise self.damage(BadOffset, reason, record.offset)
            before = record.offset

    def end_marker(self, record: Record) -> tuple[ControlType, int]:
        """Return ``(outcome, coordinator epoch)`` of a control record that ends a transaction.

        Raises:
            BadMarker: the record does not end a transaction.
        """
        try:
            return read_end_marker(record)
        except DecodeError as error:
            raise self.damage(BadMarker, reason_of(error), record.offset) from None

    def damage(self, kind: type[CorruptLog], reason: str, offset: int | None = None) -> CorruptLog:
        """Return an error for damage in this batch; by default its offset is the first one of the batch."""
        return _damage(self.block, self.start, kind, reason, offset)


def batch_at(block: Block, start: int, *, check_crc: bool = True) -> PlacedBatch:
    """Decode the header of the batch at a position of a block.

    Raises:
        BadChecksum, UnknownMagic, BadBatch: the batch is invalid.
    """
    try:
        found = read_batch(block.data, start, check_crc=check_crc)
    except CorruptBatch as error:
        raise _damage(block, start, BadChecksum, reason_of(error)) from None
    except DecodeError as error:
        kind = UnknownMagic if error.path == "batch.magic" else BadBatch
        raise _damage(block, start, kind, reason_of(error)) from None
    assert found is not None, "a block has whole batches"
    return PlacedBatch(block, start, found[0])


def reason_of(error: DecodeError) -> str:
    """Return the field and the reason of an error. Its position is left out: it may count from a batch or a record."""
    return f"{error.path}: {error.reason}"


def _damage(block: Block, start: int, kind: type[CorruptLog], reason: str, offset: int | None = None) -> CorruptLog:
    found = first_offset(block.data, start) if offset is None else offset
    return kind(block.file, block.position + start, found, reason)
