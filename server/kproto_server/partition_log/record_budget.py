"""What the records of one Produce request may cost: that they are decompressed, decoded and compressed again.

Decoded are records for a topic with compaction, timestamp bounds or a compression of its own, and messages of magic 0
and 1. A request of up to 1 MiB has one budget; a larger one has another for each MiB, and other clients are served in
between (`Produce`). Batches that would take more than 100 ms get MESSAGE_TOO_LARGE, to which producers respond with
smaller ones. DEVIATION: a real broker has no limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import ContentTooLarge, DecodeError, TooManyElements
from kproto.records.compression import Compression
from kproto.records.message_set import LegacyBatch, read_plain_messages
from kproto.records.record_batch import RecordBatch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto.records.record import Record

DECODED_RECORDS_MAX = 30_000
"""Records of a budget, if they have no headers."""
MESSAGE_COST = 3
"""A message of magic 0 or 1 counts as so many records."""
HEADERS_OF_RECORD = 2
"""So many headers count as one record more."""
CONTENT_MAX_BYTES = 16 << 20
"""Bytes of the content of compressed batches: to decompress so many takes 10 to 40 ms."""
COMPRESSED_COST = 2
"""A compressed byte counts as so many of content: there may be none in it."""
DECODED_CONTENT_MAX_BYTES = 8 << 20
"""Bytes of one batch that is decoded, when it is uncompressed."""
PACKED_MAX_BYTES = 12 << 20
"""Bytes of content that are compressed for topics with a compression of their own: 20 to 50 ms."""
GZIP_COST = 4
"""A byte that is compressed by gzip counts as so many."""


MAX_UTF8_BYTES = 4
"""Of a character."""


class RecordBudget:
    """What the batches of one request may still have decompressed, decoded and compressed again."""

    __slots__ = ("_content_left_bytes", "_left", "_packed_left_bytes")

    def __init__(self) -> None:
        self._left: int = DECODED_RECORDS_MAX * HEADERS_OF_RECORD
        """Headers."""
        self._content_left_bytes: int = CONTENT_MAX_BYTES
        self._packed_left_bytes: int = PACKED_MAX_BYTES

    @property
    def is_used(self) -> bool:
        """Whether anything was taken."""
        left = self._left, self._content_left_bytes, self._packed_left_bytes
        return left != (DECODED_RECORDS_MAX * HEADERS_OF_RECORD, CONTENT_MAX_BYTES, PACKED_MAX_BYTES)

    def records_of(self, batch: RecordBatch | LegacyBatch, content: bytes | None = None) -> list[Record]:
        """Return the decoded records of a batch; ``content``: its encoded records, if they are decompressed already.

        Raises:
            TooManyElements: the batches of the request have too many records or headers.
            ContentTooLarge: the batch, or those of the request, are too large when they are uncompressed.
            DecodeError, MissingPackage: as for `RecordBatch.records`.
        """
        if isinstance(batch, LegacyBatch):
            return self._records_of_message(batch, content)
        self._take(batch.header.record_count)
        if batch.compression is Compression.NONE:
            content = batch.payload
        elif content is None:
            content = self.content_of(batch)
        elif len(content) > DECODED_CONTENT_MAX_BYTES:
            raise ContentTooLarge("records", 0, f"more than {DECODED_CONTENT_MAX_BYTES} bytes of content")
        records = batch.records_of(content, headers_max=self._left)
        self._left -= sum(len(record.headers) for record in records)
        return records

    def content_of(self, batch: RecordBatch | LegacyBatch, size_max: int = DECODED_CONTENT_MAX_BYTES) -> bytes:
        """Return the content of a compressed batch.

        Content that cannot be decompressed may have cost as much as the limit says, so half of what is left is taken.

        Raises:
            ContentTooLarge: the batch has more content than ``size_max``, or than may be decompressed for this request.
            DecodeError, MissingPackage: as for `RecordBatch.content`.
        """
        try:
            content = batch.content(min(self._content_left_bytes, size_max))
        except DecodeError:
            self._content_left_bytes //= 2
            raise
        taken = len(content) + batch.size * COMPRESSED_COST
        self._content_left_bytes = max(0, self._content_left_bytes - taken)
        return content

    def _records_of_message(self, batch: LegacyBatch, content: bytes | None) -> list[Record]:
        count_max = self._left // (MESSAGE_COST * HEADERS_OF_RECORD)
        if batch.compression is Compression.NONE:
            records = batch.records(count_max=count_max)
        else:
            content = self.content_of(batch) if content is None else content
            records = batch.records_of(content, count_max=count_max)
        self._take(len(records) * MESSAGE_COST)
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

    def take_packed(self, records: Iterable[Record], compression: Compression) -> None:
        """Take the records from those that may be compressed.

        Raises:
            TooManyElements: the records of the request have too many bytes.
        """
        if compression is not Compression.NONE:
            size = sum(_content_size(record) for record in records)
            self._packed_left_bytes -= size * (GZIP_COST if compression is Compression.GZIP else 1)
            if self._packed_left_bytes < 0:
                raise TooManyElements

    def _take(self, record_count: int) -> None:
        self._left -= record_count * HEADERS_OF_RECORD
        if self._left < 0:
            raise TooManyElements


def _content_size(record: Record) -> int:
    """Return how many bytes the contents of a record have, or a few more."""
    size = len(record.key or b"") + len(record.value or b"")
    for header in record.headers:
        size += len(header.key) * (1 if header.key.isascii() else MAX_UTF8_BYTES) + len(header.value or b"")
    return size
