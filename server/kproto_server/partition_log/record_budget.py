"""What the records of one Produce request may cost that the broker decodes, instead of storing their bytes.

Decoded are records for a topic with compaction, timestamp bounds or a compression of its own, and messages of magic 0
and 1. A request that would take more than 100 ms for it gets MESSAGE_TOO_LARGE, to which producers respond with smaller
batches. DEVIATION: a real broker has no limit.
"""

from __future__ import annotations

from kproto.errors import TooManyElements
from kproto.records.message_set import LegacyBatch, read_plain_messages
from kproto.records.record import Record
from kproto.records.record_batch import RecordBatch

DECODED_RECORDS_MAX = 30_000
"""Records of a request, if they have no headers."""
MESSAGE_COST = 3
"""A message of magic 0 or 1 counts as so many records."""
HEADERS_OF_RECORD = 2
"""So many headers count as one record more."""
DECODED_CONTENT_MAX_BYTES = 8 << 20
"""Bytes of a batch when it is uncompressed."""


class RecordBudget:
    """The records that the batches of one request may still have decoded, and their headers."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left: int = DECODED_RECORDS_MAX * HEADERS_OF_RECORD
        """Headers."""

    def records_of(self, batch: RecordBatch | LegacyBatch) -> list[Record]:
        """Return the decoded records of a batch.

        Raises:
            TooManyElements: the batches of the request have too many records or headers.
            ContentTooLarge: the batch is too large when it is uncompressed.
            DecodeError, MissingPackage: as for `RecordBatch.records`.
        """
        if isinstance(batch, LegacyBatch):
            count_max = self._left // (MESSAGE_COST * HEADERS_OF_RECORD)
            records = batch.records(content_size_max=DECODED_CONTENT_MAX_BYTES, count_max=count_max)
            self._take(len(records) * MESSAGE_COST)
            return records
        self._take(batch.header.record_count)
        records = batch.records(content_size_max=DECODED_CONTENT_MAX_BYTES, headers_max=self._left)
        self._left -= sum(len(record.headers) for record in records)
        return records

    def plain_messages(self, records: bytes, magic: int) -> tuple[list[Record], int]:
        """Return the records of the first uncompressed messages, and the position after them.

        Raises:
            TooManyElements: as for `records_of`.
        """
        count_max = self._left // (MESSAGE_COST * HEADERS_OF_RECORD)
        found, end = read_plain_messages(records, magic, count_max=count_max + 1)
        self._take(len(found) * MESSAGE_COST)
        return found, end

    def _take(self, record_count: int) -> None:
        self._left -= record_count * HEADERS_OF_RECORD
        if self._left < 0:
            raise TooManyElements
