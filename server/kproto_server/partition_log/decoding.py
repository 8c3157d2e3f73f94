"""Decode the records of batches for a request in pieces, within a budget, so that no request holds other connections.

A batch of a megabyte may have 150,000 records, or a hundred megabytes when it is decompressed, and a request may name
its partition thousands of times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import DecodeError
from kproto.records.compression import Compression
from kproto.records.message_set import LegacyBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto.records.batches import Batch
    from kproto.records.record import Record

PIECE_RECORDS = 2_000
PIECE_BYTES = 1 << 20
BATCH_COST = 3
"""A batch costs as much as so many records."""
CONTENT_MAX_BYTES = 16 << 20
"""Bytes of a batch when it is decompressed, which takes 40 ms for so many. DEVIATION: a real broker has no limit."""
BYTES_OF_RECORD = 2048
"""To decompress so many bytes costs as much as a record."""


class DecodingBudget:
    """What one request may still have decoded."""

    __slots__ = ("_slice_left", "_slice_records", "content_left_bytes", "records_left")

    def __init__(self, records_max: int, content_max_bytes: int, slice_records: int) -> None:
        """``slice_records``: after so many, other connections are served."""
        self.records_left: int = records_max
        self.content_left_bytes: int = content_max_bytes
        self._slice_records = slice_records
        self._slice_left = slice_records

    @property
    def is_used_up(self) -> bool:
        return self.records_left <= 0 or self.content_left_bytes <= 0

    def take(self, records: int, content_bytes: int = 0) -> None:
        self.records_left -= records
        self.content_left_bytes -= content_bytes
        self._slice_left -= records + content_bytes // BYTES_OF_RECORD

    def take_time(self, records: int) -> None:
        """Count the time of so many records for the slice; more of it may pass."""
        self._slice_left -= records

    def ends_slice(self) -> bool:
        """Return whether other connections have to be served before more is decoded; a new slice begins then."""
        if self._slice_left > 0:
            return False
        self._slice_left = self._slice_records
        return True


def decoded(batch: Batch, budget: DecodingBudget) -> Iterator[list[Record]]:
    """Yield the records of a batch in pieces, each of which is taken from the budget; that may become negative.

    No piece is empty. The records of magic 2 have no headers.

    Raises:
        DecodeError: while iterating: the records do not have their layout, or are too large when decompressed.
        MissingPackage: the compression needs a package that is not installed.
    """
    budget.take(BATCH_COST)
    try:
        if isinstance(batch, LegacyBatch):
            records = batch.records(content_size_max=CONTENT_MAX_BYTES)
            budget.take(len(records), sum(len(record.value or b"") for record in records))
            if records:
                yield records
            return
        content = batch.content(CONTENT_MAX_BYTES)
    except DecodeError:
        budget.take(0, CONTENT_MAX_BYTES)
        raise
    if batch.compression is not Compression.NONE:
        budget.take(0, len(content))
    for piece in batch.pieces(content, PIECE_RECORDS, PIECE_BYTES, with_headers=False):
        budget.take(len(piece))
        yield piece
